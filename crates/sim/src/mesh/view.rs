//! The mesh as it is at present, for those who watch it: nodes, links, and the ways that packets would take. Looking changes
//! nothing.

use super::forwarding::NextHop;
use super::lane_survey::{self, LANES};
use super::naming::node_of;
use super::{ChannelId, Node, NodeId, RadioId};
use crate::address::InterfaceId;
use crate::link::DropCause;
use crate::radio::Position;
use crate::world::World;
pub use anabranch_routing::NeighborState;
use anabranch_routing::lanes::LanePolicy;
pub use anabranch_routing::neighborhood::Level;
pub use anabranch_routing::next_hops::Trust;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, PartialEq, Debug)]
pub struct NodeView<'a> {
    pub name: &'a str,
    pub position: Position,
    /// Whether it was put there and stays.
    pub is_held: bool,
    /// Its role by the last MDR selection on its first interface; `None` without a router.
    pub level: Option<Level>,
    /// Packets that it has sent by all radios, those that its router sent included.
    pub sent: u64,
    /// Packets that wait at its radios.
    pub waiting: usize,
}

/// Two nodes in range of each other, or two that are neighbours for their routers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    /// The lower number first.
    pub nodes: (NodeId, NodeId),
    /// Whether frames reach both, apart from fading.
    pub in_range: bool,
    /// Signal strength in dBm, apart from fading; none where the model has none.
    pub signal: Option<f32>,
    /// The lower of the states at both routers; none if one of them does not know the other.
    pub state: Option<NeighborState>,
    /// The larger of the costs at both.
    pub cost: Option<u16>,
    /// The smaller of the probabilities that the link is up at the horizon of the forecasts; none without forecasters.
    pub probability: Option<f64>,
    /// The worse of what both make of it.
    pub trust: Trust,
}

/// A hop of a way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HopView {
    pub from: NodeId,
    pub to: NodeId,
    /// Its share of the flows relative to the other hops of the node.
    pub weight: u32,
}

/// Probes by all sources so far, and what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Probes sent.
    pub probes: u64,
    /// Packets delivered to hosts: of a network without connections, probes.
    pub delivered: u64,
    /// Packets that a node had no route for.
    pub no_route: u64,
    /// Packets that a next hop did not acknowledge.
    pub not_acknowledged: u64,
    /// Bytes of routing packets, IP headers included.
    pub control_bytes: u64,
}

/// What is known of a pair while both ends are asked.
#[derive(Default)]
struct Sides {
    /// Ends that the frames of the other reach.
    reached: u8,
    signal: Option<f32>,
    /// States, costs, probabilities and trusts at the routers that have it as a neighbour.
    states: Vec<NeighborState>,
    cost: Option<u16>,
    probability: Option<f64>,
    trust: Trust,
}

