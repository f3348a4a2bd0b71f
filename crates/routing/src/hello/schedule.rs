//! Schedules Hellos, and decides which of them are full (RFC 5614, 4.1; RFC 2328, 9.5).

use anabranch_policy::{Duration, Instant};

/// The schedule of an interface's Hellos.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelloSchedule {
    /// When the next one is due without jitter.
    due: Instant,
    /// Hello Sequence Number of the next Hello.
    sequence: u16,
    /// Hellos until the next full one.
    to_full: u16,
}

impl HelloSchedule {
    /// Schedules the first Hello, a full one, at `first`.
    pub fn begin(&mut self, first: Instant) {
        (self.due, self.to_full) = (first, 0);
    }

    /// Time of the Hello after the one sent now. `random` is from 0 to 1; `jitter` is the part of the interval by which
    /// a Hello is early or late. The jitter does not add up: the rate stays that of HelloInterval.
    pub fn next(&mut self, now: Instant, interval: Duration, jitter: f64, random: f64) -> Instant {
        self.due = (self.due + interval).max(now);
        let jitter = interval.mul_f64(jitter);
        self.due + jitter.mul_f64(2.0 * random) - jitter
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
        let mut at = Instant::ZERO;
        for _ in 0..100 {
            at = schedule.next(at, second, 0.1, 1.0);
        }
        assert_eq!(at, Instant::ZERO + second * 100 + Duration::from_millis(100));
        // Hellos missed in a pause are not made up for.
        let late = Instant::ZERO + second * 500;
        assert_eq!(schedule.next(late, second, 0.1, 0.5), late);
    }
}
