//! CUBIC beneath a model of the path: it yields as CUBIC does, keeps no queue where it is alone, and goes on where losses are not
//! congestion.
//!
//! The window is the lesser of two.
//!
//! - **CUBIC's** (RFC 9438), which answers congestion alone: losses that [`QueueEvidence`] tells from those by chance, and marks.
//!   It is what competes: no faster, no slower than CUBIC.
//! - **The model's**, as BBR has it: bandwidth, the largest delivery rate of eight rounds, times min_rtt, and a fifth more. Segments
//!   are paced at the bandwidth, in turns a quarter faster and a quarter slower, so that the queue is empty most of the time.
//!
//! A queue that stays while the sender holds back, twice in a row, is the queue of others: they fill it, and the model's window would
//! give them the path. Then only CUBIC's counts. Every sixteen rounds a quarter of the window is held back; if the delivery rate
//! stays, or the queue empties, twice in a row, nobody else was there.

use super::cubic::{Cubic, CubicSettings};
use super::path_model::{Draws, MinRtt, RoundCounter, WindowedMax};
use super::quantum::offload_budget;
use super::queue_evidence::QueueEvidence;
use super::shared_bottleneck::SharedBottleneck;
use super::uncoupled::SinglePath;
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Lost, Start};
use crate::ids::{SubflowId, SubflowMap};
use crate::rate::Rate;
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The line of [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "bounded_cubic",
    summary: "CUBIC beneath a model of the path: no queue where it is alone, no answer to losses by chance",
    source: "RFC 9438, draft-ietf-ccwg-bbr",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Connection::default()))
}

/// The model's window, in bdp.
const WINDOW: f64 = 1.2;
/// What is left in flight while the sender holds back, in bdp or in windows.
const HELD_BACK: f64 = 0.75;
/// Times in a row that a queue must stay, or the rate, for the sender to believe it.
const BELIEVED: u8 = 2;
/// A rate that is not less than so much of what it was has stayed.
const STAYED: f64 = 0.95;
/// Rounds of holding back: in the first what was sent before is acknowledged.
const DOWN_ROUNDS: u64 = 3;
/// Rounds between two such looks beside others.
const LOOK_ROUNDS: u64 = 16;
/// How long hosts may hold data or acknowledgements back.
const HOLD: Duration = Duration::from_millis(3);
/// Window of the least round-trip time, seconds.
const MIN_RTT_WINDOW: u64 = 15;
/// Without congestion for so long the window of CUBIC follows the model.
const FREE_AFTER: Duration = Duration::from_secs(25);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// CUBIC is in slow start.
    StartUp,
    Drain,
    Up,
    Down,
    Cruise,
    /// Beside others: CUBIC's window.
    Compete,
    /// Beside others: a look whether they are still there.
    Look,
}

impl Phase {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::StartUp | Self::Compete | Self::Look => 1.2,
            Self::Drain => 0.5,
            Self::Up => 1.25,
            Self::Down => HELD_BACK,
            Self::Cruise => 1.0,
        }
    }
}

/// One subflow.
#[derive(Clone, Debug)]
struct BoundedCubic {
    mss: u32,
    cubic: Cubic,
    bandwidth: WindowedMax<8>,
    rounds: RoundCounter,
    min_rtt: MinRtt<MIN_RTT_WINDOW, MIN_RTT_WINDOW>,
    smoothed_rtt: Duration,
    queue: QueueEvidence,
    phase: Phase,
    since: Instant,
    since_round: u64,
    /// How long the phase lasts: min_rtt, or rounds.
    long: u64,
    draws: Draws,
    /// Times in a row that the queue or the rate stayed.
    stayed: u8,
    /// Delivery rate before a look, bits per second, and the largest since.
    look_rates: (u64, u64),
    /// Least round-trip time of the phase; [`Duration::MAX`]: none was seen.
    least_rtt: Duration,
    congested_at: Option<Instant>,
    timed_out: bool,
    /// Another subflow over the same bottleneck has seen congestion.
    answer_due: bool,
    last_ack: Instant,
}

