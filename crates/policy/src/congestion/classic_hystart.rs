//! The original HyStart (Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55, 2011), as in
//! Linux's CUBIC: slow start ends at once, at the first of two signs.
//!
//! A round ends when all that had been sent at its beginning is acknowledged. From 16 segments of window on:
//!
//! - acknowledgements: since the round began they have followed each other within 2 ms, for longer than half of the
//!   minimum RTT. A sender that does not pace has sent the segments of the round at once, so that is the time that the
//!   bottleneck takes for them;
//! - delay: after eight samples of a round its least RTT is above the least of all by an eighth of that, 4 ms at
//!   least, 16 ms at most.
//!
//! HyStart++ (RFC 9406) dropped the first sign and made the end gradual.

use super::Ack;
use crate::time::{Duration, Instant};

/// Minimum window for detection, in segments.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements this close belong to one burst.
const BURST_GAP: Duration = Duration::from_millis(2);
/// Samples of a round before its least RTT counts.
const SAMPLES: u32 = 8;
/// Bounds of the significant rise.
const MIN_RISE: Duration = Duration::from_millis(4);
const MAX_RISE: Duration = Duration::from_millis(16);

/// The state of one subflow's slow start.
#[derive(Clone, Debug)]
pub(super) struct ClassicHyStart {
    /// The round ends when more than this many bytes are acknowledged in total; `None` before the first
    /// acknowledgement.
    round_end: Option<u64>,
    round_start: Instant,
    /// The last acknowledgement of the burst.
    last: Instant,
    round_min: Duration,
    samples: u32,
    /// Minimum RTT overall.
    least: Duration,
}

impl ClassicHyStart {
    /// Before the first acknowledgement.
    pub(super) fn new() -> Self {
        Self {
            round_end: None,
            round_start: Instant::ZERO,
            last: Instant::ZERO,
            round_min: Duration::MAX,
            samples: 0,
            least: Duration::MAX,
        }
    }

    /// Handles an acknowledgement, with the window in segments. Returns whether slow start has ended.
    pub(super) fn on_ack(&mut self, ack: &Ack, window: u64) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.least = self.least.min(rtt);
        if self.round_end.is_none_or(|end| ack.total_acked > end) {
            self.round_end = Some(ack.total_sent);
            (self.round_start, self.last) = (ack.now, ack.now);
            (self.round_min, self.samples) = (Duration::MAX, 0);
        }
        if window < LOW_WINDOW {
            return false;
        }
        if ack.now.since(self.last) <= BURST_GAP {
            self.last = ack.now;
            if ack.now.since(self.round_start) > self.least / 2 {
                return true;
            }
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_min > self.least + (self.least / 8).clamp(MIN_RISE, MAX_RISE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{NOW, ack};

    /// One acknowledgement of a round that does not end, `ms` after its beginning.
    fn at(ms: u64, rtt_ms: u64) -> Ack {
        Ack {
            now: NOW + Duration::from_millis(ms),
            total_acked: 1_000 + ms,
            total_sent: 1_000_000,
            ..ack(1_000, rtt_ms)
        }
    }

    #[test]
    fn a_burst_longer_than_half_the_least_rtt_ends_slow_start() {
        let mut hystart = ClassicHyStart::new();
        // 2 ms apart: at 20 ms the burst is not longer than half of 40 ms, at 22 ms it is.
        let over: Vec<u64> = (0..=11).map(|at| 2 * at).filter(|ms| hystart.on_ack(&at(*ms, 40), 16)).collect();
        assert_eq!(over, [22]);
    }

    #[test]
    fn a_gap_ends_the_burst_for_this_round() {
        let mut hystart = ClassicHyStart::new();
        let times = [0, 2, 4, 7, 9, 11, 30];
        assert!(times.iter().all(|ms| !hystart.on_ack(&at(*ms, 40), 16)));
    }

    #[test]
    fn nothing_is_concluded_below_sixteen_segments() {
        let mut hystart = ClassicHyStart::new();
        assert!((0..=20).all(|step| !hystart.on_ack(&at(2 * step, 40), 15)));
    }

    #[test]
    fn a_least_rtt_above_the_least_of_all_by_an_eighth_ends_slow_start_after_eight_samples() {
        let mut hystart = ClassicHyStart::new();
        hystart.on_ack(&at(0, 80), 16);
        // The next round; an eighth of 80 ms is 10 ms. Acknowledgements 5 ms apart are no burst.
        let next = |step: u64, rtt: u64| Ack {
            total_acked: 1_000_001 + step,
            total_sent: 3_000_000,
            ..at(100 + 5 * step, rtt)
        };
        assert!((0..8).all(|step| !hystart.on_ack(&next(step, 91), 32)));
        assert!(hystart.on_ack(&next(8, 91), 32));
        let mut patient = ClassicHyStart::new();
        patient.on_ack(&at(0, 80), 16);
        assert!((0..20).all(|step| !patient.on_ack(&next(step, 90), 32)));
    }
}
