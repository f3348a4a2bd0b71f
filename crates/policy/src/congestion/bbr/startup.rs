//! Detects a full pipe, which ends Startup and each ascent of ProbeBW (section 5.3.1.2).

use super::state::Sample;
use crate::rate::Rate;

/// Rounds without growth that mean a full pipe.
const FULL_ROUNDS: u32 = 3;
/// Growth in a round that shows that the pipe is not full.
const GROWTH: f64 = 1.25;

/// Detects a plateau of the delivery rate while the sending rate increases.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// It was full at some time (full_bw_reached).
    pub(super) reached: bool,
    /// It is full since the last reset (full_bw_now).
    pub(super) now: bool,
    baseline: Rate,
    rounds: u32,
}

impl FullPipe {
    /// ResetFullBW, with a first rate for comparison.
    pub(super) fn reset(&mut self, baseline: Rate) {
        *self = Self { reached: self.reached, baseline, ..Self::default() };
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, round_start: bool, sample: &Sample) {
        if self.now || !round_start || sample.app_limited {
            return;
        }
        let Some(rate) = sample.rate else { return };
        if rate >= self.baseline.mul_f64(GROWTH) {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}
