//! A subflow's timers: deadlines, each [`Instant::NEVER`] when not set.

use crate::config::TcpConfig;
use anabranch_policy::time::Instant;

/// What the retransmission timer will do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retransmit {
    /// Declare everything lost (RFC 6298).
    Timeout,
    /// Probe for a lost tail (RFC 8985, section 7).
    TailProbe,
}

/// The deadlines of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Retransmission or tail loss probe.
    pub retransmit: Instant,
    /// Which of the two.
    pub retransmit_kind: Retransmit,
    /// Losses may become certain (RFC 8985, section 6.3).
    pub reordering: Instant,
    /// The SYN, SYN/ACK or join's handshake ACK goes out again.
    pub handshake: Instant,
    /// Keepalive.
    pub keepalive: Instant,
    /// TIME-WAIT or FIN-WAIT-2 is over.
    pub linger: Instant,
    /// Pacing lets the next segment go.
    pub pace: Instant,
    /// Data is outstanding, and something must have been acknowledged by then.
    pub silence: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}

impl Timers {
    /// None set.
    pub fn new() -> Self {
        Self {
            retransmit: Instant::NEVER,
            retransmit_kind: Retransmit::Timeout,
            reordering: Instant::NEVER,
            handshake: Instant::NEVER,
            keepalive: Instant::NEVER,
            linger: Instant::NEVER,
            pace: Instant::NEVER,
            silence: Instant::NEVER,
        }
    }

    /// The earliest.
    pub fn next(&self) -> Instant {
        self.retransmit
            .min(self.reordering)
            .min(self.handshake)
            .min(self.keepalive)
            .min(self.linger)
            .min(self.pace)
            .min(self.silence)
    }

    /// Starts the keepalive timer anew, if keepalive is on.
    pub fn arm_keepalive(&mut self, now: Instant, config: &TcpConfig) {
        self.keepalive = config.keepalive.map_or(Instant::NEVER, |idle| now + idle);
    }

    /// Stops all.
    pub fn stop(&mut self) {
        *self = Self::new();
    }
}
