//! Probes: small packets between random pairs of hosts, as in RFC 5614, appendix E, to see how many arrive.

use super::PROBE_EVENT;
use crate::address::InterfaceId;
use crate::event_queue::Target;
use crate::network::Network;
use crate::random::RandomStream;
use crate::world::World;
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
    config: ProbeConfig,
    random: RandomStream,
    sent: u64,
}

impl Probes {
    fn next(&mut self, now: Instant) -> Instant {
        now + Duration::from_secs_f64(self.random.exponential(self.config.interval.as_secs_f64()))
    }
}

impl World {
    /// Adds probes. What nodes count ([`super::results::NodeCounters`]) says what became of them.
    pub fn add_probes(&mut self, config: ProbeConfig) {
        let random = RandomStream::new(self.seed(), &format!("probes/{}", config.name));
        let mut probes = Probes { random, sent: 0, config };
        if probes.config.among.len() < 2 {
            return;
        }
        let (first, number) = (probes.next(probes.config.start), self.network.mesh.probes.len());
        self.network.mesh.probes.push(probes);
        self.network.events.put(first, Target::new(PROBE_EVENT, number));
    }
    /// How many probes were sent, all sources together.
    pub fn probes_sent(&self) -> u64 {
        self.network.mesh.probes.iter().map(|probes| probes.sent).sum()
    }
}

impl Network {
    /// A probe is due.
    pub(crate) fn handle_probe(&mut self, now: Instant, number: usize) {
        let probes = &mut self.mesh.probes[number];
        if now >= probes.config.stop {
            return;
        }
        let among = &probes.config.among;
        let from = probes.random.below(among.len() as u64) as usize;
        let to = (from + 1 + probes.random.below(among.len() as u64 - 1) as usize) % among.len();
        let (from, to) = if probes.config.one_way { (0, 1) } else { (from, to) };
        let (from, to) = (among[from], among[to]);
        probes.sent += 1;
        let (count, bytes, next) = (probes.sent, probes.config.bytes, probes.next(now));
        self.events.put(next, Target::new(PROBE_EVENT, number));
        self.send_udp(now, (from, to), bytes, count);
    }
}
