//! BBR, version 3: sends at the rate at which the network was seen to deliver, with about one bandwidth-delay product in
//! flight, and looks for more from time to time.
//!
//! Source: draft-ietf-ccwg-bbr (working copy of July 2026, after revision 06); names are the draft's. Rates are bits per
//! second, volumes bytes of payload.
//!
//! The model of a path: max_bw, the largest delivery rate of the present and the previous cycle; min_rtt, the least
//! round-trip time of 10 s; bdp = bw min_rtt. What losses say of it: inflight_longterm, above which more than 2 % were
//! lost; bw_shortterm and inflight_shortterm, to which losses of this cycle pulled it down. bw = min(max_bw, bw_shortterm).
//!
//! pacing_rate = 0.99 pacing_gain bw; cwnd = cwnd_gain bdp + extra_acked, within those limits. States:
//!
//! | state | pacing_gain | cwnd_gain | until |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | three rounds without 25 % more, or a round in recovery with over 2 % lost in 6 places |
//! | Drain | 0.5 | 2 | in flight is at most bdp, or three rounds |
//! | ProbeBW_DOWN | 0.9 | 2 | in flight is at most bdp and 0.85 inflight_longterm |
//! | ProbeBW_CRUISE | 1 | 2 | 2 to 3 s since the last DOWN, or after min(bdp, cwnd) in segments or 62 to 63 rounds |
//! | ProbeBW_REFILL | 1 | 2 | one round |
//! | ProbeBW_UP | 1.25 | 2.25 | full pipe as in Startup, or over 2 % lost |
//! | ProbeRTT | 1 | 0.5 | 200 ms and a round; entered when min_rtt was not seen for 5 s |
//!
//! Decisions, where the draft leaves a choice:
//!
//! - Segments are released one by one, so send_quantum is one segment and offload_budget three.
//! - The "6 discontiguous sequence ranges lost" that end Startup are counted as acknowledgements that show a loss, as in
//!   Linux.
//! - What an error in loss detection restores is saved once, before the first loss of a recovery. (By the draft's letter the
//!   first loss of each round saves it anew, and a loss after the one that ended a probe would forget that it did.)
//! - An acknowledgement without a rate sample does not count as a round without growth.
//! - The random numbers come from a generator seeded with the moment when the subflow began and its first round trip.
//! - If the handshake gave no round-trip time, pacing begins anew with the first sample, as in Linux.
//! - A product of bandwidth and delay below four segments counts as four for the time between probes: else the cycle would
//!   be nothing but probes.
//! - Pacing never falls below one segment per second.
//! - A penalty of the scheduler halves the window, which then grows back by what is delivered.
//!
//! Left out: the answer to ECN that BBR version 3 has in Linux (the draft has none); a congestion mark counts as a loss in
//! its round, since RFC 3168 wants an answer. The rule for connections without SACK (one loss is too many): the family does
//! not know what was negotiated.

mod control;
mod loss;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use super::path_model::{Draws, MinRtt, RoundCounter, WindowedMax};
use super::uncoupled::{SinglePath, Uncoupled};
use super::window::LARGEST_WINDOW;
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Lost, Sent, Start};
use crate::rate::Rate;
use crate::table::{Member, SettingError, Settings};
use crate::time::{Duration, Instant};
use loss::Undo;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use startup::FullPipe;

/// The line of [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "bbr",
    summary: "Model of the path on each subflow by itself: sends at the rate delivered, version 3.",
    source: "draft-ietf-ccwg-bbr-06",
    parameters: &[],
    build,
};

fn build(_settings: &Settings) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Uncoupled::<Bbr>::new(())))
}

/// Share of a round's flight that may be lost while probing (LossThresh).
const LOSS_THRESHOLD: f64 = 0.02;
/// Share that is kept of the short-term model in a round with losses (Beta).
const BETA: f64 = 0.7;
/// Share of inflight_longterm left free for others (Headroom).
const HEADROOM: f64 = 0.15;
/// Least window, segments (MinPipeCwnd).
const MIN_PIPE: u64 = 4;
/// Window of the minimum of round-trip times (MinRTTFilterLen).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// After this long without a new minimum it is looked for (ProbeRTTInterval).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// "Infinity" of volumes.
const UNBOUNDED: u64 = u64::MAX;

