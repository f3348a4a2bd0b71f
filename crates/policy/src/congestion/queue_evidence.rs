//! What a sender can know of a queue that it shares: whether it stands, and whether losses have to do with it.
//!
//! A drop-tail queue loses packets when it is full, a CoDel queue when it stands; a radio link loses them whenever it likes. So
//! a loss says something about congestion unless packets are lost as often while the queue is empty. `chance` is the share
//! lost in rounds in which hardly a packet was queued; losses of other rounds count as congestion if they are more than
//! chance explains (three standard deviations). A flow of a crowd on a shallow queue sees a few round-trip times of a queue that fills
//! and empties within a millisecond: for it hardly a round is empty, and all losses count.

use super::path_model::RoundCounter;
use super::{Ack, Lost};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// A round-trip time is of a standing queue above this share of the largest queueing delay seen, ...
const HIGH: f64 = 0.25;
/// ... and above what hosts add.
const NOISE: Duration = Duration::from_micros(300);
/// ... but at most above what an active queue management lets stand (RFC 8289: 5 ms).
const STANDING: Duration = Duration::from_millis(4);
/// The path has room for a queue if its delay was seen to grow by so much of the least round-trip time.
const ROOM: u64 = 16;
/// For how long that is remembered: at least, and at most twice.
const ROOM_MEMORY: Duration = Duration::from_secs(60);
/// A pair of the sender's own segments takes at most so much of the least round-trip time to send.
const PAIR_SHARE: u64 = 8;
/// A single segment's acknowledgement that comes so much later than the one before may have been delayed (RFC 9293, 3.8.6.3).
const DELAYED: Duration = Duration::from_millis(15);
/// Segments that a judgement needs.
const LEAST_SEGMENTS: u64 = 8;
/// For how long the largest queueing delay is remembered: at least, and at most twice.
const MEMORY: Duration = Duration::from_secs(5);
/// Share of a round's bytes that may be queued in a round that is called empty, ...
const EMPTY: f64 = 0.15;
/// ... and in the rounds before it, smoothed.
const EMPTY_SMOOTHED: f64 = 0.25;
/// Weight of a round in that.
const ROUND_WEIGHT: f64 = 0.25;
/// Segments after which the rate of chance losses is mostly of these.
const CHANCE_SEGMENTS: f64 = 500.0;
/// Share of it that is forgotten in each round with a queue.
const FORGOTTEN: f64 = 0.02;
/// Up to here no loss was by chance.
const NO_CHANCE: f64 = 1e-4;
/// What a start-up must lose, in segments and of what it sent, for it to say that it sent too much.
const OVERSHOT_SEGMENTS: f64 = 2.0;
const OVERSHOT: f64 = 0.02;
/// The most that passes for chance.
const MOST_CHANCE: f64 = 0.1;

/// Bytes of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    delivered: u64,
    /// Of these, those with a round-trip time.
    judged: u64,
    queued: u64,
    lost: u64,
}

impl Round {
    fn share_queued(&self) -> f64 {
        if self.judged == 0 { 1.0 } else { self.queued as f64 / self.judged as f64 }
    }
}

/// What is known of one path's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueEvidence {
    /// Largest queueing delay of the present interval and of the one before it.
    largest: [Duration; 2],
    last_rtt: Duration,
    interval_began: Instant,
    /// The same in long intervals, with their beginnings.
    room: [(Instant, Duration); 2],
    min_rtt: Duration,
    /// What two segments take at the flow's rate.
    pair: Duration,
    /// Nothing was done yet that would make a queue.
    untried: bool,
    round: Round,
    last: Round,
    /// Smoothed share of bytes that were queued.
    busy: f64,
    chance: f64,
    /// Bytes lost when the last answer was given: what was sent before is answered with it.
    answered: u64,
    /// Bytes lost since, of what was sent since.
    unanswered: u64,
    /// Of these, those that the acknowledgement at hand showed.
    fresh: u64,
    /// Losses before this round were answered already.
    answered_until: u64,
}

