//! Small random or fixed networks for the tests, and a simple model of convergence on them.
#![allow(dead_code, reason = "each test uses a part")]

pub mod converged;
pub mod reference;

use anabranch_routing::election::{AdjConnectivity, Election, ElectionSettings, Selection};
use anabranch_routing::neighborhood::{Level, Neighbor, Neighborhood, Rank};
use anabranch_wire::ospf::RouterId;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

pub const CONNECTIVITIES: [AdjConnectivity; 3] =
    [AdjConnectivity::Full, AdjConnectivity::Uniconnected, AdjConnectivity::Biconnected];

/// Random numbers from a seed.
pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A whole number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// From 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The numbers below `bound` in a random order.
    pub fn order(&mut self, bound: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..bound).collect();
        for last in (1..bound).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// An undirected graph of the nodes 0 to n - 1. Node v has the Router ID v + 1.
#[derive(Clone, Debug)]
pub struct Graph {
    pub linked: Vec<Vec<bool>>,
}

impl Graph {
    pub fn new(nodes: usize) -> Self {
        Self { linked: vec![vec![false; nodes]; nodes] }
    }

    /// From links between Router IDs.
    pub fn of(nodes: usize, links: &[(usize, usize)]) -> Self {
        let mut graph = Self::new(nodes);
        for (a, b) in links {
            graph.link(a - 1, b - 1);
        }
        graph
    }

    pub fn link(&mut self, a: usize, b: usize) {
        self.linked[a][b] = true;
        self.linked[b][a] = true;
    }

    /// Nodes in a unit square, linked within a radius.
    pub fn unit_disk(random: &mut Random, nodes: usize, radius: f64) -> Self {
        let places: Vec<_> = (0..nodes).map(|_| (random.uniform(), random.uniform())).collect();
        let mut graph = Self::new(nodes);
        for a in 0..nodes {
            for b in 0..a {
                let (x, y) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                if x * x + y * y <= radius * radius {
                    graph.link(a, b);
                }
            }
        }
        graph
    }

    /// Each link exists with the same probability.
    pub fn random(random: &mut Random, nodes: usize, probability: f64) -> Self {
        let mut graph = Self::new(nodes);
        for a in 0..nodes {
            for b in 0..a {
                if random.uniform() < probability {
                    graph.link(a, b);
                }
            }
        }
        graph
    }

    /// One of both kinds with 2 to `most` nodes, from sparse to dense.
    pub fn any(random: &mut Random, most: usize) -> Self {
        let nodes = 2 + random.below(most - 1);
        let density = random.uniform();
        if random.below(2) == 0 {
            Self::unit_disk(random, nodes, 0.1 + 0.6 * density)
        } else {
            Self::random(random, nodes, (0.5 + 6.0 * density) / nodes as f64)
        }
    }

    pub fn len(&self) -> usize {
        self.linked.len()
    }

    pub fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.linked[node].iter().enumerate().filter(|(_, linked)| **linked).map(|(other, _)| other)
    }

    /// The nodes reachable from `from` through nodes for which `open` is true, including `from` itself.
    pub fn reached(&self, from: usize, open: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.len()];
        reached[from] = true;
        let mut queue = vec![from];
        while let Some(node) = queue.pop() {
            for other in self.neighbors(node) {
                if open(other) && !reached[other] {
                    reached[other] = true;
                    queue.push(other);
                }
            }
        }
        reached
    }

    /// Whether the nodes for which `open` is true are connected among themselves.
    pub fn is_connected(&self, open: impl Fn(usize) -> bool) -> bool {
        let Some(first) = (0..self.len()).find(|node| open(*node)) else { return true };
        let reached = self.reached(first, &open);
        (0..self.len()).all(|node| !open(node) || reached[node])
    }

    /// The connected components.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.len()];
        let mut components = Vec::new();
        for node in 0..self.len() {
            if !seen[node] {
                let reached = self.reached(node, |_| true);
                let members: Vec<usize> = (0..self.len()).filter(|other| reached[*other]).collect();
                members.iter().for_each(|member| seen[*member] = true);
                components.push(members);
            }
        }
        components
    }

    /// Whether `members` stay connected without any one of them.
    pub fn is_biconnected(&self, members: &[usize]) -> bool {
        let inside = |node: usize| members.contains(&node);
        self.is_connected(inside) && members.iter().all(|gone| self.is_connected(|node| inside(node) && node != *gone))
    }
}

