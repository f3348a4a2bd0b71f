//! CUBIC limited by a model of the path. It yields as CUBIC does, keeps no standing queue where it is alone, and does
//! not reduce its window for random loss.
//!
//! The congestion window is the smaller of two.
//!
//! - **CUBIC's window** (RFC 9438). It is reduced for congestion only: for marks, and for losses that [`QueueEvidence`]
//!   does not explain as random. Against other flows it competes as CUBIC.
//! - **The model's window**, as in BBR: the bandwidth (the largest delivery rate of eight rounds) times min_rtt, plus a
//!   fifth. Segments are paced at the bandwidth, at times for a round a quarter faster and for the next a quarter slower,
//!   so that the queue is empty most of the time. If the delivery rate follows and the queue stays empty, the next quarter is asked for
//!   at once.
//!
//! If a queue remains while the sender slows down, twice in a row, other flows keep it. The model's window would then
//! leave the path to them, so only CUBIC's counts ([`Phase::Compete`]). Every sixteen rounds the sender probes with
//! three quarters of its window ([`Phase::Probe`]). If the delivery rate stays the same or the queue drains, twice in a
//! row, no other flow is left.
//!
//! Slow start also ends, without a reduction, when every packet of a round took three times min_rtt, or three rounds
//! with a quarter more in flight than the path holds brought no higher rate but a queue: where the receive window or
//! the scheduler limits, nothing else ends it.
//!
//! Without SACK one loss is found in a round trip, so losses cannot be compared with what chance explains. Then any is
//! congestion, unless almost no packet was queued in the last rounds.
//!
//! If min_rtt is below 3 ms ([`HOLD`]), the delay of the hosts says more about them than about the path. Delays below 3
//! ms are then no queue, a phase lasts 3 ms where it would last min_rtt, and without congestion CUBIC's window is
//! raised to what passes in 3 ms.

use super::cubic::{Cubic, CubicSettings};
use super::path_model::{Draws, MinRtt, RoundCounter, WindowedMax};
use super::quantum::{HOLD, host_budget};
use super::queue_evidence::QueueEvidence;
use super::uncoupled::SinglePath;
use super::{Ack, Congestion, CongestionEvent, Lost, Start};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

pub(super) mod connection;
mod rest;

/// The model's window, in bdp.
const WINDOW: f64 = 1.2;
/// The path is full if every packet of a round took this many times min_rtt, and longer than hosts add.
const FULL: u64 = 3;
/// It is also full after this many rounds with this factor of its bdp in flight without growth of the delivery rate by
/// that factor.
const FULL_ROUNDS: u8 = 3;
const GROWS: f64 = 1.25;
/// Growth of the delivery rate after sending a quarter faster that shows unused bandwidth.
const FOLLOWS: f64 = 1.125;
/// Reduced sending: share of the bandwidth (down) or of the window (probe).
const SLOWED: f64 = 0.75;
/// Consecutive observations that change the phase.
const CONFIRMED: u8 = 2;
/// The delivery rate counts as unchanged from this share of its former value.
const SAME_RATE: f64 = 0.95;
/// Rounds of a probe. In the first, segments sent before it are acknowledged.
const SLOW_ROUNDS: u32 = 3;
/// Rounds of [`Phase::Down`] if a queue remains.
const DOWN_ROUNDS: u32 = 4;
/// Rounds between two probes while competing.
const PROBE_ROUNDS: u32 = 16;
/// Window of the least round-trip time, seconds.
const MIN_RTT_WINDOW: u64 = 15;
/// Time without congestion after which CUBIC's window follows the model.
const FREE_AFTER: Duration = Duration::from_secs(25);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// CUBIC is in slow start.
    StartUp,
    Drain,
    Up,
    Down,
    Cruise,
    /// Other flows keep a queue: CUBIC's window alone counts.
    Compete,
    /// The same with a smaller window, to find out whether other flows are still present.
    Probe,
}

