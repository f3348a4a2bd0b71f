//! What an end knows of a path that it sends over, from what the peer tells of it.

use crate::format::PathCount;
use anabranch_policy::datagram::PathView;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// Most datagrams whose times are kept until the peer tells of them.
const MOST_OUTSTANDING: usize = 16_384;
/// The least delay is that of the last one to two spans of this length: clocks drift, and routes change.
const BASE_SPAN: Duration = Duration::from_secs(10);
/// A queue that never was shorter than this between two reports stood all the time, so that what came through is what the path can
/// carry.
const STANDING: i64 = 2_000;
/// Fewer datagrams between two reports say nothing of a rate.
const ENOUGH: u64 = 8;
/// Reports that are closer together say nothing of a rate either, in microseconds.
const SHORTEST: u32 = 10_000;
/// Bytes of the headers of UDP and IPv4 around each datagram.
const OUTER: u64 = 28;

/// A datagram that the peer has not told of.
#[derive(Clone, Copy, Debug)]
struct Sent {
    counter: u64,
    /// Bytes sent with it and all before it.
    bytes: u64,
    at: Instant,
    /// It asks whether its size is carried: if it is lost, that is no sign of congestion (RFC 8899, section 3).
    asks: bool,
}

/// The least of what was seen lately, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Base {
    now: i64,
    before: i64,
    since: Instant,
}

/// One path.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    next: u64,
    bytes: u64,
    log: VecDeque<Sent>,
    /// The last report.
    told: Option<PathCount>,
    /// The report that the next rate counts from, when the peer made it by its clock, and the least delay of those since.
    anchor: Option<(PathCount, u32, i64)>,
    /// Bytes that the peer has told of, or that were lost before those.
    known: u64,
    base: Option<Base>,
    queued: Duration,
    left: Instant,
    loss: f64,
    rate: Rate,
    capacity: Option<Rate>,
}

impl Sending {
    /// The counter for the next datagram.
    pub fn take_counter(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// That datagram has so many bytes.
    pub fn sent(&mut self, length: usize, now: Instant) {
        self.note(length, now, false);
    }

    /// The same of a probe for the path's MTU.
    pub fn asked(&mut self, length: usize, now: Instant) {
        self.note(length, now, true);
    }

    fn note(&mut self, length: usize, now: Instant, asks: bool) {
        self.bytes += length as u64 + OUTER;
        if self.log.len() == MOST_OUTSTANDING {
            self.log.pop_front();
        }
        self.log.push_back(Sent { counter: self.next.saturating_sub(1), bytes: self.bytes, at: now, asks });
    }

    /// Datagrams and bytes, headers of UDP and IP left out.
    pub fn totals(&self) -> (u64, u64) {
        (self.next, self.bytes - self.next * OUTER)
    }

    /// The peer tells of it; it made that report at `stamp` of its clock. `reference` is a delay that all delays of the session are
    /// counted from.
    pub fn told(&mut self, count: &PathCount, stamp: u32, reference: u32, now: Instant) {
        let earlier = self.told;
        // Nobody can have received what was not sent, and reports may overtake each other.
        let overtaken = |earlier: PathCount| count.highest < earlier.highest || count.datagrams < earlier.datagrams;
        if count.highest >= self.next || earlier.is_some_and(overtaken) {
            return;
        }
        let relative = |delay: u32| i64::from(delay.wrapping_sub(reference) as i32);
        let base = self.update_base(relative(count.least_delay).min(relative(count.delay)), now);
        let queued = Duration::from_micros((relative(count.delay) - base).unsigned_abs());
        let (mut last, mut asked) = (None, 0);
        while let Some(sent) = self.log.front().filter(|sent| sent.counter <= count.highest) {
            last = Some(*sent);
            asked += u64::from(sent.asks);
            self.log.pop_front();
        }
        if let Some(sent) = last {
            self.known = sent.bytes;
            (self.queued, self.left) = (queued, sent.at + queued);
        }
        if let Some(earlier) = earlier {
            self.count_losses(&earlier, count, asked);
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

    /// Of those that are told of for the first time `asked` were probes for the path's MTU.
    fn count_losses(&mut self, earlier: &PathCount, count: &PathCount, asked: u64) {
        let expected = (count.highest - earlier.highest).saturating_sub(asked);
        let came = count.datagrams.saturating_sub(earlier.datagrams).min(expected);
        if expected > 0 {
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

    /// What came through while a queue stood is a sample of the capacity; so is whatever is more than what was taken for it.
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

    /// The peer has forgotten what it counted, and begins anew.
    pub fn restart(&mut self) {
        *self = Self { next: self.next, bytes: self.bytes, known: self.bytes, ..Self::default() };
    }

    /// The least delay relative to the session's reference, in microseconds, once there is one.
    pub fn base(&self) -> Option<i64> {
        self.base.map(|base| base.now.min(base.before))
    }

    /// The variation of the delay that the peer sees.
    pub fn variation(&self) -> Duration {
        Duration::from_micros(self.told.map_or(0, |count| count.variation.into()))
    }

    /// The share of datagrams that were lost lately.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// What a policy sees of it.
    pub fn view(&self, path: u8, delay: Duration) -> PathView {
        PathView {
            path,
            usable: true,
            round_trip: None,
            delay,
            queued: self.queued,
            left: self.left,
            variation: self.variation(),
            loss: self.loss,
            rate: self.rate,
            capacity: self.capacity,
            outstanding: self.bytes.saturating_sub(self.known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Sends `count` datagrams of 1,222 bytes, 1,250 with their headers, at this time.
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
    fn what_stands_in_a_queue_tells_the_capacity() {
        let mut sending = Sending::default();
        send(&mut sending, 400, 0);
        // The first 100 came with no queue, the next 100 behind one of 5 to 9 ms, in 10 ms: 100 Mbit/s.
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
    fn gaps_are_losses() {
        let mut sending = Sending::default();
        send(&mut sending, 300, 0);
        sending.told(&count(0, 1, 0, 0), 0, 0, at(0));
        sending.told(&count(64, 49, 0, 0), 20_000, 0, at(20));
        // 16 of 64 are lost; 64 datagrams weigh a half.
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