/// The states of section 5.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }
    fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => 2.0,
        }
    }
    /// IsInAProbeBWState.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
    /// IsProbingBW.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// What an acknowledgement or a loss says of the network (RS in the draft).
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    rate: Option<Rate>,
    app_limited: bool,
    /// Delivered over the flight of the newest segment.
    delivered: u64,
    /// Lost over it.
    lost: u64,
    tx_in_flight: u64,
}

impl Sample {
    /// IsInflightTooHigh: the losses exceed the threshold.
    fn lost_too_much(&self) -> bool {
        self.lost as f64 > self.tx_in_flight as f64 * LOSS_THRESHOLD
    }
}

/// BBR on one subflow.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u64,
    initial_window: u64,
    cwnd: u64,
    /// The window before it was cut by recovery or ProbeRTT.
    prior_cwnd: u64,
    pacing_rate: Rate,
    /// A round-trip time is known, and pacing began with it.
    rtt_seen: bool,
    state: State,
    rounds: RoundCounter,
    max_bw: WindowedMax<2>,
    bw: Rate,
    bw_shortterm: Rate,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    min_rtt: MinRtt,
    /// Maxima of the present loss round.
    bw_latest: Rate,
    inflight_latest: u64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    /// Acknowledgements of this round that showed a loss.
    loss_events: u32,
    extra_acked: WindowedMax<10>,
    extra_acked_since: Instant,
    extra_acked_delivered: u64,
    full_pipe: FullPipe,
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    idle_restart: bool,
    /// Round in which the present loss recovery began.
    recovering_since: Option<u64>,
    undo: Undo,
    draws: Draws,
    /// Bytes delivered, as last heard (C.delivered).
    delivered: u64,
}

impl Bbr {
    /// The acknowledgement's sample, with our own mark of ProbeRTT.
    fn sample(&self, ack: &Ack) -> Sample {
        Sample {
            rate: ack.delivery_rate,
            app_limited: ack.app_limited || self.probe_rtt.held_down(ack.prior_delivered),
            delivered: ack.prior_delivered.map_or(0, |prior| ack.total_delivered.saturating_sub(prior)),
            lost: ack.total_lost.saturating_sub(ack.prior_lost),
            tx_in_flight: ack.tx_in_flight,
        }
    }

    /// UpdateModelAndState.
    fn update_model_and_state(&mut self, ack: &Ack, sample: &Sample) {
        self.update_latest_signals(ack, sample);
        self.update_congestion_signals(ack, sample);
        self.update_aggregation(ack);
        self.full_pipe.check(self.rounds.is_start(), sample);
        self.check_startup_done(ack, sample);
        self.check_drain_done(ack);
        self.update_cycle(ack, sample);
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        self.check_probe_rtt(ack, expired);
        if self.loss_round_start {
            self.bw_latest = sample.rate.unwrap_or(Rate::ZERO);
            self.inflight_latest = sample.delivered;
            self.loss_events = 0;
        }
        self.bw = self.max_rate().min(self.bw_shortterm);
    }

    /// BBR.max_bw.
    fn max_rate(&self) -> Rate {
        Rate::from_bits_per_second(self.max_bw.max())
    }

    /// UpdateMaxBw.
    fn update_max_bw(&mut self, ack: &Ack, sample: &Sample) {
        if self.rounds.on_ack(ack.prior_delivered, ack.total_delivered) {
            self.cycle.rounds_since_probe_up += 1;
            self.extra_acked.advance();
        }
        if let Some(rate) = sample.rate
            && rate > Rate::ZERO
            && (rate >= self.max_rate() || !sample.app_limited)
        {
            self.max_bw.update(rate.bits_per_second());
        }
    }

