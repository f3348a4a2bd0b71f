//! What a sender can infer about the queue of its bottleneck: whether there is a standing queue, and whether losses are
//! congestion.
//!
//! A drop-tail queue drops packets when it is full, CoDel when there is a standing queue, a radio link independently of
//! the queue. Losses are therefore random if they are as frequent while the queue is empty. The random loss rate is
//! measured in rounds in which almost no packet was queued; where the delay of an empty path varies, as on a radio, there
//! are no such rounds, and it is measured among the packets that were quick, whatever the others were. Losses in other
//! rounds are congestion if they exceed what that rate explains by three standard deviations. One of many flows over a
//! shallow queue, which fills and drains within a millisecond, sees almost no empty round, and is too slow to know what
//! was quick: all its losses count as congestion.

use super::path_model::RoundCounter;
use super::quantum::send_quantum;
use super::{Ack, Lost};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// A packet counts as queued if its queueing delay exceeds this share of the largest one, ...
const HIGH: f64 = 0.25;
/// ... and the noise of hosts.
const NOISE: Duration = Duration::from_micros(300);
/// A queueing delay above the standing queue that active queue management allows (RFC 8289: 5 ms) always counts.
const STANDING: Duration = Duration::from_millis(4);
/// The path has room for a queue if its queueing delay has reached this fraction of the least round-trip time.
const ROOM: u64 = 16;
/// With fewer segments in flight every acknowledgement may be delayed: their delays are ignored.
const ROOM_SEGMENTS: u64 = 4;
/// Memory of this, seconds: between this and twice this.
const ROOM_MEMORY: u64 = 60;
/// Largest fraction of the minimum round-trip time assumed for the serialization of a burst of the sender.
const BURST_SHARE: u64 = 4;
/// A queueing delay below this fraction of the minimum round-trip time is ignored: paths vary by that much.
const UNSTEADY: u64 = 128;
/// An acknowledgement of less than two full segments may have been delayed (RFC 9293, 3.8.6.3) if its round-trip time is
/// longer by this, ...
const DELAYED: Duration = Duration::from_millis(15);
/// ... and no more than by this: receivers wait no longer than 200 ms, and on a slow path each segment is acknowledged
/// by itself.
const MOST_DELAYED: Duration = Duration::from_millis(200);
/// If segments are further apart than this, each is acknowledged by itself: hosts wait no less for a second one.
const APART: Duration = Duration::from_millis(40);
/// A minimum round-trip time that is lower by this fraction of it shows that what seemed to be empty was not.
const LOWER: u64 = 32;
/// Segments needed to call a round empty.
const LEAST_SEGMENTS: u64 = 8;
/// Memory of the largest queueing delay, seconds: between this and twice this.
const MEMORY: u64 = 5;
/// Largest share of queued bytes in an empty round, ...
const EMPTY: f64 = 0.15;
/// ... and, smoothed, in the rounds before it.
const EMPTY_SMOOTHED: f64 = 0.25;
/// Weight of a round in the smoothed share.
const ROUND_WEIGHT: f64 = 0.25;
/// Time constant of the random loss rate, in segments: initially this, later the number of segments, ...
const RANDOM_SEGMENTS: f64 = 500.0;
/// ... up to this. A rate of 0.1 % is forgotten after three times as many segments without a loss.
const MOST_RANDOM_SEGMENTS: f64 = 3000.0;
/// Share by which the rate decays in each round with a queue.
const FORGOTTEN: f64 = 0.02;
/// Below this rate all losses count as congestion.
const LEAST_RANDOM: f64 = 1e-4;
/// Losses during start-up that show congestion: segments, plus a share of what was sent.
const OVERSHOT_SEGMENTS: f64 = 2.0;
const OVERSHOT: f64 = 0.02;
/// The largest random loss rate.
const MOST_RANDOM: f64 = 0.1;
/// Quick segments that show a rate of losses, ...
const QUICK_SEGMENTS: u32 = 500;
/// ... and those after which the earlier ones count half.
const MOST_QUICK_SEGMENTS: u32 = 3000;

/// Bytes of a round, up to 4 GiB of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    delivered: u32,
    /// Of these, bytes with a round-trip time.
    judged: u32,
    queued: u32,
    lost: u32,
}

impl Round {
    fn add(bytes: &mut u32, more: u64) {
        *bytes = u32::try_from(u64::from(*bytes).saturating_add(more)).unwrap_or(u32::MAX);
    }

