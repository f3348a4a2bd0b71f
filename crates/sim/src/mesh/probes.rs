//! Probes: small packets between random pairs of hosts, as in RFC 5614, appendix E, to see how many arrive.

use crate::address::InterfaceId;
use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

/// What can be chosen about probes.
#[derive(Clone, Debug)]
pub struct ProbeConfig {
    /// Their name; their luck depends on it.
    pub name: String,
    /// The interfaces that send and receive them; each pair of two different ones is equally likely. Of fewer than two
    /// interfaces there is none.
    pub among: Vec<InterfaceId>,
    /// Only from the first of them to the second.
    pub one_way: bool,
    /// Mean time from one probe to the next; the times are exponentially distributed.
    pub interval: Duration,
    /// The whole packet, bytes.
    pub bytes: u32,
    /// When the first may be sent.
    pub start: Instant,
    /// When no more are sent.
    pub stop: Instant,
}

/// Probes at work.
pub(crate) struct Probes {
    pub(super) config: ProbeConfig,
    pub(super) random: RandomStream,
    pub(super) sent: u64,
}

impl Probes {
    pub(super) fn next(&mut self, now: Instant) -> Instant {
        now + Duration::from_secs_f64(self.random.exponential(self.config.interval.as_secs_f64()))
    }
}