impl Phase {
    /// In this round of the phase, relative to the window per round trip ([`Phase::is_paced_by_window`]), otherwise to the
    /// bandwidth.
    fn pacing_gain(self, round: u32) -> f64 {
        match self {
            Self::StartUp => 2.0,
            Self::Compete | Self::Probe => 1.2,
            Self::Drain => 0.5,
            Self::Up => 1.25,
            // The first round drains what the phase before has queued, and the second tells whether it did. To send less in
            // the second too would leave the path idle.
            Self::Down if round != 1 => SLOWED,
            Self::Down | Self::Cruise => 1.0,
        }
    }

    fn is_paced_by_window(self) -> bool {
        matches!(self, Self::StartUp | Self::Compete | Self::Probe)
    }
}

/// State before a probe, for comparison.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// Delivery rate before it and the largest in it, bits per second.
    rates: (u64, u64),
    /// Most in flight before it if the application limited sending.
    in_flight: u64,
}

/// One subflow.
#[derive(Clone, Debug)]
struct BoundedCubic {
    mss: u32,
    cubic: Cubic,
    bandwidth: WindowedMax<8>,
    rounds: RoundCounter,
    min_rtt: MinRtt<MIN_RTT_WINDOW, MIN_RTT_WINDOW>,
    /// The same of acknowledgements of at least about a full segment.
    full_rtt: MinRtt<MIN_RTT_WINDOW, MIN_RTT_WINDOW>,
    smoothed_rtt: Duration,
    queue: QueueEvidence,
    phase: Phase,
    since: Instant,
    since_round: u32,
    /// Length of the phase, in round trips or rounds.
    length: u32,
    draws: Draws,
    /// Consecutive observations in favour of a change of phase.
    confirmations: u8,
    /// The delivery rate when start-up last found more, or when the last [`Phase::Up`] began, bits per second.
    rate_before: u64,
    /// The values that [`Phase::Probe`] compares.
    probe: Option<Box<Before>>,
    /// Most in flight in the phase.
    most_in_flight: u64,
    /// Least round-trip time in the phase; [`Duration::MAX`] if there was no sample.
    least_rtt: Duration,
    /// Time of the last congestion; [`Instant::NEVER`] if none.
    congested_at: Instant,
    timed_out: bool,
    /// Another subflow with the same bottleneck has seen congestion, and this one has not reduced its window yet.
    reduction_due: bool,
    /// The congestion window in bytes and the pacing rate, cached: they are read several times per segment, and change
    /// only with acknowledgements.
    window: u64,
    /// [`Rate::UNLIMITED`]: no pacing.
    pacing: Rate,
}

impl BoundedCubic {
    fn enter(&mut self, phase: Phase, now: Instant, length: u32) {
        self.phase = phase;
        self.since = now;
        self.since_round = self.rounds.count() as u32;
        self.length = length;
        self.least_rtt = Duration::MAX;
        self.most_in_flight = 0;
    }

    /// Rounds since the phase began.
    fn rounds_of_phase(&self) -> u32 {
        (self.rounds.count() as u32).saturating_sub(self.since_round)
    }

    fn least(&self) -> Duration {
        self.min_rtt.get().unwrap_or(self.smoothed_rtt)
    }

    fn rate(&self) -> Rate {
        Rate::from_bits_per_second(self.bandwidth.max())
    }

    fn bdp(&self) -> u64 {
        (self.bandwidth.max() as f64 / 8.0 * self.least().as_secs_f64()) as u64
    }

    /// Whether hosts add more to the round-trip time than the path.
    fn is_local(&self) -> bool {
        self.least() < HOLD
    }

