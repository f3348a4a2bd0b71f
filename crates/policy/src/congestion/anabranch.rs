//! Our own: sends at the delivery rate of the path, and distinguishes losses by congestion from random losses.
//!
//! A model of the path, as BBR has it: `bandwidth`, the largest delivery rate of the last ten rounds; `min_rtt`, the
//! least round-trip time of 15 seconds; bdp = bandwidth min_rtt. Segments are paced at gain x bandwidth, at most
//! 2 bdp (in start-up 2.77 bdp), or what is sent in 3 ms beside one, are in flight, never fewer than four segments.
//!
//! | state | gain | until |
//! |---|---|---|
//! | start-up | 2.77 | three rounds without 25 % more bandwidth; one, if a tenth of the flight is lost, and more than six segments, while a queue stands |
//! | drain | 0.5 | in flight is at most bdp |
//! | up | 1.25, 2 after one that found more | a congested round; or, after one min_rtt: 1.25 bdp or the ceiling in flight, a loss, a limit elsewhere, 4 min_rtt |
//! | down | 0.75 | in flight is at most bdp, or one min_rtt |
//! | cruise | 1 | 5 to 8 min_rtt, then up |
//! | look | 1, with 0.75 bdp in flight | a round; entered from cruise when min_rtt, within a 64th, was not seen for 10 s |
//!
//! **A path with more bandwidth.** The acknowledgements of an ascent arrive a round trip later, when it is over. If
//! they show, within 4 min_rtt of its beginning, that the bandwidth grew by 15 % and no queue is left, another one
//! follows at once, with double the rate; after that one the queue is drained. So a path whose rate has risen tenfold
//! is found in a dozen round trips instead of a hundred.
//!
//! **Losses.** On radio links packets are lost at random; a window reduced for each of them starves (at 1 % and 100 ms
//! a standard TCP gets 1.2 Mbit/s, after Mathis et al., 1997). A round's losses count as congestion only if both are
//! true: the path is full (the round-trip time is a tenth and 1 ms above min_rtt, or more is in flight than 1.125 bdp
//! and four segments; not in a start-up that still finds more, whose model is a round behind), and more was lost than
//! the random loss of the path plus 2 % of the flight. That is `chance`, the smoothed loss rate of the rounds in which
//! it was not full; and by more than two segments, in start-up six, which few segments lose by chance. Then a *ceiling*
//! falls to 0.85 of the bytes in flight, but not below 1.06 bdp; ascents raise it by 1, 2, 4 ... segments a round, each
//! ascent continuing from the last, until congestion. A round that loses a quarter of its packets, later than three
//! rounds after a start-up, means a slower path: the bandwidths of earlier rounds are discarded.
//!
//! **Limited elsewhere** (by the application, the peer's window, the scheduler) it paces at twice the bandwidth, since
//! delaying a segment here only makes it arrive later, unless there is a standing queue or such bursts are lost.
//!
//! **Timeouts.** The window is one segment until something is acknowledged. Then start-up begins at half the bandwidth
//! of the model, so that a path carries its share a few round trips after an outage. The rate sample of that
//! acknowledgement includes the outage; if it is the only sample, the bandwidth is still unknown.
//!
//! **Whatever the model is**, a segment may be sent in each smoothed round trip, as after any timeout (RFC 5681,
//! section 3.1): after a few bytes in a long time the model is meaningless, and would never recover if it paced later
//! segments.
//!
//! **Not fair everywhere.** Subflows are not coupled: over one bottleneck two of them take two shares; beside loss-based
//! control in queues of much less than a bandwidth-delay product it takes more than its share, as BBR does.
//! docs/measurements/default-policy.md has figures.

use super::path_model::{Draws, MinRtt, RoundCounter, WindowedMax};
use super::quantum::host_budget;
use super::uncoupled::{SinglePath, Uncoupled};
use super::window::LARGEST_WINDOW;
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use crate::rate::Rate;
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "anabranch",
    summary: "Our own: a model of the path as in BBR, which tells congestion losses from random ones",
    source: "docs/default-policy.md, after BBR (ACM Queue 2016) and draft-ietf-ccwg-bbr",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Uncoupled::<Anabranch>::new(())))
}

