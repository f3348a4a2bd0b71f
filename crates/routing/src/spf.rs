//! Shortest paths with all next hops of equal cost: RFC 2328, section 16.1, with the changes of RFC 5614, section 10.
//!
//! The root's own router-LSA is not used. The caller passes the links to all neighbours that may be next hops instead:
//! Full ones, and with adjacency reduction routable ones, advertised or not.
//!
//! All routers compute from the same database without other preferences. So for each next hop of each destination, the
//! distance from the next hop is smaller: packets get nearer with every hop, whichever of the next hops each router
//! uses. This requires costs of at least 1, which [`Graph::set`] ensures.

use crate::bit_matrix;
use crate::graph::{Entry, Graph, Vertex};
use anabranch_wire::ospf::RouterId;
use core::cmp::Reverse;
use core::hash::{Hash, Hasher};
use std::collections::{BinaryHeap, VecDeque};

/// A neighbour of the root, on one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootNeighbor {
    /// The neighbour, or the transit network that the root is attached to.
    pub vertex: Vertex,
    /// Cost of the root's link; 0 counts as 1.
    pub cost: u16,
    /// Whether it is a MANET neighbour.
    pub manet: bool,
    /// Whether its state is 2-Way or greater.
    pub bidirectional: bool,
    /// Whether its state is Full; true for a network.
    pub full: bool,
    /// Whether it is routable. [`ShortestPaths::run`] may set it.
    pub routable: bool,
    /// The routable neighbour quality condition (RFC 5614, section 9.1).
    pub quality: bool,
}

/// Which parts of RFC 5614 are in use, as far as section 10 depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// AdjConnectivity 0 and LSAFullness 4: no change.
    None,
    /// AdjConnectivity 0 and LSAFullness 1 or 2.
    PartialTopology,
    /// AdjConnectivity 1 or 2.
    #[default]
    Adjacencies,
}

impl RootNeighbor {
    /// Whether it may be a next hop.
    fn is_usable(&self, reduction: Reduction) -> bool {
        self.full || reduction == Reduction::Adjacencies && self.manet && self.routable
    }

    /// Whether it must link back to the root (step 2b).
    fn must_link_back(&self, reduction: Reduction) -> bool {
        match reduction {
            Reduction::None => true,
            Reduction::PartialTopology => !(self.manet && self.full),
            Reduction::Adjacencies => !(self.manet && self.routable),
        }
    }
}

/// The router to which a packet is sent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FirstHop {
    /// Index of the [`RootNeighbor`] whose interface is used.
    pub neighbor: usize,
    /// The router that receives it.
    pub router: RouterId,
}

/// The shortest paths from one router. Keeps its memory from run to run. The result is valid until the graph changes.
#[derive(Clone, Default, Debug)]
pub struct ShortestPaths {
    /// By index of the graph.
    distances: Vec<u32>,
    /// Sets of indices of `hops`, `width` words each, by index of the graph.
    sets: Vec<u64>,
    width: usize,
    hops: Vec<FirstHop>,
    /// By index of the graph: index in `hops` of the first router of a network to which the root is attached.
    attached: Vec<(u32, usize)>,
    queue: Queue,
    set: Vec<u64>,
}

/// Distance of an unreachable vertex.
const UNREACHED: u32 = u32::MAX;

impl ShortestPaths {
    /// Finds the shortest paths from `root` and updates which neighbours are routable. If that makes more of them
    /// usable, runs once more: two runs are enough (section 10). Returns the number of runs.
    pub fn run(
        &mut self,
        graph: &Graph,
        root: RouterId,
        neighbors: &mut [RootNeighbor],
        reduction: Reduction,
    ) -> usize {
        self.run_once(graph, root, neighbors, reduction);
        if reduction == Reduction::Adjacencies && self.update_routable(graph, neighbors) {
            self.run_once(graph, root, neighbors, reduction);
            return 2;
        }
        1
    }

    /// Distance of a vertex; none if it is unreachable.
    pub fn distance(&self, graph: &Graph, vertex: Vertex) -> Option<u32> {
        let index = graph.index(vertex)?;
        self.distances.get(index as usize).copied().filter(|distance| *distance != UNREACHED)
    }

