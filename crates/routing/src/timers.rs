//! A table of timers, one for each variant of an enum.

use core::marker::PhantomData;

use anabranch_policy::Instant;

/// An enum of timers of one owner.
pub(crate) trait Timer: Copy {
    /// Index in the table.
    fn index(self) -> usize;
}

/// Expiry times of `N` timers.
#[derive(Clone, Debug)]
pub(crate) struct TimerTable<T, const N: usize> {
    /// [`Instant::NEVER`] for a stopped timer.
    expiries: [Instant; N],
    timers: PhantomData<T>,
}

impl<T, const N: usize> Default for TimerTable<T, N> {
    fn default() -> Self {
        Self { expiries: [Instant::NEVER; N], timers: PhantomData }
    }
}

impl<T: Timer, const N: usize> TimerTable<T, N> {
    pub fn set(&mut self, timer: T, at: Instant) {
        *self.slot(timer) = at;
    }

    /// Starts a timer, or advances its expiry to `at`.
    pub fn set_at_latest(&mut self, timer: T, at: Instant) {
        let slot = self.slot(timer);
        *slot = at.min(*slot);
    }

    pub fn stop(&mut self, timer: T) {
        self.set(timer, Instant::NEVER);
    }

    /// The expiry of a timer; none if it is stopped.
    pub fn expiry(&self, timer: T) -> Option<Instant> {
        self.expiries.get(timer.index()).copied().filter(|at| *at != Instant::NEVER)
    }

    pub fn is_due(&self, timer: T, now: Instant) -> bool {
        self.expiry(timer).is_some_and(|at| at <= now)
    }

    /// The earliest expiry; none if all are stopped.
    pub fn next(&self) -> Option<Instant> {
        self.expiries.iter().copied().min().filter(|at| *at != Instant::NEVER)
    }

    fn slot(&mut self, timer: T) -> &mut Instant {
        self.expiries.get_mut(timer.index()).expect("a table is as large as its enum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Kind {
        One,
        Other,
    }

    impl Timer for Kind {
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn the_next_timer_is_the_one_that_expires_first_of_those_that_run() {
        let at = |nanos| Instant::from_nanos(nanos);
        let mut table = TimerTable::<Kind, 2>::default();
        assert_eq!((table.next(), table.expiry(Kind::One)), (None, None));
        assert!(!table.is_due(Kind::One, at(100)));
        table.set(Kind::One, at(9));
        table.set(Kind::Other, at(5));
        assert_eq!(table.next(), Some(at(5)));
        assert!(table.is_due(Kind::Other, at(5)) && !table.is_due(Kind::One, at(8)));
        table.stop(Kind::Other);
        assert_eq!(table.next(), Some(at(9)));
        table.set_at_latest(Kind::One, at(12));
        assert_eq!(table.expiry(Kind::One), Some(at(9)));
        table.set_at_latest(Kind::One, at(3));
        assert_eq!(table.expiry(Kind::One), Some(at(3)));
    }
}
