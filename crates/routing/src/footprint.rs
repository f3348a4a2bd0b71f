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

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::Instant;
    use std::net::Ipv6Addr;

    fn neighbor() -> Neighbor {
        Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None)
    }

    #[test]
    fn the_total_is_the_sum_of_all_parts() {
        assert_eq!(Footprint { lsas: 2, database: 30, paths: 500, neighbors: 7_000 }.total(), 7_532);
    }

    #[test]
    fn a_neighbour_takes_a_router_id_for_each_that_it_names_and_a_header_for_each_lsa_of_its_lists() {
        let empty = of(&neighbor());
        assert_eq!(empty, size_of::<Neighbor>() + 4, "its own router ID");
        let mut named = neighbor();
        let ids = |range: core::ops::Range<u32>| range.map(RouterId).collect::<Vec<_>>();
        named.manet.said.sets.bidirectional = ids(0..2);
        named.manet.said.sets.dependent = ids(0..3);
        named.manet.said.sets.selected = ids(0..5);
        named.manet.said.metrics.extend(ids(0..7).into_iter().map(|router| (router, 9)));
        assert_eq!(of(&named) - empty, (2 + 3 + 5 + 7) * 4);
        let mut listing = neighbor();
        let key = |id: u32| LsaKey { advertising: RouterId(id), ..LsaKey::default() };
        let headers = |range: core::ops::Range<u32>| range.map(|id| (key(id), LsaHeader::default()));
        listing.exchange.requests.extend(headers(0..2));
        (0..3).for_each(|id| listing.retransmissions.add(key(id), Instant::ZERO, anabranch_policy::Duration::ZERO));
        listing.acked.extend(headers(0..5));
        assert_eq!(of(&listing) - empty, (2 + 3 + 5) * (size_of::<LsaKey>() + size_of::<LsaHeader>()));
    }
}
