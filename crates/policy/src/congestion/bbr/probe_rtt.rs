//! A ProbeRTT: half a bandwidth-delay product for a short time, to measure the round trip without a queue (section
//! 5.3.4).

use super::super::Ack;
use crate::time::{Duration, Instant};

/// Minimum time with little in flight (ProbeRTTDuration).
const DURATION: Duration = Duration::from_millis(200);

/// The progress of a ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRtt {
    /// The earliest end; set once little enough is in flight.
    done_at: Instant,
    round_done: bool,
    /// Samples of segments sent between these delivered amounts show our own limit, not the network. [`Self::NOTHING`]
    /// before the first ProbeRTT.
    held_down: (u64, u64),
}

impl Default for ProbeRtt {
    fn default() -> Self {
        Self { done_at: Instant::NEVER, round_done: false, held_down: Self::NOTHING }
    }
}

impl ProbeRtt {
    const NOTHING: (u64, u64) = (u64::MAX, 0);

    /// Starts at this delivered amount.
    pub(super) fn begin(total_delivered: u64) -> Self {
        Self { held_down: (total_delivered, 0), ..Self::default() }
    }

    /// Whether a segment was sent within or shortly after a ProbeRTT, by the amount delivered at that time.
    pub(super) fn held_down(&self, prior_delivered: Option<u64>) -> bool {
        let (first, last) = self.held_down;
        prior_delivered.is_some_and(|prior| (first..=last).contains(&prior))
    }

    /// Marks samples of segments sent so far as limited by us.
    pub(super) fn hold_down(&mut self, ack: &Ack) {
        let first = if self.held_down == Self::NOTHING { ack.total_delivered } else { self.held_down.0 };
        self.held_down = (first, ack.total_delivered.saturating_add(ack.in_flight));
    }

    /// Whether the window has been reached, so that time counts.
    pub(super) fn is_timed(&self) -> bool {
        self.done_at != Instant::NEVER
    }

    /// Starts the time.
    pub(super) fn start_time(&mut self, now: Instant) {
        self.done_at = now + DURATION;
        self.round_done = false;
    }

    /// Whether a round has ended since the time started.
    pub(super) fn on_round(&mut self, is_start: bool) -> bool {
        self.round_done |= is_start;
        self.round_done
    }

    /// Whether the time has elapsed.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now > self.done_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack;

    #[test]
    fn what_was_sent_from_the_beginning_of_a_probe_to_its_flight_shows_restraint() {
        let mut probe = ProbeRtt::begin(1_000);
        probe.hold_down(&Ack { total_delivered: 5_000, in_flight: 300, ..ack(1_000, 100) });
        let sent_at = |delivered: u64| probe.held_down(Some(delivered));
        assert_eq!([999, 1_000, 5_300, 5_301].map(sent_at), [false, true, true, false]);
        assert!(!probe.held_down(None));
    }
}
