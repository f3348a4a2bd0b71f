//! The memory of a router that grows with the number of routers.

use core::mem::size_of;

use anabranch_wire::ospf::{LsaHeader, LsaKey, RouterId};

use crate::database;
use crate::neighbor::Neighbor;
use crate::router::Router;

/// Memory in bytes, by use, without the overhead of the allocator. An LSA counts with its length in a packet, as if no
/// other router shared its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// The LSAs of the link-state database.
    pub lsas: usize,
    /// Overhead of the database.
    pub database: usize,
    /// The graph, and the shortest paths of the last calculation.
    pub paths: usize,
    /// Neighbours with their neighbour sets and LSA lists.
    pub neighbors: usize,
}

impl Footprint {
    pub fn total(&self) -> usize {
        self.lsas + self.database + self.paths + self.neighbors
    }
}

impl Router {
    /// The present memory of the router's state of the network.
    pub fn footprint(&self) -> Footprint {
        let entry = size_of::<LsaKey>() + size_of::<database::Entry>();
        Footprint {
            lsas: self.database.bytes(),
            database: self.database.len() * entry,
            paths: self.calculation.footprint(),
            neighbors: self.interfaces.iter().flat_map(|(_, interface)| interface.neighbors.values()).map(of).sum(),
        }
    }
}

/// Memory of one neighbour.
fn of(neighbor: &Neighbor) -> usize {
    let said = &neighbor.manet.said;
    let sets = &said.sets;
    let named = sets.bidirectional.len() + sets.dependent.len() + sets.selected.len() + said.metrics.len();
    let listed = neighbor.exchange.requests.len() + neighbor.retransmissions.len() + neighbor.acked.len();
    let list_entry = size_of::<LsaKey>() + size_of::<LsaHeader>();
    size_of::<RouterId>() * (named + 1) + size_of::<Neighbor>() + listed * list_entry
}