    /// The model's window in bytes; [`u64::MAX`] while it does not apply.
    fn model_window(&self) -> u64 {
        let mss = u64::from(self.mss);
        let bdp = self.bdp();
        let gain = match self.phase {
            Phase::StartUp | Phase::Compete => return u64::MAX,
            _ if !self.queue.has_room() => return u64::MAX,
            Phase::Probe => {
                let window = self.cubic.window().min(self.probe.as_ref().map_or(u64::MAX, |before| before.in_flight));
                return ((window as f64 * SLOWED) as u64).max(2 * mss);
            }
            Phase::Up => WINDOW + 0.1,
            Phase::Drain | Phase::Down | Phase::Cruise => WINDOW,
        };
        ((bdp as f64 * gain) as u64 + 2 * mss).max(host_budget(self.rate(), mss, bdp)).max(4 * mss)
    }

    /// Whether a packet with this round-trip time waited in a queue of more than a segment.
    fn has_queue(&self, rtt: Duration) -> bool {
        let least = self.least();
        let segment = self.rate().time_for(u64::from(self.mss));
        let hosts = if self.is_local() { HOLD } else { Duration::from_millis(1) };
        // The minimum may come from a handshake. On a slow path a full segment takes longer, and by up to two more if
        // they arrive in pairs or the acknowledgement waits for the next. By no more than that: a flow that began later
        // has not seen a full segment without the queue of the others.
        let empty = self.full_rtt.get().map_or(least, |full| full.min(least + segment * 3));
        rtt > empty + ((least / 8).max(hosts) + (segment * 2).min(least / 8)).max(segment)
    }

    /// Updates the cached values.
    fn settle(&mut self) {
        let mss = u64::from(self.mss);
        let window = if self.timed_out { mss } else { self.cubic.window().min(self.model_window()).max(mss) };
        self.window = window;
        self.pacing = self.pacing_under(window).unwrap_or(Rate::UNLIMITED);
    }

    fn pacing_under(&self, window: u64) -> Option<Rate> {
        if self.phase != Phase::StartUp && !self.queue.has_room() {
            // CUBIC's window alone, unpaced like other senders: in a queue of a few packets paced flows lose to unpaced
            // ones.
            return None;
        }
        let gain = self.phase.pacing_gain(self.rounds_of_phase());
        Some(if self.phase.is_paced_by_window() {
            Rate::from_bytes_over(window, self.smoothed_rtt.max(self.least())).mul_f64(gain)
        } else {
            self.rate().mul_f64(gain).max(Rate::from_bytes_over(u64::from(self.mss), self.smoothed_rtt))
        })
    }

    fn reduce(&mut self, now: Instant, in_flight: u64, lost: u64) {
        let (cause, repeated, uncounted) = (Congestion::Loss, false, false);
        let event = CongestionEvent { now, cause, in_flight, lost, repeated, uncounted };
        self.cubic.on_congestion(&event);
        self.cubic.on_recovery_end(now);
        self.congested_at = now;
        match self.phase {
            Phase::StartUp => self.leave_start_up(now),
            Phase::Up => self.enter(Phase::Down, now, DOWN_ROUNDS),
            _ => {}
        }
    }

    /// Responds to congestion seen by another subflow with the same bottleneck.
    fn reduce_with_another(&mut self, now: Instant) {
        if !self.cubic.in_slow_start() {
            self.reduce(now, 0, 0);
            self.queue.on_reduction_of_another(self.rounds.count());
        }
    }

    fn leave_start_up(&mut self, now: Instant) {
        self.confirmations = 0;
        self.queue.tried();
        self.enter(Phase::Drain, now, 3);
    }

    /// Whether there was an acknowledgement recently.
    fn is_active(&self, now: Instant) -> bool {
        now.since(self.cubic.last_ack()) < Duration::from_secs(1) + self.smoothed_rtt * 2
    }

