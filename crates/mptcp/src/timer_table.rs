//! Deadlines by timer: a table that says which timer is due.

use anabranch_policy::time::Instant;
use core::marker::PhantomData;

/// A set of timers, numbered from 0.
pub trait Timers: Copy {
    /// Its place in the table.
    fn place(self) -> usize;
}

/// The deadlines of `N` timers; [`Instant::NEVER`] where one does not run.
#[derive(Clone, Copy, Debug)]
pub struct TimerTable<T, const N: usize> {
    deadlines: [Instant; N],
    /// The earliest of them: it is asked for far more often than it changes.
    earliest: Instant,
    timers: PhantomData<T>,
}

impl<T: Timers, const N: usize> TimerTable<T, N> {
    /// None runs.
    pub const fn new() -> Self {
        Self { deadlines: [Instant::NEVER; N], earliest: Instant::NEVER, timers: PhantomData }
    }

    /// When a timer is due; [`Instant::NEVER`] if it does not run.
    pub fn at(&self, timer: T) -> Instant {
        self.deadlines.get(timer.place()).copied().unwrap_or(Instant::NEVER)
    }

    /// Starts a timer, or moves it.
    pub fn set(&mut self, timer: T, at: Instant) {
        let Some(deadline) = self.deadlines.get_mut(timer.place()) else { return };
        let before = core::mem::replace(deadline, at);
        if at <= self.earliest {
            self.earliest = at;
        } else if before == self.earliest {
            self.earliest = self.deadlines.iter().copied().min().unwrap_or(Instant::NEVER);
        }
    }

    /// Has a timer due no later than this.
    pub fn set_by(&mut self, timer: T, at: Instant) {
        self.set(timer, self.at(timer).min(at));
    }

    /// Stops a timer.
    pub fn stop(&mut self, timer: T) {
        self.set(timer, Instant::NEVER);
    }

    /// Whether a timer runs.
    pub fn runs(&self, timer: T) -> bool {
        self.at(timer) != Instant::NEVER
    }

    /// Whether a timer is due.
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
