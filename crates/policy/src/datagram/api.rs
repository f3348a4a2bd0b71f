//! What a datagram policy sees and decides.

use crate::rate::Rate;
use crate::time::{Duration, Instant};
use core::fmt;

/// Most paths of a session.
pub const MAX_PATHS: usize = 32;

/// What is known of a path in the direction to be sent to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathView {
    /// Its number, less than [`MAX_PATHS`].
    pub path: u8,
    /// Whether the peer answers over it.
    pub usable: bool,
    /// Whether the peer should have told of datagrams that were sent over it by now, and has not.
    pub overdue: bool,
    /// The smoothed round trip, once there is one.
    pub round_trip: Option<Duration>,
    /// The least time that a datagram takes one way, without what waits in queues. It can be compared between the paths of a
    /// session; by itself it is known but for an amount that is the same for all of them.
    pub delay: Duration,
    /// How long the last datagram that the peer has told of waited in queues, on top of [`Self::delay`].
    pub queued: Duration,
    /// When that datagram had left the queues: sent, and waited.
    pub left: Instant,
    /// The smoothed variation of the delay from one datagram to the next (RFC 3550, section 6.4.1).
    pub variation: Duration,
    /// The share of datagrams that were lost lately.
    pub loss: f64,
    /// The rate at which datagrams came through lately.
    pub rate: Rate,
    /// The rate at which they came through while a queue stood: what the path can carry. Nothing as long as none was seen.
    pub capacity: Option<Rate>,
    /// Bytes that were sent after that datagram, headers included.
    pub outstanding: u64,
    /// How much others put into the queue: time of sending that they added lately per time, 0 to 1. With 1 the queue stands although
    /// this end sends nothing.
    pub inflow: f64,
}

/// A datagram to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Bytes on the path, headers included.
    pub length: usize,
    /// A hash of what must be kept in order: the addresses and ports of both ends.
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

    /// This set and `path`; a number that is none is left out.
    #[must_use]
    pub fn with(self, path: u8) -> Self {
        Self(self.0 | 1_u32.checked_shl(path.into()).unwrap_or(0))
    }

    /// Whether `path` is in it.
    pub fn has(self, path: u8) -> bool {
        self.0 & 1_u32.checked_shl(path.into()).unwrap_or(0) != 0
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The paths in order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..MAX_PATHS as u8).filter(move |path| self.has(*path))
    }
}

impl fmt::Debug for PathSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What becomes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The paths that each carry a copy; none: it is dropped.
    pub paths: PathSet,
    /// How long the receiver may hold it back while one that was sent before it is missing.
    pub hold: Duration,
}

impl Decision {
    /// One path, nothing held back.
    pub fn one(path: u8) -> Self {
        Self { paths: PathSet::of(path), hold: Duration::ZERO }
    }
}

/// Decides which paths carry each datagram.
pub trait DatagramPolicy: fmt::Debug + Send {
    /// The paths for a datagram that is sent now, or not at all. `paths` are those of the session, in order of their numbers.
    fn choose(&mut self, now: Instant, datagram: &Outgoing, paths: &[PathView]) -> Decision;
}
