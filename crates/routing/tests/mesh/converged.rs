//! A converged network: which neighbours are advertised, the routes that each router finds in the database, and the
//! number of lanes left.

use super::{Graph, Routers, id};
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::graph::{Graph as Database, Vertex};
use anabranch_routing::lsa_fullness::{Advertised, AdvertisedNeighbors, LsaFullness, ManetInterface, Standing};
use anabranch_routing::neighborhood::Neighborhood;
use anabranch_routing::spf::{Reduction, RootNeighbor, ShortestPaths};

/// Routers with chosen roles, and their common database.
pub struct Converged {
    pub routers: Routers,
    pub fullness: LsaFullness,
    /// Cost of each link, by direction.
    pub costs: Vec<Vec<u16>>,
    /// selected[a][b]: a's SANS contains b.
    pub selected: Vec<Vec<bool>>,
    /// advertised[a][b]: a's router-LSA contains b.
    pub advertised: Vec<Vec<bool>>,
    routable: Vec<Vec<bool>>,
    pub database: Database,
    pub paths: ShortestPaths,
    /// distances[a][b] as computed by a; `None` without a route.
    pub distances: Vec<Vec<Option<u32>>>,
    /// next_hops[a][b], in ascending order.
    pub next_hops: Vec<Vec<Vec<usize>>>,
}

impl Converged {
    pub fn new(routers: Routers, fullness: LsaFullness, costs: Vec<Vec<u16>>) -> Self {
        let nodes = routers.len();
        let mut network = Self {
            routers,
            fullness,
            costs,
            selected: vec![vec![false; nodes]; nodes],
            advertised: vec![vec![false; nodes]; nodes],
            routable: vec![vec![false; nodes]; nodes],
            database: Database::default(),
            paths: ShortestPaths::default(),
            distances: vec![vec![None; nodes]; nodes],
            next_hops: vec![vec![Vec::new(); nodes]; nodes],
        };
        network.select();
        network.flood();
        network
    }

    fn reduction(&self) -> bool {
        self.routers.settings.adj_connectivity != AdjConnectivity::Full
    }

    /// A backbone neighbour, section 9.2. All routers have equal A-bits here.
    fn backbone(&self, node: usize, other: usize) -> bool {
        self.reduction() && (self.routers.wants_adjacency(node, other) || self.routers.wants_adjacency(other, node))
    }

    /// Each router selects its advertised neighbours, in turn, until nothing changes.
    fn select(&mut self) {
        let (mut neighborhood, mut choice) = (Neighborhood::default(), AdvertisedNeighbors::default());
        for round in 0.. {
            assert!(round < 50, "the advertised neighbours do not settle");
            let mut changed = false;
            for node in 0..self.routers.len() {
                self.fill(&mut neighborhood, &mut choice, node);
                choice.select(id(node));
                let mut new = vec![false; self.routers.len()];
                choice.selected(0).for_each(|other| new[other.0 as usize - 1] = true);
                changed |= new != self.selected[node];
                self.selected[node] = new;
            }
            if !changed {
                return;
            }
        }
    }

    fn fill(&self, neighborhood: &mut Neighborhood, choice: &mut AdvertisedNeighbors, node: usize) {
        let routers = &self.routers;
        routers.fill(neighborhood, node);
        choice.clear();
        choice.add_interface(ManetInterface {
            priority: routers.priorities[node],
            level: routers.level(node),
            reduction: self.reduction(),
            fullness: self.fullness,
        });
        for other in routers.graph.neighbors(node) {
            let selection = routers.selections[other];
            let advertised = Advertised {
                id: id(other),
                metric: self.costs[node][other],
                default_metric: 1,
                parents: [selection.parent, selection.backup_parent],
                backbone: self.backbone(node, other),
                selected: self.selected[node][other],
            };
            let selected = (0..routers.len()).filter(|third| self.selected[other][*third]).map(id);
            let metrics = routers.graph.neighbors(other).map(|third| (id(third), self.costs[other][third]));
            choice.add_neighbor(
                neighborhood,
                advertised,
                routers.dependents[other].iter().copied().map(id),
                selected,
                metrics,
            );
        }
    }

    /// All routers originate and compute until no more neighbours become routable.
    fn flood(&mut self) {
        loop {
            for node in 0..self.routers.len() {
                self.originate(node);
            }
            let before = self.routable.clone();
            for node in 0..self.routers.len() {
                self.compute(node);
            }
            if before == self.routable {
                return;
            }
        }
    }

    fn originate(&mut self, node: usize) {
        for other in 0..self.routers.len() {
            let standing = Standing {
                full: self.routers.adjacent[node][other],
                routable: self.routable[node][other],
                backbone: self.routers.graph.linked[node][other] && self.backbone(node, other),
                selected: self.selected[node][other],
                selector: self.selected[other][node],
            };
            self.advertised[node][other] =
                self.routers.graph.linked[node][other] && standing.is_advertised(self.reduction());
        }
        let links = (0..self.routers.len()).filter(|other| self.advertised[node][*other]);
        let links = links.map(|other| (Vertex::Router(id(other)), self.costs[node][other]));
        self.database.set(Vertex::Router(id(node)), true, links);
    }

