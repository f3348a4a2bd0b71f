//! Messages of ours that may be withdrawn, as the policy sees them.

use anabranch_policy::reliability::Outstanding;
use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// A message of ours that may be withdrawn.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Where it begins and ends in the stream, its header included.
    pub start: u64,
    pub end: u64,
    pub importance: u8,
    pub at: Instant,
    pub expires: Option<Instant>,
    pub withdrawn: bool,
    /// Its turn came, and it was begun.
    pub begun: bool,
}

/// What the paths say of messages, the same for all of them at a moment.
pub(in crate::connection) struct Paths {
    /// The least of those that can be used.
    pub(super) round_trip: Duration,
    /// Ranges that subflows have marked lost.
    pub(super) lost: Vec<(u64, u64)>,
}

impl Paths {
    /// What a policy may know of a message, where new data begins at `next`.
    pub(super) fn outstanding(&self, message: &Written, next: u64) -> Outstanding {
        let lost = self.lost.iter().map(|lost| lost.1.min(message.end).saturating_sub(lost.0.max(message.start)));
        Outstanding {
            importance: message.importance,
            length: message.end - message.start,
            given: next.clamp(message.start, message.end) - message.start,
            lost: if message.start < next { lost.sum() } else { 0 },
            written: message.at,
            expires: message.expires,
            round_trip: self.round_trip,
        }
    }
}

/// If the peer's DATA_ACK stays before a withdrawn range for so long while it has what lies behind, it ignores notices.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// Messages that may be withdrawn, and ranges that were.
#[derive(Debug)]
pub(in crate::connection) struct Withdrawals {
    /// Messages of ours that the peer has not acknowledged, in the stream's order.
    pub(super) written: VecDeque<Written>,
    /// Ranges that were withdrawn and that the peer has not gone over yet, in the stream's order.
    pub(super) withdrawn: VecDeque<(u64, u64)>,
    /// Where the DATA_ACK has stood before such a range, and since when, though the peer has what lies behind.
    pub(super) stands: Option<(u64, Instant)>,
    /// It stood there for too long: the peer does not hear what is withdrawn.
    pub(super) peer_is_deaf: bool,
    /// Messages withdrawn.
    pub(super) withdrawn_messages: u64,
    /// Bytes of them.
    pub(super) withdrawn_bytes: u64,
    /// When the policy is asked again.
    pub(super) judge_written_at: Instant,
}

impl Default for Withdrawals {
    fn default() -> Self {
        Self {
            written: VecDeque::new(),
            withdrawn: VecDeque::new(),
            stands: None,
            peer_is_deaf: false,
            withdrawn_messages: 0,
            withdrawn_bytes: 0,
            judge_written_at: Instant::NEVER,
        }
    }
}

impl Withdrawals {
    /// Whether the DATA_ACK has stood too long before the first withdrawn range though the peer has what lies behind it.
    pub(super) fn is_unheeded(&mut self, now: Instant, una: u64, delivered_end: u64) -> bool {
        let stands = self.withdrawn.front().is_some_and(|range| range.0 <= una && range.1 < delivered_end);
        let before = self.stands.filter(|(at, _)| stands && *at == una);
        self.stands = stands.then_some(before.unwrap_or((una, now)));
        self.stands.is_some_and(|(_, since)| now.since(since) >= MOST_PATIENCE)
    }

    /// Counts a message that was withdrawn.
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
        // It moved: it is waited for anew.
        assert!(!withdrawals.is_unheeded(at(9), 101, 300));
        assert!(!withdrawals.is_unheeded(at(18), 101, 300));
        assert!(withdrawals.is_unheeded(at(19), 101, 300));
        // It may not have what lies behind.
        assert!(!withdrawals.is_unheeded(at(40), 101, 200));
    }
}
