//! How soon packets arrive again after a router in their way began anew, before or after its neighbours missed it.

mod harness;

use anabranch_policy::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use harness::{Net, Node, Setup, figure_8_lateral};

const STEP: Duration = Duration::from_millis(10);
/// From the start of all until one begins anew.
const SETTLED: Duration = Duration::from_secs(30);
/// For so long what arrives is looked at.
const WATCHED: Duration = Duration::from_secs(12);

/// Whether packets get from each router to each other one by the first of the next hops.
fn all_arrive(net: &Net) -> bool {
    let nodes = net.routers.len();
    let arrives = |from: Node, to: Node| {
        let next = |at: &Node| net.next_hops(*at, to).first().copied().filter(|_| *at != to);
        core::iter::successors(Some(from), next).take(nodes).last() == Some(to)
    };
    (0..nodes).all(|from| (0..nodes).all(|to| arrives(from, to)))
}

/// HelloInterval in seconds, 2HopRefresh and the links in LSAs.
type Profile = (u64, u16, LsaFullness);
const DEFAULT: Profile = (2, 1, LsaFullness::MinCost);
const MULTIPATH: Profile = (1, 6, LsaFullness::Full);

fn chain(length: usize) -> Vec<(Node, Node)> {
    (1..length).map(|node| (node - 1, node)).collect()
}

/// How a router ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Killed,
    /// It flushes its LSAs, and sends a last Hello.
    Leaves,
}

/// Seconds from the start of a router again until all packets arrive for good.
fn until_all_arrive(mut setup: Setup, links: &[(Node, Node)], node: Node, end: End, down: Duration) -> f64 {
    // Packets of one router arrive in the order in which they were sent.
    setup.delay = Duration::ZERO;
    let mut net = Net::with_links(setup, links);
    let wait = SETTLED + Duration::from_secs(2).mul_f64(net.random());
    net.run_for(wait);
    assert!(all_arrive(&net));
    match end {
        End::Killed => net.stop(node),
        End::Leaves => net.leave(node),
    }
    net.run_for(down);
    net.start(node);
    let start = net.now;
    let mut lost = start;
    while net.now.since(start) < WATCHED {
        if !all_arrive(&net) {
            lost = net.now;
        }
        net.run_for(STEP);
    }
    lost.since(start).as_secs_f64()
}

/// All packets arrive again within 3 s, with any of these seeds.
fn all_arrive_in_time(nodes: usize, links: &[(Node, Node)], node: Node) {
    for (hello, refresh, fullness) in [DEFAULT, MULTIPATH] {
        for (end, down) in [(End::Killed, 100), (End::Killed, 1500), (End::Leaves, 100), (End::Leaves, 1500)] {
            for seed in 1..=8 {
                let mut setup = Setup::new(nodes, seed);
                setup.hello = Duration::from_secs(hello);
                setup.dead = setup.hello * 3;
                setup.manet.two_hop_refresh = refresh;
                setup.manet.lsa_fullness = fullness;
                let seconds = until_all_arrive(setup, links, node, end, Duration::from_millis(down));
                assert!(
                    seconds < 3.0,
                    "HelloInterval {hello} s, {end:?}, back after {down} ms, seed {seed}: {seconds:.2} s"
                );
            }
        }
    }
}

#[test]
fn the_only_way_leads_through_a_router_that_began_anew_within_three_seconds() {
    all_arrive_in_time(3, &chain(3), 1);
    all_arrive_in_time(5, &chain(5), 2);
}

#[test]
fn a_mesh_is_right_again_within_three_seconds() {
    all_arrive_in_time(8, &figure_8_lateral(), 4);
}
