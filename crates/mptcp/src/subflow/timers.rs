//! The timers of a subflow.

use crate::config::TcpConfig;
use crate::timer_table::{TimerTable, Timers};
use anabranch_policy::time::Instant;
use core::ops::{Deref, DerefMut};

/// What the retransmission timer does on expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retransmit {
    /// Mark everything lost (RFC 6298).
    Timeout,
    /// Probe for a lost tail (RFC 8985, section 7).
    TailProbe,
}

/// A timer of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowTimer {
    /// Retransmission or tail loss probe.
    Retransmit,
    /// RACK may find losses (RFC 8985, section 6.3).
    Reordering,
    /// A SYN, SYN/ACK or the handshake ACK of a join is retransmitted.
    Handshake,
    Keepalive,
    /// End of TIME-WAIT or FIN-WAIT-2.
    Linger,
    /// Pacing allows the next segment.
    Pace,
    /// Data is outstanding, and must be acknowledged by then.
    Silence,
}

impl Timers for SubflowTimer {
    fn place(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RunningTimers {
    table: TimerTable<SubflowTimer, 7>,
}

impl Deref for RunningTimers {
    type Target = TimerTable<SubflowTimer, 7>;
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl DerefMut for RunningTimers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.table
    }
}

impl RunningTimers {
    pub fn new() -> Self {
        Self { table: TimerTable::new() }
    }

    /// Restarts the keepalive timer, if keepalive is on.
    pub fn arm_keepalive(&mut self, now: Instant, config: &TcpConfig) {
        self.set(SubflowTimer::Keepalive, config.keepalive.map_or(Instant::NEVER, |idle| now + idle));
    }

    /// Stops all timers and resets their purposes.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}