    /// Evaluates the end of a round of start-up. Behind a buffer larger than the receive window the path may be full
    /// without a loss, and without a rise of delay fast enough for HyStart++.
    fn judge_start_up(&mut self) {
        let least_of_round = core::mem::replace(&mut self.least_rtt, Duration::MAX);
        let most_in_flight = core::mem::take(&mut self.most_in_flight);
        if least_of_round == Duration::MAX {
            return;
        }
        let rate = self.bandwidth.max();
        let exceeds = most_in_flight as f64 > self.bdp() as f64 * GROWS + 2.0 * f64::from(self.mss);
        if rate as f64 >= self.rate_before as f64 * GROWS {
            (self.rate_before, self.confirmations) = (rate, 0);
        } else if exceeds && self.has_queue(least_of_round) {
            // Without a queue the rate is the application's.
            self.confirmations += 1;
        }
        let waits = self.cubic.in_first_slow_start() && least_of_round > self.least() * FULL + HOLD;
        if waits || self.confirmations >= FULL_ROUNDS {
            self.cubic.leave_slow_start();
        }
    }

    /// Counts consecutive observations. Returns true, and restarts, once there are enough.
    fn is_confirmed(&mut self, observed: bool) -> bool {
        self.confirmations = if observed { self.confirmations + 1 } else { 0 };
        let confirmed = self.confirmations >= CONFIRMED;
        if confirmed {
            self.confirmations = 0;
        }
        confirmed
    }

    /// A random number below `end`.
    fn draw(&mut self, now: Instant, end: u32) -> u32 {
        (self.draws.next(now) % u64::from(end)) as u32
    }

    fn compete(&mut self, now: Instant) {
        let length = PROBE_ROUNDS + self.draw(now, 8);
        self.enter(Phase::Compete, now, length);
    }

    fn speed_up(&mut self, now: Instant) {
        self.rate_before = self.bandwidth.max();
        self.enter(Phase::Up, now, 1);
    }

    /// Evaluates the end of [`Phase::Down`]: did a queue remain, or did the rate follow?
    fn judge_queue(&mut self, now: Instant) {
        let remained = self.least_rtt != Duration::MAX && self.has_queue(self.least_rtt);
        let followed = self.bandwidth.max() as f64 >= self.rate_before as f64 * FOLLOWS;
        if self.is_confirmed(remained) {
            self.compete(now);
        } else if followed && !remained && (self.queue.is_empty(self.mss) || self.queue.is_slow()) {
            // The path carries more than before: how much more is asked at once. (On a slow path no round has enough
            // segments to be called empty.)
            self.speed_up(now);
        } else {
            let length = 5 + self.draw(now, 4);
            self.enter(Phase::Cruise, now, length);
        }
    }

    /// Whether the queue is drained: with less in flight the path would idle.
    fn is_drained(&self, in_flight: u64, bdp: u64) -> bool {
        self.least_rtt != Duration::MAX && in_flight <= bdp && !self.has_queue(self.least_rtt)
    }

    /// Evaluates the end of [`Phase::Probe`]: is this flow alone?
    fn judge_rate(&mut self, now: Instant) {
        let (before, after) = self.probe.take().map_or((0, 0), |before| before.rates);
        let same_rate = after as f64 >= before as f64 * SAME_RATE;
        let drained = !self.has_queue(self.least_rtt);
        if self.is_confirmed(same_rate || drained) {
            self.enter(Phase::Drain, now, 3);
        } else {
            self.compete(now);
        }
    }