/// Routers on a graph that exchange all information at once.
pub struct Routers {
    pub graph: Graph,
    pub settings: ElectionSettings,
    pub priorities: Vec<u8>,
    pub selections: Vec<Selection>,
    /// Dependent Neighbors of each, in ascending order.
    pub dependents: Vec<Vec<usize>>,
    /// Adjacency of each pair.
    pub adjacent: Vec<Vec<bool>>,
    election: Election,
    neighborhood: Neighborhood,
}

impl Routers {
    pub fn new(graph: Graph, settings: ElectionSettings) -> Self {
        let nodes = graph.len();
        Self {
            settings,
            priorities: vec![1; nodes],
            selections: vec![Selection::default(); nodes],
            dependents: vec![Vec::new(); nodes],
            adjacent: vec![vec![false; nodes]; nodes],
            election: Election::default(),
            neighborhood: Neighborhood::default(),
            graph,
        }
    }

    pub fn len(&self) -> usize {
        self.graph.len()
    }

    pub fn level(&self, node: usize) -> Level {
        self.selections[node].level
    }

    pub fn levels(&self) -> Vec<Level> {
        (0..self.len()).map(|node| self.level(node)).collect()
    }

    /// Fills in what `node` knows of its neighbours.
    pub fn fill(&self, neighborhood: &mut Neighborhood, node: usize) {
        neighborhood.clear();
        for other in self.graph.neighbors(node) {
            let rank = Rank { priority: self.priorities[other], level: self.level(other), id: id(other) };
            let neighbor = Neighbor { rank, adjacent: self.adjacent[node][other], full_hello_received: true };
            neighborhood.add(neighbor, self.graph.neighbors(other).map(id));
        }
        neighborhood.connect();
    }

    /// What `node` would choose now.
    pub fn choice(&mut self, node: usize) -> (Selection, Vec<usize>) {
        let mut neighborhood = std::mem::take(&mut self.neighborhood);
        self.fill(&mut neighborhood, node);
        let (present, priority) = (&self.selections[node], self.priorities[node]);
        let selection = self.election.select(id(node), priority, present, &neighborhood, &self.settings);
        let dependents =
            self.election.dependents().map(|index| neighborhood.get(index).unwrap().rank.id.0 as usize - 1).collect();
        self.neighborhood = neighborhood;
        (selection, dependents)
    }

    /// Lets `node` choose. Returns whether anything changed.
    pub fn activate(&mut self, node: usize) -> bool {
        let (selection, dependents) = self.choice(node);
        let mut changed = selection != self.selections[node] || dependents != self.dependents[node];
        self.selections[node] = selection;
        self.dependents[node] = dependents;
        for other in 0..self.len() {
            if self.graph.linked[node][other] {
                let relays = self.level(node).max(self.level(other)) >= Level::BackupMdr;
                let full = self.settings.adj_connectivity == AdjConnectivity::Full;
                let kept = self.adjacent[node][other] && (relays || full);
                let adjacent = kept || self.wants_adjacency(node, other) || self.wants_adjacency(other, node);
                changed |= adjacent != self.adjacent[node][other];
                self.adjacent[node][other] = adjacent;
                self.adjacent[other][node] = adjacent;
            }
        }
        changed
    }

    /// Section 7.2, for `node` with its neighbour `other`.
    pub fn wants_adjacency(&self, node: usize, other: usize) -> bool {
        let relays = |one: usize| self.level(one) >= Level::BackupMdr;
        let parent_of = |child: usize, one: usize| {
            let selection = self.selections[child];
            [selection.parent, selection.backup_parent].contains(&Some(id(one)))
        };
        let dependent = self.dependents[node].contains(&other) || self.dependents[other].contains(&node);
        self.settings.adj_connectivity == AdjConnectivity::Full
            || relays(node) && relays(other) && dependent
            || relays(other) && parent_of(node, other)
            || relays(node) && parent_of(other, node)
    }

    /// Activates all routers in rounds, each in the given order, until a round changes nothing. Returns the number of
    /// rounds, or `None` if there is no end.
    pub fn settle(&mut self, mut order: impl FnMut() -> Vec<usize>) -> Option<usize> {
        let limit = 4 * self.len() + 20;
        (1..=limit).find(|_| {
            let mut changed = false;
            for node in order() {
                changed |= self.activate(node);
            }
            !changed
        })
    }
}

pub fn id(node: usize) -> RouterId {
    RouterId(node as u32 + 1)
}

/// Number of random graphs: the default, or the value of the variable.
pub fn graphs(default: usize) -> usize {
    std::env::var("ANABRANCH_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
