//! Startup and Drain: when the pipe is full, and when the queue that this made is gone (sections 5.3.1 and 5.3.2).

use super::{Ack, Bbr, Sample, State, UNBOUNDED};
use crate::rate::Rate;

/// Rounds without growth that mean a full pipe.
const FULL_ROUNDS: u32 = 3;
/// Growth that a round must show for the pipe not to be full.
const GROWTH: f64 = 1.25;
/// Places of loss in a round that end Startup (BBRStartupFullLossCnt).
const FULL_LOSS_COUNT: u32 = 6;
/// Rounds after which Drain is over whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// Looks for a plateau of the delivery rate while sending faster and faster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// It was full at some time (full_bw_reached).
    pub(super) reached: bool,
    /// It is full, by what was seen since the last reset (full_bw_now).
    pub(super) now: bool,
    baseline: Rate,
    rounds: u32,
}

impl FullPipe {
    /// ResetFullBW, with a first rate to compare with.
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

impl Bbr {
    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, ack: &Ack, sample: &Sample) {
        if ack.lost > 0 {
            self.loss_events += 1;
        }
        if self.state != State::Startup {
            return;
        }
        self.check_high_loss(sample);
        if self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count();
        }
    }

    /// CheckStartupHighLoss.
    fn check_high_loss(&mut self, sample: &Sample) {
        let a_round_in_recovery = self.recovering_since.is_some_and(|round| self.rounds.count() > round);
        let many = self.loss_events >= FULL_LOSS_COUNT;
        if self.loss_round_start && a_round_in_recovery && many && sample.lost_too_much() {
            self.undo.state = Some(State::Startup);
            self.full_pipe.reached = true;
            self.inflight_longterm = self.bdp(self.max_rate(), 1.0).max(self.inflight_latest);
        }
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, ack: &Ack) {
        if self.state != State::Drain {
            return;
        }
        let late = self.rounds.count() > self.drain_start_round + DRAIN_ROUNDS;
        if late || ack.in_flight <= self.inflight(self.max_rate(), 1.0) {
            self.start_down(ack.now, ack.total_delivered);
        }
    }

    /// EnterStartup.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// Whether losses have set a bound to what may be in flight.
    pub(super) fn is_bounded(&self) -> bool {
        self.inflight_longterm != UNBOUNDED
    }
}