    fn compute(&mut self, node: usize) {
        let reduction = match (self.reduction(), self.fullness) {
            (true, _) => Reduction::Adjacencies,
            (false, LsaFullness::Full) => Reduction::None,
            (false, _) => Reduction::PartialTopology,
        };
        let others: Vec<usize> = self.routers.graph.neighbors(node).collect();
        let neighbor = |other: &usize| RootNeighbor {
            vertex: Vertex::Router(id(*other)),
            cost: self.costs[node][*other],
            manet: true,
            bidirectional: true,
            full: self.routers.adjacent[node][*other],
            routable: self.routable[node][*other],
            quality: true,
        };
        let mut neighbors: Vec<RootNeighbor> = others.iter().map(neighbor).collect();
        self.paths.run(&self.database, id(node), &mut neighbors, reduction);
        for (other, neighbor) in others.iter().zip(&neighbors) {
            self.routable[node][*other] = neighbor.routable;
        }
        for to in 0..self.routers.len() {
            let vertex = Vertex::Router(id(to));
            self.distances[node][to] = self.paths.distance(&self.database, vertex);
            let hops = self.paths.next_hops(&self.database, vertex).map(|hop| hop.router.0 as usize - 1);
            self.next_hops[node][to] = hops.collect();
        }
    }

    /// Number of advertised links, each direction counted.
    pub fn links(&self) -> usize {
        self.advertised.iter().flatten().filter(|advertised| **advertised).count()
    }

    /// Whether `root` may go from `a` to `b` in its computation.
    pub fn knows(&self, root: usize, a: usize, b: usize) -> bool {
        if a == root { self.routers.graph.linked[a][b] } else { self.advertised[a][b] && self.advertised[b][a] }
    }
}

/// The number of shortest paths from `from` to `to` without common routers, at most `limit`, over the links for which
/// `open` is true; `distance` is that from `from`.
pub fn disjoint_paths(
    graph: &Graph,
    costs: &[Vec<u16>],
    (from, to): (usize, usize),
    distance: &[Option<u32>],
    limit: usize,
    open: impl Fn(usize, usize) -> bool,
) -> usize {
    let nodes = graph.len();
    // Links that lie on a shortest path from `from`.
    let forward = |a: usize, b: usize| {
        let along = distance[a].zip(distance[b]).is_some_and(|(one, other)| one + u32::from(costs[a][b]) == other);
        graph.linked[a][b] && open(a, b) && along
    };
    // flow[a]: the node after a on a path found so far.
    let mut flow: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut before: Vec<Option<usize>> = vec![None; nodes];
    let mut found = 0;
    while found < limit && augment(nodes, (from, to), &forward, &mut flow, &mut before) {
        found += 1;
    }
    found
}

/// Adds a path by Ford and Fulkerson; each node is split into an entry and an exit.
fn augment(
    nodes: usize,
    (from, to): (usize, usize),
    forward: &impl Fn(usize, usize) -> bool,
    flow: &mut [Vec<usize>],
    before: &mut [Option<usize>],
) -> bool {
    // State 2v: at the entry of v; 2v + 1: at its exit.
    let mut came: Vec<Option<usize>> = vec![None; 2 * nodes];
    let mut queue = std::collections::VecDeque::from([2 * from + 1]);
    came[2 * from + 1] = Some(usize::MAX);
    while let Some(state) = queue.pop_front() {
        let (node, exit) = (state / 2, state % 2 == 1);
        let mut steps = Vec::new();
        if exit {
            steps.extend((0..nodes).filter(|b| forward(node, *b) && !flow[node].contains(b)).map(|b| 2 * b));
            if node != from && before[node].is_some() {
                // Cancels the path's way through this node.
                steps.push(2 * node);
            }
        } else if node != to {
            match before[node] {
                None => steps.push(2 * node + 1),
                // Cancels the link by which the path came.
                Some(previous) => steps.push(2 * previous + 1),
            }
        }
        for next in steps {
            if came[next].is_none() {
                came[next] = Some(state);
                queue.push_back(next);
            }
        }
    }
    if came[2 * to].is_none() {
        return false;
    }
    let mut states = vec![2 * to];
    while let Some(previous) = came[*states.last().unwrap()].filter(|previous| *previous != usize::MAX) {
        states.push(previous);
    }
    states.reverse();
    // First cancellations, then new links.
    for pair in states.windows(2) {
        let (a, b) = (pair[0] / 2, pair[1] / 2);
        if pair[0] % 2 == 0 && pair[1] % 2 == 1 && a != b {
            flow[b].retain(|next| *next != a);
            if before[a] == Some(b) {
                before[a] = None;
            }
        }
    }
    for pair in states.windows(2) {
        let (a, b) = (pair[0] / 2, pair[1] / 2);
        if pair[0] % 2 == 1 && pair[1] % 2 == 0 && a != b {
            flow[a].push(b);
            if b != to {
                before[b] = Some(a);
            }
        }
    }
    true
}
