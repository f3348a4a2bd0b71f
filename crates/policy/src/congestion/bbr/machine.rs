//! BBR on one subflow: the states, and the order in which model, window and pacing rate are updated (section 5.2.3).

use super::super::path_model::{Draws, RoundCounter};
use super::super::uncoupled::SinglePath;
use super::super::window::LARGEST_WINDOW;
use super::super::{Ack, Congestion, CongestionEvent, Lost, Sent, Start};
use super::control::Control;
use super::loss::{BETA, Bounds, LossRound, inflight_at_loss};
use super::model::Model;
use super::probe_bw::{AckPhase, Cycle};
use super::probe_rtt::ProbeRtt;
use super::startup::FullPipe;
use super::state::{Sample, State, UNBOUNDED};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// Discontiguous losses in a round that end Startup (BBRStartupFullLossCnt).
const FULL_LOSS_COUNT: u32 = 6;
/// Rounds after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;

/// The value of `recovering_since` without a recovery.
const NO_RECOVERY: u64 = u64::MAX;

/// State before a recovery.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// The state that the losses ended.
    state: Option<State>,
    bounds: Bounds,
}

/// BBR on one subflow.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    model: Model,
    control: Control,
    rounds: RoundCounter,
    losses: LossRound,
    full_pipe: FullPipe,
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// A round-trip time is known, and pacing has started from it.
    rtt_seen: bool,
    idle_restart: bool,
    /// The round in which the current loss recovery began, or [`NO_RECOVERY`].
    recovering_since: u64,
    /// None before the first loss.
    undo: Option<Box<Undo>>,
    draws: Draws,
    /// Bytes delivered, as last reported (C.delivered).
    delivered: u64,
}

impl Bbr {
    /// UpdateModelAndState.
    fn update_model_and_state(&mut self, ack: &Ack, sample: &Sample) {
        self.losses.update_latest_signals(ack, sample);
        self.update_congestion_signals(ack, sample);
        let forget_past = !self.full_pipe.reached && self.rounds.is_start();
        self.model.update_aggregation(ack, self.control.cwnd, forget_past);
        self.full_pipe.check(self.rounds.is_start(), sample);
        self.check_startup_done(ack, sample);
        self.check_drain_done(ack);
        self.update_cycle(ack, sample);
        let expired = self.model.min_rtt.update(ack.now, ack.rtt);
        self.check_probe_rtt(ack, expired);
        self.losses.advance_latest_signals(sample);
        self.model.bound_bw();
    }

    /// UpdateCongestionSignals.
    fn update_congestion_signals(&mut self, ack: &Ack, sample: &Sample) {
        if self.rounds.on_ack(ack.prior_delivered, ack.total_delivered) {
            self.cycle.count_round();
            self.model.advance_aggregation();
        }
        self.model.update_max_bw(sample);
        if self.losses.is_start() && self.losses.take_loss() && !self.state.is_probing() {
            let max_rate = self.model.max_rate();
            self.model.bounds.adapt_short_term(&self.losses, max_rate, self.control.cwnd);
        }
    }

    fn save_window(&mut self) {
        self.control.save_window(self.recovering_since != NO_RECOVERY || self.state == State::ProbeRtt);
    }
}

/// Startup and Drain (sections 5.3.1 and 5.3.2).
impl Bbr {
    /// CheckStartupDone.
    fn check_startup_done(&mut self, ack: &Ack, sample: &Sample) {
        if ack.lost > 0 {
            self.losses.count_event();
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
        let a_round_in_recovery = self.rounds.count() > self.recovering_since;
        let many = self.losses.events() >= FULL_LOSS_COUNT;
        if self.losses.is_start() && a_round_in_recovery && many && sample.lost_too_much() {
            self.undo_mut().state = Some(State::Startup);
            self.full_pipe.reached = true;
            let bdp = self.model.bdp(self.model.max_rate(), 1.0);
            self.model.bounds.inflight_longterm = bdp.max(self.losses.inflight_latest());
        }
    }

    /// CheckDrainDone.
    fn check_drain_done(&mut self, ack: &Ack) {
        if self.state != State::Drain {
            return;
        }
        let late = self.rounds.count() > self.drain_start_round + DRAIN_ROUNDS;
        if late || ack.in_flight <= self.model.inflight(self.state, self.model.max_rate(), 1.0) {
            self.start_down(ack.now, ack.total_delivered);
        }
    }
}

/// ProbeBW (section 5.3.3).
impl Bbr {
    /// StartProbeBW_DOWN.
    fn start_down(&mut self, now: Instant, total_delivered: u64) {
        self.losses.reset();
        self.cycle.start_down(now, &mut self.draws);
        self.rounds.restart(total_delivered);
        self.state = State::Down;
    }

