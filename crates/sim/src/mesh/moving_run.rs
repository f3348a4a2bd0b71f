//! A run of moving nodes, and what is measured of it after the warm-up.
//!
//! Overhead is every packet that routers send, as an IPv6 packet; RFC 5614, appendix E does not say which headers its figures
//! contain, so the sum without the 40 bytes of IPv6 header is reported too. Neither contains 802.11 overhead. The
//! delivery ratio is that of probes sent after the warm-up; packets under way at the end count as lost.

use super::cost::MeshCost;
use super::course::{self, Course};
use super::lane_survey::LaneSurvey;
use super::moving_network::MovingNetwork;
use super::results::{NodeCounters, NodeResult};
use super::snapshot::Snapshot;
use super::{ChannelId, NodeId, RadioId};
use crate::address::InterfaceId;
use crate::link::DropCause;
use crate::random::RandomStream;
use crate::world::World;
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::NeighborState;

/// Bytes of an IPv6 header.
const IPV6_HEADER: u64 = 40;

impl MovingNetwork {
    /// When it ends.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.warm_up + self.duration
    }
    /// Builds the network and runs it.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn run(&self) -> Result<Seen, String> {
        let mut world = self.build()?;
        let mut looks = Looks::new(self);
        course::advance(&mut world, &mut looks, self.end());
        Ok(self.sum_up(&mut world, looks))
    }
    fn sum_up(&self, world: &mut World, looks: Looks) -> Seen {
        let (before, cost) = &looks.before;
        let after = world.node_results();
        let sum = |count: fn(&NodeCounters) -> u64| {
            let sum = |all: &[NodeResult]| all.iter().map(|node| count(&node.counters)).sum::<u64>();
            sum(&after) - sum(before)
        };
        let drops = |cause| {
            let sum = |all: &[NodeResult]| all.iter().map(|node| node.drops.get(cause)).sum::<u64>();
            sum(&after) - sum(before)
        };
        let seconds = self.duration.as_secs_f64();
        let (packets, bytes) =
            (sum(|node| node.control.packets.iter().sum()), sum(|node| node.control.bytes.iter().sum()));
        let probes = world.probes_sent();
        let delivered = sum(|node| node.delivered);
        let mut by_type = [(0, 0); 5];
        for (kind, total) in by_type.iter_mut().enumerate() {
            let sum = |all: &[NodeResult]| {
                all.iter().fold((0, 0), |(packets, bytes), node| {
                    let control = &node.counters.control;
                    (packets + control.packets[kind], bytes + control.bytes[kind])
                })
            };
            let (after, before) = (sum(&after), sum(before));
            *total = (after.0 - before.0, after.1 - before.1);
        }
        let result = world.results();
        Seen {
            overhead: bytes as f64 * 8.0 / seconds,
            overhead_without_ip: (bytes - packets * IPV6_HEADER) as f64 * 8.0 / seconds,
            packets: packets as f64 / seconds,
            by_type,
            probes,
            delivered,
            downloads: self.downloads.as_ref().map_or(Vec::new(), |downloads| downloads.throughputs(&result)),
            hops: sum(|node| node.hops) as f64 / delivered.max(1) as f64,
            no_route: drops(DropCause::NoRoute),
            not_acknowledged: drops(DropCause::Loss),
            looped: drops(DropCause::HopLimit),
            neighbors: looks.links.per_node(looks.links.in_range, self.nodes),
            neighbor_changes: looks.links.changes(self.nodes),
            bidirectional: looks.links.per_node(looks.links.bidirectional, self.nodes),
            bidirectional_changes: sum(|node| node.neighbor_changes) as f64 / self.nodes.max(1) as f64 / seconds,
            adjacent: looks.links.per_node(looks.links.adjacent, self.nodes),
            adjacency_changes: sum(|node| node.adjacency_changes) as f64 / self.nodes.max(1) as f64 / seconds,
            route_changes: sum(|node| node.route_changes) as f64 / self.nodes.max(1) as f64 / seconds,
            cost: world.mesh_cost() - *cost,
            memory: world.router_memory() / self.nodes.max(1) as u64,
            lanes: looks.lanes,
            snapshots: looks.snapshots,
            trace_hash: result.trace_hash,
            events: result.events,
        }
    }
}

