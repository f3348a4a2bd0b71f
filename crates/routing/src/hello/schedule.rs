//! Schedules Hellos, and decides which of them are full (RFC 5614, 4.1; RFC 2328, 9.5).

use anabranch_policy::{Duration, Instant};

/// Part of HelloInterval within which a Hello out of turn is sent, at random: all that hear a newcomer answer it.
const SPREAD: f64 = 0.1;
/// Least time after another Hello, as a part of HelloInterval.
const GAP: f64 = 0.05;
/// Hellos out of turn that may follow each other.
const BURST: u64 = 6;
/// Of so many HelloIntervals each has a Hello out of turn at most, on the average.
const RARE: u64 = 4;

/// The schedule of an interface's Hellos.
///
/// Besides the regular ones there are Hellos out of turn, which RFC 5614 does not have: two routers that hear each other for
/// the first time would be bidirectional after two HelloIntervals only, and know each other's role after another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelloSchedule {
    /// When the next regular one is due without jitter, and with it.
    due: Instant,
    regular: Instant,
    /// When the last one was sent.
    sent: Option<Instant>,
    /// When the next one out of turn is due.
    extra: Option<Instant>,
    /// When all Hellos out of turn so far would have been sent at their average rate.
    paid: Instant,
    /// Hello Sequence Number of the next Hello.
    sequence: u16,
    /// Hellos until the next full one.
    to_full: u16,
}

impl HelloSchedule {
    /// Schedules the first regular Hello, a full one, at `first`.
    pub fn begin(&mut self, first: Instant) {
        *self = Self { due: first, regular: first, sequence: self.sequence, ..Self::default() };
    }

    /// The time of the next Hello.
    pub fn at(&self) -> Instant {
        self.extra.map_or(self.regular, |extra| extra.min(self.regular))
    }

    /// Someone should soon know what a full Hello says: one is sent out of turn, if there were few of them lately. `random`
    /// is from 0 to 1.
    pub fn hasten(&mut self, now: Instant, interval: Duration, random: f64) {
        let paid = self.paid.max(now);
        let each = interval * RARE;
        if self.extra.is_some() || paid.since(now) > each * (BURST - 1) {
            return;
        }
        self.paid = paid + each;
        let soonest = self.sent.map_or(now, |sent| now.max(sent + interval.mul_f64(GAP)));
        self.extra = Some(soonest + interval.mul_f64(SPREAD).mul_f64(random));
        self.to_full = 0;
    }

    /// A Hello is sent now. True if it is a regular one, after which the next is due; then `random` is from 0 to 1, and `jitter`
    /// the part of the interval by which a Hello is early or late. The jitter does not add up: the rate stays that of
    /// HelloInterval.
    pub fn send(&mut self, now: Instant, interval: Duration, jitter: f64, random: f64) -> bool {
        (self.sent, self.extra) = (Some(now), None);
        if now < self.regular {
            return false;
        }
        self.due = (self.due + interval).max(now);
        let jitter = interval.mul_f64(jitter);
        self.regular = self.due + jitter.mul_f64(2.0 * random) - jitter;
        true
    }

    /// Counts a MANET Hello: its sequence number, and whether it is differential. One of `refresh` is full.
    pub fn count(&mut self, refresh: u16) -> (u16, bool) {
        let differential = self.to_full > 0;
        self.to_full = if differential { self.to_full - 1 } else { refresh - 1 };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        (sequence, differential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_hellos_is_full() {
        let mut schedule = HelloSchedule { sequence: u16::MAX, ..HelloSchedule::default() };
        schedule.begin(Instant::ZERO);
        let said: Vec<(u16, bool)> = (0..4).map(|_| schedule.count(3)).collect();
        assert_eq!(said, [(u16::MAX, false), (0, true), (1, true), (2, false)]);
    }

    #[test]
    fn jitter_does_not_add_up() {
        let second = Duration::from_secs(1);
        let mut schedule = HelloSchedule::default();
        schedule.begin(Instant::ZERO);
        for _ in 0..100 {
            assert!(schedule.send(schedule.at(), second, 0.1, 1.0));
        }
        assert_eq!(schedule.at(), Instant::ZERO + second * 100 + Duration::from_millis(100));
        // Hellos missed in a pause are not made up for.
        let late = Instant::ZERO + second * 500;
        assert!(schedule.send(late, second, 0.1, 0.5));
        assert_eq!(schedule.at(), late);
    }

    #[test]
    fn a_hello_out_of_turn_is_full_and_the_regular_ones_keep_their_times() {
        let (second, at) = (Duration::from_secs(1), |millis| Instant::ZERO + Duration::from_millis(millis));
        let mut schedule = HelloSchedule::default();
        schedule.begin(at(0));
        assert!(schedule.send(at(0), second, 0.0, 0.0));
        assert_eq!((schedule.count(3), schedule.at()), ((0, false), at(1000)));
        // 50 ms after the last one, and a half of 100 ms.
        schedule.hasten(at(10), second, 0.5);
        schedule.hasten(at(20), second, 0.0);
        assert_eq!(schedule.at(), at(100));
        assert!(!schedule.send(at(100), second, 0.0, 0.0));
        assert_eq!((schedule.count(3), schedule.at()), ((1, false), at(1000)));
        // A regular one that comes first says the same.
        schedule.hasten(at(990), second, 0.5);
        assert!(schedule.send(at(1000), second, 0.0, 0.0));
        assert_eq!((schedule.count(3), schedule.at()), ((2, false), at(2000)));
    }

    #[test]
    fn hellos_out_of_turn_come_in_bursts_and_are_rare_on_the_average() {
        let second = Duration::from_secs(1);
        let mut schedule = HelloSchedule::default();
        schedule.begin(Instant::ZERO);
        let mut extra = Vec::new();
        for tenth in 0..1000 {
            let now = Instant::ZERO + second.mul_f64(0.1) * tenth;
            while schedule.at() <= now {
                if !schedule.send(schedule.at(), second, 0.0, 0.0) {
                    extra.push(tenth);
                }
            }
            schedule.hasten(now, second, 0.0);
        }
        let early = extra.iter().filter(|tenth| **tenth < 40).count() as u64;
        assert_eq!(early, BURST);
        assert_eq!(extra.len() as u64, BURST + 96 / RARE);
    }
}