    fn start_refill(&mut self, total_delivered: u64) {
        self.model.bounds.reset_short_term();
        self.cycle.start_refill();
        self.rounds.restart(total_delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, ack: &Ack, sample: &Sample) {
        self.rounds.restart(ack.total_delivered);
        self.full_pipe.reset(sample.rate.unwrap_or(Rate::ZERO));
        self.state = State::Up;
        self.cycle.start_up(self.control.cwnd, self.model.mss);
    }

    /// UpdateProbeBWCyclePhase.
    fn update_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_long_term(ack, sample) {
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(ack.now) {
                    self.start_refill(ack.total_delivered);
                } else if self.is_time_to_cruise(ack) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(ack.total_delivered),
            State::Refill if self.rounds.is_start() => self.start_up(ack, sample),
            State::Up => {
                if self.is_time_to_go_down(ack, sample) {
                    self.cycle.too_high = false;
                    self.start_down(ack.now, ack.total_delivered);
                }
            }
            State::Startup | State::Drain | State::Cruise | State::Refill | State::ProbeRtt => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        self.cycle.is_time_to_probe(now, self.model.target_inflight(self.control.cwnd), self.model.mss)
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        let flight = self.model.inflight(self.state, self.model.max_rate(), 1.0);
        ack.in_flight <= self.model.inflight_with_headroom() && ack.in_flight <= flight
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let bound = self.model.bounds.inflight_longterm;
        if self.cycle.too_high && ack.in_flight >= bound {
            self.cycle.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.control.cwnd >= bound {
            // The bound, not the path, limits the rate.
            self.full_pipe.reset(sample.rate.unwrap_or(Rate::ZERO));
            return false;
        }
        self.full_pipe.now
    }

    /// ProbeInflightLongtermUpward.
    fn raise_inflight_longterm(&mut self, ack: &Ack) {
        let bound = &mut self.model.bounds.inflight_longterm;
        if !ack.cwnd_limited || self.control.cwnd < *bound {
            return;
        }
        *bound = bound.saturating_add(self.cycle.take_steps(ack.delivered) * self.model.mss);
        if self.rounds.is_start() {
            self.cycle.raise_slope(self.control.cwnd, self.model.mss);
        }
    }

    /// AdaptLongTermModel. Returns whether it decided on a state.
    fn adapt_long_term(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let round_start = self.rounds.is_start();
        if self.cycle.ack_phase == AckPhase::ProbeStarting && round_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.app_limited && self.model.max_bw.present() > 0 {
                    self.model.max_bw.advance();
                }
                if self.cycle.precautionary && !self.cycle.too_high {
                    self.start_refill(ack.total_delivered);
                    return true;
                }
            }
        }
        let bounds = &mut self.model.bounds;
        if bounds.has_longterm() && !sample.lost_too_much() {
            bounds.inflight_longterm = bounds.inflight_longterm.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.raise_inflight_longterm(ack);
            }
        }
        false
    }
}

