//! Networks of moving nodes: `mesh_moving [WORD=NUMBER ...]`, words being nodes, range, fullness (0 minimal, 1 min-cost, 4
//! full), seconds, warm_up, seed, slowest and fastest (m/s), density (1: the area grows with the nodes, from 20 on), basic
//! (rate of broadcast frames, Mbit/s), refresh (2HopRefresh).

#![allow(clippy::print_stdout)]

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mobility::{Model, Span};
use std::collections::BTreeMap;

fn main() -> Result<(), String> {
    let words: BTreeMap<String, f64> = std::env::args()
        .skip(1)
        .filter_map(|word| {
            word.split_once('=').and_then(|(word, number)| Some((word.to_owned(), number.parse().ok()?)))
        })
        .collect();
    let number = |word: &str, default: f64| words.get(word).copied().unwrap_or(default);
    let fullness = match number("fullness", 1.0) as u8 {
        0 => LsaFullness::Minimal,
        4 => LsaFullness::Full,
        _ => LsaFullness::MinCost,
    };
    let nodes = number("nodes", 20.0) as usize;
    let mut network = MovingNetwork::appendix_e(20, number("range", 250.0), fullness, number("seed", 1.0) as u64);
    if number("density", 0.0) > 0.0 {
        network = network.with_nodes(nodes);
    }
    network.nodes = nodes;
    network.duration = Duration::from_secs_f64(number("seconds", 600.0));
    network.warm_up = Duration::from_secs_f64(number("warm_up", 60.0));
    network.manet.two_hop_refresh = number("refresh", 3.0) as u16;
    network.medium.basic_rate = Rate::from_bits_per_second((number("basic", 1.0) * 1e6) as u64);
    let speed = Span::new(number("slowest", MovingNetwork::SLOWEST), number("fastest", 10.0));
    network.model = Model::RandomWaypoint { speed, pause: Span::only(0.0) };
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
