//! A snapshot of the mesh for pictures: positions of nodes, their roles, and their next hops.

use super::naming::router_id;
use super::{Mesh, Node, NodeId};
use crate::address::InterfaceId;
use crate::radio::Position;
use crate::world::World;
use anabranch_policy::time::Instant;
use anabranch_routing::lanes::Disjointness;
use anabranch_routing::neighborhood::Level;
use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Debug)]
pub struct NodeSnapshot {
    pub name: String,
    pub position: Position,
    /// Its role by the last MDR selection on its first interface; `None` without a router.
    pub level: Option<Level>,
    /// Its next hops to each of the requested destinations.
    pub next_hops: Vec<Vec<NodeId>>,
}

/// All nodes at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub time: Instant,
    /// By node number.
    pub nodes: Vec<NodeSnapshot>,
}

impl Snapshot {
    /// The hops of all routes from `from` to a destination, given by its index among those requested, each hop once.
    pub fn ways(&self, from: NodeId, destination: usize) -> Vec<(NodeId, NodeId)> {
        let (mut hops, mut seen, mut next) = (Vec::new(), vec![from], vec![from]);
        while let Some(node) = next.pop() {
            let ways = self.nodes.get(node.index()).and_then(|node| node.next_hops.get(destination));
            for way in ways.into_iter().flatten() {
                hops.push((node, *way));
                if !seen.contains(way) {
                    seen.push(*way);
                    next.push(*way);
                }
            }
        }
        hops
    }
    /// How disjoint the routes from `from` to several destinations, which are lanes of one node, are.
    pub fn disjointness(&self, from: NodeId, destinations: core::ops::Range<usize>) -> Disjointness {
        let passed = |destination| {
            let ways = self.ways(from, destination);
            // The destination, where all of them end, has no next hops.
            let through = ways.iter().map(|(node, _)| *node).filter(|node| *node != from);
            through.map(router_id).collect::<BTreeSet<_>>()
        };
        let lanes: Vec<_> = destinations.map(passed).filter(|lane| !lane.is_empty()).collect();
        Disjointness::of(&lanes)
    }
}

impl World {
    /// The present mesh, with the next hops to these interfaces of hosts.
    pub(crate) fn mesh_snapshot(&mut self, destinations: &[InterfaceId]) -> Snapshot {
        let mesh = &mut self.network.mesh;
        // Tables are filled only when a packet needs them.
        for node in (0..mesh.nodes.len() as u32).map(NodeId) {
            for destination in destinations {
                if mesh.nodes[node.index()].table.hops(*destination).is_empty() {
                    mesh.ask_router(node, *destination);
                }
            }
        }
        let mesh = &*mesh;
        let nodes = mesh.nodes.iter().map(|node| mesh.snapshot_of(node, destinations)).collect();
        Snapshot { time: self.now(), nodes }
    }
}

impl Mesh {
    fn snapshot_of(&self, node: &Node, destinations: &[InterfaceId]) -> NodeSnapshot {
        let router = node.agent.as_ref().map(|agent| &agent.router);
        let next_hop = |hop: &super::forwarding::NextHop| {
            let radio = node.radios.get(hop.radio.index())?;
            self.channels[radio.channel.index()].owners.get(hop.station.0 as usize).map(|(node, _)| *node)
        };
        let of = |destination: &InterfaceId| {
            let hops = node.table.hops(*destination).iter().filter(|hop| hop.weight > 0);
            hops.filter_map(next_hop).collect()
        };
        NodeSnapshot {
            name: node.name.clone(),
            position: node.position,
            level: router.and_then(|router| router.interfaces().next()).map(|interface| interface.selection.level),
            next_hops: destinations.iter().map(of).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::paper::combination::Combination;
    use crate::mesh::paper::network::{self, Routes, WARM_UP};
    use crate::mesh::paper::{Case, Rates};
    use anabranch_routing::lsa_fullness::LsaFullness;

    fn chain() -> Snapshot {
        let node = |name: &str, next_hops: &[u32]| NodeSnapshot {
            name: name.to_owned(),
            position: Position { x: 0.0, y: 0.0 },
            level: None,
            next_hops: vec![next_hops.iter().map(|node| NodeId(*node)).collect()],
        };
        // Nobody sends to the last node.
        let nodes = vec![node("M1", &[1]), node("M2", &[2]), node("M3", &[]), node("M4", &[2])];
        Snapshot { time: Instant::ZERO, nodes }
    }

    #[test]
    fn only_hops_that_a_packet_can_take_are_ways() {
        assert_eq!(chain().ways(NodeId(0), 0), [(NodeId(0), NodeId(1)), (NodeId(1), NodeId(2))]);
    }

    #[test]
    fn a_ring_of_next_hops_is_a_way_and_ends() {
        let mut ring = chain();
        ring.nodes[2].next_hops = vec![vec![NodeId(0)]];
        assert_eq!(ring.ways(NodeId(0), 0).len(), 3);
    }

    #[test]
    fn lanes_with_all_next_hops_meet_and_those_of_table_3_do_not() {
        for (name, disjoint) in [("MFxM", 0), ("MPxM", 3)] {
            let mut case = Case::new(Combination::named(name).unwrap(), Rates::HOMOGENEOUS, 1);
            case.routes = Routes::Static;
            let mut built = network::build(&case).unwrap();
            let snapshot = built.world.mesh_snapshot(&built.client.lanes);
            let found = snapshot.disjointness(NodeId(0), 1..4);
            assert_eq!((found.pairs, found.disjoint), (3, disjoint));
        }
    }

    #[test]
    fn after_the_warm_up_the_papers_mesh_has_its_ways_and_its_backbone() {
        let mut case = Case::new(Combination::named("MFxM").unwrap(), Rates::HOMOGENEOUS, 1);
        case.routes = Routes::Routers { fullness: LsaFullness::Full };
        let mut built = network::build(&case).unwrap();
        built.world.run_until(Instant::ZERO + WARM_UP);
        let snapshot = built.world.mesh_snapshot(&built.client.lanes);
        let ways = |node: usize, lane: usize| -> Vec<u32> {
            snapshot.nodes[node].next_hops[lane].iter().map(|node| node.0 + 1).collect()
        };
        // Figure 8: M1 has M2, M3, M4; M3 has M5, M6, M7.
        assert_eq!((ways(0, 0), ways(2, 3)), (vec![2, 3, 4], vec![5, 6, 7]));
        assert!(snapshot.nodes.iter().any(|node| node.level == Some(Level::Mdr)));
    }
}