    /// Distance and set of next hops of a vertex; none if it is unreachable.
    pub(crate) fn found(&self, graph: &Graph, vertex: Vertex) -> Option<(u32, &[u64])> {
        let index = graph.index(vertex)?;
        let distance = self.distances.get(index as usize).filter(|distance| **distance != UNREACHED)?;
        Some((*distance, self.set(index)))
    }

    /// The next hops of a set, in the order of the root's neighbours.
    pub(crate) fn hops_of(&self, set: &[u64]) -> impl Iterator<Item = FirstHop> {
        bit_matrix::ones(set).filter_map(|hop| self.hops.get(hop).copied())
    }

    /// The next hops towards a vertex, in the order of the root's neighbours; none for the root itself.
    pub fn next_hops(&self, graph: &Graph, vertex: Vertex) -> impl Iterator<Item = FirstHop> + '_ {
        self.hops_of(graph.index(vertex).map_or(&[][..], |index| self.set(index)))
    }

    /// Memory of the last run in bytes.
    pub(crate) fn footprint(&self) -> usize {
        self.distances.len() * size_of::<u32>()
            + self.sets.len() * size_of::<u64>()
            + self.hops.len() * size_of::<FirstHop>()
    }

    /// Hashes the result of the last run.
    pub(crate) fn hash(&self, graph: &Graph, hasher: &mut impl Hasher) {
        for ((index, distance), vertex) in (0..).zip(&self.distances).zip(graph.vertices()) {
            if *distance != UNREACHED {
                (vertex, distance, self.set(index)).hash(hasher);
            }
        }
        self.hops.hash(hasher);
    }

    /// RFC 5614, section 9.1. True if anything changed.
    fn update_routable(&self, graph: &Graph, neighbors: &mut [RootNeighbor]) -> bool {
        let mut changed = false;
        for neighbor in neighbors.iter_mut().filter(|neighbor| neighbor.manet) {
            let reached = || self.distance(graph, neighbor.vertex).is_some();
            let routable = neighbor.bidirectional && (neighbor.routable || neighbor.quality && reached());
            changed |= routable != neighbor.routable;
            neighbor.routable = routable;
        }
        changed
    }

    fn run_once(&mut self, graph: &Graph, root: RouterId, neighbors: &[RootNeighbor], reduction: Reduction) {
        let usable = || neighbors.iter().enumerate().filter(|(_, one)| one.is_usable(reduction));
        self.list_hops(graph, usable());
        self.begin(graph);
        let own = graph.index(Vertex::Router(root));
        if let Some(slot) = own.and_then(|own| self.distances.get_mut(own as usize)) {
            *slot = 0;
        }
        let mut first = 0;
        for (_, neighbor) in usable() {
            let Some(index) = graph.index(neighbor.vertex) else { continue };
            let attached = matches!(neighbor.vertex, Vertex::Network(..));
            let from = first;
            first += if attached { graph.entry(index).map_or(0, |entry| entry.links.len()) } else { 1 };
            let back = graph.entry(index).is_some_and(|entry| own.is_some_and(|own| entry.link(own).is_some()));
            if !back && neighbor.must_link_back(reduction) || Some(index) == own {
                continue;
            }
            let cost = u32::from(neighbor.cost.max(1));
            self.set.fill(0);
            if attached {
                self.attached.push((index, from));
            } else {
                bit_matrix::insert(&mut self.set, from);
            }
            self.reach(graph, index, cost);
        }
        while let Some((distance, _, index)) = self.queue.pop() {
            // A vertex that was reached by a shorter path since has been processed.
            if self.distances.get(index as usize) == Some(&distance) {
                self.walk(graph, index, distance);
            }
        }
    }

    /// Numbers all possible first hops: usable neighbours, and the routers on networks to which the root is attached.
    fn list_hops<'a>(&mut self, graph: &Graph, usable: impl Iterator<Item = (usize, &'a RootNeighbor)>) {
        self.hops.clear();
        for (neighbor, one) in usable {
            match one.vertex {
                Vertex::Router(router) if graph.index(one.vertex).is_some() => {
                    self.hops.push(FirstHop { neighbor, router });
                }
                Vertex::Router(_) => {}
                Vertex::Network(..) => {
                    let routers = graph.links(one.vertex).map(|(to, _)| match to {
                        Vertex::Router(router) | Vertex::Network(router, _) => FirstHop { neighbor, router },
                    });
                    self.hops.extend(routers);
                }
            }
        }
    }

    fn begin(&mut self, graph: &Graph) {
        let size = graph.bound();
        self.width = bit_matrix::words(self.hops.len());
        self.distances.clear();
        self.distances.resize(size, UNREACHED);
        self.sets.clear();
        self.sets.resize(size * self.width, 0);
        self.set.clear();
        self.set.resize(self.width, 0);
        self.attached.clear();
    }

    /// Relaxes the links of a vertex whose distance is final.
    fn walk(&mut self, graph: &Graph, index: u32, distance: u32) {
        let Some(entry) = graph.entry(index).filter(|entry| entry.transit) else { return };
        let Self { sets, set, width, .. } = self;
        let from = index as usize * *width;
        for (word, known) in set.iter_mut().zip(sets.get(from..from + *width).unwrap_or(&[])) {
            *word = *known;
        }
        if !self.attached.is_empty() && matches!(entry.vertex, Vertex::Network(..)) {
            self.walk_network(graph, entry, index, distance);
            return;
        }
        for link in entry.links.iter().filter(|link| link.back) {
            self.reach(graph, link.to, distance + u32::from(link.cost));
        }
    }

    /// The same for a network: routers on one to which the root is attached are first hops themselves.
    fn walk_network(&mut self, graph: &Graph, entry: &Entry, index: u32, distance: u32) {
        let common = self.set.clone();
        for (place, link) in entry.links.iter().enumerate().filter(|(_, link)| link.back) {
            self.set.copy_from_slice(&common);
            for (_, from) in self.attached.iter().filter(|(network, _)| *network == index) {
                bit_matrix::insert(&mut self.set, from + place);
            }
            self.reach(graph, link.to, distance + u32::from(link.cost));
        }
    }

    /// A path to a vertex, with the next hops in `set`.
    fn reach(&mut self, graph: &Graph, index: u32, distance: u32) {
        let at = index as usize;
        let Some(known) = self.distances.get_mut(at).filter(|known| distance <= **known) else { return };
        let Some(set) = self.sets.get_mut(at * self.width..(at + 1) * self.width) else { return };
        let words = set.iter_mut().zip(&self.set);
        if distance < *known {
            *known = distance;
            // Most sets are a single word, copied without a call.
            words.for_each(|(word, new)| *word = *new);
            // Networks first, as they add next hops to routers at the same distance.
            let router = graph.entry(index).is_some_and(|entry| matches!(entry.vertex, Vertex::Router(_)));
            self.queue.push((distance, router, index));
        } else {
            words.for_each(|(word, more)| *word |= more);
        }
    }

    fn set(&self, index: u32) -> &[u64] {
        let at = index as usize;
        self.sets.get(at * self.width..(at + 1) * self.width).unwrap_or(&[])
    }
}

