//! The interface of a program beside a host's engine, such as a daemon that steers its connections.

use anabranch_mptcp::Endpoint;
use anabranch_policy::time::{Duration, Instant};

/// A supervisor of a host.
pub trait Supervisor {
    /// Interval of [`Self::act`], above zero.
    fn interval(&self) -> Duration;
    /// Looks at the host, and operates it.
    fn act(&mut self, now: Instant, endpoint: &mut Endpoint);
    /// The host has handled an input: for what the engine does not count.
    fn observe(&mut self, now: Instant, endpoint: &Endpoint);
}