    /// UpdateACKAggregation: what came in beyond what the model expects since the last lull.
    fn update_aggregation(&mut self, ack: &Ack) {
        let span = ack.now.since(self.extra_acked_since);
        let mut expected = volume(self.bw, span, 1.0);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0;
            self.extra_acked_since = ack.now;
            expected = 0;
        }
        self.extra_acked_delivered = self.extra_acked_delivered.saturating_add(ack.delivered);
        let extra = self.extra_acked_delivered.saturating_sub(expected).min(self.cwnd);
        if !self.full_pipe.reached && self.rounds.is_start() {
            // In Startup one round is remembered.
            self.extra_acked.forget_past();
        }
        self.extra_acked.update(extra);
    }
}

/// What `rate` carries in `span`, times `gain`, bytes.
fn volume(rate: Rate, span: Duration, gain: f64) -> u64 {
    (rate.bits_per_second() as f64 / 8.0 * span.as_secs_f64() * gain) as u64
}

impl SinglePath for Bbr {
    type Settings = ();
    const GOVERNS_RECOVERY: bool = true;

    fn start(_settings: &(), start: Start) -> Self {
        let mss = u64::from(start.mss).max(1);
        let cwnd = start.initial_window.clamp(mss, LARGEST_WINDOW);
        let rtt = Some(start.smoothed_rtt).filter(|rtt| !rtt.is_zero());
        let mut bbr = Self {
            mss,
            initial_window: cwnd,
            cwnd,
            prior_cwnd: 0,
            pacing_rate: Rate::ZERO,
            rtt_seen: rtt.is_some(),
            state: State::Startup,
            rounds: RoundCounter::default(),
            max_bw: WindowedMax::new(),
            bw: Rate::ZERO,
            bw_shortterm: Rate::UNLIMITED,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            min_rtt: MinRtt::new(MIN_RTT_WINDOW, PROBE_RTT_INTERVAL, start.now, rtt),
            bw_latest: Rate::ZERO,
            inflight_latest: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_events: 0,
            extra_acked: WindowedMax::new(),
            extra_acked_since: start.now,
            extra_acked_delivered: 0,
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(start.now),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            recovering_since: None,
            undo: Undo::default(),
            draws: Draws::new(start.now.as_nanos() ^ start.smoothed_rtt.as_nanos().rotate_left(32)),
            delivered: 0,
        };
        bbr.init_pacing(rtt.unwrap_or(Duration::from_millis(1)));
        bbr
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.handle_restart_from_idle(sent);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.delivered = lost.total_delivered;
        self.handle_lost_segment(lost);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let (false, Some(rtt)) = (self.rtt_seen, ack.rtt) {
            self.rtt_seen = true;
            self.init_pacing(rtt);
        }
        self.delivered = ack.total_delivered;
        let sample = self.sample(ack);
        self.update_model_and_state(ack, &sample);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_window(ack);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            Congestion::Loss => {
                self.enter_recovery();
                self.note_loss();
            }
            Congestion::Mark => self.note_loss(),
            Congestion::Timeout => {
                self.enter_recovery();
                self.note_loss();
                // Everything is marked lost: nothing is in flight.
                self.cwnd = self.mss;
            }
            Congestion::Penalty => self.cwnd = (self.cwnd / 2).max(self.min_pipe().min(self.cwnd)),
        }
    }

    fn on_recovery_end(&mut self, _now: Instant) {
        self.recovering_since = None;
        self.restore_window();
    }

    fn on_spurious(&mut self, _now: Instant) {
        self.handle_spurious_loss();
    }

    // Pacing makes a restart of the window needless (section 5.4).
    fn on_idle_restart(&mut self, _window: u64) {}

    fn on_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss).max(1);
        self.cwnd = self.cwnd.max(self.mss);
    }

    fn window(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        if self.full_pipe.reached { self.cwnd } else { UNBOUNDED }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }
}
