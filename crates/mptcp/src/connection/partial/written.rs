//! Owns our messages that may be withdrawn, as the policy sees them.

use anabranch_policy::reliability::Outstanding;
use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// A message of ours that may be withdrawn.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Its beginning and end in the stream, header included.
    pub start: u64,
    pub end: u64,
    pub importance: u8,
    pub at: Instant,
    pub expires: Option<Instant>,
    pub withdrawn: bool,
    /// Its turn came, and its transmission has begun.
    pub begun: bool,
}

/// State of the paths that is the same for all messages.
pub(in crate::connection) struct Paths {
    /// The minimum of the usable paths.
    pub(super) round_trip: Duration,
    /// Ranges that subflows have marked lost.
    pub(super) lost: Vec<(u64, u64)>,
}

impl Paths {
    /// What a policy may know of a message; new data begins at `next`.
    pub(super) fn outstanding(&self, message: &Written, next: u64) -> Outstanding {
        let lost = self.lost.iter().map(|lost| lost.1.min(message.end).saturating_sub(lost.0.max(message.start)));
        Outstanding {
            importance: message.importance,
            length: message.end - message.start,
            assigned: next.clamp(message.start, message.end) - message.start,
            lost: if message.start < next { lost.sum() } else { 0 },
            written: message.at,
            expires: message.expires,
            round_trip: self.round_trip,
        }
    }
}

/// If the DATA_ACK stays before a withdrawn range for this long while the peer has data behind it, the peer ignores
/// notices.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// Limit of notices at a time: for the first withdrawn ranges, since the peer waits for no others.
const MAX_NOTICES: usize = 8;

/// Messages that may be withdrawn, and withdrawn ranges.
#[derive(Debug)]
pub(in crate::connection) struct Withdrawals {
    /// Our unacknowledged messages, in order.
    pub(super) written: VecDeque<Written>,
    /// Withdrawn ranges that the DATA_ACK has not passed, in order.
    pub(super) withdrawn: VecDeque<(u64, u64)>,
    /// The starts of those that the peer was told of last, and when it is told of each again.
    pub(super) told: Vec<(u64, Instant)>,
    /// Where the DATA_ACK has stayed before such a range while the peer has data behind it, and since when.
    pub(super) stands: Option<(u64, Instant)>,
    /// It stayed there for too long: the peer ignores notices.
    pub(super) peer_ignores_notices: bool,
    pub(super) withdrawn_messages: u64,
    pub(super) withdrawn_bytes: u64,
    /// When the policy is asked again.
    pub(super) judge_written_at: Instant,
}

impl Default for Withdrawals {
    fn default() -> Self {
        Self {
            written: VecDeque::new(),
            withdrawn: VecDeque::new(),
            told: Vec::new(),
            stands: None,
            peer_ignores_notices: false,
            withdrawn_messages: 0,
            withdrawn_bytes: 0,
            judge_written_at: Instant::NEVER,
        }
    }
}

impl Withdrawals {
    /// Whether the DATA_ACK has stayed too long before the first withdrawn range while the peer has data behind it.
    pub(super) fn is_unheeded(&mut self, now: Instant, una: u64, delivered_end: u64) -> bool {
        let stands = self.withdrawn.front().is_some_and(|range| range.0 <= una && range.1 < delivered_end);
        let before = self.stands.filter(|(at, _)| stands && *at == una);
        self.stands = stands.then_some(before.unwrap_or((una, now)));
        self.stands.is_some_and(|(_, since)| now.since(since) >= MOST_PATIENCE)
    }

    /// The first ranges, of which the peer is to be told now: each when it becomes one of them, and again after
    /// `pause`. Also returns when to ask again.
    pub(super) fn take_untold(&mut self, now: Instant, pause: Duration) -> (Vec<(u64, u64)>, Instant) {
        let (told, mut due, mut next) = (core::mem::take(&mut self.told), Vec::new(), Instant::NEVER);
        for range in self.withdrawn.iter().take(MAX_NOTICES) {
            let waits = told.iter().find(|(start, again)| *start == range.0 && now < *again).copied();
            if waits.is_none() {
                due.push(*range);
            }
            let again = waits.unwrap_or((range.0, now + pause));
            next = next.min(again.1);
            self.told.push(again);
        }
        (due, next)
    }

    pub(super) fn count(&mut self, bytes: u64) {
        self.withdrawn_messages += 1;
        self.withdrawn_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_stands_before_a_withdrawn_range_for_ten_seconds_ignores_notices() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut withdrawals = Withdrawals { withdrawn: VecDeque::from([(100, 200)]), ..Withdrawals::default() };
        assert!(!withdrawals.is_unheeded(at(0), 100, 300));
        // It moved: the time starts again.
        assert!(!withdrawals.is_unheeded(at(9), 101, 300));
        assert!(!withdrawals.is_unheeded(at(18), 101, 300));
        assert!(withdrawals.is_unheeded(at(19), 101, 300));
        // The peer may not have data behind it.
        assert!(!withdrawals.is_unheeded(at(40), 101, 200));
    }
}