    fn advance(&mut self, ack: &Ack) {
        let now = ack.now;
        // Where hosts add more delay than the path, they determine the round trip.
        let (elapsed, round_trip) = (now.since(self.since), self.least().max(HOLD));
        let rounds = self.rounds_of_phase();
        let bdp = self.bdp().max(2 * u64::from(self.mss));
        match self.phase {
            Phase::StartUp if !self.cubic.in_slow_start() => self.leave_start_up(now),
            Phase::Drain if ack.in_flight <= bdp || elapsed > round_trip * u64::from(self.length) => {
                let length = 1 + self.draw(now, 8);
                self.enter(Phase::Cruise, now, length);
            }
            Phase::Cruise if elapsed > round_trip * u64::from(self.length) => self.speed_up(now),
            Phase::Up if elapsed > round_trip * u64::from(self.length) => self.enter(Phase::Down, now, DOWN_ROUNDS),
            Phase::Down if rounds >= self.length || self.is_drained(ack.in_flight, bdp) => self.judge_queue(now),
            Phase::Compete if rounds >= self.length => {
                let in_flight = if ack.app_limited { self.most_in_flight } else { u64::MAX };
                self.probe = Some(Box::new(Before { rates: (self.bandwidth.present(), 0), in_flight }));
                self.enter(Phase::Probe, now, SLOW_ROUNDS);
            }
            Phase::Probe if rounds >= self.length => self.judge_rate(now),
            _ => {}
        }
    }

    fn observe(&mut self, ack: &Ack) {
        self.smoothed_rtt = ack.smoothed_rtt;
        if matches!(self.phase, Phase::Compete | Phase::Probe) {
            // Other flows keep a queue: the minimum measured before them does not expire.
            self.min_rtt.seen(ack.now);
            self.full_rtt.seen(ack.now);
        }
        self.min_rtt.update(ack.now, ack.rtt);
        self.full_rtt.update(ack.now, ack.rtt.filter(|_| ack.delivered >= u64::from(self.mss / 4 * 3)));
        self.most_in_flight = self.most_in_flight.max(ack.prior_in_flight);
        if self.rounds.on_ack(ack.prior_delivered, ack.total_delivered) {
            self.bandwidth.advance();
            if self.phase == Phase::StartUp && self.cubic.in_slow_start() {
                self.judge_start_up();
            }
        }
        if let Some(rate) = ack.delivery_rate {
            let bits = rate.bits_per_second();
            self.bandwidth.sample(bits, ack.app_limited, self.rounds.is_start());
            // Segments sent with the smaller window are acknowledged from the probe's second round on.
            if self.rounds_of_phase() >= 2
                && let Some(before) = self.probe.as_mut().filter(|_| self.phase == Phase::Probe)
            {
                before.rates.1 = before.rates.1.max(bits);
            }
        }
        // The wait of a single segment for a delayed acknowledgement is no queue.
        let delayed = |rtt: &Duration| self.queue.is_delayed(ack, *rtt, self.mss);
        if self.rounds_of_phase() > 0
            && let Some(rtt) = ack.rtt.filter(|rtt| !delayed(rtt))
        {
            self.least_rtt = self.least_rtt.min(rtt);
        }
        self.queue.on_ack(ack, self.least(), self.mss, self.rate(), &self.rounds);
    }

    /// Handles an acknowledgement of a subflow with this share of all windows at its bottleneck. Returns whether the
    /// window was reduced.
    fn acknowledge(&mut self, ack: &Ack, share: f64) -> bool {
        self.timed_out = false;
        self.observe(ack);
        if core::mem::take(&mut self.reduction_due) {
            self.reduce_with_another(ack.now);
        }
        self.cubic.grow_as(share);
        let congested = self.queue.is_congested(self.mss);
        if congested {
            self.reduce(ack.now, ack.prior_in_flight, ack.lost);
            self.queue.on_reduction(ack.total_lost);
        }
        let limits = self.cubic.window() <= self.model_window();
        if self.phase != Phase::StartUp && !(limits && self.cubic.in_slow_start()) {
            // The slow start after an idle time is over.
            self.queue.tried();
        }
        self.cubic.on_ack(&Ack {
            acked: ack.delivered,
            in_recovery: false,
            cwnd_limited: ack.cwnd_limited && limits,
            ..*ack
        });
        let free = self.congested_at == Instant::NEVER || ack.now.since(self.congested_at) > FREE_AFTER;
        if free && (self.is_local() || self.queue.is_empty(self.mss)) && self.phase != Phase::StartUp {
            let bdp = self.bdp();
            self.cubic.raise_to((2 * bdp).max(host_budget(self.rate(), u64::from(self.mss), bdp)));
        }
        self.advance(ack);
        self.settle();
        congested
    }
}

