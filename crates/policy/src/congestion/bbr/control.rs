//! What the model lets go: pacing rate and window (section 5.6).

use super::{Ack, Bbr, LARGEST_WINDOW, MIN_PIPE, Rate, State, UNBOUNDED, volume};
use crate::time::Duration;

/// What is paced below the rate delivered, so that queues shrink (PacingMarginPercent).
const MARGIN: f64 = 0.99;
/// Quanta that sender and receiver may hold (section 5.5.8); a quantum is one segment.
const OFFLOAD_QUANTA: u64 = 3;

impl Bbr {
    /// InitPacingRate: the initial window in a round trip, with Startup's gain.
    pub(super) fn init_pacing(&mut self, rtt: Duration) {
        let nominal = Rate::from_bytes_over(self.initial_window, rtt);
        self.pacing_rate = nominal.mul_f64(State::Startup.pacing_gain()).max(self.slowest());
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.bw.mul_f64(gain * MARGIN);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(self.slowest());
        }
    }

    fn slowest(&self) -> Rate {
        Rate::from_bytes_per_second(self.mss)
    }

    /// MinPipeCwnd, bytes.
    pub(super) fn min_pipe(&self) -> u64 {
        MIN_PIPE * self.mss
    }

    /// BDPMultiple.
    pub(super) fn bdp(&self, rate: Rate, gain: f64) -> u64 {
        self.min_rtt.get().map_or(self.initial_window, |rtt| volume(rate, rtt, gain))
    }

    /// Inflight, with QuantizationBudget.
    pub(super) fn inflight(&self, rate: Rate, gain: f64) -> u64 {
        self.quantized(self.bdp(rate, gain))
    }

    fn quantized(&self, volume: u64) -> u64 {
        let volume = volume.max(OFFLOAD_QUANTA * self.mss).max(self.min_pipe());
        if self.state == State::Up { volume.saturating_add(2 * self.mss) } else { volume }
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.bw, State::ProbeRtt.cwnd_gain()).max(self.min_pipe())
    }

    /// SaveCwnd.
    pub(super) fn save_window(&mut self) {
        let modulated = self.recovering_since.is_some() || self.state == State::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// RestoreCwnd.
    pub(super) fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// SetCwnd.
    pub(super) fn set_window(&mut self, ack: &Ack) {
        let bdp = self.bdp(self.bw, self.state.cwnd_gain());
        let max_inflight = self.quantized(bdp.saturating_add(self.extra_acked.max()));
        let grown = self.cwnd.saturating_add(ack.delivered);
        if self.full_pipe.reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || ack.total_delivered < self.initial_window {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// BoundCwndForModel.
    fn bound_window(&mut self) {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        let cap = cap.min(self.inflight_shortterm).max(self.min_pipe());
        self.cwnd = self.cwnd.min(cap).min(LARGEST_WINDOW);
    }
}
