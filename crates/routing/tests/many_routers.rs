//! Many routers in one process: `ANABRANCH_ROUTERS` of them, 60 without, over 60 simulated seconds.

mod harness;

use anabranch_policy::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use harness::{Net, Setup};

#[test]
fn many_routers_converge_on_a_random_disk_graph() {
    let nodes: usize = std::env::var("ANABRANCH_ROUTERS").ok().and_then(|value| value.parse().ok()).unwrap_or(60);
    let mut setup = Setup::new(nodes, 11);
    setup.manet.lsa_fullness = LsaFullness::MinCost;
    setup.link_lsa_suppression = true;
    let mut net = Net::new(setup);
    // Disks of radius 1 on a square of so many units that a router has 12 neighbours in the mean.
    let side = (nodes as f64 * core::f64::consts::PI / 12.0).sqrt();
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (side * net.random(), side * net.random())).collect();
    for a in 0..nodes {
        for b in 0..a {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            if dx * dx + dy * dy < 1.0 {
                net.set_link(a, b, true);
            }
        }
        net.start(a);
    }
    let began = std::time::Instant::now();
    for _ in 0..6 {
        net.run_for(Duration::from_secs(10));
        let sum = |count: &dyn Fn(usize) -> u64| (0..nodes).map(count).sum::<u64>();
        let counters = |node: usize| net.router(node).counters();
        eprintln!(
            "{:?}: {:.1} s of work; {} bytes/s and router; packets {:?}; {} LSAs in, {} calculations",
            net.now,
            began.elapsed().as_secs_f64(),
            sum(&|node| net.bytes(node)) / 10 / nodes as u64,
            [0, 1, 2, 3, 4].map(|kind| sum(&|node| counters(node).sent[kind])),
            sum(&|node| counters(node).lsas_received),
            sum(&|node| counters(node).calculations),
        );
    }
    // A few sources suffice: each reaches all it can, at the cost of the true graph.
    for from in (0..nodes).step_by(nodes.div_ceil(5)) {
        let distances = net.true_distances(from);
        let routes = &net.router(from).routes().routers;
        for (to, distance) in distances.iter().enumerate().filter(|(to, _)| *to != from) {
            assert_eq!(routes.get(&harness::id(to)).map(|route| route.cost), *distance, "{from} to {to}");
        }
    }
}
