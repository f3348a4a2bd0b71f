//! The neighbourhood of a router on one MANET interface for the election and the advertisement: its bidirectional
//! neighbours, and which of them hear each other (RFC 5614, section 5.1).

use crate::bit_matrix::{self, BitMatrix};
use anabranch_wire::ospf::RouterId;

/// The role of a router on a MANET interface; a larger one is preferred in the election (RFC 5614, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// MDR Other, level 0: neither of the two below.
    #[default]
    Other,
    /// Backup MDR, level 1.
    BackupMdr,
    /// MDR, level 2.
    Mdr,
}

/// The order of routers: the triplet (RtrPri, MDR Level, RID), compared from left to right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank {
    /// Router Priority of the interface.
    pub priority: u8,
    /// MDR Level on the interface.
    pub level: Level,
    /// Router ID.
    pub id: RouterId,
}

/// A bidirectional neighbour: one in state 2-Way or greater.
#[derive(Clone, Copy, Debug)]
pub struct Neighbor {
    /// Its position in the order.
    pub rank: Rank,
    /// Whether it is adjacent: accepted by section 7.2, so in state ExStart or greater.
    pub adjacent: bool,
    /// FullHelloRcvd: whether a full Hello has been received from it.
    pub full_hello_received: bool,
}

/// The bidirectional neighbours of an interface, by index in the order of their Router IDs, and the neighbour
/// connectivity matrix NCM.
///
/// It is filled for each election, in the same memory: [`clear`](Self::clear), [`add`](Self::add) for each neighbour,
/// [`connect`](Self::connect).
#[derive(Clone, Default, Debug)]
pub struct Neighborhood {
    neighbors: Vec<Listed>,
    /// The bidirectional neighbour sets, concatenated.
    heard: Vec<RouterId>,
    /// NCM: row j has the neighbours that j is connected with.
    connected: BitMatrix,
    /// Row j: the neighbours in the BNS of j, and the reverse.
    names: BitMatrix,
    named_by: BitMatrix,
    full: Vec<u64>,
}

/// A neighbour and the range of its bidirectional neighbour set.
#[derive(Clone, Copy, Debug)]
struct Listed {
    neighbor: Neighbor,
    heard_from: usize,
    heard_to: usize,
}

impl Neighborhood {
    pub fn clear(&mut self) {
        self.neighbors.clear();
        self.heard.clear();
    }

    /// Adds a neighbour with its bidirectional neighbour set (BNS). Of two with one Router ID, one is kept.
    pub fn add(&mut self, neighbor: Neighbor, bidirectional: impl IntoIterator<Item = RouterId>) {
        let heard_from = self.heard.len();
        self.heard.extend(bidirectional);
        self.neighbors.push(Listed { neighbor, heard_from, heard_to: self.heard.len() });
    }

    /// Phase 1: sorts the neighbours and fills the NCM.
    pub fn connect(&mut self) {
        self.neighbors.sort_by_key(|listed| listed.neighbor.rank.id);
        self.neighbors.dedup_by_key(|listed| listed.neighbor.rank.id);
        let size = self.neighbors.len();
        self.names.clear(size);
        self.named_by.clear(size);
        self.connected.clear(size);
        bit_matrix::clear(&mut self.full, size);
        for (j, listed) in self.neighbors.iter().enumerate() {
            if listed.neighbor.full_hello_received {
                bit_matrix::insert(&mut self.full, j);
            }
            let heard = self.heard.get(listed.heard_from..listed.heard_to).unwrap_or(&[]);
            for k in heard.iter().filter_map(|id| index_of(&self.neighbors, *id)).filter(|k| *k != j) {
                bit_matrix::insert(self.names.row_mut(j), k);
                bit_matrix::insert(self.named_by.row_mut(k), j);
            }
        }
        for (j, listed) in self.neighbors.iter().enumerate() {
            let (names, named_by) = (self.names.row(j), self.named_by.row(j));
            let words = self.connected.row_mut(j).iter_mut().zip(names).zip(named_by).zip(&self.full);
            for (((word, names), named_by), full) in words {
                *word = if listed.neighbor.full_hello_received {
                    // Steps 1.1 and 1.2: a router whose full neighbour list is known must list the other; one whose list is not known is skipped.
                    names & (named_by | !full)
                } else {
                    // Steps 1.2 and 1.3.
                    named_by & full
                };
            }
        }
    }

