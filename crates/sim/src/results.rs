//! The results of a run: plain values, from which callers make tables, files and plots.

use crate::datagrams::DatagramsResult;
use crate::flow::FlowResult;
use crate::link::{Drops, LinkCounters};
use crate::network::WireCheck;
use crate::udp::UdpResult;
use anabranch_policy::time::Instant;

/// A link at the end of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkResult {
    pub name: String,
    pub counters: LinkCounters,
}

/// A host at the end of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostResult {
    pub name: String,
    /// UDP packets of cross traffic that it received.
    pub udp_packets: u64,
    /// Their bytes, headers included.
    pub udp_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct RunResult {
    pub seed: u64,
    /// Virtual time.
    pub end: Instant,
    /// Equal for two runs that delivered the same packets at the same times ([`crate::trace_hash`]).
    pub trace_hash: u64,
    /// Deliveries of packets by links.
    pub deliveries: u64,
    /// Events of all kinds.
    pub events: u64,
    /// In the order of addition.
    pub flows: Vec<FlowResult>,
    /// In the order of addition.
    pub links: Vec<LinkResult>,
    /// In the order of addition.
    pub hosts: Vec<HostResult>,
    /// In the order of addition.
    pub udp: Vec<UdpResult>,
    /// Sessions of datagrams, in the order of addition.
    pub datagrams: Vec<DatagramsResult>,
    /// Packets that routers and hosts dropped: corrupt, no route, hop limit.
    pub node_drops: Drops,
    /// Results of the `--wire` mode, if enabled.
    pub wire: Option<WireCheck>,
}

impl RunResult {
    pub fn flow(&self, name: &str) -> Option<&FlowResult> {
        self.flows.iter().find(|flow| flow.name == name)
    }
    pub fn link(&self, name: &str) -> Option<&LinkResult> {
        self.links.iter().find(|link| link.name == name)
    }
    /// Drops by cause, of links and nodes together.
    pub fn drops(&self) -> Drops {
        let mut total = self.node_drops;
        self.links.iter().for_each(|link| total.add_all(&link.counters.drops));
        total
    }
}
