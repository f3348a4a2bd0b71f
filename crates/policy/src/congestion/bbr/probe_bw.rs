//! The position in the cycle of slowing down, cruising, refilling the pipe and probing for more (section 5.3.3).

use super::super::path_model::Draws;
use super::model::MIN_PIPE;
use super::state::UNBOUNDED;
use crate::time::{Duration, Instant};

/// Most rounds between probes (T_reno_bound; 0 or 1 of them are counted at the start).
const MOST_ROUNDS: u64 = 63;

/// The origin of current acknowledgements (ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    /// No probe yet.
    Init,
    /// The pipe is being refilled.
    Refilling,
    /// Probing has begun; current acknowledgements are for data sent before.
    ProbeStarting,
    /// Current acknowledgements are for data sent while probing.
    ProbeFeedback,
    /// Probing has stopped; current acknowledgements are still for data sent while probing.
    ProbeStopping,
}

/// The position in the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Samples belong to a probe without a result yet (is_bw_probe_sample).
    pub(super) is_probe_sample: bool,
    rounds_since_probe_up: u64,
    /// The last probe lost too much (prev_probe_too_high).
    pub(super) too_high: bool,
    /// The last probe stopped at the limit of the one before (prev_probe_precautionary).
    pub(super) precautionary: bool,
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

    /// StartProbeBW_DOWN, with PickProbeWait.
    pub(super) fn start_down(&mut self, now: Instant, draws: &mut Draws) {
        self.up_acked_per_increase = UNBOUNDED;
        self.rounds_since_probe_up = draws.next(now) & 1;
        self.wait = Duration::from_secs(2) + Duration::from_secs_f64(draws.fraction(now));
        self.began = now;
        self.ack_phase = AckPhase::ProbeStopping;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.up_rounds = 0;
        self.up_acked = 0;
        self.precautionary = false;
        self.ack_phase = AckPhase::Refilling;
    }

    /// StartProbeBW_UP.
    pub(super) fn start_up(&mut self, cwnd: u64, mss: u64) {
        self.is_probe_sample = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.raise_slope(cwnd, mss);
    }

    /// Ends a round of packets.
    pub(super) fn count_round(&mut self) {
        self.rounds_since_probe_up += 1;
    }

    /// IsTimeToProbeBW: after 2 to 3 s, or after as many rounds as standard TCP needs to grow by the flight.
    pub(super) fn is_time_to_probe(&self, now: Instant, flight: u64, mss: u64) -> bool {
        let rounds = (flight / mss).clamp(MIN_PIPE, MOST_ROUNDS);
        now > self.began + self.wait || self.rounds_since_probe_up >= rounds
    }

    /// RaiseInflightLongtermSlope: 1, 2, 4... segments per round.
    pub(super) fn raise_slope(&mut self, cwnd: u64, mss: u64) {
        let growth = 1u64 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_acked_per_increase = (cwnd / growth).max(mss);
    }

    /// By how many segments acknowledged bytes raise inflight_longterm.
    pub(super) fn take_steps(&mut self, acked: u64) -> u64 {
        self.up_acked += acked;
        let steps = self.up_acked / self.up_acked_per_increase;
        self.up_acked -= steps * self.up_acked_per_increase;
        steps
    }
}