impl BoundedCubic {
    fn enter(&mut self, phase: Phase, now: Instant, long: u64) {
        self.phase = phase;
        self.since = now;
        self.since_round = self.rounds.count();
        self.long = long;
        self.least_rtt = Duration::MAX;
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

    /// What the model lets into flight.
    fn model_window(&self) -> u64 {
        let mss = u64::from(self.mss);
        let bdp = self.bdp();
        let gain = match self.phase {
            Phase::StartUp | Phase::Compete => return u64::MAX,
            _ if !self.queue.has_room() => return u64::MAX,
            Phase::Look => return ((self.cubic.window() as f64 * HELD_BACK) as u64).max(2 * mss),
            Phase::Up => WINDOW + 0.1,
            Phase::Drain | Phase::Down | Phase::Cruise => WINDOW,
        };
        let hold = (self.rate().bytes_per_second() as f64 * HOLD.as_secs_f64()) as u64;
        ((bdp as f64 * gain) as u64 + 2 * mss).max(offload_budget(self.rate(), mss)).max(bdp + hold).max(4 * mss)
    }

    fn has_queue(&self, rtt: Duration) -> bool {
        let least = self.least();
        // The least was of a handshake, or of a segment that came by itself.
        let pair = self.rate().time_for(2 * u64::from(self.mss)).min(least / 8);
        rtt > least + (least / 8).max(Duration::from_millis(1)) + pair
    }

    fn answer(&mut self, now: Instant, in_flight: u64, lost: u64) {
        let event = CongestionEvent { now, cause: Congestion::Loss, in_flight, lost, repeated: false };
        self.cubic.on_congestion(&event);
        self.cubic.on_recovery_end(now);
        self.congested_at = Some(now);
        match self.phase {
            Phase::StartUp => self.leave_start_up(now),
            Phase::Up => self.enter(Phase::Down, now, DOWN_ROUNDS),
            _ => {}
        }
    }

    /// Answers what another subflow over the same bottleneck has seen.
    fn answer_with(&mut self, now: Instant) {
        if !self.cubic.in_slow_start() {
            self.answer(now, 0, 0);
            self.queue.answered_by_another(self.rounds.count());
        }
    }

    fn leave_start_up(&mut self, now: Instant) {
        self.queue.tried();
        self.enter(Phase::Drain, now, 3);
    }

    /// Whether something was acknowledged of late.
    fn is_active(&self, now: Instant) -> bool {
        now.since(self.last_ack) < Duration::from_secs(1) + self.smoothed_rtt * 2
    }

    /// The sender has held back: whether a queue stayed.
    fn judge_queue(&mut self, now: Instant) {
        let queued = self.least_rtt != Duration::MAX && self.has_queue(self.least_rtt);
        self.stayed = if queued { self.stayed + 1 } else { 0 };
        if self.stayed >= BELIEVED {
            self.stayed = 0;
            let long = LOOK_ROUNDS + self.draws.next(now) % 8;
            self.enter(Phase::Compete, now, long);
        } else {
            let long = 5 + self.draws.next(now) % 4;
            self.enter(Phase::Cruise, now, long);
        }
    }

    /// A look is over: whether nobody else was there.
    fn judge_rate(&mut self, now: Instant) {
        let (before, after) = self.look_rates;
        let rate_stayed = after as f64 >= before as f64 * STAYED;
        let emptied = !self.has_queue(self.least_rtt);
        self.stayed = if rate_stayed || emptied { self.stayed + 1 } else { 0 };
        if self.stayed >= BELIEVED {
            self.stayed = 0;
            self.enter(Phase::Drain, now, 3);
        } else {
            let long = LOOK_ROUNDS + self.draws.next(now) % 8;
            self.enter(Phase::Compete, now, long);
        }
    }

    fn advance(&mut self, ack: &Ack) {
        let now = ack.now;
        let (elapsed, least) = (now.since(self.since), self.least());
        let rounds = self.rounds.count() - self.since_round;
        let bdp = self.bdp().max(2 * u64::from(self.mss));
        match self.phase {
            Phase::StartUp if !self.cubic.in_slow_start() => self.leave_start_up(now),
            Phase::Drain if ack.in_flight <= bdp || elapsed > least * self.long => {
                let long = 1 + self.draws.next(now) % 8;
                self.enter(Phase::Cruise, now, long);
            }
            Phase::Cruise if elapsed > least * self.long => self.enter(Phase::Up, now, 1),
            Phase::Up if elapsed > least * self.long => self.enter(Phase::Down, now, DOWN_ROUNDS),
            Phase::Down if rounds >= self.long => self.judge_queue(now),
            Phase::Compete if rounds >= self.long && !ack.app_limited => {
                self.look_rates = (self.bandwidth.present(), 0);
                self.enter(Phase::Look, now, 3);
            }
            Phase::Look if rounds >= self.long => self.judge_rate(now),
            _ => {}
        }
    }

    fn observe(&mut self, ack: &Ack) {
        self.smoothed_rtt = ack.smoothed_rtt;
        if matches!(self.phase, Phase::Compete | Phase::Look) {
            // Others keep the queue: what was the least before them is not forgotten.
            self.min_rtt.seen(ack.now);
        }
        self.min_rtt.update(ack.now, ack.rtt);
        if self.rounds.on_ack(ack.prior_delivered, ack.total_delivered) {
            self.bandwidth.advance();
        }
        if let Some(rate) = ack.delivery_rate {
            let bits = rate.bits_per_second();
            if !ack.app_limited || bits > self.bandwidth.max() {
                self.bandwidth.update(bits);
            } else if self.rounds.is_start() {
                self.bandwidth.update(self.bandwidth.max());
            }
            // The last round of a look is of what was sent while the sender held back.
            if self.phase == Phase::Look && self.rounds.count() - self.since_round >= 2 {
                self.look_rates.1 = self.look_rates.1.max(bits);
            }
        }
        if self.rounds.count() > self.since_round
            && let Some(rtt) = ack.rtt
        {
            self.least_rtt = self.least_rtt.min(rtt);
        }
        self.queue.on_ack(ack, self.least(), self.mss, self.rate(), &self.rounds);
    }
}

impl BoundedCubic {
    fn start(start: Start) -> Self {
        let first = Some(start.smoothed_rtt).filter(|rtt| !rtt.is_zero());
        Self {
            mss: start.mss,
            cubic: Cubic::start(&CubicSettings::default(), start),
            bandwidth: WindowedMax::new(),
            rounds: RoundCounter::default(),
            min_rtt: MinRtt::new(start.now, first),
            smoothed_rtt: first.unwrap_or(Duration::from_millis(1)),
            queue: QueueEvidence::new(start.now),
            phase: Phase::StartUp,
            since: start.now,
            since_round: 0,
            long: 0,
            draws: Draws::new(start.now.as_nanos() ^ start.smoothed_rtt.as_nanos()),
            stayed: 0,
            look_rates: (0, 0),
            least_rtt: Duration::MAX,
            congested_at: None,
            timed_out: false,
            answer_due: false,
            last_ack: start.now,
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.queue.on_lost(lost, self.rounds.count());
    }

    /// Takes in an acknowledgement of a subflow that has `share` of the windows over its bottleneck. Returns whether congestion
    /// was answered.
    fn on_ack(&mut self, ack: &Ack, share: f64) -> bool {
        self.timed_out = false;
        self.last_ack = ack.now;
        self.observe(ack);
        if core::mem::take(&mut self.answer_due) {
            self.answer_with(ack.now);
        }
        self.cubic.grow_as(share);
        let answered = self.queue.is_congested(self.mss);
        if answered {
            self.answer(ack.now, ack.prior_in_flight, ack.lost);
            self.queue.answered(ack.total_lost);
        }
        let limits = self.cubic.window() <= self.model_window();
        self.cubic.on_ack(&Ack {
            acked: ack.delivered,
            in_recovery: false,
            cwnd_limited: ack.cwnd_limited && limits,
            ..*ack
        });
        let free = self.congested_at.is_none_or(|at| ack.now.since(at) > FREE_AFTER);
        if free && self.queue.is_empty(self.mss) && self.phase != Phase::StartUp {
            self.cubic.raise_to(2 * self.bdp());
        }
        self.advance(ack);
        answered
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            Congestion::Loss => {}
            Congestion::Timeout => {
                self.cubic.on_congestion(event);
                self.timed_out = true;
                if !self.queue.is_empty(self.mss) {
                    self.congested_at = Some(event.now);
                }
                self.enter(Phase::StartUp, event.now, 0);
            }
            Congestion::Mark => {
                self.cubic.on_congestion(event);
                self.congested_at = Some(event.now);
            }
            Congestion::Penalty => self.cubic.on_congestion(event),
        }
    }