/// Vertices to process, least distance first: a heap, with a shortcut for vertices that are added in order, as all are
/// if all links have the same cost.
#[derive(Clone, Default, Debug)]
struct Queue {
    in_order: VecDeque<Candidate>,
    others: BinaryHeap<Reverse<Candidate>>,
}

/// Distance, whether it is a router, and index.
type Candidate = (u32, bool, u32);

impl Queue {
    fn push(&mut self, new: Candidate) {
        if self.in_order.back().is_none_or(|last| (last.0, last.1) <= (new.0, new.1)) {
            self.in_order.push_back(new);
        } else {
            self.others.push(Reverse(new));
        }
    }

    fn pop(&mut self) -> Option<Candidate> {
        let other = self.others.peek().map(|Reverse(other)| (other.0, other.1));
        match (self.in_order.front(), other) {
            (Some(first), Some(other)) if other < (first.0, first.1) => self.others.pop().map(|Reverse(other)| other),
            (Some(_), _) => self.in_order.pop_front(),
            (None, _) => self.others.pop().map(|Reverse(other)| other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::InterfaceId;

    fn router(id: u32) -> Vertex {
        Vertex::Router(RouterId(id))
    }

    fn manet(id: u32, full: bool, routable: bool) -> RootNeighbor {
        let vertex = router(id);
        RootNeighbor { vertex, cost: 1, manet: true, bidirectional: true, full, routable, quality: true }
    }

    /// Distance and next hops of a router.
    fn path(paths: &ShortestPaths, graph: &Graph, to: u32) -> (Option<u32>, Vec<u32>) {
        let hops = paths.next_hops(graph, router(to)).map(|hop| hop.router.0).collect();
        (paths.distance(graph, router(to)), hops)
    }

    /// Routers 1 - 2 - 3 advertise a chain.
    fn chain() -> Graph {
        let mut graph = Graph::default();
        graph.set(router(1), true, [(router(2), 1)]);
        graph.set(router(2), true, [(router(1), 1), (router(3), 1)]);
        graph.set(router(3), true, [(router(2), 1)]);
        graph
    }

    #[test]
    fn a_bidirectional_neighbour_with_a_route_becomes_routable_and_the_second_run_takes_the_short_cut() {
        // 3 is heard but not adjacent: the first run finds it behind 2, the second uses it, though no router advertises
        // that link.
        let graph = chain();
        let mut neighbors = [manet(2, true, false), manet(3, false, false)];
        let mut paths = ShortestPaths::default();
        assert_eq!(paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies), 2);
        assert!(neighbors[1].routable);
        assert_eq!(path(&paths, &graph, 3), (Some(1), vec![3]));
        assert_eq!(paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies), 1);
    }

    #[test]
    fn a_neighbour_of_poor_quality_or_lost_is_not_routable() {
        let graph = chain();
        let mut paths = ShortestPaths::default();
        let mut neighbors = [manet(2, true, true), manet(3, false, false)];
        neighbors[1].quality = false;
        assert_eq!(paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies), 1);
        assert_eq!(path(&paths, &graph, 3), (Some(2), vec![2]));
        // Quality is checked once: a routable neighbour stays routable while it is bidirectional.
        neighbors[1].routable = true;
        assert_eq!(paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies), 1);
        assert_eq!(path(&paths, &graph, 3), (Some(1), vec![3]));
        neighbors[1].bidirectional = false;
        assert_eq!(paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies), 2);
        assert_eq!(path(&paths, &graph, 3), (Some(2), vec![2]));
    }

    #[test]
    fn a_link_back_is_asked_of_all_but_the_neighbours_that_section_10_names() {
        // 2 does not advertise 1.
        let mut graph = chain();
        graph.set(router(2), true, [(router(3), 1)]);
        let mut paths = ShortestPaths::default();
        let mut reached = |reduction, full, routable| {
            paths.run(&graph, RouterId(1), &mut [manet(2, full, routable)], reduction);
            path(&paths, &graph, 3).0
        };
        assert_eq!(reached(Reduction::Adjacencies, false, true), Some(2));
        assert_eq!(reached(Reduction::Adjacencies, true, false), None);
        assert_eq!(reached(Reduction::PartialTopology, true, false), Some(2));
        assert_eq!(reached(Reduction::PartialTopology, false, true), None);
        assert_eq!(reached(Reduction::None, true, true), None);
    }

    #[test]
    fn two_interfaces_to_one_neighbour_are_two_next_hops() {
        let graph = chain();
        let mut neighbors = [manet(2, true, true), manet(2, true, true)];
        let mut paths = ShortestPaths::default();
        paths.run(&graph, RouterId(1), &mut neighbors, Reduction::Adjacencies);
        let hops: Vec<_> = paths.next_hops(&graph, router(3)).map(|hop| hop.neighbor).collect();
        assert_eq!(hops, [0, 1]);
    }

    #[test]
    fn the_routers_on_a_network_that_the_root_is_attached_to_are_next_hops() {
        // Network N joins 1, 2 and 3; 4 is behind both 2 and 3.
        let network = Vertex::Network(RouterId(3), InterfaceId(7));
        let mut graph = Graph::default();
        graph.set(network, true, [(router(1), 0), (router(2), 0), (router(3), 0)]);
        graph.set(router(1), true, [(network, 1)]);
        graph.set(router(2), true, [(network, 1), (router(4), 1)]);
        graph.set(router(3), true, [(network, 1), (router(4), 1)]);
        graph.set(router(4), true, [(router(2), 1), (router(3), 1)]);
        let attached = RootNeighbor { vertex: network, manet: false, ..manet(3, true, false) };
        let mut paths = ShortestPaths::default();
        paths.run(&graph, RouterId(1), &mut [attached], Reduction::Adjacencies);
        assert_eq!(path(&paths, &graph, 2), (Some(1), vec![2]));
        assert_eq!(path(&paths, &graph, 4), (Some(2), vec![2, 3]));
        // From 4, both 2 and 3 lead to the network and to 1 behind it.
        let mut neighbors = [manet(2, true, true), manet(3, true, true)];
        paths.run(&graph, RouterId(4), &mut neighbors, Reduction::Adjacencies);
        assert_eq!(path(&paths, &graph, 1), (Some(2), vec![2, 3]));
        assert_eq!(paths.distance(&graph, network), Some(2));
    }

    #[test]
    fn the_links_of_a_network_that_the_root_is_attached_to_cost_what_the_graph_says() {
        let network = Vertex::Network(RouterId(2), InterfaceId(7));
        let mut graph = Graph::default();
        graph.set(network, true, [(router(1), 0), (router(2), 3)]);
        graph.set(router(1), true, [(network, 1)]);
        graph.set(router(2), true, [(network, 1)]);
        let attached = RootNeighbor { vertex: network, manet: false, ..manet(2, true, false) };
        let mut paths = ShortestPaths::default();
        paths.run(&graph, RouterId(1), &mut [attached], Reduction::Adjacencies);
        assert_eq!(path(&paths, &graph, 2), (Some(1 + 3), vec![2]));
    }

    #[test]
    fn a_router_without_the_r_bit_is_reached_but_not_passed() {
        let mut graph = chain();
        graph.set(router(2), false, [(router(1), 1), (router(3), 1)]);
        let mut paths = ShortestPaths::default();
        paths.run(&graph, RouterId(1), &mut [manet(2, true, true)], Reduction::Adjacencies);
        assert_eq!(path(&paths, &graph, 2), (Some(1), vec![2]));
        assert_eq!(path(&paths, &graph, 3), (None, vec![]));
    }

    #[test]
    fn its_bytes_are_a_distance_and_a_set_of_next_hops_for_each_vertex_and_the_next_hops() {
        let graph = chain();
        let mut paths = ShortestPaths::default();
        assert_eq!(paths.footprint(), 0);
        paths.run(&graph, RouterId(1), &mut [manet(2, true, true)], Reduction::Adjacencies);
        // Three vertices: 4 bytes and a word of 8 each, and one next hop.
        assert_eq!(paths.footprint(), 3 * (4 + 8) + size_of::<FirstHop>());
    }

    #[test]
    fn the_hash_of_what_was_found_tells_distances_and_next_hops_apart() {
        let hash = |cost: u16, neighbors: &mut [RootNeighbor]| {
            let mut graph = chain();
            graph.set(router(3), true, [(router(2), cost)]);
            graph.set(router(2), true, [(router(1), 1), (router(3), cost)]);
            let mut paths = ShortestPaths::default();
            paths.run(&graph, RouterId(1), neighbors, Reduction::None);
            let mut hasher = std::hash::DefaultHasher::new();
            paths.hash(&graph, &mut hasher);
            hasher.finish()
        };
        let one = || [manet(2, true, true)];
        assert_eq!(hash(1, &mut one()), hash(1, &mut one()));
        assert_ne!(hash(1, &mut one()), hash(5, &mut one()), "3 is farther");
        let two = &mut [manet(2, true, true), manet(2, true, true)];
        assert_ne!(hash(1, &mut one()), hash(1, two), "there is a second way to 2");
    }
}