impl QueueEvidence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            largest: [Duration::ZERO; 2],
            last_rtt: Duration::ZERO,
            interval_began: now,
            room: [(now, Duration::ZERO); 2],
            min_rtt: Duration::ZERO,
            pair: Duration::ZERO,
            untried: true,
            round: Round::default(),
            last: Round::default(),
            busy: 0.0,
            chance: 0.0,
            answered: 0,
            unanswered: 0,
            fresh: 0,
            answered_until: 0,
        }
    }

    /// Queueing delay above which a packet counts as queued.
    fn threshold(&self) -> Duration {
        let [now, before] = self.largest;
        let largest = now.max(before);
        largest.mul_f64(HIGH).min(STANDING).max(NOISE + self.pair.min(self.min_rtt / PAIR_SHARE).min(largest / 2))
    }

    /// Takes in an acknowledgement.
    pub(super) fn on_ack(&mut self, ack: &Ack, min_rtt: Duration, mss: u32, bandwidth: Rate, rounds: &RoundCounter) {
        self.min_rtt = min_rtt;
        self.pair = if bandwidth == Rate::ZERO { Duration::ZERO } else { bandwidth.time_for(2 * u64::from(mss)) };
        if ack.now.since(self.interval_began) > MEMORY {
            self.largest = [Duration::ZERO, self.largest[0]];
            self.interval_began = ack.now;
        }
        if rounds.is_start() {
            self.end_round(mss);
        }
        self.fresh = 0;
        self.round.delivered = self.round.delivered.saturating_add(ack.delivered);
        self.round.lost = self.round.lost.saturating_add(ack.lost);
        if let Some(rtt) = ack.rtt.filter(|rtt| !self.is_delayed(*rtt, ack.delivered, mss)) {
            self.last_rtt = rtt;
            self.round.judged = self.round.judged.saturating_add(ack.delivered);
            let delay = if rtt > min_rtt { rtt - min_rtt } else { Duration::ZERO };
            self.largest[0] = self.largest[0].max(delay);
            if ack.now.since(self.room[0].0) > ROOM_MEMORY {
                self.room = [(ack.now, Duration::ZERO), self.room[0]];
            }
            self.room[0].1 = self.room[0].1.max(delay);
            if delay > self.threshold() {
                self.round.queued = self.round.queued.saturating_add(ack.delivered);
            }
        }
    }

    /// Whether an acknowledgement may have waited for another segment.
    pub(super) fn is_delayed(&self, rtt: Duration, delivered: u64, mss: u32) -> bool {
        delivered <= u64::from(mss) && rtt > self.last_rtt + DELAYED
    }

    fn end_round(&mut self, mss: u32) {
        let round = core::mem::take(&mut self.round);
        if round.delivered > 0 {
            self.busy += (round.share_queued() - self.busy) * ROUND_WEIGHT;
        }
        self.last = round;
        if self.is_empty(mss) {
            let bytes = round.delivered.saturating_add(round.lost);
            let segments = bytes as f64 / f64::from(mss);
            let rate = round.lost as f64 / bytes.max(1) as f64;
            self.chance += (rate.min(MOST_CHANCE) - self.chance) * (segments / CHANCE_SEGMENTS).min(1.0);
            // What this acknowledgement showed belongs to the round that begins.
            self.unanswered = self.unanswered.min(self.fresh);
        } else {
            self.chance *= 1.0 - FORGOTTEN;
        }
    }

    /// Hardly anything was queued in this round, the last and those before.
    pub(super) fn is_empty(&self, mss: u32) -> bool {
        let now = Round {
            delivered: self.round.delivered + self.last.delivered,
            judged: self.round.judged + self.last.judged,
            queued: self.round.queued + self.last.queued,
            lost: 0,
        };
        (self.untried || self.has_room())
            && now.judged >= LEAST_SEGMENTS * u64::from(mss)
            && now.share_queued() < EMPTY
            && self.busy < EMPTY_SMOOTHED
    }

    /// Takes in a lost segment.
    pub(super) fn on_lost(&mut self, lost: &Lost, round: u64) {
        if lost.prior_lost >= self.answered && round >= self.answered_until {
            self.unanswered = self.unanswered.saturating_add(lost.bytes);
            self.fresh = self.fresh.saturating_add(lost.bytes);
        }
    }

    /// Whether what was lost since the last answer asks for another.
    pub(super) fn is_congested(&self, mss: u32) -> bool {
        if self.unanswered == 0 {
            return false;
        }
        let segments = |bytes: u64| bytes as f64 / f64::from(mss);
        let sent = segments(self.round.delivered + self.last.delivered + self.round.lost + self.last.lost);
        let expected = self.chance * sent;
        let lost = segments(self.unanswered);
        if self.is_empty(mss) {
            return lost > MOST_CHANCE * sent + 2.0 * (MOST_CHANCE * sent).sqrt() + 3.0;
        }
        if self.untried {
            // What overflows in a start-up is a good part of a flight.
            return lost > OVERSHOT_SEGMENTS + (self.chance + OVERSHOT) * sent;
        }
        if !self.has_room() {
            return true;
        }
        let by_chance = if self.chance > NO_CHANCE { 1.0 } else { 0.0 };
        lost > expected + 3.0 * expected.sqrt() + by_chance
    }

    /// Whether the path has room for a queue worth the name.
    pub(super) fn has_room(&self) -> bool {
        let [(_, largest), (_, before)] = self.room;
        largest.max(before) > self.min_rtt / ROOM + self.pair
    }

    /// From now on the sender makes a queue now and then, if there is room for one.
    pub(super) fn tried(&mut self) {
        self.untried = false;
    }

    /// Congestion was answered, `total_lost` bytes being lost so far.
    pub(super) fn answered(&mut self, total_lost: u64) {
        self.answered = total_lost;
        self.unanswered = 0;
    }

    /// Congestion that another subflow saw was answered in this round: what is in flight is answered with it.
    pub(super) fn answered_by_another(&mut self, round: u64) {
        self.answered_until = round + 2;
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness;

    const MSS: u32 = 1_000;
    const LEAST: Duration = Duration::from_millis(40);

    /// A path that is fed whole rounds.
    struct Path {
        evidence: QueueEvidence,
        rounds: RoundCounter,
        now: Instant,
        delivered: u64,
        lost: u64,
    }

    impl Path {
        /// A path whose start-up is over, and that has shown room for a queue of so many milliseconds.
        fn with_room(queue: u64) -> Self {
            let mut path = Self {
                evidence: QueueEvidence::new(Instant::ZERO),
                rounds: RoundCounter::default(),
                now: Instant::ZERO,
                delivered: 0,
                lost: 0,
            };
            path.evidence.tried();
            path.round(100, 0, queue);
            for _ in 0..20 {
                path.round(100, 0, 0);
            }
            path
        }

        /// A round of so many segments, `lost` of them lost, with a queue of so many milliseconds.
        fn round(&mut self, segments: u64, lost: u64, queue: u64) {
            let prior = self.delivered;
            for number in 0..(segments - lost) / 2 {
                let rtt = LEAST + Duration::from_millis(queue);
                self.now += rtt * 2 / segments;
                self.delivered += 2 * u64::from(MSS);
                let newly = if number == 0 { lost * u64::from(MSS) } else { 0 };
                for _ in 0..newly / u64::from(MSS) {
                    self.evidence.on_lost(&self.lost_segment(), self.rounds.count());
                    self.lost += u64::from(MSS);
                }
                let prior = Some(if number == 0 { prior } else { 0 });
                let ack = Ack {
                    rtt: Some(rtt),
                    delivered: 2 * u64::from(MSS),
                    total_delivered: self.delivered,
                    prior_delivered: prior,
                    lost: newly,
                    total_lost: self.lost,
                    now: self.now,
                    ..harness::ack(0, 40)
                };
                self.rounds.on_ack(ack.prior_delivered, ack.total_delivered);
                let rate = Rate::from_bits_per_second(20_000_000);
                self.evidence.on_ack(&ack, LEAST, MSS, rate, &self.rounds);
            }
        }

        fn lost_segment(&self) -> Lost {
            Lost {
                now: self.now,
                bytes: u64::from(MSS),
                total_lost: self.lost + u64::from(MSS),
                total_delivered: self.delivered,
                prior_lost: self.lost,
                tx_in_flight: 0,
                app_limited: false,
            }
        }
    }

    #[test]
    fn losses_on_an_empty_path_are_by_chance() {
        let mut path = Path::with_room(12);
        for _ in 0..40 {
            path.round(100, 3, 0);
            assert!(!path.evidence.is_congested(MSS));
        }
        assert!((0.02..0.04).contains(&path.evidence.chance), "{}", path.evidence.chance);
        // As many with a queue are no more than chance explains; many more are.
        path.round(100, 3, 10);
        assert!(!path.evidence.is_congested(MSS));
        path.round(100, 30, 10);
        assert!(path.evidence.is_congested(MSS));
    }

    #[test]
    fn a_loss_while_the_queue_stands_counts_where_none_is_by_chance() {
        let mut path = Path::with_room(12);
        path.round(100, 0, 10);
        path.round(100, 1, 10);
        assert!(path.evidence.is_congested(MSS));
        path.evidence.answered(path.lost);
        assert!(!path.evidence.is_congested(MSS));
        path.round(100, 1, 10);
        assert!(path.evidence.is_congested(MSS));
    }

    #[test]
    fn without_room_for_a_queue_each_loss_counts() {
        let mut path = Path::with_room(1);
        path.round(100, 1, 0);
        assert!(path.evidence.is_congested(MSS));
    }

    #[test]
    fn an_empty_path_that_loses_more_than_a_tenth_is_congested() {
        let mut path = Path::with_room(12);
        path.round(100, 4, 0);
        assert!(!path.evidence.is_congested(MSS));
        path.round(100, 60, 0);
        assert!(path.evidence.is_congested(MSS));
    }

    #[test]
    fn what_another_subflow_answered_is_answered() {
        let mut path = Path::with_room(12);
        path.round(100, 0, 10);
        path.evidence.answered_by_another(path.rounds.count());
        path.round(100, 1, 10);
        assert!(!path.evidence.is_congested(MSS));
        path.round(100, 0, 10);
        path.round(100, 1, 10);
        assert!(path.evidence.is_congested(MSS));
    }

    #[test]
    fn a_delayed_acknowledgement_is_no_queue() {
        let mut path = Path::with_room(12);
        assert!(path.evidence.is_delayed(LEAST * 2, u64::from(MSS), MSS));
        assert!(!path.evidence.is_delayed(LEAST * 2, 2 * u64::from(MSS), MSS));
        path.round(8, 0, 0);
        assert!(path.evidence.is_empty(MSS));
    }
}
