//! What losses do to the model: at once while probing, once per round otherwise, and how that is undone (sections 5.5.10
//! and 5.5.11).

use super::{Ack, BETA, Bbr, LOSS_THRESHOLD, Lost, Sample, State, UNBOUNDED};
use crate::rate::Rate;

/// What was before a loss episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that the losses ended.
    pub(super) state: Option<State>,
    bw_shortterm: Rate,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Default for Undo {
    fn default() -> Self {
        Self { state: None, bw_shortterm: Rate::ZERO, inflight_shortterm: 0, inflight_longterm: 0 }
    }
}

impl Bbr {
    /// NoteLoss.
    pub(super) fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_round_delivered = self.delivered;
        }
        self.loss_in_round = true;
    }

    /// OnEnterFastRecovery and OnEnterRTO, but for the window.
    pub(super) fn enter_recovery(&mut self) {
        if self.recovering_since.is_none() {
            self.save_state();
            self.recovering_since = Some(self.rounds.count());
        } else {
            self.save_window();
        }
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost_segment(&mut self, lost: &Lost) {
        self.enter_recovery();
        self.note_loss();
        if !self.cycle.is_probe_sample {
            return;
        }
        let sample = Sample {
            app_limited: lost.app_limited,
            lost: lost.total_lost.saturating_sub(lost.prior_lost),
            tx_in_flight: lost.tx_in_flight,
            ..Sample::default()
        };
        if sample.lost_too_much() {
            self.handle_inflight_too_high(lost, &sample);
        }
    }

    /// HandleInflightTooHigh, with InflightAtLoss.
    fn handle_inflight_too_high(&mut self, lost: &Lost, sample: &Sample) {
        self.cycle.too_high = true;
        self.cycle.is_probe_sample = false;
        if !sample.app_limited {
            let before = sample.tx_in_flight.saturating_sub(lost.bytes) as f64;
            let lost_before = sample.lost.saturating_sub(lost.bytes) as f64;
            // (lost_before + prefix) / (before + prefix) = threshold.
            let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
            let at_loss = (before + prefix).max(0.0) as u64;
            self.inflight_longterm = at_loss.max((self.target_inflight() as f64 * BETA) as u64);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(lost.now, lost.total_delivered);
        }
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_signals(&mut self, ack: &Ack, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(Rate::ZERO));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = ack.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered);
        if self.loss_round_start {
            self.loss_round_delivered = ack.total_delivered;
        }
    }

    /// UpdateCongestionSignals, with AdaptLowerBoundsFromCongestion.
    pub(super) fn update_congestion_signals(&mut self, ack: &Ack, sample: &Sample) {
        self.update_max_bw(ack, sample);
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.state.is_probing() {
            if self.bw_shortterm == Rate::UNLIMITED {
                self.bw_shortterm = self.max_rate();
            }
            if self.inflight_shortterm == UNBOUNDED {
                self.inflight_shortterm = self.cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(self.bw_shortterm.mul_f64(BETA));
            let kept = (self.inflight_shortterm as f64 * BETA) as u64;
            self.inflight_shortterm = self.inflight_latest.max(kept);
        }
        self.loss_in_round = false;
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = 0;
    }

    /// ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = Rate::UNLIMITED;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// SaveStateUponLoss.
    fn save_state(&mut self) {
        self.save_window();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.recovering_since = None;
        self.restore_window();
        self.loss_in_round = false;
        self.full_pipe.reset(Rate::ZERO);
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.delivered);
            }
            _ => {}
        }
    }
}
