//! The calculations before each Hello do not allocate after the first run.

mod mesh;

use anabranch_routing::election::{Election, ElectionSettings, Selection};
use anabranch_routing::graph::{Graph as Database, Vertex};
use anabranch_routing::neighborhood::Neighborhood;
use anabranch_routing::spf::{Reduction, RootNeighbor, ShortestPaths};
use mesh::{Graph, Random, Routers, id};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn elections_and_shortest_paths_use_the_memory_of_the_last_run() {
    let graph = Graph::unit_disk(&mut Random::new(8), 100, 0.25);
    let mut routers = Routers::new(graph.clone(), ElectionSettings::default());
    assert!(routers.settle(|| (0..100).collect()).is_some());
    let mut database = Database::default();
    for node in 0..100 {
        database.set(Vertex::Router(id(node)), true, graph.neighbors(node).map(|to| (Vertex::Router(id(to)), 1)));
    }
    let (mut neighborhood, mut election) = (Neighborhood::default(), Election::default());
    let mut paths = ShortestPaths::default();
    let mut neighbors: Vec<Vec<RootNeighbor>> = (0..100).map(|node| around(&graph, node)).collect();
    let mut run = || {
        for (node, neighbors) in neighbors.iter_mut().enumerate() {
            routers.fill(&mut neighborhood, node);
            let (present, settings) = (Selection::default(), ElectionSettings::default());
            election.select(id(node), 1, &present, &neighborhood, &settings);
            paths.run(&database, id(node), neighbors, Reduction::Adjacencies);
        }
    };
    run();
    // The counter covers the whole process, including the test harness's thread: take the minimum of five counts.
    let least = (0..5).map(|_| {
        let region = Region::new(ALLOCATOR);
        run();
        let change = region.change();
        change.allocations + change.reallocations
    });
    assert_eq!(least.min(), Some(0));
}

fn around(graph: &Graph, node: usize) -> Vec<RootNeighbor> {
    let neighbor = |to| RootNeighbor {
        vertex: Vertex::Router(id(to)),
        cost: 1,
        manet: true,
        bidirectional: true,
        full: true,
        routable: true,
        quality: true,
    };
    graph.neighbors(node).map(neighbor).collect()
}
