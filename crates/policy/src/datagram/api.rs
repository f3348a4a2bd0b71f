//! The input and output of a datagram policy.

use crate::rate::Rate;
use crate::time::{Duration, Instant};
use core::fmt;

/// Most paths of a session.
pub const MAX_PATHS: usize = 32;

/// The state of a path in the direction of sending.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathView {
    /// Its number, less than [`MAX_PATHS`].
    pub path: u8,
    /// Whether the peer answers over it.
    pub usable: bool,
    /// Whether the peer's report on datagrams sent over it is overdue.
    pub overdue: bool,
    /// The smoothed round-trip time, once measured.
    pub round_trip: Option<Duration>,
    /// The lowest one-way delay, without queueing. It has an unknown offset that is the same for all paths of a
    /// session, so that paths can be compared.
    pub delay: Duration,
    /// The queueing delay of the last reported datagram, on top of [`Self::delay`].
    pub queued: Duration,
    /// When that datagram had left the queues: its send time plus its queueing delay.
    pub left: Instant,
    /// The smoothed variation of the delay from one datagram to the next (RFC 3550, section 6.4.1).
    pub variation: Duration,
    /// The share of recent datagrams that were lost.
    pub loss: f64,
    /// The recent delivery rate.
    pub rate: Rate,
    /// The delivery rate while a queue stood: the capacity of the path. `None` until a queue was observed.
    pub capacity: Option<Rate>,
    /// Bytes sent after that datagram, with headers.
    pub outstanding: u64,
    /// Cross traffic in the queue: transmission time added by others per time, 0 to 1. At 1 the queue does not drain
    /// although this end sends nothing.
    pub inflow: f64,
}

/// A datagram to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Bytes on the path, with headers.
    pub length: usize,
    /// A hash of the addresses and ports of both ends: datagrams with the same hash are kept in order.
    pub flow: u64,
}

/// A set of paths.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PathSet(u32);

impl PathSet {
    /// No path.
    pub const NONE: Self = Self(0);

    /// One path.
    pub fn of(path: u8) -> Self {
        Self::NONE.with(path)
    }

    /// This set with `path` added; an invalid number is ignored.
    #[must_use]
    pub fn with(self, path: u8) -> Self {
        Self(self.0 | 1_u32.checked_shl(path.into()).unwrap_or(0))
    }

    pub fn has(self, path: u8) -> bool {
        self.0 & 1_u32.checked_shl(path.into()).unwrap_or(0) != 0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The paths, in order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..MAX_PATHS as u8).filter(move |path| self.has(*path))
    }
}

impl fmt::Debug for PathSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The decision on a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The paths that each carry a copy; if empty, the datagram is dropped.
    pub paths: PathSet,
    /// How long the receiver may delay it while an earlier datagram is missing.
    pub hold: Duration,
}

impl Decision {
    /// One path, without delay at the receiver.
    pub fn one(path: u8) -> Self {
        Self { paths: PathSet::of(path), hold: Duration::ZERO }
    }
}

/// Chooses the paths of each datagram.
pub trait DatagramPolicy: fmt::Debug + Send {
    /// The paths for a datagram to be sent now, or none to drop it. `paths` are those of the session, in order of their
    /// numbers.
    fn choose(&mut self, now: Instant, datagram: &Outgoing, paths: &[PathView]) -> Decision;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_paths_that_were_added_to_it() {
        let set = PathSet::of(3).with(1).with(3).with(200);
        assert_eq!((set.len(), set.iter().collect::<Vec<u8>>()), (2, vec![1, 3]));
        assert_eq!([set.has(1), set.has(2), set.has(200)], [true, false, false]);
        assert_eq!((PathSet::NONE.len(), PathSet::NONE.is_empty(), set.is_empty()), (0, true, false));
    }
}
