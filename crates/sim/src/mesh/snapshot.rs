//! The mesh at one moment, for pictures: where nodes are, what they are to each other, and where they send packets.

use super::{Mesh, Node, NodeId};
use crate::address::InterfaceId;
use crate::radio::Position;
use crate::world::World;
use anabranch_policy::time::Instant;
use anabranch_routing::neighborhood::Level;

/// A node at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeSnapshot {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub position: Position,
    /// What the last MDR selection on its first interface made of it; none without a router.
    pub level: Option<Level>,
    /// Its next hops to each of the destinations asked for.
    pub next_hops: Vec<Vec<NodeId>>,
}

/// All nodes at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// When.
    pub time: Instant,
    /// The nodes, by their numbers.
    pub nodes: Vec<NodeSnapshot>,
}

impl World {
    /// The mesh as it is now, with the next hops to these interfaces of hosts.
    pub fn mesh_snapshot(&self, destinations: &[InterfaceId]) -> Snapshot {
        let mesh = &self.network.mesh;
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
