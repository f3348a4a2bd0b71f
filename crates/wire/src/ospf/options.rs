//! Option bits of routers and prefixes.

use core::fmt;
use core::ops::BitOr;

/// Capabilities of a router or link, 24 bits (RFC 5340, section A.2).
///
/// In Hellos and database descriptions the bits [`Self::L`] and [`Self::AT`] announce parts after the packet. The codec
/// writes and reads them; they are never set in a [`super::Packet`], which has [`super::Packet::lls`] and the trailer
/// instead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Options(u32);

impl Options {
    /// None.
    pub const NONE: Self = Self(0);
    /// Takes part in IPv6 routing.
    pub const V6: Self = Self(0x01);
    /// Takes part in flooding AS-external-LSAs.
    pub const E: Self = Self(0x02);
    /// Attached to a not-so-stubby area.
    pub const N: Self = Self(0x08);
    /// Forwards packets of others: an active router.
    pub const R: Self = Self(0x10);
    /// Handles demand circuits.
    pub const DC: Self = Self(0x20);
    /// Supports address families (RFC 5838, section 2.2).
    pub const AF: Self = Self(0x100);
    /// A block of link-local signalling follows the packet (RFC 5613, section 2.1).
    pub const L: Self = Self(0x200);
    /// An authentication trailer follows the packet (RFC 7166, section 2.1).
    pub const AT: Self = Self(0x400);

    /// From the low 24 bits; unknown bits are kept.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0x00ff_ffff)
    }
    /// As a number of 24 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The union with `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// The bits that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Options {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

/// Options of a prefix, 8 bits (RFC 5340, section A.4.1.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PrefixOptions(pub u8);

impl PrefixOptions {
    /// None.
    pub const NONE: Self = Self(0);
    /// Not for unicast routes.
    pub const NU: Self = Self(0x01);
    /// An interface address of the advertising router.
    pub const LA: Self = Self(0x02);
    /// To be readvertised by the border router of a not-so-stubby area.
    pub const P: Self = Self(0x08);
    /// Not to be readvertised from a virtual private network.
    pub const DN: Self = Self(0x10);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The union with `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for PrefixOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}
