//! After joins, leaves, partitions and losses an undisturbed network has equal databases, correct routes and no loops.
//!
//! Runs `ANABRANCH_RUNS` random histories, 2,000 without, from the seed `ANABRANCH_SEED`, 1 without.

mod harness;

use std::collections::BTreeSet;

use anabranch_policy::Duration;
use anabranch_routing::NeighborState;
use anabranch_routing::config::Manet;
use anabranch_routing::election::{AdjConnectivity, ElectionSettings};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_wire::ospf::{InterfaceId, LsaKey, LsaSequence, Prefix};
use harness::{Net, Node, Setup, address, id};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

type Content = BTreeSet<(Option<InterfaceId>, LsaKey, LsaSequence, u16)>;

/// The database without ages.
fn database(net: &Net, node: Node) -> Content {
    let all = net.router(node).lsas(net.now);
    all.map(|(link, aged)| (link, aged.lsa.key(), aged.lsa.sequence(), aged.lsa.checksum())).collect()
}

/// Whether costs of routes equal those of the true graph.
fn is_shortest(fullness: LsaFullness) -> bool {
    match fullness {
        LsaFullness::Minimal | LsaFullness::MdrFull => false,
        LsaFullness::MinCost | LsaFullness::MinCostRedundant | LsaFullness::Full | LsaFullness::Multipath(_) => true,
    }
}

/// Checks the properties of an undisturbed network.
fn check(net: &Net, nodes: usize, manet: &Manet, what: &str) {
    for from in (0..nodes).filter(|node| net.is_on(*node)) {
        let distances = net.true_distances(from);
        let reached = |to: Node| distances[to].is_some();
        for view in net.router(from).neighbors(net.now) {
            let to = view.router.0 as usize - 1;
            assert!(view.state < NeighborState::TwoWay || net.is_linked(from, to), "{what}: {from} hears {to}");
            assert!(view.requested == 0 && view.unacknowledged == 0, "{what}: {from} {view:?}");
        }
        for to in (0..nodes).filter(|to| *to != from && net.is_on(*to)) {
            if reached(to) {
                let (one, other) = (database(net, from), database(net, to));
                let only = |a: &Content, b: &Content| -> Content { a.difference(b).copied().collect() };
                let difference = (only(&one, &other), only(&other, &one));
                assert_eq!(difference, Default::default(), "{what}: only {from} or {to} has");
            }
            let route = net.router(from).routes().prefixes.get(&Prefix::host(address(to, 0)));
            let cost = route.map(|route| route.cost);
            assert_eq!(cost.is_some(), reached(to), "{what}: {from} to {to}");
            if is_shortest(manet.lsa_fullness) {
                assert_eq!(cost, distances[to], "{what}: {from} to {to}");
            }
            assert_eq!(net.router(from).routes().routers.contains_key(&id(to)), reached(to), "{what}: {from} to {to}");
            for hop in net.next_hops(from, to) {
                assert!(net.is_linked(from, hop) && net.is_on(hop), "{what}: {from} to {to} by {hop}");
            }
        }
    }
    for to in (0..nodes).filter(|node| net.is_on(*node)) {
        for from in (0..nodes).filter(|node| net.is_on(*node)) {
            follow(net, from, to, &mut Vec::new(), what);
        }
    }
}

/// Follows every next hop: no path visits a router again.
fn follow(net: &Net, from: Node, to: Node, way: &mut Vec<Node>, what: &str) {
    assert!(!way.contains(&from), "{what}: a loop on the way to {to}: {way:?} {from}");
    if from == to || way.len() > 3 && way.len() > net.routers.len() {
        return;
    }
    way.push(from);
    for hop in net.next_hops(from, to) {
        follow(net, hop, to, way, what);
    }
    way.pop();
}

/// A random history from a seed.
fn run(seed: u64) {
    let mut dice = Net::new(Setup::new(1, seed.wrapping_mul(7919)));
    let nodes = 2 + dice.below(8);
    let mut setup = Setup::new(nodes, seed);
    setup.channels = 1 + dice.below(4) / 3;
    let adj_connectivity =
        [AdjConnectivity::Full, AdjConnectivity::Uniconnected, AdjConnectivity::Biconnected][dice.below(3)];
    let mut choices = vec![LsaFullness::MinCost, LsaFullness::MinCostRedundant, LsaFullness::Full];
    if adj_connectivity != AdjConnectivity::Full {
        choices.extend([LsaFullness::Minimal, LsaFullness::MdrFull]);
    }
    setup.manet = Manet {
        two_hop_refresh: [1, 3][dice.below(2)],
        lsa_fullness: choices[dice.below(choices.len())],
        election: ElectionSettings { adj_connectivity, ..ElectionSettings::default() },
        ..Manet::default()
    };
    setup.loss = [0.0, 0.05, 0.3][dice.below(3)];
    let manet = setup.manet.clone();
    let what = format!("seed {seed}, {nodes} routers, {adj_connectivity:?}, {:?}", manet.lsa_fullness);
    let density = 0.2 + 0.6 * dice.random();
    let mut net = Net::new(setup);
    for a in 0..nodes {
        for b in 0..a {
            if dice.random() < density {
                net.set_link(a, b, true);
            }
        }
        net.start(a);
    }
    for _ in 0..3 + dice.below(12) {
        let pause = Duration::from_secs_f64(8.0 * dice.random() * dice.random());
        net.run_for(pause);
        let (a, b) = (dice.below(nodes), dice.below(nodes));
        match dice.below(5) {
            0 => net.stop(a),
            1 if !net.is_on(a) => net.start(a),
            2 => {
                // A partition: all links between two parts.
                let part: Vec<bool> = (0..nodes).map(|_| dice.random() < 0.5).collect();
                for a in 0..nodes {
                    for b in (0..a).filter(|b| part[a] != part[*b]) {
                        net.set_link(a, b, false);
                    }
                }
            }
            3 => {
                for a in 0..nodes {
                    for b in 0..a {
                        if dice.random() < density / 2.0 {
                            net.set_link(a, b, true);
                        }
                    }
                }
            }
            _ if a != b => net.set_link(a, b, !net.is_linked(a, b)),
            _ => {}
        }
    }
    net.set_loss(0.0);
    net.run_for(Duration::from_secs(90));
    check(&net, nodes, &manet, &what);
}

#[test]
fn databases_are_equal_and_routes_right_after_random_joins_leaves_partitions_and_losses() {
    let seed = number("ANABRANCH_SEED", 1);
    for run_seed in seed..seed + number("ANABRANCH_RUNS", 2000) {
        run(run_seed);
    }
}