/// Least window, segments.
const LEAST_WINDOW: u64 = 4;
/// Window of the minimum round-trip time, and the time without a new minimum after which the queue is drained to
/// measure it. Seconds.
const MIN_RTT_WINDOW: u64 = 15;
const LOOK_AFTER: u64 = 10;
/// Rounds without growth that end the start-up.
const PLATEAU: u32 = 3;
/// What counts as growth.
const GROWTH: f64 = 1.25;
/// Share of a flight beyond chance that must be lost for congestion.
const BEYOND_CHANCE: f64 = 0.02;
/// Factor of bandwidth growth in an ascent after which another follows at once.
const FOUND: f64 = 1.15;
/// Share of the flight lost in a round that ends start-up.
const OVERSHOT: f64 = 0.1;
/// Start-up must lose more segments than this in a round for the loss to count: of the first ten on a lossy path a few
/// may be lost at random, and a delayed acknowledgement looks like a queue.
const OVERSHOT_LEAST: u64 = 6;
/// The same later.
const FEW: u64 = 2;
/// Rounds after start-up in which its excess is detected: one for its last flight, one for retransmissions.
const OVERSHOT_ROUNDS: u64 = 3;
/// Share of the flight that becomes the ceiling.
const BETA: f64 = 0.85;
/// Share of a round whose loss resets the model.
const COLLAPSE: f64 = 0.25;
/// Weight of a round in the smoothed rate of random losses.
const CHANCE_WEIGHT: f64 = 0.1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    StartUp,
    Drain,
    Up,
    Down,
    Cruise,
    Look,
}

impl State {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::StartUp => 2.77,
            Self::Drain => 0.5,
            Self::Up => 1.25,
            Self::Down => 0.75,
            Self::Cruise | Self::Look => 1.0,
        }
    }

    fn window_gain(self) -> f64 {
        match self {
            Self::StartUp => 2.77,
            Self::Look => 0.75,
            Self::Drain | Self::Up | Self::Down | Self::Cruise => 2.0,
        }
    }
}

/// Bytes lost and delivered in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    lost: u64,
    delivered: u64,
    queue_stood: bool,
}

impl Round {
    fn loss_rate(&self) -> f64 {
        self.lost as f64 / self.lost.saturating_add(self.delivered).max(1) as f64
    }
}

/// An ascent, and the number of successful ones before it.
#[derive(Clone, Copy, Debug)]
struct Ascent {
    began: Instant,
    /// Bandwidth at its beginning.
    bandwidth: u64,
    /// Consecutive successful ascents before it.
    found: u32,
}

impl Ascent {
    /// After several of them the queue is drained.
    fn followed_by(&self) -> State {
        if self.found > 0 { State::Drain } else { State::Down }
    }
}

/// State of start-up.
#[derive(Clone, Copy, Debug)]
struct StartUp {
    /// Bandwidth of the last round with growth, and rounds since.
    plateau: (u64, u32),
    /// Each flight so far was limited by something else: the measured bandwidth is a lower bound, and does not reduce
    /// the initial window.
    untried: bool,
    /// Losses up to this round may come from its excess.
    overshot_until: u64,
}

impl StartUp {
    const FIRST: Self = Self { plateau: (0, 0), untried: true, overshot_until: 0 };

    /// Whether the last round found more bandwidth.
    fn still_grows(&self) -> bool {
        self.plateau.1 == 0
    }

    /// Ends a round. Returns whether it completes a plateau. Rounds that did not fill the window are not counted.
    fn ends_with(&mut self, bandwidth: u64, tried: bool) -> bool {
        let (last, rounds) = self.plateau;
        if bandwidth as f64 >= last as f64 * GROWTH {
            self.plateau = (bandwidth, 0);
        } else if tried {
            self.plateau = (last, rounds + 1);
            return rounds + 1 >= PLATEAU;
        }
        false
    }
}

/// Upper limit of the bytes in flight, set where more caused congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ceiling {
    bytes: u64,
    /// Bytes by which the next harmless round of an ascent raises it.
    lift: u64,
}

impl Ceiling {
    const NONE: Self = Self { bytes: LARGEST_WINDOW, lift: 1 };

    fn lower(&mut self, to: u64, least: u64, mss: u64) {
        *self = Self { bytes: to.min(self.bytes).max(least), lift: mss };
    }

    fn raise(&mut self) {
        if self.bytes < LARGEST_WINDOW {
            self.bytes = self.bytes.saturating_add(self.lift);
            self.lift = self.lift.saturating_mul(2).min(LARGEST_WINDOW);
        }
    }
}

/// Results of the last acknowledgement and the last round.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Something other than this control limits sending.
    app_limited: bool,
    /// More was lost in the last round than at random.
    lossy: bool,
    /// The last round-trip time includes a queue.
    queue_stands: bool,
}