impl SinglePath for BoundedCubic {
    type Settings = ();
    const GOVERNS_RECOVERY: bool = true;

    fn start((): &(), start: Start) -> Self {
        let first = Some(start.smoothed_rtt).filter(|rtt| !rtt.is_zero());
        let mut new = Self {
            mss: start.mss,
            cubic: Cubic::start(&CubicSettings::default(), start),
            bandwidth: WindowedMax::new(),
            rounds: RoundCounter::default(),
            min_rtt: MinRtt::new(start.now, first),
            full_rtt: MinRtt::new(start.now, None),
            smoothed_rtt: first.unwrap_or(Duration::from_millis(1)),
            queue: QueueEvidence::new(start.now),
            phase: Phase::StartUp,
            since: start.now,
            since_round: 0,
            length: 0,
            draws: Draws::new(start.now.as_nanos() ^ start.smoothed_rtt.as_nanos()),
            confirmations: 0,
            rate_before: 0,
            probe: None,
            most_in_flight: 0,
            least_rtt: Duration::MAX,
            congested_at: Instant::NEVER,
            timed_out: false,
            reduction_due: false,
            window: 0,
            pacing: Rate::UNLIMITED,
        };
        new.settle();
        new
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.queue.on_lost(lost, self.rounds.count());
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acknowledge(ack, 1.0);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            // Losses are counted as they are reported. If they cannot be counted, any is congestion while there is a queue.
            Congestion::Loss if event.uncounted && !self.queue.is_empty(self.mss) => {
                self.reduce(event.now, event.in_flight, event.lost);
                self.queue.forgive();
            }
            Congestion::Loss => {}
            Congestion::Timeout => {
                // The scheduler moves data away from a silent path: without a queue only the model's bdp was in flight.
                let held = if self.queue.is_empty(self.mss) { self.bdp() } else { 0 };
                self.cubic.on_congestion(&CongestionEvent { in_flight: event.in_flight.max(held), ..*event });
                self.timed_out = true;
                if !self.queue.is_empty(self.mss) {
                    self.congested_at = event.now;
                }
                (self.rate_before, self.confirmations) = (0, 0);
                self.enter(Phase::StartUp, event.now, 0);
            }
            Congestion::Mark => {
                self.cubic.on_congestion(event);
                self.congested_at = event.now;
            }
            Congestion::Penalty => self.cubic.on_congestion(event),
        }
        self.settle();
    }

    fn on_recovery_end(&mut self, _now: Instant) {}

    fn on_spurious(&mut self, now: Instant) {
        self.cubic.on_spurious(now);
        self.timed_out = false;
        // Nothing was lost. After the first slow start a timer expires mostly because a queue grew: then the evidence stays, and
        // reduces the window once.
        if self.cubic.in_first_slow_start() {
            self.queue.forgive();
            self.congested_at = Instant::NEVER;
        }
        self.settle();
    }

    /// Slow start brings the window back to what the model allows. A loss in it is judged as in start-up.
    fn on_idle_restart(&mut self, window: u64) {
        self.cubic.on_idle_restart(window);
        self.queue.restart();
        self.settle();
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
        self.cubic.on_mss(mss);
        self.settle();
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// CUBIC's threshold may exceed the model's window where that is smaller; that is no slow start.
    fn ssthresh(&self) -> u64 {
        let threshold = self.cubic.ssthresh();
        if self.phase == Phase::StartUp { threshold } else { threshold.min(self.window) }
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(self.bandwidth.max()).filter(|bits| *bits > 0).map(Rate::from_bits_per_second)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing).filter(|rate| *rate != Rate::UNLIMITED)
    }
}

#[cfg(test)]
mod tests;
