//! The timers of a connection.

use crate::timer_table::{TimerTable, Timers};
use core::ops::{Deref, DerefMut};

/// A timer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// Data unacknowledged at data level is reinjected.
    DataRetransmit,
    /// A closed window is probed.
    Persist,
    /// A blocked episode has lasted another round trip.
    Blocked,
    /// The policy judges the hole again.
    Missing,
    /// A measurement for the path manager is due.
    Measure,
    /// The scheduler asked to be called again.
    Schedule,
    /// An ADD_ADDR is repeated.
    Announcement,
    /// No subflow was opened in time, or the peer did not end its stream in time.
    WithoutSubflows,
    /// The user timeout: unacknowledged data must have made progress.
    User,
    /// The peer timeout: something must have arrived.
    Peer,
    /// No attempt was answered in time: the next begins.
    Race,
    /// Nothing moves perhaps: then congestion control may forget.
    Rest,
}

impl Timers for Timer {
    fn place(self) -> usize {
        self as usize
    }
}

/// The timers, and the consecutive expiries of two of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimers {
    table: TimerTable<Timer, 12>,
    /// Consecutive expiries of [`Timer::DataRetransmit`].
    pub data_attempts: u32,
    /// Consecutive probes of a closed window.
    pub persist_attempts: u32,
}

impl Deref for ConnectionTimers {
    type Target = TimerTable<Timer, 12>;
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl DerefMut for ConnectionTimers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.table
    }
}

impl ConnectionTimers {
    pub fn new() -> Self {
        Self { table: TimerTable::new(), data_attempts: 0, persist_attempts: 0 }
    }

    /// Stops all timers and resets the counters.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// The window was open: the next probe of a closed window follows after one timeout (RFC 9293, section 3.8.6.1).
    pub fn begin_probes_anew(&mut self) {
        if self.persist_attempts > 0 {
            self.persist_attempts = 0;
            self.stop(Timer::Persist);
        }
    }

    /// Stops the timers that only MPTCP uses.
    pub fn stop_multipath(&mut self) {
        let (persist, user) = (self.at(Timer::Persist), self.at(Timer::User));
        self.reset();
        self.set(Timer::Persist, persist);
        self.set(Timer::User, user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::{Duration, Instant};

    #[test]
    fn an_open_window_stops_the_probes_that_were_sent_and_not_the_wait_before_the_first() {
        let at = Instant::ZERO + Duration::from_secs(1);
        let due = |persist_attempts: u32| {
            let mut timers = ConnectionTimers { persist_attempts, ..ConnectionTimers::new() };
            timers.set(Timer::Persist, at);
            timers.begin_probes_anew();
            (timers.persist_attempts, timers.at(Timer::Persist))
        };
        assert_eq!(due(0), (0, at));
        assert_eq!(due(3), (0, Instant::NEVER));
    }
}
