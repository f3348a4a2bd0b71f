//! ProbeBW: the cycle of slowing down, cruising, refilling the pipe and probing for more (section 5.3.3).

use super::{Ack, Bbr, HEADROOM, MIN_PIPE, Rate, Sample, State, UNBOUNDED};
use crate::time::{Duration, Instant};

/// Most rounds between probes (T_reno_bound; 0 or 1 of them are counted at the start).
const MOST_ROUNDS: u64 = 63;

/// What the acknowledgements that come in are about (ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    /// Nothing was probed.
    Init,
    /// The pipe is being refilled.
    Refilling,
    /// Probing has begun; what comes in was sent before.
    ProbeStarting,
    /// What comes in was sent while probing.
    ProbeFeedback,
    /// Probing has stopped; what comes in was still sent while probing.
    ProbeStopping,
}

/// Where the cycle is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Samples are of a probe, and it has not been answered yet (is_bw_probe_sample).
    pub(super) is_probe_sample: bool,
    pub(super) rounds_since_probe_up: u64,
    /// The last probe lost too much (prev_probe_too_high).
    pub(super) too_high: bool,
    /// The last probe stopped where the one before had lost too much (prev_probe_precautionary).
    precautionary: bool,
    began: Instant,
    wait: Duration,
    pub(super) up_rounds: u32,
    pub(super) up_acked: u64,
    up_acked_per_increase: u64,
}

impl Cycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            rounds_since_probe_up: 0,
            too_high: false,
            precautionary: false,
            began: now,
            wait: Duration::ZERO,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_increase: UNBOUNDED,
        }
    }
}

impl Bbr {
    /// StartProbeBW_DOWN, with PickProbeWait.
    pub(super) fn start_down(&mut self, now: Instant, total_delivered: u64) {
        self.reset_congestion_signals();
        self.cycle.up_acked_per_increase = UNBOUNDED;
        self.cycle.rounds_since_probe_up = self.draws.next(now) & 1;
        self.cycle.wait = Duration::from_secs(2) + Duration::from_secs_f64(self.draws.fraction(now));
        self.cycle.began = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart(total_delivered);
        self.state = State::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    pub(super) fn start_refill(&mut self, total_delivered: u64) {
        self.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(total_delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, ack: &Ack, sample: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(ack.total_delivered);
        self.full_pipe.reset(sample.rate.unwrap_or(Rate::ZERO));
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_long_term(ack, sample) {
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(ack.now) {
                    self.start_refill(ack.total_delivered);
                } else if self.is_time_to_cruise(ack) {
                    self.start_cruise();
                }
            }
            State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(ack.total_delivered),
            State::Refill if self.rounds.is_start() => {
                self.cycle.is_probe_sample = true;
                self.start_up(ack, sample);
            }
            State::Up => {
                if self.is_time_to_go_down(ack, sample) {
                    self.cycle.too_high = false;
                    self.start_down(ack.now, ack.total_delivered);
                }
            }
            State::Startup | State::Drain | State::Cruise | State::Refill | State::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW: after 2 to 3 s, or after as many rounds as standard TCP takes to grow by the flight.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let rounds = (self.target_inflight() / self.mss).clamp(MIN_PIPE, MOST_ROUNDS);
        now > self.cycle.began + self.cycle.wait || self.cycle.rounds_since_probe_up >= rounds
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.inflight_with_headroom() && ack.in_flight <= self.inflight(self.max_rate(), 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.cycle.too_high && ack.in_flight >= self.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.cwnd >= self.inflight_longterm {
            // The bound, not the path, is what limits the rate.
            self.full_pipe.reset(sample.rate.unwrap_or(Rate::ZERO));
            return false;
        }
        self.full_pipe.now
    }

    /// InflightWithHeadroom: leaves room for others.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if !self.is_bounded() {
            return UNBOUNDED;
        }
        let headroom = ((HEADROOM * self.inflight_longterm as f64) as u64).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(self.min_pipe())
    }

    /// RaiseInflightLongtermSlope: 1, 2, 4... segments per round.
    pub(super) fn raise_slope(&mut self) {
        let growth = 1u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_increase = (self.cwnd / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn raise_inflight_longterm(&mut self, ack: &Ack) {
        if !ack.cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.cycle.up_acked += ack.delivered;
        let steps = self.cycle.up_acked / self.cycle.up_acked_per_increase;
        self.cycle.up_acked -= steps * self.cycle.up_acked_per_increase;
        self.inflight_longterm = self.inflight_longterm.saturating_add(steps * self.mss);
        if self.rounds.is_start() {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel. Gives whether it decided on a state.
    fn adapt_long_term(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let round_start = self.rounds.is_start();
        if self.cycle.ack_phase == AckPhase::ProbeStarting && round_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.app_limited && self.max_bw.present() > 0 {
                    self.max_bw.advance();
                }
                if self.cycle.precautionary && !self.cycle.too_high {
                    self.start_refill(ack.total_delivered);
                    return true;
                }
            }
        }
        if self.is_bounded() && !sample.lost_too_much() {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.raise_inflight_longterm(ack);
            }
        }
        false
    }
}
