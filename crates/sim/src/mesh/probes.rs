//! Probes: small packets between random pairs of hosts, as in RFC 5614, appendix E, for measuring delivery.

use crate::address::InterfaceId;
use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

/// Settings of probes.
#[derive(Clone, Debug)]
pub struct ProbeConfig {
    /// Their name, from which their random streams are derived.
    pub name: String,
    /// The interfaces that send and receive them; each pair of different ones is equally likely. With fewer than two
    /// interfaces there are no probes.
    pub among: Vec<InterfaceId>,
    /// Only from the first of them to the second.
    pub one_way: bool,
    /// Mean of the exponentially distributed times between probes.
    pub interval: Duration,
    /// Bytes of the whole packet.
    pub bytes: u32,
    pub start: Instant,
    pub stop: Instant,
}

/// State of probes.
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
