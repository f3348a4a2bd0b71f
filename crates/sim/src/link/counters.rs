//! Counters of links and nodes, and reasons of losses.

use core::fmt;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// The queue was full.
    Overflow,
    /// CoDel judged that it had waited too long (RFC 8289).
    CoDel,
    /// The loss model lost it.
    Loss,
    /// The link was down when it came, or went down while it was waiting or under way.
    LinkDown,
    /// The receiving host found it corrupt.
    Corrupt,
    /// No route to its destination, or it came to a host that it is not for.
    NoRoute,
    /// Its hop limit was used up.
    HopLimit,
    /// It was longer than the link carries.
    TooBig,
}

impl DropCause {
    /// All causes, in order.
    pub const ALL: [Self; 8] = [
        Self::Overflow,
        Self::CoDel,
        Self::Loss,
        Self::LinkDown,
        Self::Corrupt,
        Self::NoRoute,
        Self::HopLimit,
        Self::TooBig,
    ];

    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::CoDel => "codel",
            Self::Loss => "loss",
            Self::LinkDown => "link_down",
            Self::Corrupt => "corrupt",
            Self::NoRoute => "no_route",
            Self::HopLimit => "hop_limit",
            Self::TooBig => "too_big",
        }
    }
}

/// Packets dropped, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops([u64; DropCause::ALL.len()]);

impl Drops {
    /// Counts one.
    pub fn add(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }
    /// Counts all of `other`.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
    /// How many of this cause.
    pub fn get(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }
    /// How many of all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Each cause with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropCause, u64)> + '_ {
        DropCause::ALL.into_iter().map(|cause| (cause, self.get(cause)))
    }
}

impl fmt::Debug for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().filter(|(_, count)| *count > 0).map(|(cause, n)| (cause.name(), n))).finish()
    }
}

/// What a link counts. Bytes are whole packets, IP header included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets offered to it.
    pub offered_packets: u64,
    /// Bytes offered to it.
    pub offered_bytes: u64,
    /// Packets delivered; copies made by duplication count too.
    pub delivered_packets: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Packets dropped, by cause.
    pub drops: Drops,
    /// Packets marked "congestion experienced" instead of being dropped (RFC 3168).
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets corrupted.
    pub corrupted: u64,
    /// Packets held back so that later ones can overtake them.
    pub held_back: u64,
    /// Most packets that waited at once.
    pub peak_queue_packets: u64,
    /// Most bytes that waited at once.
    pub peak_queue_bytes: u64,
}
