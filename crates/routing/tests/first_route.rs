//! How soon after the start of all there are routes.

mod harness;

use anabranch_policy::{Duration, Instant};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_wire::ospf::Prefix;
use harness::{Net, Node, Setup, address, figure_8_lateral};

const STEP: Duration = Duration::from_millis(10);

/// Whether packets get from one router to another by the first of the next hops.
fn arrives(net: &Net, from: Node, to: Node) -> bool {
    let mut at = from;
    for _ in 0..net.routers.len() {
        if at == to {
            return true;
        }
        let Some(next) = net.next_hops(at, to).first().copied() else { return false };
        at = next;
    }
    at == to
}

/// Whether all routers have a shortest route to each other.
fn all(net: &Net) -> bool {
    (0..net.routers.len()).all(|from| {
        let distances = net.true_distances(from);
        (0..net.routers.len()).filter(|to| *to != from).all(|to| {
            let route = net.router(from).routes().prefixes.get(&Prefix::host(address(to, 0)));
            route.map(|route| route.cost) == distances[to]
        })
    })
}

/// Seconds until packets go from the first router to the last one and back, and until all have all routes.
fn first_and_last(setup: Setup, links: &[(Node, Node)]) -> (f64, f64) {
    let last = setup.nodes - 1;
    let mut net = Net::with_links(setup, links);
    let mut first = None;
    loop {
        net.run_for(STEP);
        let since = net.now.since(Instant::ZERO).as_secs_f64();
        assert!(since < 60.0, "no routes");
        if first.is_none() && arrives(&net, 0, last) && arrives(&net, last, 0) {
            first = Some(since);
        }
        if let (Some(first), true) = (first, all(&net)) {
            return (first, since);
        }
    }
}

/// Least, median and greatest.
fn spread(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [all[0], all[all.len() / 2], all[all.len() - 1]]
}

/// The medians of the first and of the last route over 20 seeds. HelloInterval and 2HopRefresh are those of a profile.
fn medians(nodes: usize, links: &[(Node, Node)], (hello, refresh, fullness): (u64, u16, LsaFullness)) -> (f64, f64) {
    let runs = (1..=20).map(|seed| {
        let mut setup = Setup::new(nodes, seed);
        setup.hello = Duration::from_secs(hello);
        setup.dead = setup.hello * 3;
        setup.manet.two_hop_refresh = refresh;
        setup.manet.lsa_fullness = fullness;
        first_and_last(setup, links)
    });
    let (first, last): (Vec<f64>, Vec<f64>) = runs.unzip();
    let (first, last) = (spread(first), spread(last));
    eprintln!(
        "{nodes} routers, HelloInterval {hello} s, 2HopRefresh {refresh}: first {first:.2?} s, last {last:.2?} s"
    );
    (first[1], last[1])
}

const DEFAULT: (u64, u16, LsaFullness) = (2, 1, LsaFullness::MinCost);
const MULTIPATH: (u64, u16, LsaFullness) = (1, 6, LsaFullness::Full);

fn chain(length: usize) -> Vec<(Node, Node)> {
    (1..length).map(|node| (node - 1, node)).collect()
}

#[test]
fn three_routers_in_a_chain_reach_each_other_within_two_seconds() {
    for profile in [DEFAULT, MULTIPATH] {
        let (first, last) = medians(3, &chain(3), profile);
        assert!(first < 2.0 && last < 2.0, "{first:.2}, {last:.2}");
    }
}

#[test]
fn a_longer_chain_and_the_paper_s_mesh_take_little_longer() {
    for profile in [DEFAULT, MULTIPATH] {
        for links in [chain(8), figure_8_lateral()] {
            let (first, last) = medians(8, &links, profile);
            assert!(first < 2.0 && last < 3.0, "{first:.2}, {last:.2}");
        }
    }
}

#[test]
fn a_router_that_joins_later_has_routes_as_soon() {
    let mut all: Vec<f64> = (1..=20)
        .map(|seed| {
            let mut setup = Setup::new(4, seed);
            setup.hello = Duration::from_secs(2);
            setup.dead = setup.hello * 3;
            let mut net = Net::new(setup);
            chain(4).into_iter().for_each(|(a, b)| net.set_link(a, b, true));
            (0..3).for_each(|node| net.start(node));
            let wait = Duration::from_secs(60) + Duration::from_secs(2).mul_f64(net.random());
            net.run_for(wait);
            net.start(3);
            let start = net.now;
            while !(arrives(&net, 0, 3) && arrives(&net, 3, 0)) {
                net.run_for(STEP);
                assert!(net.now.since(start) < Duration::from_secs(60), "no routes");
            }
            net.now.since(start).as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    eprintln!("a router that joins: {all:.2?} s");
    assert!(all[10] < 2.0, "{all:.2?}");
}
