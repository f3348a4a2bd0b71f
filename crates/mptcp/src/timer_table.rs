//! A table of the deadlines of a set of timers.

use anabranch_policy::time::Instant;
use core::marker::PhantomData;

/// A set of timers, numbered from 0.
pub trait Timers: Copy {
    /// Index in the table.
    fn place(self) -> usize;
}

/// The deadlines of `N` timers; [`Instant::NEVER`] for a stopped timer.
#[derive(Clone, Copy, Debug)]
pub struct TimerTable<T, const N: usize> {
    deadlines: [Instant; N],
    /// The earliest deadline, cached: it is read far more often than it changes.
    earliest: Instant,
    timers: PhantomData<T>,
}

impl<T: Timers, const N: usize> TimerTable<T, N> {
    /// A table of stopped timers.
    pub const fn new() -> Self {
        Self { deadlines: [Instant::NEVER; N], earliest: Instant::NEVER, timers: PhantomData }
    }

    /// The deadline of a timer; [`Instant::NEVER`] if it is stopped.
    pub fn at(&self, timer: T) -> Instant {
        self.deadlines.get(timer.place()).copied().unwrap_or(Instant::NEVER)
    }

    /// Starts or restarts a timer.
    pub fn set(&mut self, timer: T, at: Instant) {
        let Some(deadline) = self.deadlines.get_mut(timer.place()) else { return };
        let before = core::mem::replace(deadline, at);
        if at <= self.earliest {
            self.earliest = at;
        } else if before == self.earliest {
            self.earliest = self.deadlines.iter().copied().min().unwrap_or(Instant::NEVER);
        }
    }

    /// Starts a timer, or advances its deadline to `at` if that is earlier.
    pub fn set_by(&mut self, timer: T, at: Instant) {
        self.set(timer, self.at(timer).min(at));
    }

    pub fn stop(&mut self, timer: T) {
        self.set(timer, Instant::NEVER);
    }

    pub fn runs(&self, timer: T) -> bool {
        self.at(timer) != Instant::NEVER
    }

    pub fn is_due(&self, timer: T, now: Instant) -> bool {
        self.at(timer) <= now
    }

    /// The earliest deadline.
    pub fn next(&self) -> Instant {
        self.earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    #[derive(Clone, Copy)]
    enum Timer {
        First,
        Second,
    }

    impl Timers for Timer {
        fn place(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn the_earliest_counts_until_it_is_stopped() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut table = TimerTable::<Timer, 2>::new();
        assert_eq!(table.next(), Instant::NEVER);
        table.set(Timer::First, at(2));
        table.set_by(Timer::Second, at(1));
        table.set_by(Timer::Second, at(3));
        assert_eq!((table.next(), table.at(Timer::First)), (at(1), at(2)));
        assert!(table.is_due(Timer::Second, at(1)) && !table.is_due(Timer::First, at(1)));
        table.stop(Timer::Second);
        assert!(!table.runs(Timer::Second) && table.runs(Timer::First));
        assert_eq!(table.next(), at(2));
    }
}