    fn on_spurious(&mut self, now: Instant) {
        self.cubic.on_spurious(now);
        self.timed_out = false;
    }

    fn on_idle_restart(&mut self, window: u64) {
        self.cubic.on_idle_restart(window);
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
        self.cubic.on_mss(mss);
    }

    fn window(&self) -> u64 {
        let mss = u64::from(self.mss);
        if self.timed_out { mss } else { self.cubic.window().min(self.model_window()).max(mss) }
    }

    fn ssthresh(&self) -> u64 {
        self.cubic.ssthresh()
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(self.bandwidth.max()).filter(|bits| *bits > 0).map(Rate::from_bits_per_second)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let by_window = Rate::from_bytes_over(self.window(), self.smoothed_rtt.max(self.least()));
        let least = Rate::from_bytes_over(u64::from(self.mss), self.smoothed_rtt);
        if self.phase != Phase::StartUp && !self.queue.has_room() {
            // CUBIC by itself, unpaced as others are: who is paced takes a queue of a few packets from those who are not.
            return None;
        }
        Some(match self.phase {
            Phase::StartUp => by_window.mul_f64(2.0),
            Phase::Compete | Phase::Look => by_window.mul_f64(self.phase.pacing_gain()),
            _ => self.rate().mul_f64(self.phase.pacing_gain()).max(least),
        })
    }
}

/// The subflows of a connection.
#[derive(Debug, Default)]
struct Connection {
    subflows: SubflowMap<BoundedCubic>,
    bottlenecks: SharedBottleneck,
}

impl Connection {
    /// What `id` has of the windows of all subflows over its bottleneck.
    fn share(&self, id: SubflowId, now: Instant) -> f64 {
        let beside = |(other, subflow): &(SubflowId, &BoundedCubic)| {
            *other == id || (subflow.is_active(now) && self.bottlenecks.shares(id, *other))
        };
        let all: u64 = self.subflows.iter().filter(beside).map(|(_, subflow)| subflow.cubic.window()).sum();
        let own = self.subflows.get(id).map_or(0, |subflow| subflow.cubic.window());
        own as f64 / all.max(1) as f64
    }
}

impl CongestionControl for Connection {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.subflows.insert(id, BoundedCubic::start(start));
        // One subflow has nothing to be compared with.
        if self.subflows.len() == 2 {
            self.subflows.keys().for_each(|id| self.bottlenecks.add(id));
        } else if self.subflows.len() > 2 {
            self.bottlenecks.add(id);
        }
    }
    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.subflows.remove(id);
        self.bottlenecks.remove(id);
    }
    fn governs_recovery(&self) -> bool {
        true
    }
    fn on_lost(&mut self, id: SubflowId, lost: &Lost) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_lost(lost);
        }
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let several = self.subflows.len() > 1;
        let share = if several { self.share(id, ack.now) } else { 1.0 };
        let Some(subflow) = self.subflows.get_mut(id) else { return };
        if several && let Some(rtt) = ack.rtt.filter(|rtt| !subflow.queue.is_delayed(*rtt, ack.delivered, subflow.mss))
        {
            self.bottlenecks.on_rtt(id, ack.now, rtt);
        }
        if subflow.on_ack(ack, share) && several {
            let beside =
                |(other, _): &(SubflowId, &mut BoundedCubic)| *other != id && self.bottlenecks.shares(id, *other);
            // Each at its own next acknowledgement: a window changes by what its own subflow is told.
            self.subflows.iter_mut().filter(beside).for_each(|(_, subflow)| subflow.answer_due = true);
        }
    }
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_congestion(event);
        }
    }
    fn on_spurious(&mut self, id: SubflowId, now: Instant) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_spurious(now);
        }
    }
    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_idle_restart(window);
        }
    }
    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.on_mss(mss);
        }
    }
    fn window(&self, id: SubflowId) -> u64 {
        self.subflows.get(id).map_or(0, BoundedCubic::window)
    }
    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.subflows.get(id).map_or(0, BoundedCubic::ssthresh)
    }
    fn bandwidth(&self, id: SubflowId) -> Option<Rate> {
        self.subflows.get(id)?.bandwidth()
    }
    fn pacing_rate(&self, id: SubflowId) -> Option<Rate> {
        self.subflows.get(id).and_then(BoundedCubic::pacing_rate)
    }
}