/// One subflow.
#[derive(Clone, Debug)]
struct Anabranch {
    mss: u32,
    initial_window: u64,
    state: State,
    since: Instant,
    /// Duration of cruise in min_rtt.
    cruise: u8,
    /// The latest ascent.
    ascent: Ascent,
    draws: Draws,
    /// Bits per second, by rounds.
    bandwidth: WindowedMax<10>,
    rounds: RoundCounter,
    round: Round,
    min_rtt: MinRtt<MIN_RTT_WINDOW, LOOK_AFTER>,
    first_rtt: Duration,
    smoothed_rtt: Duration,
    /// The minimum round-trip time was not measured for [`LOOK_AFTER`] seconds.
    look_due: bool,
    start_up: StartUp,
    chance: f64,
    ceiling: Ceiling,
    seen: Seen,
    /// A timeout is unanswered.
    timed_out: bool,
    window: u64,
    before: Option<(State, u64)>,
}

impl Anabranch {
    fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.since = now;
    }

    /// Enters cruise, for this many minimum round-trip times.
    fn enter_cruise(&mut self, long: u64, now: Instant) {
        self.cruise = long as u8;
        self.enter(State::Cruise, now);
    }

    fn min_rtt(&self) -> Duration {
        self.min_rtt.get().unwrap_or(self.first_rtt)
    }

    /// bandwidth x min_rtt, bytes.
    fn bdp(&self) -> u64 {
        (self.bandwidth.max() as f64 / 8.0 * self.min_rtt().as_secs_f64()) as u64
    }

    fn least(&self) -> u64 {
        LEAST_WINDOW * u64::from(self.mss)
    }

    /// The target of the window.
    fn target(&self) -> u64 {
        if self.bandwidth.max() == 0 {
            return self.initial_window;
        }
        let wanted = (self.bdp() as f64 * self.state.window_gain()) as u64;
        if self.state == State::Look {
            // Less than usual: on a slow path four segments are a queue by themselves.
            return wanted.max(self.least() / 2);
        }
        // Room for an acknowledgement delayed by two segments, and for a quantum.
        let bandwidth = Rate::from_bits_per_second(self.bandwidth.max());
        let mss = u64::from(self.mss);
        let wanted = (wanted + 2 * mss).max(host_budget(bandwidth, mss, self.bdp()));
        let wanted = if self.start_up.untried { wanted.max(self.initial_window) } else { wanted };
        wanted.min(self.ceiling.bytes).clamp(self.least(), LARGEST_WINDOW)
    }

    /// One segment per round trip; zero without a round-trip time.
    fn least_rate(&self) -> Rate {
        if self.smoothed_rtt.is_zero() {
            return Rate::ZERO;
        }
        Rate::from_bytes_over(u64::from(self.mss), self.smoothed_rtt)
    }

    fn has_queue(&self, rtt: Duration) -> bool {
        let least = self.min_rtt();
        rtt > least + (least / 10).max(Duration::from_millis(1))
    }

    fn ascend(&mut self, now: Instant, found: u32) {
        self.ascent = Ascent { began: now, bandwidth: self.bandwidth.max(), found };
        self.enter(State::Up, now);
    }

    /// Whether most of the excess of the ascent was delivered, and left no queue.
    fn found_more(&self, now: Instant) -> bool {
        let since = now.since(self.ascent.began);
        self.bandwidth.max() as f64 >= self.ascent.bandwidth as f64 * FOUND
            && !self.seen.queue_stands
            && since <= self.min_rtt() * 4
    }

    /// Evaluates the round that is over.
    fn end_round(&mut self, now: Instant, in_flight: u64) {
        let round = core::mem::take(&mut self.round);
        let rate = round.loss_rate();
        let few = if self.state == State::StartUp { OVERSHOT_LEAST } else { FEW };
        self.seen.lossy = round.lost > few * u64::from(self.mss) && rate > self.chance + BEYOND_CHANCE;
        // While start-up still finds more bandwidth, the model is a round behind the data in flight.
        let behind = self.state == State::StartUp && self.start_up.still_grows();
        let full = round.queue_stood || (!behind && in_flight > self.bdp() + self.bdp() / 8 + self.least());
        let congested = full && self.seen.lossy;
        if !full {
            self.chance += (rate - self.chance) * CHANCE_WEIGHT;
        }
        if congested {
            let flight = (in_flight.max(round.delivered) as f64 * BETA) as u64;
            let least = self.bdp() + self.bdp() / 16 + 2 * u64::from(self.mss);
            self.ceiling.lower(flight, least.max(self.least()), u64::from(self.mss));
            if self.state == State::Up {
                self.enter(State::Down, now);
            }
            if rate > COLLAPSE && self.rounds.count() > self.start_up.overshot_until {
                self.bandwidth.forget_past();
            }
        } else if self.state == State::Up {
            self.ceiling.raise();
        }
    }

    /// Whether start-up has found the bandwidth of the path. A round limited elsewhere counts only if there was a queue
    /// nevertheless.
    fn consider_plateau(&mut self, ack: &Ack) {
        let queued = self.seen.queue_stands && ack.prior_in_flight > self.bdp().max(6 * u64::from(self.mss));
        let tried = !ack.app_limited || queued;
        if self.start_up.ends_with(self.bandwidth.max(), tried) {
            self.enter(State::Drain, ack.now);
        }
    }

    fn advance(&mut self, ack: &Ack) {
        let (now, bdp) = (ack.now, self.bdp().max(self.least()));
        let elapsed = now.since(self.since);
        let least = self.min_rtt();
        match self.state {
            State::Down | State::Drain | State::Cruise if self.found_more(now) => {
                self.ascend(now, self.ascent.found.saturating_add(1));
            }
            State::StartUp => self.advance_start_up(ack),
            State::Drain if ack.in_flight <= bdp || elapsed > least * 3 => {
                let long = 1 + self.draws.next(now) % 8;
                self.enter_cruise(long, now);
            }
            State::Up if elapsed > least && self.is_ascent_over(ack, bdp, elapsed) => {
                self.enter(self.ascent.followed_by(), now);
            }
            State::Down if ack.in_flight <= bdp || elapsed > least => {
                let long = 5 + self.draws.next(now) % 4;
                self.enter_cruise(long, now);
            }
            State::Cruise if self.look_due && !ack.app_limited => {
                self.rounds.restart(ack.total_delivered);
                self.enter(State::Look, now);
            }
            State::Cruise if elapsed > least * u64::from(self.cruise) => self.ascend(now, 0),
            State::Look if self.rounds.is_start() => {
                self.min_rtt.probed(now);
                self.look_due = false;
                self.enter_cruise(5, now);
            }
            State::Drain | State::Up | State::Down | State::Cruise | State::Look => {}
        }
    }

    /// Ends start-up if it sent too much, or has found the bandwidth.
    fn advance_start_up(&mut self, ack: &Ack) {
        let overshot = self.round.lost as f64 > OVERSHOT * ack.prior_in_flight as f64;
        let many = self.round.lost > OVERSHOT_LEAST * u64::from(self.mss);
        if overshot && many && !self.start_up.still_grows() && self.seen.queue_stands {
            self.enter(State::Drain, ack.now);
        } else if self.rounds.is_start() {
            self.consider_plateau(ack);
        }
    }

    /// Whether an ascent of more than a round trip is complete.
    fn is_ascent_over(&self, ack: &Ack, bdp: u64, elapsed: Duration) -> bool {
        let high =
            ack.prior_in_flight >= bdp + bdp / 4 || ack.prior_in_flight + u64::from(self.mss) >= self.ceiling.bytes;
        high || ack.app_limited || ack.lost > 0 || elapsed > self.min_rtt() * 4
    }

    fn resize(&mut self, delivered: u64) {
        let target = self.target();
        let grown = self.window.saturating_add(delivered);
        // In start-up the window does not wait for the model; later it does not exceed it.
        self.window = if self.state == State::StartUp && self.bandwidth.max() == 0 { grown } else { grown.min(target) };
        self.window = self.window.min(LARGEST_WINDOW);
    }
}

