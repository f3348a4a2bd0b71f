//! Effects of losses on the model: at once while probing, once per round otherwise (section 5.5.10).

use super::super::{Ack, Lost};
use super::state::{LOSS_THRESHOLD, Sample, UNBOUNDED};
use crate::rate::Rate;

/// Share that is kept of the short-term model in a round with losses (Beta).
pub(super) const BETA: f64 = 0.7;
/// Share of inflight_longterm left free for other flows (Headroom).
const HEADROOM: f64 = 0.15;

/// The current loss round: whether it had losses, and the most that was delivered in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRound {
    bw_latest: Rate,
    inflight_latest: u64,
    /// It ends when a segment is acknowledged that was sent after this much had been delivered.
    ends_at: u64,
    is_start: bool,
    has_loss: bool,
    /// Acknowledgements of this round that revealed a loss.
    events: u32,
}

impl LossRound {
    pub(super) const FIRST: Self =
        Self { bw_latest: Rate::ZERO, inflight_latest: 0, ends_at: 0, is_start: false, has_loss: false, events: 0 };

    /// NoteLoss.
    pub(super) fn record_loss(&mut self, delivered: u64) {
        if !self.has_loss {
            self.ends_at = delivered;
        }
        self.has_loss = true;
    }

    /// Counts an acknowledgement that revealed a loss.
    pub(super) fn count_event(&mut self) {
        self.events += 1;
    }

    /// The number of these.
    pub(super) fn events(&self) -> u32 {
        self.events
    }

    /// The most that the flight of a segment delivered.
    pub(super) fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    /// Whether the last acknowledgement began a loss round.
    pub(super) fn is_start(&self) -> bool {
        self.is_start
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_signals(&mut self, ack: &Ack, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(Rate::ZERO));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.is_start = ack.prior_delivered.is_some_and(|prior| prior >= self.ends_at);
        if self.is_start {
            self.ends_at = ack.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_signals(&mut self, sample: &Sample) {
        if self.is_start {
            self.bw_latest = sample.rate.unwrap_or(Rate::ZERO);
            self.inflight_latest = sample.delivered;
            self.events = 0;
        }
    }

    /// Whether the round that has ended had losses; resets that.
    pub(super) fn take_loss(&mut self) -> bool {
        core::mem::take(&mut self.has_loss)
    }

    /// ResetCongestionSignals.
    pub(super) fn reset(&mut self) {
        self.has_loss = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = 0;
    }
}

/// Limits that losses have imposed on the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: Rate,
    pub(super) inflight_shortterm: u64,
    /// Above it more than 2 % were lost.
    pub(super) inflight_longterm: u64,
}

impl Bounds {
    /// Without losses.
    pub(super) const NONE: Self =
        Self { bw_shortterm: Rate::UNLIMITED, inflight_shortterm: UNBOUNDED, inflight_longterm: UNBOUNDED };
    /// The lowest bounds.
    pub(super) const LEAST: Self = Self { bw_shortterm: Rate::ZERO, inflight_shortterm: 0, inflight_longterm: 0 };

    /// ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = Rate::UNLIMITED;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// AdaptLowerBoundsFromCongestion.
    pub(super) fn adapt_short_term(&mut self, round: &LossRound, max_rate: Rate, cwnd: u64) {
        if self.bw_shortterm == Rate::UNLIMITED {
            self.bw_shortterm = max_rate;
        }
        if self.inflight_shortterm == UNBOUNDED {
            self.inflight_shortterm = cwnd;
        }
        self.bw_shortterm = round.bw_latest.max(self.bw_shortterm.mul_f64(BETA));
        let kept = (self.inflight_shortterm as f64 * BETA) as u64;
        self.inflight_shortterm = round.inflight_latest.max(kept);
    }

    /// Whether losses have limited the bytes in flight.
    pub(super) fn has_longterm(&self) -> bool {
        self.inflight_longterm != UNBOUNDED
    }

    /// InflightWithHeadroom: leaves room for other flows.
    pub(super) fn inflight_with_headroom(&self, mss: u64, least: u64) -> u64 {
        if !self.has_longterm() {
            return UNBOUNDED;
        }
        let headroom = ((HEADROOM * self.inflight_longterm as f64) as u64).max(mss);
        self.inflight_longterm.saturating_sub(headroom).max(least)
    }

    /// Raises the bounds to at least those before a spurious loss.
    pub(super) fn restore(&mut self, before: &Self) {
        self.bw_shortterm = self.bw_shortterm.max(before.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(before.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(before.inflight_longterm);
    }
}

/// InflightAtLoss: the bytes in flight when the loss threshold was reached.
pub(super) fn inflight_at_loss(lost: &Lost, sample: &Sample) -> u64 {
    let before = sample.tx_in_flight.saturating_sub(lost.bytes) as f64;
    let lost_before = sample.lost.saturating_sub(lost.bytes) as f64;
    // (lost_before + prefix) / (before + prefix) = threshold.
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (before + prefix).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack;

    #[test]
    fn a_loss_round_begins_with_the_answer_to_what_was_sent_after_the_loss() {
        let mut round = LossRound::FIRST;
        round.record_loss(8_000);
        let mut starts = |prior: u64| {
            let ack = Ack { prior_delivered: Some(prior), total_delivered: prior + 4_000, ..ack(1_000, 100) };
            round.update_latest_signals(&ack, &Sample::of(&ack, false));
            round.is_start()
        };
        // 12 000 had been delivered then.
        assert_eq!([7_999, 8_000, 11_999, 12_000].map(&mut starts), [false, true, false, true]);
    }
}