    pub fn len(&self) -> usize {
        self.neighbors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.neighbors.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&Neighbor> {
        self.neighbors.get(index).map(|listed| &listed.neighbor)
    }

    /// The neighbours in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbor> {
        self.neighbors.iter().map(|listed| &listed.neighbor)
    }

    /// The index of a neighbour.
    pub fn index(&self, id: RouterId) -> Option<usize> {
        index_of(&self.neighbors, id)
    }

    /// NCM(j, k): whether two neighbours count as bidirectional neighbours of each other.
    pub fn connected(&self, j: usize, k: usize) -> bool {
        self.connected.contains(j, k)
    }

    /// The neighbours that neighbour `j` is connected with by NCM, in ascending order.
    pub(crate) fn connected_with(&self, j: usize) -> impl Iterator<Item = RouterId> + '_ {
        bit_matrix::ones(self.row(j)).filter_map(|k| self.get(k)).map(|neighbor| neighbor.rank.id)
    }

    /// Row j of NCM.
    pub(crate) fn row(&self, j: usize) -> &[u64] {
        self.connected.row(j)
    }
}

/// The index of a neighbour in the sorted list.
fn index_of(neighbors: &[Listed], id: RouterId) -> Option<usize> {
    neighbors.binary_search_by_key(&id, |listed| listed.neighbor.rank.id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbor(id: u32, full_hello_received: bool) -> Neighbor {
        let rank = Rank { priority: 1, level: Level::Other, id: RouterId(id) };
        Neighbor { rank, adjacent: false, full_hello_received }
    }

    fn connected(hellos: [(bool, &[u32]); 2]) -> bool {
        let mut neighborhood = Neighborhood::default();
        // In the order of descending ids, so that sorting is needed.
        for (id, (full, heard)) in [20, 10].into_iter().zip(hellos) {
            neighborhood.add(neighbor(id, full), heard.iter().map(|id| RouterId(*id)));
        }
        neighborhood.connect();
        assert_eq!(neighborhood.index(RouterId(10)), Some(0));
        assert_eq!(neighborhood.connected(0, 1), neighborhood.connected(1, 0));
        neighborhood.connected(0, 1)
    }

    #[test]
    fn two_that_sent_full_hellos_must_both_name_each_other() {
        assert!(connected([(true, &[1, 10]), (true, &[1, 20])]));
        assert!(!connected([(true, &[1, 10]), (true, &[1])]));
        assert!(!connected([(true, &[1]), (true, &[1, 20])]));
    }

    #[test]
    fn the_one_that_sent_a_full_hello_is_believed() {
        assert!(connected([(true, &[1, 10]), (false, &[])]));
        assert!(connected([(false, &[]), (true, &[1, 20])]));
        assert!(!connected([(true, &[1]), (false, &[10])]));
    }

    #[test]
    fn two_that_sent_none_are_not_connected() {
        assert!(!connected([(false, &[10]), (false, &[20])]));
    }

    #[test]
    fn a_neighbour_that_names_itself_is_not_connected_with_itself() {
        let mut neighborhood = Neighborhood::default();
        neighborhood.add(neighbor(10, true), [RouterId(10)]);
        neighborhood.connect();
        assert!(!neighborhood.connected(0, 0));
    }

    #[test]
    fn of_two_with_one_router_id_one_is_kept() {
        let mut neighborhood = Neighborhood::default();
        neighborhood.add(neighbor(10, true), []);
        neighborhood.add(neighbor(10, false), []);
        neighborhood.connect();
        assert_eq!(neighborhood.len(), 1);
        assert!(!neighborhood.is_empty());
        assert!(neighborhood.get(0).is_some_and(|one| one.full_hello_received));
    }
}
