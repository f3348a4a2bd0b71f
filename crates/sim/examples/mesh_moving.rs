//! Networks of moving nodes: `mesh_moving [NODES [RANGE [minimal|min_cost|full [SECONDS [SEED [SLOWEST]]]]]]`.

#![allow(clippy::print_stdout)]

use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mobility::{Model, Span};

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: f64| words.get(place).and_then(|word| word.parse().ok()).unwrap_or(default);
    let fullness = match words.get(2).map(String::as_str) {
        Some("minimal") => LsaFullness::Minimal,
        Some("full") => LsaFullness::Full,
        _ => LsaFullness::MinCost,
    };
    let nodes = number(0, 20.0) as usize;
    // A seventh word keeps the density of 20 nodes.
    let mut network = MovingNetwork::appendix_e(20, number(1, 250.0), fullness, number(4, 1.0) as u64);
    if number(6, 0.0) > 0.0 {
        network = network.with_nodes(nodes);
    }
    network.nodes = nodes;
    network.duration = Duration::from_secs_f64(number(3, 600.0));
    let slowest = number(5, MovingNetwork::SLOWEST);
    network.model = Model::RandomWaypoint { speed: Span::new(slowest, 10.0), pause: Span::only(0.0) };
    let began = std::time::Instant::now();
    let seen = network.run()?;
    println!(
        "{nodes} nodes: {:.1} kbit/s ({:.1} without IP), {:.1} packets/s, delivered {:.3} of {} in {:.3} hops",
        seen.overhead / 1e3,
        seen.overhead_without_ip / 1e3,
        seen.packets,
        seen.delivery(),
        seen.probes,
        seen.hops
    );
    println!(
        "  no route {}, not acknowledged {}, looped {}; {:.2} in range, {:.3} changes and {:.3} changes of routes per node and second",
        seen.no_route, seen.not_acknowledged, seen.looped, seen.neighbors, seen.neighbor_changes, seen.route_changes
    );
    println!("  by type {:?}; {} events, {:.1} s", seen.by_type, seen.events, began.elapsed().as_secs_f64());
    Ok(())
}