    /// The sum of two rounds.
    fn with(&self, other: &Self) -> Both {
        let sum = |one: u32, other: u32| u64::from(one) + u64::from(other);
        Both {
            sent: sum(self.delivered, other.delivered) + sum(self.lost, other.lost),
            judged: sum(self.judged, other.judged),
            queued: sum(self.queued, other.queued),
        }
    }
}

/// Bytes of packets that were not queued, whatever the others of their rounds were.
#[derive(Clone, Copy, Debug, Default)]
struct Quick {
    delivered: u32,
    /// Lost when the last delivered packet had not been queued.
    lost: u32,
}

impl Quick {
    fn deliver(&mut self, bytes: u64, mss: u32) {
        Round::add(&mut self.delivered, bytes);
        if self.delivered / MOST_QUICK_SEGMENTS >= mss {
            (self.delivered, self.lost) = (self.delivered / 2, self.lost / 2);
        }
    }

    /// The share that is lost; none as long as there are few.
    fn loss(self, mss: u32) -> f64 {
        if self.delivered / QUICK_SEGMENTS < mss { 0.0 } else { f64::from(self.lost) / f64::from(self.delivered) }
    }
}

/// Bytes of two rounds.
#[derive(Clone, Copy, Debug)]
struct Both {
    /// Delivered or lost.
    sent: u64,
    judged: u64,
    queued: u64,
}

impl Both {
    fn segments(&self, mss: u32) -> f64 {
        self.sent as f64 / f64::from(mss)
    }

    fn share_queued(&self) -> f64 {
        if self.judged == 0 { 1.0 } else { self.queued as f64 / self.judged as f64 }
    }
}

/// The largest round-trip time of the current and the previous interval of `SECONDS`. (The delay is not stored, since
/// the minimum may rise and make it outdated.)
#[derive(Clone, Debug)]
struct LargestRtt<const SECONDS: u64> {
    began: Instant,
    /// In units of 1024 ns: up to 4,398 s.
    present: u32,
    before: u32,
}

impl<const SECONDS: u64> LargestRtt<SECONDS> {
    fn new(now: Instant) -> Self {
        Self { began: now, present: 0, before: 0 }
    }

    fn update(&mut self, now: Instant, rtt: Duration) {
        // The interval has ended.
        if now.since(self.began) > Duration::from_secs(SECONDS) {
            self.before = core::mem::take(&mut self.present);
            self.began = now;
        }
        self.present = self.present.max(u32::try_from(rtt.as_nanos() >> 10).unwrap_or(u32::MAX));
    }

    /// The largest queueing delay if the minimum round-trip time is `least`.
    fn delay(&self, least: Duration) -> Duration {
        let largest = Duration::from_nanos(u64::from(self.present.max(self.before)) << 10);
        if largest > least { largest - least } else { Duration::ZERO }
    }
}

/// The state of a path's queue.
#[derive(Clone, Debug)]
pub(super) struct QueueEvidence {
    /// Largest round-trip time of the last seconds.
    largest: LargestRtt<MEMORY>,
    /// The same of the last minutes, using the smaller of two successive acknowledgements.
    room: LargestRtt<ROOM_MEMORY>,
    last_rtt: Duration,
    /// Time of the last acknowledgement.
    acked_at: Instant,
    min_rtt: Duration,
    /// The lowest minimum so far, or little more.
    lowest: Duration,
    /// Serialization of two segments at the flow's rate.
    pair: Duration,
    /// Serialization of a burst of the flow at its rate.
    burst: Duration,
    /// The flow has not been fast enough yet to cause a queue.
    untried: bool,
    round: Round,
    last: Round,
    /// Smoothed share of bytes that were queued.
    busy: f64,
    random_loss: f64,
    /// Segments sent in empty rounds.
    empty_segments: u32,
    quick: Quick,
    /// Bytes lost up to the last reduction of the window. Segments sent before it cause no further reduction.
    lost_at_reduction: u64,
    /// Bytes lost in all, at the last loss that was reported.
    total_lost: u64,
    /// Bytes lost since the last reduction.
    lost_since: u32,
    /// Of these, bytes reported by the current acknowledgement.
    lost_now: u32,
    /// Bytes reported as lost since the last acknowledgement.
    reported: u32,
    /// Bytes delivered or lost since the reduction, or since the last empty round.
    sent_since: u32,
    /// Losses before this round do not cause a reduction.
    reduced_until: u32,
}

