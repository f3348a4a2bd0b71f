//! Networks of moving nodes with a router each and probes between random pairs: RFC 5614, appendix E, and variations
//! (other sizes, speeds, parameters, forecasters).
//!
//! Overhead is every packet that routers send, as an IPv6 packet; the appendix does not say which headers its figures
//! contain, so the sum without the 40 bytes of IPv6 header is reported too. Neither contains 802.11 overhead. The
//! delivery ratio is that of probes sent after the warm-up; packets under way at the end count as lost.

use super::cost::MeshCost;
use super::downloads::Downloads;
use super::lane_survey::LaneSurvey;
use super::results::{NodeCounters, NodeResult};
use super::snapshot::Snapshot;
use super::{ChannelId, NodeId, RadioId};
use crate::address::InterfaceId;
use crate::link::DropCause;
use crate::mesh::probes::ProbeConfig;
use crate::mobility::{Area, Model, Span};
use crate::radio::{MediumConfig, Reach};
use crate::random::RandomStream;
use crate::topology::NoPaths;
use crate::world::{World, WorldConfig};
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::config::{Config, Manet};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{InterfaceConfig, InterfaceKind, LinkCost, NeighborState};
use std::sync::Arc;

/// Bytes of an IPv6 header.
const IPV6_HEADER: u64 = 40;

/// Changes a router's configuration before it starts.
pub type RouterChange = Arc<dyn Fn(NodeId, &mut Config) + Send + Sync>;

/// Settings of a network of moving nodes.
#[derive(Clone)]
pub struct MovingNetwork {
    pub nodes: usize,
    pub area: Area,
    pub model: Model,
    /// The channel shared by all.
    pub medium: MediumConfig,
    /// The parameters of RFC 5614.
    pub manet: Manet,
    pub hello_interval: Duration,
    pub router_dead_interval: Duration,
    /// Cost of a link without loss, and what else a link costs.
    pub cost: (u16, LinkCost),
    /// Any other change of the routers' configuration.
    pub router: Option<RouterChange>,
    /// Mean time between probes in the whole network.
    pub probe_interval: Duration,
    /// Bytes of a whole probe.
    pub probe_bytes: u32,
    /// Downloads in the time of the measurements, instead of probes.
    pub downloads: Option<Downloads>,
    /// Routers start at random times within this interval.
    pub start_within: Duration,
    /// Time before measurements begin.
    pub warm_up: Duration,
    /// Duration of the measurements.
    pub duration: Duration,
    /// Interval of position updates.
    pub step: Duration,
    /// All random streams are derived from it.
    pub seed: u64,
    /// Emit every packet as bytes and parse it again.
    pub wire: bool,
}

impl MovingNetwork {
    /// The scenario of RFC 5614, appendix E: 500 x 500 m, random waypoint without pause, 10 probes of 40 bytes per
    /// second, HelloInterval 2 s, RouterDeadInterval 6 s, differential Hellos with 2HopRefresh 3. `range` in metres:
    /// 200 or 250 in the RFC.
    ///
    /// "(Maximum) velocity 10 m/s" without a least one, and measured from 1,800 s on: so speeds of legs are uniform up
    /// to 10 m/s, and nodes have moved for half an hour at the end of the warm-up. The RFC does not state the rates of
    /// 802.11b. For 160 nodes it reports 1,310 kbit/s on one channel, in 352 packets per second and with 69 of 159
    /// nodes in range: more than broadcast frames at 1 Mbit/s can carry. So all frames use 11 Mbit/s.
    pub fn appendix_e(nodes: usize, range: f64, fullness: LsaFullness, seed: u64) -> Self {
        let warm_up = Duration::from_secs(60);
        let rate = Rate::from_bits_per_second(11_000_000);
        let model = Model::BegunWaypoint {
            speed: Span::new(0.0, 10.0),
            pause: Span::only(0.0),
            ago: Duration::from_secs(1800) - warm_up,
        };
        Self {
            nodes,
            area: Area { x: 500.0, y: 500.0 },
            model,
            medium: MediumConfig {
                reach: Reach::disk(range),
                basic_rate: rate,
                data_rate: rate,
                ..MediumConfig::default()
            },
            manet: Manet { lsa_fullness: fullness, two_hop_refresh: 3, ..Manet::default() },
            hello_interval: Duration::from_secs(2),
            router_dead_interval: Duration::from_secs(6),
            cost: (1, LinkCost::Interface),
            router: None,
            probe_interval: Duration::from_millis(100),
            probe_bytes: 40,
            downloads: None,
            start_within: Duration::from_secs(2),
            warm_up,
            duration: Duration::from_secs(600),
            step: Duration::from_millis(100),
            seed,
            wire: false,
        }
    }

