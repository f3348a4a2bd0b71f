//! What a subflow borrows of its connection.

use crate::config::TcpConfig;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::time::Instant;

/// What the input and output of a subflow needs from its connection.
pub struct Context<'a> {
    /// The present moment.
    pub now: Instant,
    /// TCP's settings.
    pub config: &'a TcpConfig,
    /// Congestion control of the connection.
    pub congestion: &'a mut dyn CongestionControl,
    /// The connection's timestamp clock now, milliseconds.
    pub stamp: u32,
}