impl QueueEvidence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            largest: LargestRtt::new(now),
            room: LargestRtt::new(now),
            last_rtt: Duration::ZERO,
            acked_at: now,
            min_rtt: Duration::ZERO,
            lowest: Duration::ZERO,
            pair: Duration::ZERO,
            burst: Duration::ZERO,
            untried: true,
            round: Round::default(),
            last: Round::default(),
            busy: 0.0,
            random_loss: 0.0,
            empty_segments: 0,
            quick: Quick::default(),
            lost_at_reduction: 0,
            total_lost: 0,
            lost_since: 0,
            sent_since: 0,
            lost_now: 0,
            reported: 0,
            reduced_until: 0,
        }
    }

    /// The rate of random losses, and the number of segments that it is based on.
    pub(super) fn random_loss(&self) -> (f64, u32) {
        (self.random_loss, self.empty_segments)
    }

    /// Starts with a known rate of random losses.
    pub(super) fn with_random_loss(mut self, known: (f64, u32)) -> Self {
        (self.random_loss, self.empty_segments) = known;
        self
    }

    /// Queueing delay above which a packet counts as queued.
    fn threshold(&self) -> Duration {
        let largest = self.largest.delay(self.min_rtt);
        let own = NOISE + self.burst.min(self.min_rtt / BURST_SHARE).min(self.room.delay(self.min_rtt) / 2);
        largest.mul_f64(HIGH).min(STANDING).max(own).max(self.min_rtt / UNSTEADY)
    }

    /// Whether a packet with this round-trip time waited in a queue.
    fn is_queued(&self, rtt: Duration) -> bool {
        rtt - self.min_rtt > self.threshold()
    }

    /// Processes an acknowledgement.
    pub(super) fn on_ack(&mut self, ack: &Ack, min_rtt: Duration, mss: u32, bandwidth: Rate, rounds: &RoundCounter) {
        self.min_rtt = min_rtt;
        self.reconsider();
        let takes = |bytes| if bandwidth == Rate::ZERO { Duration::ZERO } else { bandwidth.time_for(bytes) };
        (self.pair, self.burst) = (takes(2 * u64::from(mss)), takes(send_quantum(bandwidth, mss)));
        if rounds.is_start() {
            self.end_round(mss);
        }
        self.lost_now = 0;
        let lost = u64::from(core::mem::take(&mut self.reported));
        Round::add(&mut self.sent_since, ack.delivered + lost);
        Round::add(&mut self.round.delivered, ack.delivered);
        Round::add(&mut self.round.lost, lost);
        if let Some(rtt) = ack.rtt.filter(|rtt| !self.is_delayed(ack, *rtt, mss)) {
            self.on_rtt(rtt, ack, mss);
        }
        self.acked_at = ack.now;
    }

    /// If the minimum turns out to be lower, what was taken for empty had a queue, and its losses were no random ones: as
    /// where a flow begins behind the queue of others. (Not if it falls to what it was before: where delays vary, the
    /// minimum of the last seconds does so again and again.)
    fn reconsider(&mut self) {
        if self.lowest.is_zero() {
            self.lowest = self.min_rtt;
        } else if self.lowest - self.min_rtt > self.min_rtt / LOWER {
            (self.random_loss, self.empty_segments, self.quick) = (0.0, 0, Quick::default());
            self.lowest = self.min_rtt;
        }
    }

    fn on_rtt(&mut self, rtt: Duration, ack: &Ack, mss: u32) {
        // The wait of a single acknowledgement for the next segment is no queue.
        let of_two = rtt.min(core::mem::replace(&mut self.last_rtt, rtt));
        Round::add(&mut self.round.judged, ack.delivered);
        self.largest.update(ack.now, rtt);
        if ack.prior_in_flight >= ROOM_SEGMENTS * u64::from(mss) {
            self.room.update(ack.now, of_two);
        }
        if self.is_queued(rtt) {
            Round::add(&mut self.round.queued, ack.delivered);
        } else {
            self.quick.deliver(ack.delivered, mss);
        }
    }

    /// Whether an acknowledgement may have been delayed at the receiver. What it acknowledges arrived after the one before
    /// was sent, so it cannot have waited longer than the time between the two. (Hosts that acknowledge each segment, as
    /// Linux often does, would otherwise never show a queue.)
    pub(super) fn is_delayed(&self, ack: &Ack, rtt: Duration, mss: u32) -> bool {
        let later = rtt - self.last_rtt;
        let may_wait = ack.now.since(self.acked_at) > DELAYED && ack.delivered < 2 * u64::from(mss);
        may_wait && later > DELAYED && later <= MOST_DELAYED
    }

    /// Whether segments follow each other so slowly that an acknowledgement does not wait for the next: then
    /// [`Self::is_delayed`] would hide a queue that rises, and [`Self::is_empty`] lacks segments to tell.
    pub(super) fn is_slow(&self) -> bool {
        self.pair > APART * 2
    }

    fn end_round(&mut self, mss: u32) {
        let round = core::mem::take(&mut self.round);
        let alone = round.with(&Round::default());
        // Delayed acknowledgements alone say nothing.
        if round.judged > 0 {
            self.busy += (alone.share_queued() - self.busy) * ROUND_WEIGHT;
        }
        self.last = round;
        if self.untried {
            // Start-up is judged by two rounds. What was lost in earlier ones was no congestion.
            self.lost_since = self.lost_since.min(round.lost.saturating_add(self.lost_now));
        }
        if self.is_empty(mss) {
            let rate = f64::from(round.lost) / alone.sent.max(1) as f64;
            let segments = alone.segments(mss);
            self.empty_segments = self.empty_segments.saturating_add(segments as u32);
            let weight = segments / f64::from(self.empty_segments).clamp(RANDOM_SEGMENTS, MOST_RANDOM_SEGMENTS);
            self.random_loss += (rate.min(MOST_RANDOM) - self.random_loss) * weight.min(1.0);
            // The current acknowledgement belongs to the round that starts.
            self.lost_since = self.lost_since.min(self.lost_now);
            self.sent_since = 0;
        } else {
            self.random_loss *= 1.0 - FORGOTTEN;
        }
    }

    /// Whether almost no packet was queued in this round, the last one and those before.
    pub(super) fn is_empty(&self, mss: u32) -> bool {
        let of_late = self.round.with(&self.last);
        (self.untried || self.has_room())
            && of_late.judged >= LEAST_SEGMENTS * u64::from(mss)
            && of_late.share_queued() < EMPTY
            && self.busy < EMPTY_SMOOTHED
    }

    /// Processes a lost segment.
    pub(super) fn on_lost(&mut self, lost: &Lost, round: u64) {
        Round::add(&mut self.reported, lost.bytes);
        if self.last_rtt > Duration::ZERO && !self.is_queued(self.last_rtt) {
            Round::add(&mut self.quick.lost, lost.bytes);
        }
        self.total_lost = lost.total_lost;
        if lost.prior_lost >= self.lost_at_reduction && round >= u64::from(self.reduced_until) {
            Round::add(&mut self.lost_since, lost.bytes);
            Round::add(&mut self.lost_now, lost.bytes);
        }
    }

    /// Whether the losses since the last reduction are congestion.
    pub(super) fn is_congested(&self, mss: u32) -> bool {
        if self.lost_since == 0 {
            return false;
        }
        let sent = self.round.with(&self.last).segments(mss);
        // A loss is reported a round after the transmission.
        let meanwhile = sent.max(f64::from(self.sent_since) / f64::from(mss));
        let random = self.random_loss.max(self.quick.loss(mss).min(MOST_RANDOM));
        let expected = random * meanwhile;
        let lost = f64::from(self.lost_since) / f64::from(mss);
        if self.is_empty(mss) {
            return lost > MOST_RANDOM * sent + 2.0 * (MOST_RANDOM * sent).sqrt() + 3.0;
        }
        if self.untried {
            // A start-up that overflows a queue loses a large part of a flight.
            return lost > OVERSHOT_SEGMENTS + (self.random_loss + OVERSHOT) * sent;
        }
        if !self.has_room() {
            return true;
        }
        let single = if random > LEAST_RANDOM { 1.0 } else { 0.0 };
        lost > expected + 3.0 * expected.sqrt() + single
    }

    /// Whether a queue on this path can be distinguished from an empty one.
    pub(super) fn has_room(&self) -> bool {
        self.room.delay(self.min_rtt) > self.min_rtt / ROOM + self.pair
    }

    /// The flow has left start-up: from now on it causes a queue occasionally, if there is room for one.
    pub(super) fn tried(&mut self) {
        self.untried = false;
    }

    /// The flow starts again with a small window, which causes no queue at first.
    pub(super) fn restart(&mut self) {
        self.untried = true;
    }

    /// Records a reduction of the window, with `total_lost` bytes lost so far.
    pub(super) fn on_reduction(&mut self, total_lost: u64) {
        self.lost_at_reduction = total_lost;
        (self.lost_since, self.sent_since) = (0, 0);
    }

    /// The losses reported so far were none: they cause no reduction.
    pub(super) fn forgive(&mut self) {
        self.on_reduction(self.lost_at_reduction.max(self.total_lost));
    }

    /// Records a reduction of the window for another subflow's congestion in this round. Losses of data in flight do
    /// not reduce it again.
    pub(super) fn on_reduction_of_another(&mut self, round: u64) {
        self.reduced_until = u32::try_from(round + 2).unwrap_or(u32::MAX);
        (self.lost_since, self.sent_since) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
