//! The link-state database as a directed graph: which router can be reached from which, at what cost.
//!
//! Updated as LSAs change, so that a shortest-path run iterates over arrays. Each link records whether the vertex at
//! its end links back (RFC 2328, section 16.1, step 2b).

use anabranch_wire::ospf::{InterfaceId, RouterId};
use std::collections::BTreeMap;

/// A vertex of the graph (RFC 5340, section 4.8.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Vertex {
    /// A router, by its router-LSAs.
    Router(RouterId),
    /// A transit network, by its network-LSA: the Designated Router and the number of its interface there.
    Network(RouterId, InterfaceId),
}

/// A link from a vertex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// Index of the vertex at its end.
    pub to: u32,
    /// Cost; at least 1 from a router, 0 from a network.
    pub cost: u16,
    /// Whether that vertex links back.
    pub back: bool,
}

/// The graph. The index of a vertex is reused once nothing refers to it.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    indices: BTreeMap<Vertex, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Links that a vertex is about to have.
    new: Vec<Link>,
}

/// A vertex with an LSA, or with links to it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub vertex: Vertex,
    /// In the order of the indices of their ends.
    pub links: Box<[Link]>,
    /// Whether it forwards traffic.
    pub transit: bool,
    advertised: bool,
    /// Number of links to it.
    referred: u32,
}

impl Graph {
    /// Sets the links that a vertex advertises; true if that changed the graph. Of several links to one vertex the one
    /// with the lowest cost counts. `transit` is false for a router that does not forward (R-bit or V6-bit clear, RFC
    /// 5340, section A.2).
    ///
    /// A metric of 0 on a router's link, which RFC 2328, section C.3, forbids, counts as 1: distances must decrease
    /// along every link, or packets could loop.
    pub fn set(&mut self, vertex: Vertex, transit: bool, links: impl IntoIterator<Item = (Vertex, u16)>) -> bool {
        let least = u16::from(matches!(vertex, Vertex::Router(_)));
        let index = self.intern(vertex);
        let mut new = core::mem::take(&mut self.new);
        for (to, metric) in links.into_iter().filter(|(to, _)| *to != vertex) {
            let to = self.intern(to);
            // Referenced from the start, so that its index is not reused.
            self.refer(to, 1);
            new.push(Link { to, cost: metric.max(least), back: false });
        }
        new.sort_unstable_by_key(|link| (link.to, link.cost));
        for pair in new.windows(2) {
            if let [one, other] = pair
                && one.to == other.to
            {
                self.refer(one.to, -1);
            }
        }
        new.dedup_by_key(|link| link.to);
        for link in &mut new {
            link.back = self.entry(link.to).is_some_and(|entry| entry.link(index).is_some());
        }
        let Some(entry) = self.entries.get_mut(index as usize) else { return false };
        let changed = !entry.advertised || entry.transit != transit || *entry.links != *new;
        entry.advertised = true;
        entry.transit = transit;
        self.replace(index, &new);
        new.clear();
        self.new = new;
        changed
    }

    /// Removes the links that a vertex advertises; true if that changed the graph.
    pub fn remove(&mut self, vertex: Vertex) -> bool {
        let Some(&index) = self.indices.get(&vertex) else { return false };
        let Some(entry) = self.entries.get_mut(index as usize) else { return false };
        let changed = entry.advertised;
        entry.advertised = false;
        self.replace(index, &[]);
        self.release(index);
        changed
    }

    /// Number of vertices with an LSA, or with links to them.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The links of a vertex, of those to the same vertex the one with the lowest cost; empty if there are none.
    pub fn links(&self, vertex: Vertex) -> impl Iterator<Item = (Vertex, u16)> + '_ {
        let entry = self.index(vertex).and_then(|index| self.entry(index));
        let links = entry.map_or(&[][..], |entry| &entry.links);
        links.iter().filter_map(|link| Some((self.entry(link.to)?.vertex, link.cost)))
    }

    /// Its memory in bytes.
    pub(crate) fn footprint(&self) -> usize {
        let links: usize = self.entries.iter().map(|entry| entry.links.len()).sum();
        self.indices.len() * size_of::<(Vertex, u32)>()
            + self.entries.len() * size_of::<Entry>()
            + links * size_of::<Link>()
    }

    /// The vertices by index; of an unused index the last one that had it.
    pub(crate) fn vertices(&self) -> impl Iterator<Item = Vertex> + '_ {
        self.entries.iter().map(|entry| entry.vertex)
    }

    /// One more than the largest index.
    pub(crate) fn bound(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn index(&self, vertex: Vertex) -> Option<u32> {
        self.indices.get(&vertex).copied()
    }

    pub(crate) fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize)
    }

    /// The index of a vertex, a new one if it has none.
    fn intern(&mut self, vertex: Vertex) -> u32 {
        if let Some(index) = self.indices.get(&vertex) {
            return *index;
        }
        let entry = Entry { vertex, links: Box::default(), transit: true, advertised: false, referred: 0 };
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.entries.len() as u32,
        };
        match self.entries.get_mut(index as usize) {
            Some(slot) => *slot = entry,
            None => self.entries.push(entry),
        }
        self.indices.insert(vertex, index);
        index
    }

    /// Replaces the links, with references already counted.
    fn replace(&mut self, index: u32, new: &[Link]) {
        for link in new {
            self.set_back(link.to, index, true);
        }
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        let before = core::mem::replace(&mut entry.links, new.into());
        let kept = |to: u32| new.binary_search_by_key(&to, |link| link.to).is_ok();
        for link in before {
            if !kept(link.to) {
                self.set_back(link.to, index, false);
            }
            self.refer(link.to, -1);
            self.release(link.to);
        }
    }

    /// Records for the link from `at` to `to`, if there is one, whether `to` links back.
    fn set_back(&mut self, at: u32, to: u32, back: bool) {
        let links = self.entries.get_mut(at as usize).map(|entry| &mut entry.links);
        if let Some(links) = links
            && let Ok(place) = links.binary_search_by_key(&to, |link| link.to)
            && let Some(link) = links.get_mut(place)
        {
            link.back = back;
        }
    }

    fn refer(&mut self, index: u32, by: i32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.referred = entry.referred.saturating_add_signed(by);
        }
    }

    /// Frees the index of a vertex without an LSA and without links to it.
    fn release(&mut self, index: u32) {
        let unused = self.entry(index).filter(|entry| !entry.advertised && entry.referred == 0);
        if let Some(vertex) = unused.map(|entry| entry.vertex)
            && self.indices.remove(&vertex).is_some()
        {
            self.free.push(index);
        }
    }
}

