//! The results of a run: plain values, from which others make tables, files and plots.

use crate::datagrams::DatagramsResult;
use crate::flow::FlowResult;
use crate::link::{Drops, LinkCounters};
use crate::network::WireCheck;
use crate::udp::UdpResult;
use anabranch_policy::time::Instant;

/// A link when the run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkResult {
    /// Its name.
    pub name: String,
    /// What it counted.
    pub counters: LinkCounters,
}

/// A host when the run ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// UDP packets of cross traffic that it received.
    pub udp_packets: u64,
    /// Their bytes, headers included.
    pub udp_bytes: u64,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The seed it was run with.
    pub seed: u64,
    /// Virtual time at its end.
    pub end: Instant,
    /// The same for two runs that delivered the same packets at the same times ([`crate::trace_hash`]).
    pub trace_hash: u64,
    /// Deliveries of packets by links.
    pub deliveries: u64,
    /// Events of all kinds.
    pub events: u64,
    /// The flows, in the order in which they were added.
    pub flows: Vec<FlowResult>,
    /// The links, in the order in which they were added.
    pub links: Vec<LinkResult>,
    /// The hosts, in the order in which they were added.
    pub hosts: Vec<HostResult>,
    /// The UDP sources, in the order in which they were added.
    pub udp: Vec<UdpResult>,
    /// The sessions of datagrams, in the order in which they were added.
    pub datagrams: Vec<DatagramsResult>,
    /// Packets that routers and hosts dropped: corrupt, no route, hop limit.
    pub node_drops: Drops,
    /// What became of the packets that were written as bytes and read again, if they were.
    pub wire: Option<WireCheck>,
}

impl RunResult {
    /// The flow with this name.
    pub fn flow(&self, name: &str) -> Option<&FlowResult> {
        self.flows.iter().find(|flow| flow.name == name)
    }
    /// The link with this name.
    pub fn link(&self, name: &str) -> Option<&LinkResult> {
        self.links.iter().find(|link| link.name == name)
    }
    /// Drops by cause, links and nodes together.
    pub fn drops(&self) -> Drops {
        let mut total = self.node_drops;
        self.links.iter().for_each(|link| total.add_all(&link.counters.drops));
        total
    }
}
