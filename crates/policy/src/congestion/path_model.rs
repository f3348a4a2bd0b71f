//! Measurements of model-based algorithms: a windowed maximum, rounds of packets, the recent minimum round-trip time;
//! and pseudo-random numbers.

use crate::time::{Duration, Instant};

/// The maximum of the values seen in the last `SLOTS` units of a virtual time, which the owner advances: cycles, rounds.
///
/// Exact, with one number per unit. (The estimator of Kathleen Nichols that draft-ietf-ccwg-bbr names keeps three
/// values whatever the length, and may forget a maximum early; for windows of 2 and 10 that saves nothing.)
#[derive(Clone, Debug)]
pub(super) struct WindowedMax<const SLOTS: usize> {
    /// Slot `time % SLOTS` belongs to the current unit.
    slots: [u64; SLOTS],
    time: u64,
}

impl<const SLOTS: usize> WindowedMax<SLOTS> {
    pub(super) fn new() -> Self {
        Self { slots: [0; SLOTS], time: 0 }
    }

    pub(super) fn advance(&mut self) {
        self.time += 1;
        let at = self.index(0);
        self.slots[at] = 0;
    }

    /// Adds a value in the current unit.
    pub(super) fn update(&mut self, value: u64) {
        let at = self.index(0);
        self.slots[at] = self.slots[at].max(value);
    }

    /// Adds a sample of the delivery rate, with a round as unit: an application-limited one counts only if it is the
    /// largest.
    pub(super) fn sample(&mut self, value: u64, app_limited: bool, begins_round: bool) {
        if !app_limited || value > self.max() {
            self.update(value);
        } else if begins_round {
            // A smaller demand does not contradict the earlier maximum.
            self.update(self.max());
        }
    }

    /// The maximum of the current unit.
    pub(super) fn present(&self) -> u64 {
        self.slots[self.index(0)]
    }

    /// The maximum of the window.
    pub(super) fn max(&self) -> u64 {
        self.slots.iter().copied().fold(0, u64::max)
    }

    /// Keeps only the current unit.
    pub(super) fn forget_past(&mut self) {
        let present = self.present();
        self.slots = [0; SLOTS];
        self.update(present);
    }

    fn index(&self, ago: u64) -> usize {
        (self.time.wrapping_sub(ago) % SLOTS as u64) as usize
    }
}

/// Counts rounds of packets: a round ends when a packet sent after its start is acknowledged (draft-ietf-ccwg-bbr,
/// section 5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundCounter {
    /// Bytes delivered when the round began.
    next_delivered: u64,
    count: u32,
    is_start: bool,
}

impl RoundCounter {
    /// Handles an acknowledgement: `prior_delivered` is the amount delivered when its newest segment was sent (`None`
    /// if unknown), `total_delivered` the amount now. Returns whether a round starts.
    pub(super) fn on_ack(&mut self, prior_delivered: Option<u64>, total_delivered: u64) -> bool {
        self.is_start = prior_delivered.is_some_and(|prior| prior >= self.next_delivered);
        if self.is_start {
            self.count = self.count.saturating_add(1);
            self.next_delivered = total_delivered;
        }
        self.is_start
    }

    /// Starts a round without counting it.
    pub(super) fn restart(&mut self, total_delivered: u64) {
        self.next_delivered = total_delivered;
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.count)
    }

    pub(super) fn is_start(&self) -> bool {
        self.is_start
    }
}

/// The minimum round-trip time of a window, and of a shorter interval after which the queue should be drained to
/// measure it (draft-ietf-ccwg-bbr, section 5.3.4.3, UpdateMinRTT).
///
/// The window and the interval are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt<const WINDOW: u64, const INTERVAL: u64> {
    /// [`Duration::MAX`] before the first sample.
    least: Duration,
    at: Instant,
    /// The minimum of the interval.
    least_of_interval: Duration,
    interval_at: Instant,
}

impl<const WINDOW: u64, const INTERVAL: u64> MinRtt<WINDOW, INTERVAL> {
    /// Starts with a first sample, if there is one.
    pub(super) fn new(now: Instant, first: Option<Duration>) -> Self {
        let least = first.unwrap_or(Duration::MAX);
        Self { least, at: now, least_of_interval: least, interval_at: now }
    }

    /// Adds a sample. Returns whether the interval had ended before.
    pub(super) fn update(&mut self, now: Instant, sample: Option<Duration>) -> bool {
        let expired = now > self.interval_at + Duration::from_secs(INTERVAL);
        if let Some(rtt) = sample
            && (expired || rtt < self.least_of_interval)
        {
            self.least_of_interval = rtt;
            self.interval_at = now;
        }
        let window_over = now > self.at + Duration::from_secs(WINDOW);
        let recent = self.least_of_interval;
        if recent != Duration::MAX && (window_over || recent < self.least) {
            self.least = recent;
            self.at = self.interval_at;
        }
        expired
    }