impl Entry {
    /// Its link to a vertex.
    pub(crate) fn link(&self, to: u32) -> Option<&Link> {
        self.links.binary_search_by_key(&to, |link| link.to).ok().and_then(|place| self.links.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(id: u32) -> Vertex {
        Vertex::Router(RouterId(id))
    }

    /// (to, cost, back) of each link.
    fn links(graph: &Graph, from: u32) -> Vec<(Vertex, u16, bool)> {
        let entry = graph.index(router(from)).and_then(|index| graph.entry(index)).unwrap();
        entry.links.iter().map(|link| (graph.entry(link.to).unwrap().vertex, link.cost, link.back)).collect()
    }

    #[test]
    fn a_link_knows_whether_the_other_end_links_back() {
        let mut graph = Graph::default();
        assert!(graph.set(router(1), true, [(router(2), 5)]));
        assert_eq!(links(&graph, 1), [(router(2), 5, false)]);
        assert!(graph.set(router(2), true, [(router(1), 7), (router(3), 1)]));
        assert_eq!(links(&graph, 1), [(router(2), 5, true)]);
        assert_eq!(links(&graph, 2), [(router(1), 7, true), (router(3), 1, false)]);
        assert!(graph.set(router(2), true, [(router(3), 1)]));
        assert_eq!(links(&graph, 1), [(router(2), 5, false)]);
        assert!(graph.remove(router(1)));
        assert!(!graph.remove(router(1)));
    }

    #[test]
    fn what_says_the_same_again_changes_nothing() {
        let mut graph = Graph::default();
        let lsa = [(router(3), 4), (router(2), 5)];
        assert!(graph.set(router(1), true, lsa));
        assert!(!graph.set(router(1), true, lsa.into_iter().rev()));
        assert!(graph.set(router(1), false, lsa));
        assert!(graph.set(router(1), false, [(router(3), 4), (router(2), 6)]));
    }

    #[test]
    fn of_two_links_to_one_router_the_cheaper_counts_and_none_is_free() {
        let mut graph = Graph::default();
        graph.set(router(1), true, [(router(2), 5), (router(2), 0), (router(1), 1)]);
        assert_eq!(links(&graph, 1), [(router(2), 1, false)]);
    }

    #[test]
    fn vertices_that_nothing_refers_to_leave_no_trace() {
        let mut graph = Graph::default();
        graph.set(router(1), true, [(router(2), 5), (router(2), 6), (router(3), 5)]);
        graph.set(router(2), true, [(router(1), 5)]);
        assert_eq!(graph.len(), 3);
        graph.remove(router(1));
        // 2 still refers to 1.
        assert_eq!(graph.len(), 2);
        graph.remove(router(2));
        assert!(graph.is_empty());
        // A thousand routers one after the other need only two indices.
        for id in 1..1000 {
            graph.set(router(id), true, [(router(id + 1), 1)]);
            graph.remove(router(id));
        }
        assert!(graph.is_empty() && graph.bound() <= 3);
    }

    #[test]
    fn its_bytes_are_those_of_vertices_and_links() {
        let mut graph = Graph::default();
        assert_eq!(graph.footprint(), 0);
        graph.set(router(1), true, [(router(2), 5)]);
        let (one, vertices) = (graph.footprint(), 2 * (size_of::<(Vertex, u32)>() + size_of::<Entry>()));
        assert_eq!(one, vertices + size_of::<Link>());
        graph.set(router(2), true, [(router(1), 5)]);
        assert_eq!(graph.footprint() - one, size_of::<Link>(), "two vertices with a link each");
    }
}
