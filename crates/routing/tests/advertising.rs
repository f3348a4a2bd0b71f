//! How many shortest paths and lanes remain with the advertised neighbours, on the paper's graph and on random ones.

mod mesh;

use anabranch_routing::election::{AdjConnectivity, ElectionSettings};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::neighborhood::Level;
use mesh::converged::{Converged, disjoint_paths};
use mesh::{CONNECTIVITIES, Graph, Random, Routers};

const ALL: [LsaFullness; 6] = [
    LsaFullness::Minimal,
    LsaFullness::MinCost,
    LsaFullness::MinCostRedundant,
    LsaFullness::MdrFull,
    LsaFullness::Full,
    LsaFullness::Multipath(3),
];

/// Figure 8 of the paper: M1 - {M2, M3, M4} - {M5, M6, M7} - M8.
const FIGURE_8: [(usize, usize); 13] =
    [(1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 5), (3, 6), (3, 7), (4, 6), (4, 7), (5, 8), (6, 8), (7, 8)];
/// Further links of any disk radio model.
const LATERAL: [(usize, usize); 4] = [(2, 3), (3, 4), (5, 6), (6, 7)];

fn costs_of_one(graph: &Graph) -> Vec<Vec<u16>> {
    vec![vec![1; graph.len()]; graph.len()]
}

/// Next hops to M8 from M1, M2, M3 and M4, as Router IDs, after an election in order from these levels.
fn next_hops(graph: &Graph, levels: &str, fullness: LsaFullness) -> [Vec<usize>; 4] {
    let mut routers = Routers::new(graph.clone(), ElectionSettings::default());
    for (selection, digit) in routers.selections.iter_mut().zip(levels.bytes()) {
        selection.level = [Level::Other, Level::BackupMdr, Level::Mdr][usize::from(digit - b'0')];
    }
    assert!(routers.settle(|| (0..8).collect()).is_some());
    let network = Converged::new(routers, fullness, costs_of_one(graph));
    [0, 1, 2, 3].map(|node| network.next_hops[node][7].iter().map(|hop| hop + 1).collect())
}

fn lateral() -> Graph {
    let mut graph = Graph::of(8, &FIGURE_8);
    LATERAL.iter().for_each(|(a, b)| graph.link(a - 1, b - 1));
    graph
}

#[test]
fn without_lateral_links_all_are_mdrs_and_every_fullness_leaves_all_lanes() {
    // Observed on a running implementation.
    let graph = Graph::of(8, &FIGURE_8);
    for fullness in ALL {
        let expected = [vec![2, 3, 4], vec![5, 6], vec![5, 6, 7], vec![6, 7]];
        assert_eq!(next_hops(&graph, "00000000", fullness), expected, "{fullness:?}");
    }
}

#[test]
fn with_lateral_links_only_full_and_multipath_leave_the_lanes_of_the_papers_table_3() {
    // M4 and M6 are MDRs, the others Backup MDRs: an observed election of a running implementation, with its next hops
    // for LSAFullness 0, 1, 3 and 4.
    let next_hops = |fullness| next_hops(&lateral(), "11121211", fullness);
    for fullness in [LsaFullness::Minimal, LsaFullness::MinCost, LsaFullness::MdrFull] {
        assert_eq!(next_hops(fullness), [vec![2, 3, 4], vec![6], vec![6], vec![6]], "{fullness:?}");
    }
    let all = [vec![2, 3, 4], vec![5, 6], vec![5, 6, 7], vec![6, 7]];
    assert_eq!(next_hops(LsaFullness::Full), all);
    assert_eq!(next_hops(LsaFullness::Multipath(3)), all);
}

#[test]
fn what_the_lower_settings_leave_of_the_lanes_depends_on_who_was_elected() {
    // Elected from scratch in the order M1 to M8, M1, M2, M4 and M6 become MDRs; the backbone leaves only M1 two next
    // hops.
    let first = |fullness| next_hops(&lateral(), "00000000", fullness);
    assert_eq!(first(LsaFullness::MinCost), [vec![2, 4], vec![6], vec![6], vec![6]]);
    assert_eq!(first(LsaFullness::MdrFull), [vec![2, 3, 4], vec![6], vec![6], vec![6]]);
    // LSAFullness 2 requires two others, and here the third lane remains by chance.
    let all = [vec![2, 3, 4], vec![5, 6], vec![5, 6, 7], vec![6, 7]];
    assert_eq!(first(LsaFullness::MinCostRedundant), all);
    // With M8 as an MDR too, since it was one before, all lanes remain by chance.
    assert_eq!(next_hops(&lateral(), "12111212", LsaFullness::MdrFull), all);
}

