//! The LSA header: identity and instance (RFC 5340, section A.4.2).

use crate::ospf::{LinkStateId, RouterId};
use core::cmp::Ordering;
use core::fmt;

/// Age at which an advertisement is flushed, seconds (RFC 2328, appendix B: MaxAge).
pub const MAX_AGE: u16 = 3600;
/// Bit of an age that does not grow (RFC 1793, section 2.2). Routers here do not use it, but may receive it.
pub const DO_NOT_AGE: u16 = 0x8000;
/// Ages that differ by more, in seconds, belong to different instances (RFC 2328, appendix B: MaxAgeDiff).
pub const MAX_AGE_DIFFERENCE: u16 = 900;
/// The cost of unreachable destinations, 24 bits (RFC 2328, appendix B: LSInfinity).
pub const INFINITY: u32 = 0x00ff_ffff;

/// The seconds of an age on the wire: without [`DO_NOT_AGE`], and at most [`MAX_AGE`].
pub const fn seconds(age: u16) -> u16 {
    let seconds = age & !DO_NOT_AGE;
    if seconds < MAX_AGE { seconds } else { MAX_AGE }
}

/// Function and flooding scope of an advertisement, 16 bits (RFC 5340, section A.4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LsaType(pub u16);

/// Flooding scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// Only on the link it was originated for.
    Link,
    /// In its area.
    Area,
    /// Everywhere.
    AutonomousSystem,
}

impl LsaType {
    /// A router's links.
    pub const ROUTER: Self = Self(0x2001);
    /// The routers of a transit network.
    pub const NETWORK: Self = Self(0x2002);
    /// A prefix of another area.
    pub const INTER_AREA_PREFIX: Self = Self(0x2003);
    /// A border router of another area.
    pub const INTER_AREA_ROUTER: Self = Self(0x2004);
    /// A prefix outside of the autonomous system.
    pub const AS_EXTERNAL: Self = Self(0x4005);
    /// A router's addresses on a link.
    pub const LINK: Self = Self(0x0008);
    /// Prefixes of a router or transit network.
    pub const INTRA_AREA_PREFIX: Self = Self(0x2009);

    /// Whether its contents are interpreted here.
    pub const fn is_known(self) -> bool {
        matches!(self.0, 0x2001..=0x2004 | 0x4005 | 0x0008 | 0x2009)
    }

    /// The flooding scope: unknown types without the U-bit stay on the link (section A.4.2.1). `None` for the reserved
    /// scope: such an advertisement is discarded (section 4.5.1).
    pub const fn scope(self) -> Option<Scope> {
        match (self.0 >> 13) & 3 {
            3 => None,
            _ if !self.is_known() && self.0 & 0x8000 == 0 => Some(Scope::Link),
            0 => Some(Scope::Link),
            1 => Some(Scope::Area),
            _ => Some(Scope::AutonomousSystem),
        }
    }
}

impl fmt::Debug for LsaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Identity of an advertisement, shared by its successive instances (RFC 5340, section A.4.2). The order is that of
/// database descriptions: by type, advertising router, link state id (RFC 5243, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LsaKey {
    /// Type.
    pub kind: LsaType,
    /// The originator.
    pub advertising: RouterId,
    /// Distinguishes the originator's advertisements of the type.
    pub id: LinkStateId,
}

impl LsaKey {
    /// All three as one number, for fast comparison: databases are searched for every LSA received.
    const fn number(&self) -> u128 {
        (self.kind.0 as u128) << 64 | (self.advertising.0 as u128) << 32 | self.id.0 as u128
    }
}

impl Ord for LsaKey {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for LsaKey {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Sequence number of an instance: a signed number that increases (RFC 2328, section 12.1.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsaSequence(pub i32);

impl LsaSequence {
    /// The number of the first instance, 0x80000001.
    pub const INITIAL: Self = Self(i32::MIN + 1);
    /// The last number, 0x7fffffff: the advertisement must be flushed before the next instance.
    pub const MAX: Self = Self(i32::MAX);

    /// The following number; `None` after the last.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

impl Default for LsaSequence {
    fn default() -> Self {
        Self::INITIAL
    }
}

impl fmt::Debug for LsaSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// The header of an advertisement: identity and instance (RFC 5340, section A.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LsaHeader {
    /// Seconds since it was originated.
    pub age: u16,
    /// Identity of the advertisement.
    pub key: LsaKey,
    /// Sequence number of the instance.
    pub sequence: LsaSequence,
    /// Checksum of all but the age.
    pub checksum: u16,
    /// Length of the whole, header included, bytes.
    pub length: u16,
}

impl LsaHeader {
    /// Length as encoded, bytes.
    pub const LENGTH: usize = 20;

    /// Which of two instances of one advertisement is more recent: `Greater` if this one, `Equal` if they count as the
    /// same (RFC 2328, section 13.1).
    pub fn compare_instance(&self, other: &Self) -> Ordering {
        let (age, other_age) = (seconds(self.age), seconds(other.age));
        self.sequence
            .cmp(&other.sequence)
            .then(self.checksum.cmp(&other.checksum))
            .then((age == MAX_AGE).cmp(&(other_age == MAX_AGE)))
            .then_with(|| match age.abs_diff(other_age) {
                ..=MAX_AGE_DIFFERENCE => Ordering::Equal,
                _ => other_age.cmp(&age),
            })
    }
}