    /// The same density with another number of nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: usize) -> Self {
        let scale = libm::sqrt(nodes as f64 / self.nodes.max(1) as f64);
        self.area = Area { x: self.area.x * scale, y: self.area.y * scale };
        self.nodes = nodes;
        self
    }
    /// Builds the network.
    ///
    /// # Errors
    /// If the movement or a router is refused, as text.
    pub fn build(&self) -> Result<World, String> {
        let mut world = World::new(WorldConfig { seed: self.seed, wire: self.wire, ipv6: false });
        let channel = world.add_channel("channel", self.medium.clone());
        let length = self.warm_up + self.duration;
        let movement = self.model.draw(self.area, self.nodes, length, self.seed).map_err(|error| error.to_string())?;
        let mut random = RandomStream::new(self.seed, "starts of the routers");
        let mut among = Vec::new();
        for index in 0..self.nodes {
            let node = world.add_node(&index.to_string(), movement.position(index, Instant::ZERO));
            let radio = world.add_radio(node, channel);
            let host = world.add_host(&format!("host {index}"), &EndpointConfig::default(), Box::new(NoPaths));
            let interface = world.attach_to_node(host, node);
            among.push(interface);
            // Hellos of nodes that start simultaneously would always collide.
            let start = Instant::ZERO + self.start_within.mul_f64(random.uniform());
            self.add_router(&mut world, node, radio, interface, start)?;
        }
        world.set_movement(Box::new(movement), self.step);
        let (start, stop) = (Instant::ZERO + self.warm_up, Instant::ZERO + length);
        if let Some(downloads) = &self.downloads {
            downloads.add(&mut world, &among, (start, stop));
        } else {
            world.add_probes(ProbeConfig {
                name: "probes".to_owned(),
                among,
                one_way: false,
                interval: self.probe_interval,
                bytes: self.probe_bytes,
                start,
                stop,
            });
        }
        Ok(world)
    }
    pub(super) fn add_router(
        &self,
        world: &mut World,
        node: NodeId,
        radio: RadioId,
        interface: InterfaceId,
        start: Instant,
    ) -> Result<(), String> {
        let mut config = world.router_config(node);
        if let Some(change) = &self.router {
            change(node, &mut config);
        }
        let interface = InterfaceConfig {
            kind: InterfaceKind::Manet(self.manet.clone()),
            hello_interval: self.hello_interval,
            router_dead_interval: self.router_dead_interval,
            cost: self.cost.0,
            link_cost: self.cost.1,
            ..world.radio_interface(node, radio, &[interface])
        };
        world.add_mesh_router(node, start, config, vec![interface]).map_err(|error| error.to_string())
    }
    /// Builds the network and runs it.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn run(&self) -> Result<Seen, String> {
        let mut world = self.build()?;
        world.run_until(Instant::ZERO + self.warm_up);
        let before = (world.node_results(), world.mesh_cost());
        let mut looks = Looks::new(self);
        let mut at = world.now();
        let end = at + self.duration;
        while at < end {
            at = (at + Duration::from_secs(1)).min(end);
            world.run_until(at);
            looks.look(&mut world, self);
        }
        Ok(self.sum_up(&mut world, &before, looks))
    }
    fn sum_up(&self, world: &mut World, (before, cost): &(Vec<NodeResult>, MeshCost), looks: Looks) -> Seen {
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

/// Sums of samples, taken once a second.
struct Looks {
    links: Links,
    lanes: LaneSurvey,
    snapshots: Vec<Snapshot>,
    random: RandomStream,
}

impl Looks {
    fn new(network: &MovingNetwork) -> Self {
        let random = RandomStream::new(network.seed, "lane survey");
        Self { links: Links::default(), lanes: LaneSurvey::default(), snapshots: Vec::new(), random }
    }
    fn look(&mut self, world: &mut World, network: &MovingNetwork) {
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
