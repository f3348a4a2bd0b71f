//! The sender's estimates for a path, from the peer's reports.

use crate::format::PathCount;
use anabranch_policy::datagram::PathView;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// Most datagrams whose send times are kept until the peer reports them.
const MOST_OUTSTANDING: usize = 16_384;
/// The base delay is the minimum over the last one to two intervals of this length: clocks drift, and routes change.
const BASE_SPAN: Duration = Duration::from_secs(10);
/// Microseconds. A queue that stayed longer than this between two reports was standing, so that the delivery rate is
/// the capacity of the path.
const STANDING: i64 = 2_000;
/// Between two reports, fewer datagrams give no rate sample.
const ENOUGH: u64 = 8;
/// Microseconds. A shorter interval between reports gives no rate sample.
const SHORTEST: u32 = 10_000;
/// Least overdue datagrams of programs: fewer may be random loss.
const MANY: u64 = 3;
/// Datagrams are overdue when their report is later than the smoothed reporting delay plus this or four mean deviations
/// (RFC 6298). This is three reports.
const LATENESS: Duration = Duration::from_millis(75);
/// The loss that an outage counts as, whatever its length: losses during an outage say little about the path
/// afterwards.
const OUTAGE: f64 = 0.005;
/// Loss above this share may mean that the path's MTU has changed.
const MUCH: f64 = 0.1;
/// Time constant of the mean of cross traffic.
const INFLOW: Duration = Duration::from_millis(100);
/// Bytes of the UDP and IPv4 headers of each datagram.
const OUTER: u64 = 28;

/// A datagram that the peer has not reported yet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    counter: u64,
    /// Bytes sent up to and including it.
    bytes: u64,
    at: Instant,
    /// A program's datagram, which the peer reports soon.
    owed: bool,
    /// Least queueing delay: the time that bytes sent before it since the last report take at the capacity, if known.
    behind: Duration,
    /// A size probe: its loss is no sign of congestion (RFC 8899, section 3).
    asks: bool,
}

/// The lowest recent delay, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Base {
    now: i64,
    before: i64,
    since: Instant,
}

/// The state of one path.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    next: u64,
    bytes: u64,
    log: VecDeque<Sent>,
    /// The last report.
    told: Option<PathCount>,
    /// The report from which the next rate sample starts, its time by the peer's clock, and the lowest delay of the
    /// reports since.
    anchor: Option<(PathCount, u32, i64)>,
    /// Bytes sent that the peer has reported, or that were lost before those.
    known: u64,
    base: Option<Base>,
    queued: Duration,
    left: Instant,
    loss: f64,
    /// The last report ended an outage with losses.
    outage: bool,
    rate: Rate,
    capacity: Option<Rate>,
    /// Datagrams of programs not yet reported.
    owed: u64,
    /// The smoothed time from sending to the report, and its mean deviation.
    telling: Option<(Duration, Duration)>,
    inflow: f64,
    /// When the bytes sent since the last report have left the bottleneck, at the capacity.
    free: Instant,
}

