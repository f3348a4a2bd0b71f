//! Outputs of the model: pacing rate and window (section 5.6).

use super::super::Ack;
use super::super::window::LARGEST_WINDOW;
use super::model::Model;
use super::state::{State, UNBOUNDED};
use crate::rate::Rate;
use crate::time::Duration;

/// Pacing rate relative to the delivery rate, so that queues shrink (PacingMarginPercent).
const MARGIN: f64 = 0.99;

/// Pacing rate and window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) cwnd: u64,
    /// The window before it was cut by recovery or ProbeRTT.
    prior_cwnd: u64,
    pub(super) pacing_rate: Rate,
}

impl Control {
    pub(super) fn new(cwnd: u64) -> Self {
        Self { cwnd, prior_cwnd: 0, pacing_rate: Rate::ZERO }
    }

    /// InitPacingRate: the initial window in a round trip, with Startup's gain.
    pub(super) fn init_pacing(&mut self, model: &Model, rtt: Duration) {
        let nominal = Rate::from_bytes_over(model.initial_window, rtt);
        self.pacing_rate = nominal.mul_f64(State::Startup.pacing_gain()).max(slowest(model));
    }

    /// SetPacingRateWithGain. Before the pipe was full the rate only grows.
    pub(super) fn set_pacing_rate(&mut self, model: &Model, gain: f64, pipe_was_full: bool) {
        let rate = model.bw.mul_f64(gain * MARGIN);
        if pipe_was_full || rate > self.pacing_rate {
            self.pacing_rate = rate.max(slowest(model));
        }
    }

    /// SaveCwnd; `modulated`: recovery or ProbeRTT has cut the window already.
    pub(super) fn save_window(&mut self, modulated: bool) {
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// RestoreCwnd.
    pub(super) fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// SetCwnd.
    pub(super) fn set_window(&mut self, model: &Model, state: State, ack: &Ack, pipe_was_full: bool) {
        let max_inflight = model.max_inflight(state);
        let grown = self.cwnd.saturating_add(ack.delivered);
        if pipe_was_full {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || ack.total_delivered < model.initial_window {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(model.min_pipe());
        if state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(model.probe_rtt_window());
        }
        self.bound_window(model, state);
    }

    /// BoundCwndForModel.
    fn bound_window(&mut self, model: &Model, state: State) {
        let cap = match state {
            State::Down | State::Refill | State::Up => model.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => model.inflight_with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        let cap = cap.min(model.bounds.inflight_shortterm).max(model.min_pipe());
        self.cwnd = self.cwnd.min(cap).min(LARGEST_WINDOW);
    }
}

fn slowest(model: &Model) -> Rate {
    Rate::from_bytes_per_second(model.mss)
}