#[test]
fn three_lanes_cost_fewer_links_than_all() {
    let mut random = Random::new(5);
    let mut totals: Vec<(usize, usize)> = vec![(0, 0); ALL.len()];
    let (mut pairs, mut routers_seen) = (0, 0);
    let mut tried = 0;
    while tried < mesh::graphs(12).min(100) {
        let graph = Graph::unit_disk(&mut random, 50, 0.25);
        if !graph.is_connected(|_| true) {
            continue;
        }
        tried += 1;
        let mut routers = Routers::new(graph.clone(), ElectionSettings::default());
        assert!(routers.settle(|| random.order(50)).is_some());
        let (selections, dependents) = (routers.selections.clone(), routers.dependents.clone());
        let (costs, adjacent) = (costs_of_one(&graph), routers.adjacent.clone());
        let shortest = distances(&graph, &costs);
        let far: Vec<(usize, usize)> = (0..50)
            .flat_map(|from| (0..50).map(move |to| (from, to)))
            .filter(|(from, to)| shortest[*from][*to].is_some_and(|distance| distance >= 2))
            .collect();
        pairs += far.len();
        routers_seen += 50;
        for (fullness, total) in ALL.into_iter().zip(&mut totals) {
            let mut routers = Routers::new(graph.clone(), ElectionSettings::default());
            routers.selections.clone_from(&selections);
            routers.dependents.clone_from(&dependents);
            routers.adjacent.clone_from(&adjacent);
            let network = Converged::new(routers, fullness, costs.clone());
            total.0 += network.links();
            for (from, to) in &far {
                let known = |a: usize, b: usize| network.knows(*from, a, b);
                // Paths longer than the shortest do not count.
                total.1 += disjoint_paths(&graph, &costs, (*from, *to), &shortest[*from], 3, known);
            }
        }
    }
    for (fullness, (links, lanes)) in ALL.iter().zip(&totals) {
        let (links, lanes) = (*links as f64 / routers_seen as f64, *lanes as f64 / pairs as f64);
        eprintln!("{fullness:?}: {links:.2} advertised neighbours per router, {lanes:.3} lanes of at most 3");
    }
    let [minimal, min_cost, redundant, mdr_full, full, multipath] = totals[..] else { unreachable!("there are six") };
    assert!(multipath.1 == full.1 && multipath.0 < full.0);
    assert!(min_cost.1 < redundant.1 && redundant.1 < multipath.1 && min_cost.0 < redundant.0);
    assert!(mdr_full.1 < redundant.1 && minimal.1 < min_cost.1);
}

#[test]
fn on_random_networks_lsas_agree_all_is_reached_packets_come_nearer_and_lanes_stay() {
    let mut random = Random::new(4);
    for number in 0..mesh::graphs(120) {
        let graph = Graph::any(&mut random, 30);
        let adj_connectivity = CONNECTIVITIES[number % 3];
        let nodes = graph.len();
        let most = [1, 1, 3][random.below(3)];
        let costs: Vec<Vec<u16>> =
            (0..nodes).map(|_| (0..nodes).map(|_| 1 + random.below(most) as u16).collect()).collect();
        let lanes = 1 + random.below(4) as u8;
        let fullness = [ALL[number / 3 % 5], LsaFullness::Multipath(lanes)][random.below(2)];
        let rule = !matches!(fullness, LsaFullness::Minimal | LsaFullness::MdrFull);
        if adj_connectivity == AdjConnectivity::Full && !rule {
            continue;
        }
        let settings = ElectionSettings { adj_connectivity, ..ElectionSettings::default() };
        let mut routers = Routers::new(graph.clone(), settings);
        assert!(routers.settle(|| random.order(nodes)).is_some());
        let network = Converged::new(routers, fullness, costs);
        let context = format!("graph {number} of {nodes} nodes, {adj_connectivity:?}, {fullness:?}");
        check(&network, &context);
    }
}

fn check(network: &Converged, context: &str) {
    let (graph, nodes) = (&network.routers.graph, network.routers.len());
    let shortest = distances(graph, &network.costs);
    let exact = !matches!(network.fullness, LsaFullness::Minimal | LsaFullness::MdrFull);
    for (from, shortest_from) in shortest.iter().enumerate() {
        for to in (0..nodes).filter(|to| *to != from) {
            let both = [network.advertised[from][to], network.advertised[to][from]];
            assert_eq!(both[0], both[1], "{context}: {from} and {to} do not agree");
            assert_eq!(network.distances[from][to].is_some(), shortest_from[to].is_some(), "{context}: {from} to {to}");
            if exact {
                assert_eq!(network.distances[from][to], shortest_from[to], "{context}: {from} to {to}");
            }
            let hops = &network.next_hops[from][to];
            assert_eq!(hops.is_empty(), shortest_from[to].is_none(), "{context}: {from} to {to}");
            for hop in hops {
                assert!(network.distances[*hop][to] < network.distances[from][to], "{context}: {from} to {to}");
            }
            if let LsaFullness::Multipath(lanes) = network.fullness {
                let count = |open: &dyn Fn(usize, usize) -> bool| {
                    disjoint_paths(graph, &network.costs, (from, to), shortest_from, lanes.into(), open)
                };
                let (all, known) = (count(&|_, _| true), count(&|a, b| network.knows(from, a, b)));
                assert_eq!(all, known, "{context}: lanes from {from} to {to}");
            }
        }
    }
}

/// Distances over all links.
fn distances(graph: &Graph, costs: &[Vec<u16>]) -> Vec<Vec<Option<u32>>> {
    let nodes = graph.len();
    let direct = |a: usize, b: usize| match (a == b, graph.linked[a][b]) {
        (true, _) => Some(0),
        (false, true) => Some(u32::from(costs[a][b])),
        (false, false) => None,
    };
    let mut distance: Vec<Vec<_>> = (0..nodes).map(|a| (0..nodes).map(|b| direct(a, b)).collect()).collect();
    for middle in 0..nodes {
        for a in 0..nodes {
            for b in 0..nodes {
                let via = distance[a][middle].zip(distance[middle][b]).map(|(one, other): (u32, u32)| one + other);
                distance[a][b] = [distance[a][b], via].into_iter().flatten().min();
            }
        }
    }
    distance
}