    /// Records that a sample was as low as the minimum.
    pub(super) fn seen(&mut self, now: Instant) {
        self.at = now;
        self.interval_at = now;
    }

    /// Records that the queue was drained: the next interval starts.
    pub(super) fn probed(&mut self, now: Instant) {
        self.interval_at = now;
    }

    /// The minimum round-trip time of the window, once there was a sample.
    pub(super) fn get(&self) -> Option<Duration> {
        Some(self.least).filter(|least| *least != Duration::MAX)
    }
}

/// A small deterministic generator (SplitMix64) for random waiting times. Each number also depends on the current time,
/// so that connections started simultaneously diverge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self, now: Instant) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_add(now.as_nanos());
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1).
    pub(super) fn fraction(&mut self, now: Instant) -> f64 {
        (self.next(now) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_maximum_is_forgotten_when_its_window_is_over() {
        let mut max = WindowedMax::<2>::new();
        max.update(7);
        max.update(5);
        assert_eq!((max.max(), max.present()), (7, 7));
        max.advance();
        assert_eq!((max.max(), max.present()), (7, 0));
        max.update(3);
        max.advance();
        assert_eq!(max.max(), 3);
        max.update(9);
        max.forget_past();
        max.advance();
        assert_eq!(max.max(), 9);
    }

    #[test]
    fn a_round_limited_by_the_application_says_nothing_against_what_was_seen() {
        let mut max = WindowedMax::<2>::new();
        max.sample(7, false, true);
        for value in [3, 4, 9, 5] {
            max.advance();
            max.sample(value, true, true);
            assert_eq!(max.max(), value.max(if value == 5 { 9 } else { 7 }));
        }
        max.advance();
        max.sample(2, true, false);
        assert_eq!(max.present(), 0);
    }

    #[test]
    fn a_round_ends_with_a_packet_sent_after_it_began() {
        let mut rounds = RoundCounter::default();
        // Ten packets are in flight; the first acknowledgement ends round 0, and the next round ends with a packet sent
        // after 1000 were delivered.
        assert!(rounds.on_ack(Some(0), 1_000));
        assert!(!rounds.on_ack(Some(0), 2_000));
        assert!(!rounds.on_ack(None, 3_000));
        assert!(rounds.on_ack(Some(1_000), 11_000));
        assert_eq!(rounds.count(), 2);
        rounds.restart(15_000);
        assert!(!rounds.on_ack(Some(11_000), 16_000));
        assert!(rounds.on_ack(Some(15_000), 20_000));
    }

    #[test]
    fn a_round_trip_as_short_as_the_least_does_not_put_off_when_it_is_looked_for() {
        let rtt = Some(Duration::from_millis(40));
        let mut least = MinRtt::<10, 5>::new(at(0), None);
        least.update(at(100), rtt);
        assert!(!least.update(at(4_000), rtt));
        assert!(least.update(at(5_101), rtt));
        // Nor when it is forgotten, as in the draft: 10 s after it was seen first.
        least.update(at(10_102), Some(Duration::from_millis(70)));
        assert_eq!(least.get(), Some(Duration::from_millis(70)));
    }

    #[test]
    fn the_least_round_trip_is_kept_for_its_window_and_asked_for_in_half_of_it() {
        let rtt = Duration::from_millis;
        let mut least = MinRtt::<10, 5>::new(at(0), None);
        assert_eq!(least.get(), None);
        least.update(at(100), Some(rtt(40)));
        least.update(at(200), Some(rtt(50)));
        assert_eq!(least.get(), Some(rtt(40)));
        assert!(!least.update(at(5_100), Some(rtt(50))));
        // More than 5 s after the 40 ms the queue must be drained, and the next sample is the interval's minimum.
        assert!(least.update(at(5_101), Some(rtt(60))));
        assert_eq!(least.get(), Some(rtt(40)));
        assert!(!least.update(at(5_200), Some(rtt(55))));
        // More than 10 s later the minimum of the later interval replaces it.
        least.update(at(10_100), Some(rtt(70)));
        assert_eq!(least.get(), Some(rtt(40)));
        least.update(at(10_101), Some(rtt(70)));
        assert_eq!(least.get(), Some(rtt(55)));
    }

    #[test]
    fn draws_are_spread_and_the_same_every_time() {
        let mut draws = Draws::new(1);
        let sum: f64 = (0..1_000).map(|n| draws.fraction(at(n))).sum();
        assert!((sum / 1_000.0 - 0.5).abs() < 0.03, "mean {}", sum / 1_000.0);
        let (mut one, mut other, mut later) = (Draws::new(1), Draws::new(1), Draws::new(1));
        assert_eq!(one.next(at(5)), other.next(at(5)));
        assert_ne!(one.next(at(5)), later.next(at(6)));
    }
}