/// ProbeRTT (section 5.3.4), and what happens after a pause of the sender (section 5.4).
impl Bbr {
    /// CheckProbeRTT.
    fn check_probe_rtt(&mut self, ack: &Ack, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::begin(ack.total_delivered);
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart(ack.total_delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &Ack) {
        self.probe_rtt.hold_down(ack);
        if !self.probe_rtt.is_timed() {
            if ack.in_flight <= self.model.probe_rtt_window() {
                self.probe_rtt.start_time(ack.now);
                self.rounds.restart(ack.total_delivered);
            }
        } else if self.probe_rtt.on_round(self.rounds.is_start()) {
            self.check_probe_rtt_done(ack.now, ack.total_delivered);
        }
    }

    /// CheckProbeRTTDone, with ExitProbeRTT.
    fn check_probe_rtt_done(&mut self, now: Instant, total_delivered: u64) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        self.model.min_rtt.probed(now);
        self.control.restore_window();
        self.model.bounds.reset_short_term();
        if self.full_pipe.reached {
            self.start_down(now, total_delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// HandleRestartFromIdle.
    fn handle_restart_from_idle(&mut self, sent: &Sent) {
        if sent.in_flight > sent.bytes || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        self.model.restart_aggregation(sent.now);
        if self.state.is_probe_bw() {
            self.control.set_pacing_rate(&self.model, 1.0, self.full_pipe.reached);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(sent.now, sent.total_delivered);
        }
    }
}

/// Losses, and how they are undone (sections 5.5.10 and 5.5.11).
impl Bbr {
    /// OnEnterFastRecovery and OnEnterRTO, without the window.
    fn enter_recovery(&mut self) {
        self.save_window();
        if self.recovering_since == NO_RECOVERY {
            *self.undo_mut() = Undo { state: None, bounds: self.model.bounds };
            self.recovering_since = self.rounds.count();
        }
    }

    fn undo_mut(&mut self) -> &mut Undo {
        self.undo.get_or_insert_with(|| Box::new(Undo { state: None, bounds: Bounds::LEAST }))
    }

    /// HandleLostPacket.
    fn handle_lost_segment(&mut self, lost: &Lost) {
        self.enter_recovery();
        self.losses.record_loss(self.delivered);
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

    /// HandleInflightTooHigh.
    fn handle_inflight_too_high(&mut self, lost: &Lost, sample: &Sample) {
        self.cycle.too_high = true;
        self.cycle.is_probe_sample = false;
        if !sample.app_limited {
            let kept = (self.model.target_inflight(self.control.cwnd) as f64 * BETA) as u64;
            self.model.bounds.inflight_longterm = inflight_at_loss(lost, sample).max(kept);
        }
        if self.state == State::Up {
            self.undo_mut().state = Some(State::Up);
            self.start_down(lost.now, lost.total_delivered);
        }
    }

    /// HandleSpuriousLossDetection.
    fn handle_spurious_loss(&mut self) {
        self.recovering_since = NO_RECOVERY;
        self.control.restore_window();
        self.losses.take_loss();
        self.full_pipe.reset(Rate::ZERO);
        let undo = self.undo_mut();
        let (bounds, state) = (undo.bounds, undo.state.take());
        self.model.bounds.restore(&bounds);
        match state {
            Some(State::Startup) => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.delivered);
            }
            _ => {}
        }
    }
}

impl SinglePath for Bbr {
    type Settings = ();
    const GOVERNS_RECOVERY: bool = true;

    fn start(_settings: &(), start: Start) -> Self {
        let mss = u64::from(start.mss).max(1);
        let cwnd = start.initial_window.clamp(mss, LARGEST_WINDOW);
        let rtt = Some(start.smoothed_rtt).filter(|rtt| !rtt.is_zero());
        let mut bbr = Self {
            state: State::Startup,
            model: Model::new(mss, cwnd, start.now, rtt),
            control: Control::new(cwnd),
            rounds: RoundCounter::default(),
            losses: LossRound::FIRST,
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(start.now),
            probe_rtt: ProbeRtt::default(),
            rtt_seen: rtt.is_some(),
            idle_restart: false,
            recovering_since: NO_RECOVERY,
            undo: None,
            draws: Draws::new(start.now.as_nanos() ^ start.smoothed_rtt.as_nanos().rotate_left(32)),
            delivered: 0,
        };
        bbr.control.init_pacing(&bbr.model, rtt.unwrap_or(Duration::from_millis(1)));
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
            self.control.init_pacing(&self.model, rtt);
        }
        self.delivered = ack.total_delivered;
        let sample = Sample::of(ack, self.probe_rtt.held_down(ack.prior_delivered));
        self.update_model_and_state(ack, &sample);
        let pipe_was_full = self.full_pipe.reached;
        self.control.set_pacing_rate(&self.model, self.state.pacing_gain(), pipe_was_full);
        self.control.set_window(&self.model, self.state, ack, pipe_was_full);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            Congestion::Loss => {
                self.enter_recovery();
                self.losses.record_loss(self.delivered);
            }
            Congestion::Mark => self.losses.record_loss(self.delivered),
            Congestion::Timeout => {
                self.enter_recovery();
                self.losses.record_loss(self.delivered);
                // Everything is marked lost: nothing is in flight.
                self.control.cwnd = self.model.mss;
            }
            Congestion::Penalty => {
                let cwnd = self.control.cwnd;
                self.control.cwnd = (cwnd / 2).max(self.model.min_pipe().min(cwnd));
            }
        }
    }

    fn on_recovery_end(&mut self, _now: Instant) {
        self.recovering_since = NO_RECOVERY;
        self.control.restore_window();
    }

    fn on_spurious(&mut self, _now: Instant) {
        self.handle_spurious_loss();
    }

    // Pacing makes a restart of the window unnecessary (section 5.4).
    fn on_idle_restart(&mut self, _window: u64) {}

    fn on_mss(&mut self, mss: u32) {
        self.model.mss = u64::from(mss).max(1);
        self.control.cwnd = self.control.cwnd.max(self.model.mss);
    }

    fn window(&self) -> u64 {
        self.control.cwnd
    }

    fn ssthresh(&self) -> u64 {
        if self.full_pipe.reached { self.control.cwnd } else { UNBOUNDED }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.control.pacing_rate)
    }
}

#[cfg(test)]
mod tests;
