//! What a subflow borrows from its connection.

use crate::config::TcpConfig;
use crate::stamp_clock::StampClock;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::time::Instant;

/// What a subflow borrows from its connection to handle input and produce output.
pub struct Context<'a> {
    pub now: Instant,
    pub config: &'a TcpConfig,
    pub congestion: &'a mut dyn CongestionControl,
    /// The connection's timestamp clock.
    pub clock: StampClock,
}

impl Context<'_> {
    /// The timestamp of what is sent now, in milliseconds.
    pub fn stamp(&self) -> u32 {
        self.clock.stamp(self.now)
    }
}
