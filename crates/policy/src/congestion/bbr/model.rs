//! The model of a path: its bandwidth, minimum round-trip time, and the volumes computed from them (section 5.5).

use super::super::Ack;
use super::super::path_model::{MinRtt, WindowedMax};
use super::super::quantum::offload_budget;
use super::loss::Bounds;
use super::state::{Sample, State};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// Least window, segments (MinPipeCwnd).
pub(super) const MIN_PIPE: u64 = 4;
/// Window of the minimum of round-trip times (MinRTTFilterLen), seconds.
const MIN_RTT_WINDOW: u64 = 10;
/// Time without a new minimum before ProbeRTT (ProbeRTTInterval), seconds.
const PROBE_RTT_INTERVAL: u64 = 5;

/// Bytes acknowledged beyond the model's expectation since the last lull (ACK aggregation).
#[derive(Clone, Debug)]
struct Aggregation {
    extra: WindowedMax<10>,
    since: Instant,
    delivered: u64,
}

/// The model of a path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) mss: u64,
    pub(super) initial_window: u64,
    pub(super) max_bw: WindowedMax<2>,
    pub(super) bw: Rate,
    pub(super) min_rtt: MinRtt<MIN_RTT_WINDOW, PROBE_RTT_INTERVAL>,
    pub(super) bounds: Bounds,
    aggregation: Aggregation,
}

impl Model {
    pub(super) fn new(mss: u64, initial_window: u64, now: Instant, rtt: Option<Duration>) -> Self {
        Self {
            mss,
            initial_window,
            max_bw: WindowedMax::new(),
            bw: Rate::ZERO,
            min_rtt: MinRtt::new(now, rtt),
            bounds: Bounds::NONE,
            aggregation: Aggregation { extra: WindowedMax::new(), since: now, delivered: 0 },
        }
    }

    /// BBR.max_bw.
    pub(super) fn max_rate(&self) -> Rate {
        Rate::from_bits_per_second(self.max_bw.max())
    }

    /// UpdateMaxBw, without the round.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        if let Some(rate) = sample.rate
            && rate > Rate::ZERO
            && (rate >= self.max_rate() || !sample.app_limited)
        {
            self.max_bw.update(rate.bits_per_second());
        }
    }

    /// BoundBWForModel.
    pub(super) fn bound_bw(&mut self) {
        self.bw = self.max_rate().min(self.bounds.bw_shortterm);
    }

    /// Ends a round of packets.
    pub(super) fn advance_aggregation(&mut self) {
        self.aggregation.extra.advance();
    }

    /// After a pause, no data is expected for the time before.
    pub(super) fn restart_aggregation(&mut self, now: Instant) {
        self.aggregation.since = now;
    }

    /// UpdateACKAggregation. In Startup only one round is remembered, and dropped at the start of the next.
    pub(super) fn update_aggregation(&mut self, ack: &Ack, cwnd: u64, forget_past: bool) {
        let mut expected = volume(self.bw, ack.now.since(self.aggregation.since), 1.0);
        let aggregation = &mut self.aggregation;
        if aggregation.delivered <= expected {
            aggregation.delivered = 0;
            aggregation.since = ack.now;
            expected = 0;
        }
        aggregation.delivered = aggregation.delivered.saturating_add(ack.delivered);
        let extra = aggregation.delivered.saturating_sub(expected).min(cwnd);
        if forget_past {
            aggregation.extra.forget_past();
        }
        aggregation.extra.update(extra);
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
    pub(super) fn inflight(&self, state: State, rate: Rate, gain: f64) -> u64 {
        self.quantized(state, self.bdp(rate, gain))
    }

    /// UpdateMaxInflight.
    pub(super) fn max_inflight(&self, state: State) -> u64 {
        let bdp = self.bdp(self.bw, state.cwnd_gain());
        self.quantized(state, bdp.saturating_add(self.aggregation.extra.max()))
    }

    fn quantized(&self, state: State, volume: u64) -> u64 {
        let volume = volume.max(offload_budget(self.bw, self.mss)).max(self.min_pipe());
        if state == State::Up { volume.saturating_add(2 * self.mss) } else { volume }
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self, cwnd: u64) -> u64 {
        self.bdp(self.bw, 1.0).min(cwnd)
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.bw, State::ProbeRtt.cwnd_gain()).max(self.min_pipe())
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        self.bounds.inflight_with_headroom(self.mss, self.min_pipe())
    }
}

/// The bytes that `rate` carries in `span`, times `gain`.
fn volume(rate: Rate, span: Duration, gain: f64) -> u64 {
    (rate.bits_per_second() as f64 / 8.0 * span.as_secs_f64() * gain) as u64
}
