//! Counters of links and nodes, and causes of drops.

use core::fmt;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    Overflow,
    /// CoDel dropped it for its time in the queue (RFC 8289).
    CoDel,
    Loss,
    /// The link was down on arrival, or went down while the packet was queued or under way.
    LinkDown,
    /// Corruption detected by the receiving host.
    Corrupt,
    /// No route to its destination, or it reached a host without that address.
    NoRoute,
    /// Its hop limit was exhausted.
    HopLimit,
    /// It exceeded the link's MTU.
    TooBig,
}

impl DropCause {
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

    /// Name in tables.
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

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops([u64; DropCause::ALL.len()]);

impl Drops {
    pub fn add(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
    pub fn get(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    pub fn iter(&self) -> impl Iterator<Item = (DropCause, u64)> + '_ {
        DropCause::ALL.into_iter().map(|cause| (cause, self.get(cause)))
    }
}

impl fmt::Debug for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().filter(|(_, count)| *count > 0).map(|(cause, n)| (cause.name(), n))).finish()
    }
}

/// Counters of a link. Bytes are whole packets, IP header included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    pub offered_packets: u64,
    pub offered_bytes: u64,
    /// Packets delivered, duplicates made by the link included.
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub drops: Drops,
    /// Packets marked "congestion experienced" instead of being dropped (RFC 3168).
    pub marked: u64,
    /// Duplicates made by the link.
    pub duplicated: u64,
    pub corrupted: u64,
    /// Packets delayed so that later ones can overtake them.
    pub held_back: u64,
    /// Most packets queued at once.
    pub peak_queue_packets: u64,
    /// Most bytes queued at once.
    pub peak_queue_bytes: u64,
}