impl SinglePath for Anabranch {
    type Settings = ();
    const GOVERNS_RECOVERY: bool = true;

    fn start(_settings: &(), start: Start) -> Self {
        let first = Some(start.smoothed_rtt).filter(|rtt| !rtt.is_zero());
        Self {
            mss: start.mss,
            initial_window: start.initial_window,
            state: State::StartUp,
            since: start.now,
            cruise: 1,
            ascent: Ascent { began: start.now, bandwidth: u64::MAX, found: 0 },
            draws: Draws::new(start.now.as_nanos() ^ start.smoothed_rtt.as_nanos()),
            bandwidth: WindowedMax::new(),
            rounds: RoundCounter::default(),
            round: Round::default(),
            min_rtt: MinRtt::new(start.now, first),
            look_due: false,
            first_rtt: first.unwrap_or(Duration::from_millis(1)),
            smoothed_rtt: start.smoothed_rtt,
            start_up: StartUp::FIRST,
            chance: 0.0,
            ceiling: Ceiling::NONE,
            seen: Seen::default(),
            timed_out: false,
            window: start.initial_window,
            before: None,
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.smoothed_rtt = ack.smoothed_rtt;
        let answers_timeout = core::mem::take(&mut self.timed_out);
        if answers_timeout {
            self.window = (self.bdp() / 2).max(self.least());
            self.start_up.untried = false;
            self.start_up.plateau = (self.bandwidth.max() / 2, 0);
            self.enter(State::StartUp, ack.now);
        }
        self.seen.app_limited = ack.app_limited;
        let seen = ack.rtt.is_some_and(|rtt| self.min_rtt.get().is_some_and(|least| rtt <= least + least / 64));
        self.look_due |= self.min_rtt.update(ack.now, ack.rtt);
        if seen {
            self.min_rtt.seen(ack.now);
            self.look_due = false;
        }
        if self.state == State::StartUp {
            self.start_up.overshot_until = self.rounds.count() + OVERSHOT_ROUNDS;
        }
        if self.rounds.on_ack(ack.prior_delivered, ack.total_delivered) {
            self.bandwidth.advance();
            self.end_round(ack.now, ack.prior_in_flight);
        }
        let nothing_but_silence = answers_timeout && self.bandwidth.max() == 0;
        if let Some(rate) = ack.delivery_rate.filter(|_| !nothing_but_silence) {
            self.start_up.untried &= ack.app_limited && self.state == State::StartUp;
            let bits = rate.bits_per_second();
            self.bandwidth.sample(bits, ack.app_limited, self.rounds.is_start());
        }
        self.round.delivered = self.round.delivered.saturating_add(ack.delivered);
        self.round.lost = self.round.lost.saturating_add(ack.lost);
        self.seen.queue_stands = ack.rtt.map_or(self.seen.queue_stands, |rtt| self.has_queue(rtt));
        self.round.queue_stood |= self.seen.queue_stands;
        self.advance(ack);
        self.resize(ack.delivered);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            Congestion::Timeout => {
                if !event.repeated {
                    self.before = Some((self.state, self.window));
                }
                self.timed_out = true;
                self.round = Round::default();
            }
            Congestion::Penalty => self.window = (self.window / 2).max(self.least()).min(self.window),
            // Losses are counted as they are reported.
            Congestion::Loss if !event.uncounted => {}
            Congestion::Loss | Congestion::Mark => self.ceiling.bytes = (event.in_flight as f64 * BETA) as u64,
        }
    }

