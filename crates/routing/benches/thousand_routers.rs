//! What a router's calculations cost in a network of a thousand: shortest paths, the election, the choice of whom to
//! advertise. `cargo bench -p anabranch-routing`.

use anabranch_routing::election::{Election, ElectionSettings, Selection};
use anabranch_routing::graph::{Graph, Vertex};
use anabranch_routing::lsa_fullness::{Advertised, AdvertisedNeighbors, LsaFullness, ManetInterface};
use anabranch_routing::neighborhood::{Level, Neighbor, Neighborhood, Rank};
use anabranch_routing::spf::{Reduction, RootNeighbor, ShortestPaths};
use anabranch_wire::ospf::RouterId;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

fn main() {
    divan::main();
}

/// Who hears whom of `nodes` routers at random in a square, with about `degree` neighbours each.
fn network(nodes: usize, degree: f64) -> Vec<Vec<usize>> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (uniform(), uniform())).collect();
    let reach = degree / (std::f64::consts::PI * nodes as f64);
    let near = |a: &(f64, f64), b: &(f64, f64)| (a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1) <= reach;
    let heard =
        |node: usize| (0..nodes).filter(|other| *other != node && near(&places[node], &places[*other])).collect();
    (0..nodes).map(heard).collect()
}

fn router(node: usize) -> Vertex {
    Vertex::Router(id(node))
}

fn id(node: usize) -> RouterId {
    RouterId(node as u32 + 1)
}

/// The router in the middle of most: the one with the most neighbours.
fn busiest(network: &[Vec<usize>]) -> usize {
    (0..network.len()).max_by_key(|node| network[*node].len()).unwrap_or(0)
}

#[divan::bench(args = [(100, 10), (1000, 10), (1000, 20)])]
fn shortest_paths(bencher: divan::Bencher, (nodes, degree): (usize, u32)) {
    let network = network(nodes, f64::from(degree));
    let mut graph = Graph::default();
    for (node, heard) in network.iter().enumerate() {
        graph.set(router(node), true, heard.iter().map(|other| (router(*other), 1)));
    }
    let root = busiest(&network);
    let neighbor = |other: &usize| RootNeighbor {
        vertex: router(*other),
        cost: 1,
        manet: true,
        bidirectional: true,
        full: false,
        routable: true,
        quality: true,
    };
    let mut neighbors: Vec<RootNeighbor> = network[root].iter().map(neighbor).collect();
    let mut paths = ShortestPaths::default();
    bencher.bench_local(|| paths.run(&graph, id(root), &mut neighbors, Reduction::Adjacencies));
}

#[divan::bench(args = [(1000, 10), (1000, 20)])]
fn a_router_lsa_into_the_graph(bencher: divan::Bencher, (nodes, degree): (usize, u32)) {
    let network = network(nodes, f64::from(degree));
    let mut graph = Graph::default();
    for (node, heard) in network.iter().enumerate() {
        graph.set(router(node), true, heard.iter().map(|other| (router(*other), 1)));
    }
    let root = busiest(&network);
    let mut all = false;
    bencher.bench_local(|| {
        all = !all;
        let links = network[root].iter().skip(usize::from(all)).map(|other| (router(*other), 1));
        graph.set(router(root), true, links)
    });
}

/// Fills what the busiest router knows of its neighbours.
fn fill(neighborhood: &mut Neighborhood, network: &[Vec<usize>], node: usize) {
    neighborhood.clear();
    for other in &network[node] {
        let level = [Level::Mdr, Level::BackupMdr, Level::Other][other % 3];
        let rank = Rank { priority: 1, level, id: id(*other) };
        let neighbor = Neighbor { rank, adjacent: true, full_hello_received: true };
        neighborhood.add(neighbor, network[*other].iter().copied().map(id));
    }
    neighborhood.connect();
}

#[divan::bench(args = [10, 20, 60])]
fn election(bencher: divan::Bencher, degree: u32) {
    let network = network(1000, f64::from(degree));
    let node = busiest(&network);
    let (mut neighborhood, mut election) = (Neighborhood::default(), Election::default());
    let (present, settings) = (Selection::default(), ElectionSettings::default());
    bencher.bench_local(|| {
        fill(&mut neighborhood, &network, node);
        // The smallest Router ID, so that it does not win at once.
        election.select(RouterId(0), 1, &present, &neighborhood, &settings)
    });
}

#[divan::bench(args = [10, 20, 60])]
fn min_cost_lsa(bencher: divan::Bencher, degree: u32) {
    let network = network(1000, f64::from(degree));
    let node = busiest(&network);
    let mut neighborhood = Neighborhood::default();
    fill(&mut neighborhood, &network, node);
    let mut choice = AdvertisedNeighbors::default();
    bencher.bench_local(|| {
        choice.clear();
        let fullness = LsaFullness::MinCost;
        choice.add_interface(ManetInterface { priority: 1, level: Level::Other, reduction: true, fullness });
        for other in &network[node] {
            let advertised = Advertised {
                id: id(*other),
                metric: 1,
                default_metric: 1,
                parents: [Some(id(network[*other][0])), None],
                backbone: false,
                selected: false,
            };
            let some = |from: usize| network[*other].iter().skip(from).step_by(3).copied().map(id);
            choice.add_neighbor(&neighborhood, advertised, some(0), some(1), []);
        }
        choice.select(id(node));
    });
}
