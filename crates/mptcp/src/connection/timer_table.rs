//! The deadlines of a connection's own timers.

use anabranch_policy::time::Instant;

/// Deadlines of a connection, [`Instant::NEVER`] when not set.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimers {
    /// Data that is not acknowledged at data level is sent again.
    pub data_retransmit: Instant,
    /// Times in a row that it was.
    pub data_attempts: u32,
    /// A closed window is probed.
    pub persist: Instant,
    /// Probes in a row.
    pub persist_attempts: u32,
    /// The path manager's measurement.
    pub measure: Instant,
    /// A blocked episode has lasted another round trip.
    pub blocked: Instant,
    /// The scheduler wants to be asked again.
    pub schedule: Instant,
    /// An ADD_ADDR is sent again.
    pub announcement: Instant,
    /// What is missing is judged again.
    pub missing: Instant,
    /// No subflow was found in time, or the peer did not end its stream in time.
    pub without_subflows: Instant,
    /// The user timeout: what is unacknowledged must have become less by then.
    pub user: Instant,
}

impl ConnectionTimers {
    /// None set.
    pub fn new() -> Self {
        Self {
            data_retransmit: Instant::NEVER,
            data_attempts: 0,
            persist: Instant::NEVER,
            persist_attempts: 0,
            measure: Instant::NEVER,
            blocked: Instant::NEVER,
            schedule: Instant::NEVER,
            announcement: Instant::NEVER,
            missing: Instant::NEVER,
            without_subflows: Instant::NEVER,
            user: Instant::NEVER,
        }
    }
    /// The earliest.
    pub fn next(&self) -> Instant {
        self.data_retransmit
            .min(self.persist)
            .min(self.measure)
            .min(self.blocked)
            .min(self.schedule)
            .min(self.announcement)
            .min(self.missing)
            .min(self.without_subflows)
            .min(self.user)
    }
    /// Stops all.
    pub fn stop_all(&mut self) {
        *self = Self::new();
    }
    /// The window was open: should it be shut again, it is asked for after one timeout again (RFC 9293, section 3.8.6.1).
    pub fn begin_probes_anew(&mut self) {
        if self.persist_attempts > 0 {
            self.persist_attempts = 0;
            self.persist = Instant::NEVER;
        }
    }
    /// Stops those that only MPTCP has.
    pub fn stop_multipath(&mut self) {
        let Self { persist, user, .. } = *self;
        *self = Self { persist, user, ..Self::new() };
    }
}
