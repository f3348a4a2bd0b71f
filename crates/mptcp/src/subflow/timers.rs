//! A subflow's timers.

use crate::config::TcpConfig;
use crate::timer_table::{TimerTable, Timers};
use anabranch_policy::time::Instant;
use core::ops::{Deref, DerefMut};

/// What the retransmission timer will do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retransmit {
    /// Declare everything lost (RFC 6298).
    Timeout,
    /// Probe for a lost tail (RFC 8985, section 7).
    TailProbe,
}

/// Why a subflow's timeout fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowTimer {
    /// Retransmission or tail loss probe.
    Retransmit,
    /// Losses may become certain (RFC 8985, section 6.3).
    Reordering,
    /// The SYN, SYN/ACK or join's handshake ACK goes out again.
    Handshake,
    /// Keepalive.
    Keepalive,
    /// TIME-WAIT or FIN-WAIT-2 is over.
    Linger,
    /// Pacing lets the next segment go.
    Pace,
    /// Data is outstanding, and something must have been acknowledged by then.
    Silence,
}

impl Timers for SubflowTimer {
    fn place(self) -> usize {
        self as usize
    }
}

/// The timers of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct RunningTimers {
    table: TimerTable<SubflowTimer, 7>,
    /// What the retransmission timer will do.
    pub retransmit_kind: Retransmit,
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
    /// None set.
    pub fn new() -> Self {
        Self { table: TimerTable::new(), retransmit_kind: Retransmit::Timeout }
    }

    /// Starts the keepalive timer anew, if keepalive is on.
    pub fn arm_keepalive(&mut self, now: Instant, config: &TcpConfig) {
        self.set(SubflowTimer::Keepalive, config.keepalive.map_or(Instant::NEVER, |idle| now + idle));
    }

    /// Stops all, and forgets what they were for.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}