impl Sending {
    /// Returns the counter for the next datagram.
    pub fn take_counter(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Records that this datagram was sent with `length` bytes.
    pub fn sent(&mut self, length: usize, now: Instant) {
        self.note(length, now, false);
    }

    /// Records a size probe.
    pub fn asked(&mut self, length: usize, now: Instant) {
        self.note(length, now, true);
    }

    fn note(&mut self, length: usize, now: Instant, asks: bool) {
        self.bytes += length as u64 + OUTER;
        if self.log.len() == MOST_OUTSTANDING {
            self.forget_first();
        }
        let behind = self.free.since(now);
        if let Some(capacity) = self.capacity {
            self.free = self.free.max(now) + capacity.time_for(length as u64 + OUTER);
        }
        let counter = self.next.saturating_sub(1);
        self.log.push_back(Sent { counter, bytes: self.bytes, at: now, owed: false, behind, asks });
    }

    /// Marks the last datagram as a program's.
    pub fn is_owed(&mut self) {
        if let Some(last) = self.log.back_mut().filter(|last| !last.owed) {
            last.owed = true;
            self.owed += 1;
        }
    }

    fn forget_first(&mut self) -> Option<Sent> {
        let first = self.log.pop_front()?;
        self.owed -= u64::from(first.owed);
        Some(first)
    }

    /// Whether reports on programs' datagrams are overdue.
    pub fn is_overdue(&self, now: Instant) -> bool {
        let Some((usual, deviation)) = self.telling.filter(|_| self.owed >= MANY) else { return false };
        let first = self.log.iter().find(|sent| sent.owed);
        first.is_some_and(|first| now.since(first.at) > usual + LATENESS.max(deviation * 4))
    }

    /// Datagrams and bytes, without UDP and IP headers.
    pub fn totals(&self) -> (u64, u64) {
        (self.next, self.bytes - self.next * OUTER)
    }

    /// Handles a report, made at `stamp` of the peer's clock. `reference` is the delay to which all delays of the
    /// session are relative.
    pub fn told(&mut self, count: &PathCount, stamp: u32, reference: u32, now: Instant) {
        let earlier = self.told;
        // Rejects counts of datagrams never sent, and reports overtaken by later ones.
        let overtaken = |earlier: PathCount| count.highest < earlier.highest || count.datagrams < earlier.datagrams;
        if count.highest >= self.next || earlier.is_some_and(overtaken) {
            return;
        }
        let relative = |delay: u32| i64::from(delay.wrapping_sub(reference) as i32);
        let base = self.update_base(relative(count.least_delay).min(relative(count.delay)), now);
        let queued = Duration::from_micros((relative(count.delay) - base).unsigned_abs());
        let outage = self.is_overdue(now);
        let (mut last, mut before, mut asked) = (None, self.known, 0);
        while self.log.front().is_some_and(|sent| sent.counter <= count.highest) {
            before = last.map_or(before, |sent: Sent| sent.bytes);
            last = self.forget_first();
            asked += last.map_or(0, |sent| u64::from(sent.asks));
        }
        if let Some(sent) = last {
            self.update_telling(now.since(sent.at));
            self.compare(&sent, before, queued);
            self.free = now;
            self.known = sent.bytes;
            (self.queued, self.left) = (queued, sent.at + queued);
        }
        if let Some(earlier) = earlier {
            self.count_losses((&earlier, count), asked, outage);
        }
        self.told = Some(*count);
        let Some((from, before, least)) = self.anchor else {
            self.anchor = Some((*count, stamp, i64::MAX));
            return;
        };
        let least = least.min(relative(count.least_delay));
        let span = stamp.wrapping_sub(before);
        if span < SHORTEST {
            self.anchor = Some((from, before, least));
            return;
        }
        let came = count.datagrams.saturating_sub(from.datagrams);
        let bytes = count.bytes.saturating_sub(from.bytes) + came * OUTER;
        self.rate = Rate::from_bytes_over(bytes, Duration::from_micros(span.into()));
        self.update_capacity(came >= ENOUGH && least - base >= STANDING);
        self.anchor = Some((*count, stamp, i64::MAX));
    }

    /// RFC 6298, section 2.
    fn update_telling(&mut self, sample: Duration) {
        self.telling = Some(match self.telling {
            None => (sample, sample / 2),
            Some((usual, deviation)) => {
                let error = usual.abs_diff(sample);
                (usual - usual / 8 + sample / 8, deviation - deviation / 4 + error / 4)
            }
        });
    }

    /// Estimates cross traffic from the queueing delay of a datagram and the bytes sent before it: delay that our own
    /// bytes do not explain is that of others. If the queue should stand but does not, the capacity is higher than
    /// estimated.
    fn compare(&mut self, sent: &Sent, before: u64, queued: Duration) {
        let (Some(capacity), then) = (self.capacity, self.left - self.queued) else { return };
        let span = sent.at.since(then);
        if span == Duration::ZERO {
            return;
        }
        let sending = capacity.time_for(before.saturating_sub(self.known));
        if sent.behind > queued + Duration::from_micros(STANDING.unsigned_abs()) {
            (self.capacity, self.inflow) = (None, 0.0);
            return;
        }
        let own = (self.left + sending).since(sent.at).max(sent.behind);
        let drained = self.queued + sending - own;
        // A small difference beside our own traffic comes from the error of the capacity.
        let sample = match (sending * 2 < span, drained * 4 > span) {
            (false, _) => 0.0,
            (true, true) => (queued - own).as_secs_f64() / drained.as_secs_f64(),
            (true, false) => (queued - own).as_secs_f64() / span.as_secs_f64(),
        };
        let sample = sample.min(1.0);
        self.inflow += (sample - self.inflow) * (span.as_secs_f64() / INFLOW.as_secs_f64()).min(1.0);
    }

    /// Updates the loss. `asked` of the newly reported datagrams were size probes.
    fn count_losses(&mut self, (earlier, count): (&PathCount, &PathCount), asked: u64, outage: bool) {
        let expected = (count.highest - earlier.highest).saturating_sub(asked);
        let came = count.datagrams.saturating_sub(earlier.datagrams).min(expected);
        self.outage = outage && came < expected;
        if self.outage {
            self.loss += (1.0 - self.loss) * OUTAGE;
        } else if expected > 0 {
            let lost = 1.0 - came as f64 / expected as f64;
            self.loss += (lost - self.loss) * (expected as f64 / 128.0).min(0.5);
        }
    }

    fn update_base(&mut self, delay: i64, now: Instant) -> i64 {
        let base = self.base.get_or_insert(Base { now: delay, before: delay, since: now });
        if now.since(base.since) >= BASE_SPAN {
            *base = Base { now: delay, before: base.now, since: now };
        }
        base.now = base.now.min(delay);
        base.now.min(base.before)
    }

    /// Updates the capacity: the delivery rate is a sample while a queue stood, and also whenever it exceeds the
    /// estimate.
    fn update_capacity(&mut self, stood: bool) {
        self.capacity = match self.capacity {
            None if stood => Some(self.rate),
            Some(known) if stood || self.rate > known => {
                let mean = (known.bits_per_second() / 4).saturating_mul(3) + self.rate.bits_per_second() / 4;
                Some(Rate::from_bits_per_second(mean))
            }
            known => known,
        };
    }

    /// Handles a peer that has lost its counts.
    pub fn restart(&mut self) {
        *self = Self { next: self.next, bytes: self.bytes, known: self.bytes, ..Self::default() };
    }

    /// The lowest delay relative to the session's reference, in microseconds, once known.
    pub fn base(&self) -> Option<i64> {
        self.base.map(|base| base.now.min(base.before))
    }

    /// The variation of the delay, from the peer's reports.
    pub fn variation(&self) -> Duration {
        Duration::from_micros(self.told.map_or(0, |count| count.variation.into()))
    }

    /// Whether the loss suggests that the path's MTU has changed.
    pub fn loses_much(&self) -> bool {
        self.loss > MUCH || self.outage
    }

    /// The share of recent datagrams that were lost.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// The path as the policy sees it.
    pub fn view(&self, path: u8, delay: Duration) -> PathView {
        PathView {
            path,
            usable: true,
            overdue: false,
            round_trip: None,
            delay,
            queued: self.queued,
            left: self.left,
            variation: self.variation(),
            loss: self.loss,
            rate: self.rate,
            capacity: self.capacity,
            outstanding: self.bytes.saturating_sub(self.known),
            inflow: self.inflow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Sends `count` datagrams of 1,222 bytes (1,250 with headers) at this time.
    fn send(sending: &mut Sending, count: u64, millis: u64) {
        for _ in 0..count {
            sending.take_counter();
            sending.sent(1_222, at(millis));
        }
    }

    fn count(highest: u64, datagrams: u64, delay: u32, least_delay: u32) -> PathCount {
        PathCount { highest, datagrams, bytes: datagrams * 1_222, delay, least_delay, ..PathCount::default() }
    }

    #[test]
    fn what_was_lost_in_an_outage_is_no_share_of_losses() {
        let mut sending = Sending::default();
        let send_owed = |sending: &mut Sending, millis| {
            send(sending, 1, millis);
            sending.is_owed();
        };
        (0..10).for_each(|number| {
            send_owed(&mut sending, number * 20);
            sending.told(&count(number, number + 1, 5, 5), number as u32 * 20_000, 5, at(number * 20 + 15));
        });
        (10..20).for_each(|number| send_owed(&mut sending, number * 20));
        // The first to arrive again is a probe.
        send(&mut sending, 1, 5_000);
        sending.told(&count(20, 11, 5, 5), 5_000_000, 5, at(5_015));
        assert!((sending.loss() - 0.005).abs() < 1e-9, "{}", sending.loss());
    }

    #[test]
    fn what_stands_in_a_queue_tells_the_capacity() {
        let mut sending = Sending::default();
        send(&mut sending, 400, 0);
        // The first 100 arrived without a queue, the next 100 behind one of 5 to 9 ms, within 10 ms: 100 Mbit/s.
        sending.told(&count(99, 100, 10_000, 10_000), 0, 10_000, at(20));
        assert_eq!(sending.view(0, Duration::ZERO).capacity, None);
        sending.told(&count(199, 200, 19_000, 15_000), 10_000, 10_000, at(30));
        let view = sending.view(0, Duration::ZERO);
        assert_eq!(view.rate, Rate::from_bits_per_second(100_000_000));
        assert_eq!(view.capacity, Some(view.rate));
        assert_eq!((view.queued, view.left), (Duration::from_millis(9), at(9)));
        assert_eq!((view.outstanding, view.loss), (200 * 1_250, 0.0));
    }

    #[test]
    fn a_rate_without_a_queue_is_no_capacity_unless_it_is_more_than_what_was_taken_for_it() {
        let mut sending = Sending::default();
        send(&mut sending, 1_000, 0);
        sending.told(&count(0, 1, 10_000, 10_000), 0, 0, at(0));
        sending.told(&count(100, 101, 10_500, 10_100), 20_000, 0, at(20));
        assert_eq!(sending.view(0, Duration::ZERO).capacity, None);
        assert_eq!(sending.view(0, Duration::ZERO).rate, Rate::from_bits_per_second(50_000_000));
        sending.told(&count(200, 201, 14_000, 13_000), 40_000, 0, at(40));
        assert_eq!(sending.view(0, Duration::ZERO).capacity, Some(Rate::from_bits_per_second(50_000_000)));
        sending.told(&count(300, 301, 10_000, 10_000), 50_000, 0, at(50));
        assert_eq!(sending.view(0, Duration::ZERO).rate, Rate::from_bits_per_second(100_000_000));
        // A quarter of the difference.
        assert_eq!(sending.view(0, Duration::ZERO).capacity, Some(Rate::from_bits_per_second(62_500_000)));
    }

    #[test]
    fn a_queue_that_would_have_to_stand_and_does_not_refutes_a_capacity() {
        // 10 datagrams at once; the last waits for 9 ms at 10 Mbit/s.
        let after = |waited: u32| {
            let mut sending = Sending { capacity: Some(Rate::from_bits_per_second(10_000_000)), ..Sending::default() };
            send(&mut sending, 1, 0);
            sending.told(&count(0, 1, 10_000, 10_000), 0, 10_000, at(20));
            send(&mut sending, 10, 100);
            sending.told(&count(10, 11, 10_000 + waited, 10_000), 100_000, 10_000, at(120));
            sending.view(0, Duration::ZERO).capacity.is_some()
        };
        assert_eq!([9_000, 7_000, 6_900, 0].map(after), [true, true, false, false]);
    }

    #[test]
    fn gaps_are_losses() {
        let mut sending = Sending::default();
        send(&mut sending, 300, 0);
        sending.told(&count(0, 1, 0, 0), 0, 0, at(0));
        sending.told(&count(64, 49, 0, 0), 20_000, 0, at(20));
        // 16 of 64 are lost; 64 datagrams have a weight of one half.
        assert!((sending.loss() - 0.125).abs() < 1e-9, "{}", sending.loss());
    }

    #[test]
    fn probes_for_the_mtu_that_are_lost_are_no_losses() {
        let mut sending = Sending::default();
        send(&mut sending, 1, 0);
        for _ in 0..3 {
            sending.take_counter();
            sending.asked(1_433, at(0));
        }
        send(&mut sending, 4, 0);
        sending.told(&count(0, 1, 0, 0), 0, 0, at(0));
        sending.told(&count(7, 5, 0, 0), 20_000, 0, at(20));
        assert_eq!(sending.loss(), 0.0);
    }

    #[test]
    fn reports_that_were_overtaken_or_tell_of_what_was_never_sent_are_not_heard() {
        let mut sending = Sending::default();
        send(&mut sending, 10, 0);
        sending.told(&count(10, 11, 0, 0), 0, 0, at(0));
        assert_eq!(sending.view(0, Duration::ZERO).outstanding, 10 * 1_250);
        sending.told(&count(5, 6, 0, 0), 0, 0, at(0));
        sending.told(&count(3, 4, 0, 0), 50_000, 0, at(0));
        assert_eq!(sending.view(0, Duration::ZERO).outstanding, 4 * 1_250);
    }

    #[test]
    fn a_queue_that_our_own_datagrams_do_not_explain_is_the_work_of_others() {
        let mut sending = Sending { capacity: Some(Rate::from_bits_per_second(100_000_000)), ..Sending::default() };
        // 100 datagrams take 10 ms: the last one sent at 0 waits for those before it.
        send(&mut sending, 101, 0);
        sending.told(&count(0, 1, 10_000, 10_000), 0, 10_000, at(20));
        send(&mut sending, 1, 100);
        sending.told(&count(101, 102, 10_000, 10_000), 100_000, 10_000, at(120));
        assert_eq!(sending.view(0, Duration::ZERO).inflow, 0.0);
        // 100 ms later one waits for 40 ms, and 100 ms later another, though nothing else was sent.
        send(&mut sending, 1, 200);
        sending.told(&count(102, 103, 50_000, 50_000), 200_000, 10_000, at(250));
        assert!((sending.view(0, Duration::ZERO).inflow - 0.4).abs() < 1e-9);
        // The 40 ms would have drained, and 10 ms later there are 25: of the 40 ms 30 are left.
        send(&mut sending, 1, 300);
        send(&mut sending, 1, 310);
        sending.told(&count(103, 104, 50_000, 50_000), 300_000, 10_000, at(350));
        assert!((sending.view(0, Duration::ZERO).inflow - 1.0).abs() < 1e-9);
        sending.told(&count(104, 105, 35_000, 35_000), 310_000, 10_000, at(360));
        assert!((sending.view(0, Duration::ZERO).inflow - 0.9).abs() < 1e-9);
        // A path that we fill ourselves gives no estimate: 400 datagrams are 40 of 70 ms, with a weight of seven
        // tenths.
        send(&mut sending, 400, 370);
        send(&mut sending, 1, 380);
        sending.told(&count(505, 506, 60_000, 35_000), 380_000, 10_000, at(440));
        assert!((sending.view(0, Duration::ZERO).inflow - 0.27).abs() < 1e-9);
    }

    #[test]
    fn the_peer_is_overdue_to_tell_of_three_datagrams_that_wait_for_longer_than_usual() {
        let mut sending = Sending::default();
        let send_owed = |sending: &mut Sending, millis| {
            send(sending, 1, millis);
            sending.is_owed();
        };
        (0..50).for_each(|number| {
            send_owed(&mut sending, number * 20);
            sending.told(&count(number, number + 1, 5, 5), number as u32 * 20_000, 5, at(number * 20 + 15));
        });
        // Usually 15 ms.
        [1_000, 1_020].into_iter().for_each(|millis| send_owed(&mut sending, millis));
        assert!(!sending.is_overdue(at(1_500)), "two may be lost by chance");
        send_owed(&mut sending, 1_040);
        assert!(!sending.is_overdue(at(1_090)) && sending.is_overdue(at(1_091)));
        // A later one arrived: the others were lost.
        send(&mut sending, 1, 1_100);
        sending.told(&count(53, 51, 5, 5), 1_100_000, 5, at(1_120));
        assert!(!sending.is_overdue(at(1_500)));
        // Other datagrams are reported only with the next report.
        send(&mut sending, 9, 1_200);
        assert!(!sending.is_overdue(at(2_000)));
    }

    #[test]
    fn the_least_delay_follows_a_path_that_became_longer() {
        let mut sending = Sending::default();
        send(&mut sending, 10, 0);
        for (number, (millis, delay)) in
            [(0, 5_000), (1_000, 9_000), (10_000, 9_000), (20_000, 9_000)].iter().enumerate()
        {
            sending.told(
                &count(number as u64, number as u64 + 1, *delay, *delay),
                *millis as u32 * 1_000,
                0,
                at(*millis),
            );
            let expected = if *millis == 20_000 { 9_000 } else { 5_000 };
            assert_eq!(sending.base(), Some(expected), "at {millis}");
        }
    }
}
