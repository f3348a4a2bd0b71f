//! Many routers on an ideal radio. `ANABRANCH_ROUTERS` sets the number, small by default, and `ANABRANCH_SECONDS` how long: after
//! less than two minutes all must be reached, and then over the shortest paths, which large networks tell last.

mod harness;

use anabranch_policy::Duration;
use anabranch_routing::counters::Counters;
use anabranch_routing::lsa_fullness::LsaFullness;
use harness::{Net, Setup, id};

/// Seconds after which all paths are the shortest.
const SETTLED: usize = 120;

#[test]
fn all_routers_of_a_large_network_find_each_other() {
    let asked = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let nodes: usize = asked("ANABRANCH_ROUTERS").unwrap_or(60);
    let seconds = asked("ANABRANCH_SECONDS").unwrap_or(SETTLED) as u64;
    let mut setup = Setup::new(nodes, 11);
    setup.hello = Duration::from_secs(2);
    setup.dead = Duration::from_secs(6);
    setup.manet.lsa_fullness = LsaFullness::MinCost;
    let mut net = Net::new(setup);
    // About twelve neighbours each in the middle of a square.
    let reach = 12.0 / (std::f64::consts::PI * nodes as f64);
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (net.random(), net.random())).collect();
    for a in 0..nodes {
        for b in 0..a {
            let (x, y) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            if x * x + y * y <= reach {
                net.set_link(a, b, true);
            }
        }
    }
    // Staggered.
    for node in 0..nodes {
        net.start(node);
        net.run_for(Duration::from_millis(5));
    }
    net.run_until(anabranch_policy::Instant::ZERO + Duration::from_secs(seconds));
    // A sample, to limit the time.
    for node in (0..nodes).step_by(nodes.div_ceil(50)) {
        let table = net.router(node).routes();
        let distances = net.true_distances(node);
        for (to, distance) in distances.iter().enumerate().filter(|(to, _)| *to != node) {
            let found = table.routers.get(&id(to)).map(|route| route.cost);
            if seconds < SETTLED as u64 {
                assert_eq!(found.is_some(), distance.is_some(), "from {node} to {to}");
            } else {
                assert_eq!(found, *distance, "from {node} to {to}");
            }
        }
    }
    let mean = |count: fn(&Counters) -> u64| {
        (0..nodes).map(|node| count(net.router(node).counters())).sum::<u64>() as f64 / nodes as f64
    };
    eprintln!(
        "{nodes} routers, {seconds} s, each: {:.0} bytes/s, {:.1} calculations of routes, {:.1} LSAs originated, {:.0} LSAs \
         received, {:.0} flooded, {:.0} retransmitted, {:.0} packets received, {:.0} of them Hellos",
        mean(Counters::all_sent_bytes) / seconds as f64,
        mean(|counters| counters.calculations),
        mean(|counters| counters.lsas_originated),
        mean(|counters| counters.lsas_received),
        mean(|counters| counters.lsas_flooded),
        mean(|counters| counters.lsas_retransmitted),
        mean(|counters| counters.received.iter().sum()),
        mean(|counters| counters.received[0]),
    );
}