    fn on_recovery_end(&mut self, _now: Instant) {}

    fn on_spurious(&mut self, now: Instant) {
        if let Some((state, window)) = self.before.take() {
            self.timed_out = false;
            self.window = window;
            self.enter(state, now);
        }
    }

    fn on_idle_restart(&mut self, _window: u64) {}

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    fn window(&self) -> u64 {
        let mss = u64::from(self.mss);
        if self.timed_out { mss } else { self.window.max(mss) }
    }

    fn ssthresh(&self) -> u64 {
        if self.state == State::StartUp { u64::MAX } else { self.window().min(self.bdp()).max(u64::from(self.mss)) }
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(self.bandwidth.max()).filter(|bits| *bits > 0).map(Rate::from_bits_per_second)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let bandwidth = match self.bandwidth.max() {
            0 => Rate::from_bytes_over(self.initial_window, self.first_rtt),
            bits if self.start_up.untried => {
                Rate::from_bits_per_second(bits).max(Rate::from_bytes_over(self.initial_window, self.min_rtt()))
            }
            bits => Rate::from_bits_per_second(bits),
        };
        // Sending limited elsewhere is not paced too, which would only delay it, unless bursts are lost.
        let ascends_again = self.state == State::Up && self.ascent.found > 0;
        let gain = match if ascends_again { 2.0 } else { self.state.pacing_gain() } {
            gain if !self.seen.app_limited || self.seen.queue_stands => gain,
            gain if self.seen.lossy => gain.min(State::Up.pacing_gain()),
            gain => gain.max(2.0),
        };
        Some(bandwidth.mul_f64(gain).max(self.least_rate()))
    }
}

#[cfg(test)]
mod tests;
