//! A connection's own timers.

use crate::timer_table::{TimerTable, Timers};
use core::ops::{Deref, DerefMut};

/// Why a connection's timeout fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// Data that is not acknowledged at data level is sent again.
    DataRetransmit,
    /// A closed window is probed.
    Persist,
    /// A blocked episode has lasted another round trip.
    Blocked,
    /// What is missing is judged again.
    Missing,
    /// The path manager's measurement.
    Measure,
    /// The scheduler wants to be asked again.
    Schedule,
    /// An ADD_ADDR is sent again.
    Announcement,
    /// No subflow was found in time, or the peer did not end its stream in time.
    WithoutSubflows,
    /// The user timeout: what is unacknowledged must have become less by then.
    User,
    /// The peer must have been heard of by then.
    Peer,
    /// No attempt to open it was answered in time: the next begins.
    Race,
}

impl Timers for Timer {
    fn place(self) -> usize {
        self as usize
    }
}

/// The timers, and how often two of them were due in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimers {
    table: TimerTable<Timer, 11>,
    /// Times in a row that data was sent again.
    pub data_attempts: u32,
    /// Probes of a closed window in a row.
    pub persist_attempts: u32,
}

impl Deref for ConnectionTimers {
    type Target = TimerTable<Timer, 11>;
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
    /// None set.
    pub fn new() -> Self {
        Self { table: TimerTable::new(), data_attempts: 0, persist_attempts: 0 }
    }

    /// Stops all, and forgets what they were for.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// The window was open: should it be shut again, it is asked for after one timeout again (RFC 9293, section 3.8.6.1).
    pub fn begin_probes_anew(&mut self) {
        if self.persist_attempts > 0 {
            self.persist_attempts = 0;
            self.stop(Timer::Persist);
        }
    }

    /// Stops those that only MPTCP has.
    pub fn stop_multipath(&mut self) {
        let (persist, user) = (self.at(Timer::Persist), self.at(Timer::User));
        self.reset();
        self.set(Timer::Persist, persist);
        self.set(Timer::User, user);
    }
}