/// Results of a network of moving nodes, measured after the warm-up.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// Routing traffic in bits per second in the whole network, IPv6 headers included.
    pub overhead: f64,
    /// The same without IPv6 headers.
    pub overhead_without_ip: f64,
    /// Routing packets per second.
    pub packets: f64,
    /// Packets and bytes by type: Hello, database description, link state request, update, acknowledgement.
    pub by_type: [(u64, u64); 5],
    pub probes: u64,
    pub delivered: u64,
    /// Throughput of each download in bits per second, in order.
    pub downloads: Vec<f64>,
    /// Mean hops of delivered probes.
    pub hops: f64,
    /// Probes dropped at a node without a route.
    pub no_route: u64,
    /// Probes dropped because the next hop did not acknowledge them.
    pub not_acknowledged: u64,
    /// Probes whose hop limit was exhausted by a loop.
    pub looped: u64,
    /// Mean number of nodes in range.
    pub neighbors: f64,
    /// Nodes that came into range or left it, per node and second, sampled once a second.
    pub neighbor_changes: f64,
    /// Mean number of bidirectional neighbours of a router, sampled once a second.
    pub bidirectional: f64,
    /// Bidirectional neighbours won or lost, per node and second.
    pub bidirectional_changes: f64,
    /// Mean number of fully adjacent neighbours of a router, sampled once a second.
    pub adjacent: f64,
    /// Fully adjacent neighbours won or lost, per node and second.
    pub adjacency_changes: f64,
    /// Changes of a router's routes, per node and second.
    pub route_changes: f64,
    /// Energy of the radios and work of the routers.
    pub cost: MeshCost,
    /// Bytes of a router's state at the end, mean over the nodes.
    pub memory: u64,
    /// How disjoint lanes would be, sampled every ten seconds.
    pub lanes: LaneSurvey,
    /// The network at [`MOMENTS`] times, with the next hops to the last node.
    pub snapshots: Vec<Snapshot>,
    pub trace_hash: u64,
    pub events: u64,
}

impl Seen {
    /// The share of the probes that arrived.
    pub fn delivery(&self) -> f64 {
        self.delivered as f64 / self.probes.max(1) as f64
    }
}

/// Number of snapshots.
pub const MOMENTS: u64 = 6;
/// Seconds between lane surveys, and pairs of nodes per survey.
const LANES_EVERY: u64 = 10;
const LANE_PAIRS: usize = 10;

/// Sums of samples, taken once a second after the warm-up.
pub struct Looks {
    network: MovingNetwork,
    due: Instant,
    /// Totals at the end of the warm-up.
    before: (Vec<NodeResult>, MeshCost),
    begun: bool,
    links: Links,
    lanes: LaneSurvey,
    snapshots: Vec<Snapshot>,
    random: RandomStream,
}

impl Course for Looks {
    fn due(&self) -> Instant {
        self.due
    }
    fn act(&mut self, world: &mut World) {
        if self.begun {
            self.look(world);
        } else {
            self.begun = true;
            self.before = (world.node_results(), world.mesh_cost());
        }
        let end = self.network.end();
        let next = (self.due + Duration::from_secs(1)).min(end);
        self.due = if self.due < end { next } else { Instant::NEVER };
    }
}

impl Looks {
    /// Before the run begins.
    pub fn new(network: &MovingNetwork) -> Self {
        Self {
            network: network.clone(),
            due: Instant::ZERO + network.warm_up,
            before: (Vec::new(), MeshCost::default()),
            begun: false,
            links: Links::default(),
            lanes: LaneSurvey::default(),
            snapshots: Vec::new(),
            random: RandomStream::new(network.seed, "lane survey"),
        }
    }
    fn look(&mut self, world: &mut World) {
        let network = &self.network;
        if self.links.looks.is_multiple_of(LANES_EVERY) {
            self.lanes.look(world, &mut self.random, LANE_PAIRS);
        }
        let moments = self.snapshots.len() as u64;
        let seconds = network.duration.as_nanos() / Duration::from_secs(1).as_nanos();
        if moments < MOMENTS && self.links.looks * MOMENTS >= moments * seconds {
            let last = NodeId(network.nodes.saturating_sub(1) as u32);
            let destinations: Vec<InterfaceId> = world.attached_to_node(last).into_iter().take(1).collect();
            self.snapshots.push(world.mesh_snapshot(&destinations));
        }
        self.links.look(world, network.nodes);
    }
}

/// Which nodes were in range of which others, sampled once a second.
#[derive(Default)]
struct Links {
    last: Vec<Vec<u32>>,
    looks: u64,
    in_range: u64,
    changed: u64,
    bidirectional: u64,
    adjacent: u64,
}

impl Links {
    fn look(&mut self, world: &mut World, nodes: usize) {
        let first = self.last.is_empty();
        self.last.resize_with(nodes, Vec::new);
        for (node, last) in self.last.iter_mut().enumerate() {
            let Some(station) = world.station(NodeId(node as u32), RadioId(0)) else { continue };
            let mut now: Vec<u32> =
                world.medium_mut(ChannelId(0)).neighbors(station).map(|station| station.0).collect();
            now.sort_unstable();
            self.in_range += now.len() as u64;
            let at = world.now();
            for neighbor in world.mesh_router(NodeId(node as u32)).into_iter().flat_map(|router| router.neighbors(at)) {
                self.bidirectional += u64::from(neighbor.state >= NeighborState::TwoWay);
                self.adjacent += u64::from(neighbor.state == NeighborState::Full);
            }
            if !first {
                let missing = |from: &[u32], there: &[u32]| {
                    from.iter().filter(|one| there.binary_search(one).is_err()).count() as u64
                };
                self.changed += missing(&now, last) + missing(last, &now);
            }
            *last = now;
        }
        self.looks += 1;
    }
    fn per_node(&self, count: u64, nodes: usize) -> f64 {
        count as f64 / (self.looks.max(1) * nodes.max(1) as u64) as f64
    }
    fn changes(&self, nodes: usize) -> f64 {
        self.changed as f64 / (self.looks.saturating_sub(1).max(1) * nodes.max(1) as u64) as f64
    }
}
