//! Lanes hop by hop through converged networks: the paper's table 3, and how often lanes share routers.

mod mesh;

use anabranch_routing::NextHop;
use anabranch_routing::election::ElectionSettings;
use anabranch_routing::lane_plan::LanePlan;
use anabranch_routing::lanes::{Disjointness, LanePolicy, LaneSettings, PathMode};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_wire::ospf::{InterfaceId, RouterId};
use mesh::converged::{Converged, disjoint_paths};
use mesh::{Graph, Random, Routers, id};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

const INTERFACES: [InterfaceId; 4] = [InterfaceId(1), InterfaceId(2), InterfaceId(3), InterfaceId(4)];

fn address(router: RouterId, lane: usize) -> Option<IpAddr> {
    Some(Ipv4Addr::from([112, 26, lane as u8, router.0 as u8]).into())
}

/// The next hops of `from` on one of its lanes to `to`.
fn on_lane(
    network: &Converged,
    settings: LaneSettings,
    plan: Option<&LanePlan>,
    (from, to): (usize, usize),
    lane: usize,
) -> Vec<usize> {
    let hop =
        |hop: &usize| NextHop { router: id(*hop), interface: INTERFACES[0], address: address(id(*hop), 0).unwrap() };
    let hops: Vec<NextHop> = network.next_hops[from][to].iter().map(hop).collect();
    let planned = |lane| plan.and_then(|plan| plan.next_hop(&network.database, id(from), lane));
    let routes = settings.planned_routes(&INTERFACES, &hops, id(to), address, planned);
    routes
        .iter()
        .find(|route| route.lane == lane)
        .map_or_else(Vec::new, |route| route.next_hops.iter().map(|hop| hop.router.0 as usize - 1).collect())
}

/// The routers on a lane with single next hops between two others.
fn walk(
    network: &Converged,
    policy: LanePolicy,
    plan: Option<&LanePlan>,
    (from, to): (usize, usize),
    lane: usize,
) -> Vec<usize> {
    let settings = LaneSettings { policy, ..LaneSettings::default() };
    let mut passed = Vec::new();
    let mut at = from;
    while at != to {
        let next = on_lane(network, settings, plan, (at, to), lane);
        assert_eq!(next.len(), 1);
        assert!(network.distances[next[0]][to] < network.distances[at][to], "a packet does not come nearer");
        at = next[0];
        passed.push(at);
    }
    passed.pop();
    passed
}

fn converged(graph: &Graph, fullness: LsaFullness) -> Converged {
    let nodes = graph.len();
    let mut routers = Routers::new(graph.clone(), ElectionSettings::default());
    assert!(routers.settle(|| (0..nodes).collect()).is_some());
    Converged::new(routers, fullness, vec![vec![1; nodes]; nodes])
}

/// Figure 8 of the paper, with the links that a radio adds to it.
fn figure_8() -> Graph {
    let drawn =
        [(1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 5), (3, 6), (3, 7), (4, 6), (4, 7), (5, 8), (6, 8), (7, 8)];
    let mut graph = Graph::of(8, &drawn);
    [(2, 3), (3, 4), (5, 6), (6, 7)].iter().for_each(|(a, b)| graph.link(a - 1, b - 1));
    graph
}

/// The plan for a destination.
fn plan(network: &Converged, to: usize) -> LanePlan {
    let mut plan = LanePlan::default();
    plan.compute(&network.database, id(to), 3);
    plan
}

/// The middle nodes of the lanes 1 to 3 between two nodes, all as Router IDs.
fn table_3(network: &Converged, policy: LanePolicy, from: usize, to: usize) -> [Vec<usize>; 3] {
    let plan = (policy == LanePolicy::Disjoint).then(|| plan(network, to - 1));
    [1, 2, 3].map(|lane| {
        walk(network, policy, plan.as_ref(), (from - 1, to - 1), lane).iter().map(|node| node + 1).collect()
    })
}

#[test]
fn spread_lanes_are_those_of_table_3_both_ways() {
    for fullness in [LsaFullness::Full, LsaFullness::Multipath(3)] {
        let network = converged(&figure_8(), fullness);
        assert_eq!(table_3(&network, LanePolicy::Spread, 1, 8), [vec![2, 5], vec![3, 6], vec![4, 7]]);
        assert_eq!(table_3(&network, LanePolicy::Spread, 8, 1), [vec![5, 2], vec![6, 3], vec![7, 4]]);
        assert_eq!(table_3(&network, LanePolicy::Disjoint, 1, 8), [vec![2, 5], vec![3, 6], vec![4, 7]]);
        // The master subpath has three next hops.
        assert_eq!(on_lane(&network, LaneSettings::default(), None, (0, 7), 0), [1, 2, 3]);
    }
}