impl World {
    /// A node.
    ///
    /// # Panics
    /// If this world does not have it.
    pub fn node_view(&self, node: NodeId) -> NodeView<'_> {
        let mesh = &self.network.mesh;
        let found: &Node = &mesh.nodes[node.index()];
        let router = found.agent.as_ref().map(|agent| &agent.router);
        let control: u64 = found.counters.control.packets.iter().sum();
        let medium = |radio: &super::Radio| (&mesh.channels[radio.channel.index()].medium, radio.station);
        NodeView {
            name: &found.name,
            position: found.position,
            is_held: mesh.held.contains_key(&node),
            level: router.and_then(|router| router.interfaces().next()).map(|interface| interface.selection.level),
            sent: control + found.radios.iter().map(|radio| radio.captured.sent).sum::<u64>(),
            waiting: found.radios.iter().map(medium).map(|(medium, station)| medium.waiting(station)).sum(),
        }
    }

    /// All pairs of nodes that reach each other on the first channel, or are neighbours on their first radios, in order.
    /// (Only what media keep of it for the next time is changed.)
    pub fn pairs(&mut self) -> Vec<Pair> {
        let mut pairs: BTreeMap<(NodeId, NodeId), Sides> = BTreeMap::new();
        let ordered = |one: NodeId, other: NodeId| (one.min(other), one.max(other));
        for node in (0..self.nodes() as u32).map(NodeId) {
            for (other, signal) in self.reached_by(node) {
                let sides = pairs.entry(ordered(node, other)).or_default();
                sides.reached += 1;
                sides.signal = signal;
            }
            let now = self.now();
            for neighbor in self.mesh_router(node).into_iter().flat_map(|router| router.neighbors(now)) {
                let Some(other) = node_of(neighbor.router) else { continue };
                let sides = pairs.entry(ordered(node, other)).or_default();
                sides.trust = if sides.states.is_empty() { neighbor.trust } else { sides.trust.min(neighbor.trust) };
                sides.states.push(neighbor.state);
                sides.cost = sides.cost.max(Some(neighbor.cost));
                sides.probability = match (sides.probability, neighbor.forecast) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
            }
        }
        let pair = |(nodes, sides): ((NodeId, NodeId), Sides)| Pair {
            nodes,
            in_range: sides.reached > 1,
            signal: sides.signal,
            state: sides.states.iter().min().copied().filter(|_| sides.states.len() > 1),
            cost: sides.cost,
            probability: sides.probability,
            trust: sides.trust,
        };
        pairs.into_iter().map(pair).collect()
    }

    /// The nodes that hear a node on the first channel, and its signal there in dBm.
    fn reached_by(&mut self, node: NodeId) -> Vec<(NodeId, Option<f32>)> {
        let Some(station) = self.station(node, RadioId(0)) else { return Vec::new() };
        let channel = &mut self.network.mesh.channels[ChannelId(0).index()];
        let others: Vec<_> = channel.medium.neighbors(station).collect();
        let owners = &channel.owners;
        let with_signal = |other: crate::radio::StationId| {
            let (owner, _) = *owners.get(other.0 as usize)?;
            Some((owner, channel.medium.hears(station, other).flatten()))
        };
        others.into_iter().filter_map(with_signal).collect()
    }

    /// The interfaces of hosts at a node, in order: one for each lane.
    pub fn interfaces_at(&self, node: NodeId) -> Vec<InterfaceId> {
        self.attached_to_node(node)
    }

    /// The node at which an interface of a host is.
    pub fn node_with(&self, interface: InterfaceId) -> Option<NodeId> {
        let has = |node: &Node| node.local.contains_key(&interface);
        self.network.mesh.nodes.iter().position(has).map(|index| NodeId(index as u32))
    }

    /// The hops that a node would use for packets to an interface; none: it has no route.
    pub fn hops_at(&self, node: NodeId, destination: InterfaceId) -> Vec<HopView> {
        let mesh = &self.network.mesh;
        let Some(found) = mesh.nodes.get(node.index()) else { return Vec::new() };
        let known = found.table.hops(destination);
        let asked = if known.is_empty() { mesh.hops_of_router(node, destination) } else { None };
        let hops = asked.as_deref().unwrap_or(known);
        let hop = |hop: &NextHop| {
            let radio = found.radios.get(hop.radio.index())?;
            let (to, _) = *mesh.channels[radio.channel.index()].owners.get(hop.station.0 as usize)?;
            Some(HopView { from: node, to, weight: hop.weight })
        };
        hops.iter().filter(|hop| hop.weight > 0).filter_map(hop).collect()
    }

    /// The hops of all ways of packets from a node to an interface, each once, from the node on.
    pub fn ways_to(&self, from: NodeId, destination: InterfaceId) -> Vec<HopView> {
        let end = self.node_with(destination);
        let (mut hops, mut seen, mut next) = (Vec::new(), BTreeSet::from([from]), vec![from]);
        while let Some(node) = next.pop() {
            let on = if Some(node) == end { Vec::new() } else { self.hops_at(node, destination) };
            for hop in on {
                hops.push(hop);
                if seen.insert(hop.to) {
                    next.push(hop.to);
                }
            }
        }
        hops
    }

    /// The lanes that routers would give a node to another one, as nodes from end to end, kept apart as in the MANET paper's
    /// table 3; those without a way are left out.
    pub fn lanes_between(&self, from: NodeId, to: NodeId) -> Vec<Vec<NodeId>> {
        let way = |lane| lane_survey::way(self, LanePolicy::Spread, lane, from, to);
        (1..=LANES).filter_map(way).map(|way| way.into_iter().filter_map(node_of).collect()).collect()
    }

    /// What nodes have carried so far.
    pub fn mesh_traffic(&self) -> Traffic {
        let nodes = &self.network.mesh.nodes;
        let sum = |count: fn(&Node) -> u64| nodes.iter().map(count).sum();
        Traffic {
            probes: self.probes_sent(),
            delivered: sum(|node| node.counters.delivered),
            no_route: sum(|node| node.drops.get(DropCause::NoRoute)),
            not_acknowledged: sum(|node| node.drops.get(DropCause::Loss)),
            control_bytes: sum(|node| node.counters.control.bytes.iter().sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::paper::combination::Combination;
    use crate::mesh::paper::network::{self, Built, Routes, WARM_UP};
    use crate::mesh::paper::{Case, Rates};
    use anabranch_policy::time::{Duration, Instant};
    use anabranch_routing::lsa_fullness::LsaFullness;

    fn built() -> Built {
        let mut case = Case::new(Combination::named("MPxM").unwrap(), Rates::HOMOGENEOUS, 1);
        case.routes = Routes::Routers { fullness: LsaFullness::Full };
        let mut built = network::build(&case).unwrap();
        built.world.run_until(Instant::ZERO + WARM_UP);
        built
    }

    fn look(world: &mut World, lane: InterfaceId) {
        let _ = (world.pairs(), world.ways_to(NodeId(0), lane), world.lanes_between(NodeId(0), NodeId(7)));
        let _ = (world.node_view(NodeId(3)), world.mesh_traffic());
    }

    #[test]
    fn the_papers_mesh_is_seen_as_figure_8_has_it() {
        let Built { mut world, client, .. } = built();
        let pairs = world.pairs();
        // 13 links of the figure, and 4 within the columns.
        assert_eq!(pairs.iter().filter(|pair| pair.in_range).count(), 17);
        assert!(pairs.iter().all(|pair| pair.state >= Some(NeighborState::TwoWay) && pair.probability.is_none()));
        // Lane 1 leads over M2 and M5.
        let ways = world.ways_to(NodeId(0), client.lanes[1]);
        let ways: Vec<_> = ways.iter().map(|hop| (hop.from.0 + 1, hop.to.0 + 1)).collect();
        assert_eq!(ways, [(1, 2), (2, 5), (5, 8)]);
        // All next hops of lane 0 but one are idle, since part path is one next hop.
        let lanes = world.lanes_between(NodeId(0), NodeId(7));
        assert_eq!((lanes.len(), lanes[0].len()), (3, 4));
        assert!((0..8).any(|node| world.node_view(NodeId(node)).level == Some(Level::Mdr)));
        assert!(world.mesh_traffic().control_bytes > 1000);
    }

    #[test]
    fn looking_changes_nothing() {
        let (mut watched, mut other) = (built(), built());
        for second in 21..40 {
            look(&mut watched.world, watched.client.lanes[0]);
            for world in [&mut watched.world, &mut other.world] {
                // Routes change meanwhile.
                if second == 25 {
                    world.hold_node(NodeId(2), Position { x: 900.0, y: 0.0 });
                }
                world.run_until(Instant::ZERO + Duration::from_secs(second));
            }
        }
        assert_eq!(watched.world.results().trace_hash, other.world.results().trace_hash);
    }

    #[test]
    fn a_node_that_is_held_stays_and_its_neighbours_miss_it() {
        let Built { mut world, .. } = built();
        let (node, place) = (NodeId(2), world.position(NodeId(2)));
        world.hold_node(node, Position { x: 2000.0, y: 0.0 });
        world.move_node(node, Position { x: 101.0, y: 0.0 });
        assert!((world.position(node).x - 2000.0).abs() < 1e-9 && world.node_view(node).is_held);
        let of_it = |world: &mut World| {
            let all = world.pairs().into_iter();
            all.filter(|pair| pair.nodes.0 == node || pair.nodes.1 == node).collect::<Vec<_>>()
        };
        // Routers have not noticed yet.
        assert!(of_it(&mut world).iter().all(|pair| !pair.in_range && pair.state >= Some(NeighborState::TwoWay)));
        let now = world.now();
        world.run_until(now + Duration::from_secs(10));
        assert!(of_it(&mut world).is_empty());
        world.release_node(node);
        assert!((world.position(node).x - 101.0).abs() < 1e-9 && place.x < 101.0);
        world.run_until(now + Duration::from_secs(30));
        assert!(of_it(&mut world).iter().any(|pair| pair.in_range && pair.state == Some(NeighborState::Full)));
    }
}
