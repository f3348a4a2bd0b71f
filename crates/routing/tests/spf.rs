//! Shortest paths against a simple reference.

mod mesh;

use anabranch_routing::graph::{Graph as Database, Vertex};
use anabranch_routing::spf::{Reduction, RootNeighbor, ShortestPaths};
use mesh::{Random, id};

fn router(node: usize) -> Vertex {
    Vertex::Router(id(node))
}

/// Distances between all pairs by Floyd and Warshall, over links that exist in both directions, through `transit` nodes.
fn all_distances(cost: &[Vec<Option<u16>>], transit: &[bool]) -> Vec<Vec<Option<u32>>> {
    let nodes = cost.len();
    let mutual = |a: usize, b: usize| cost[b][a].and(cost[a][b]).map(u32::from);
    let mut distance: Vec<Vec<Option<u32>>> =
        (0..nodes).map(|a| (0..nodes).map(|b| if a == b { Some(0) } else { mutual(a, b) }).collect()).collect();
    for middle in (0..nodes).filter(|node| transit[*node]) {
        for a in 0..nodes {
            for b in 0..nodes {
                let Some(via) = distance[a][middle].zip(distance[middle][b]).map(|(one, other)| one + other) else {
                    continue;
                };
                if distance[a][b].is_none_or(|known| via < known) {
                    distance[a][b] = Some(via);
                }
            }
        }
    }
    distance
}

/// A directed graph with costs from 1 to `most`, which differ by direction.
fn random_costs(random: &mut Random, most: usize) -> Vec<Vec<Option<u16>>> {
    let graph = mesh::Graph::any(random, 40);
    let mut cost = vec![vec![None; graph.len()]; graph.len()];
    for (a, row) in cost.iter_mut().enumerate() {
        for b in graph.neighbors(a) {
            // One in ten is advertised on one side only.
            row[b] = (random.below(10) > 0).then(|| 1 + random.below(most) as u16);
        }
    }
    cost
}

#[test]
fn distances_and_all_next_hops_are_those_of_floyd_and_warshall() {
    let mut random = Random::new(3);
    let mut paths = ShortestPaths::default();
    let (mut several, graphs) = (0, mesh::graphs(2000));
    for number in 0..graphs {
        let cost = random_costs(&mut random, [1, 3, 1000][number % 3]);
        let nodes = cost.len();
        let transit: Vec<bool> = (0..nodes).map(|_| random.below(10) > 0).collect();
        let mut database = Database::default();
        for node in random.order(nodes) {
            let links = (0..nodes).filter_map(|to| Some((router(to), cost[node][to]?)));
            database.set(router(node), transit[node], links);
        }
        let root = random.below(nodes);
        let mut neighbors: Vec<RootNeighbor> = (0..nodes).filter_map(|to| neighbor(to, cost[root][to]?)).collect();
        paths.run(&database, id(root), &mut neighbors, Reduction::None);
        let mut open = transit.clone();
        open[root] = true;
        let distance = all_distances(&cost, &open);
        // Without the root: a first hop that leads back is excluded.
        open[root] = false;
        let onward = all_distances(&cost, &open);
        for to in (0..nodes).filter(|to| *to != root) {
            assert_eq!(paths.distance(&database, router(to)), distance[root][to], "graph {number}: {root} to {to}");
            let is_first = |hop: &usize| {
                let passes = *hop == to || transit[*hop];
                let first = cost[root][*hop].filter(|_| cost[*hop][root].is_some() && passes);
                first
                    .zip(onward[*hop][to])
                    .is_some_and(|(first, rest)| Some(u32::from(first) + rest) == distance[root][to])
            };
            let expected: Vec<usize> = (0..nodes).filter(is_first).collect();
            let found: Vec<usize> =
                paths.next_hops(&database, router(to)).map(|hop| hop.router.0 as usize - 1).collect();
            assert_eq!(found, expected, "graph {number}: {root} to {to}");
            several += usize::from(found.len() > 1);
        }
    }
    assert!(several > graphs / 2, "{several} destinations with several next hops");
}

/// A neighbour in state Full.
fn neighbor(to: usize, cost: u16) -> Option<RootNeighbor> {
    Some(RootNeighbor {
        vertex: router(to),
        cost,
        manet: true,
        bidirectional: true,
        full: true,
        routable: false,
        quality: true,
    })
}