#[test]
fn the_rule_of_appendix_c_leads_lane_3_off_table_3() {
    let network = converged(&figure_8(), LsaFullness::Full);
    assert_eq!(table_3(&network, LanePolicy::Paper, 1, 8), [vec![2, 5], vec![3, 6], vec![4, 6]]);
    assert_eq!(table_3(&network, LanePolicy::Paper, 8, 1), [vec![5, 2], vec![6, 3], vec![7, 3]]);
}

#[test]
fn with_the_papers_lsa_fullness_all_lanes_go_through_m6() {
    let network = converged(&figure_8(), LsaFullness::MdrFull);
    assert_eq!(table_3(&network, LanePolicy::Spread, 1, 8), [vec![2, 6], vec![3, 6], vec![4, 6]]);
}

#[test]
fn full_path_lanes_have_all_next_hops() {
    let network = converged(&figure_8(), LsaFullness::Full);
    let settings = LaneSettings { paths: PathMode::Full, ..LaneSettings::default() };
    for lane in 0..4 {
        assert_eq!(on_lane(&network, settings, None, (0, 7), lane), [1, 2, 3]);
        assert_eq!(on_lane(&network, settings, None, (1, 7), lane), [4, 5]);
    }
}

#[test]
fn on_random_networks_lanes_arrive_and_their_meetings_are_counted() {
    const POLICIES: [LanePolicy; 3] = [LanePolicy::Paper, LanePolicy::Spread, LanePolicy::Disjoint];
    const FULLNESS: [LsaFullness; 4] =
        [LsaFullness::MinCost, LsaFullness::MdrFull, LsaFullness::Multipath(3), LsaFullness::Full];
    let mut random = Random::new(6);
    let mut tried = 0;
    // Pairs of lanes: all, the disjoint ones, and those that could be disjoint, by fullness and policy.
    let mut counts = [[(0, 0); 3]; 4];
    let mut possible = (0, 0);
    while tried < mesh::graphs(6).min(50) {
        let graph = Graph::unit_disk(&mut random, 50, 0.3);
        if !graph.is_connected(|_| true) {
            continue;
        }
        tried += 1;
        for (fullness, counts) in FULLNESS.into_iter().zip(&mut counts) {
            let network = converged(&graph, fullness);
            let plans: Vec<LanePlan> = (0..50).map(|to| plan(&network, to)).collect();
            for (from, to) in (0..50).flat_map(|from| (0..50).map(move |to| (from, to))) {
                // Neighbouring routers have no routers in between.
                if network.distances[from][to].is_none_or(|distance| distance < 2) {
                    continue;
                }
                for (policy, count) in POLICIES.into_iter().zip(counts.iter_mut()) {
                    let lane =
                        |lane| walk(&network, policy, Some(&plans[to]), (from, to), lane).into_iter().map(id).collect();
                    let lanes: Vec<BTreeSet<RouterId>> = (1..4).map(lane).collect();
                    let met = Disjointness::of(&lanes);
                    count.0 += met.pairs;
                    count.1 += met.disjoint;
                }
                if fullness == LsaFullness::Full {
                    let distances = &network.distances[from];
                    let paths = disjoint_paths(&graph, &network.costs, (from, to), distances, 3, |_, _| true);
                    possible.0 += 3;
                    possible.1 += [0, 0, 2, 3][paths];
                }
            }
        }
    }
    let share = |(all, disjoint): (usize, usize)| 100.0 * disjoint as f64 / all as f64;
    eprintln!("possible: {:.1} % of the pairs of lanes are disjoint", share(possible));
    for (fullness, counts) in FULLNESS.iter().zip(&counts) {
        let shares: Vec<String> =
            POLICIES.iter().zip(counts).map(|(policy, count)| format!("{policy:?} {:.1} %", share(*count))).collect();
        eprintln!("{fullness:?}: {}", shares.join(", "));
    }
    // With more advertised links lanes stay apart; only planning finds nearly all disjoint lanes, and only with full
    // knowledge.
    let [min_cost, mdr_full, multipath, full] = counts.map(|counts| counts.map(share));
    assert!(mdr_full[1].max(min_cost[1]) + 5.0 < multipath[1].min(full[1]));
    assert!(full[1] + 5.0 < full[2] && full[2] < share(possible) && share(possible) - full[2] < 2.0);
    assert!(multipath[2] + 2.0 > full[2] && mdr_full[2] < mdr_full[1]);
}
