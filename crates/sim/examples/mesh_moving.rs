//! Networks of moving nodes: `mesh_moving [WORD=NUMBER ...]`, words being nodes, range, fullness (0 minimal, 1 min-cost, 4
//! full), seconds, warm_up, seed, slowest and fastest (m/s, in the steady
//! state; as in the appendix without them), density (1: the area grows with the nodes, from 20 on), basic
//! (rate of broadcast frames, Mbit/s), sense (how far frames are sensed and disturb others, in ranges), refresh (2HopRefresh), fast (1: a radio of
//! 100 Mbit/s with slots of 2 us), spf_hold, start_within, flood_delay and
//! ls_interval (seconds).

#![allow(clippy::print_stdout)]

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mobility::{Model, Span};
use anabranch_sim::radio::{Preamble, Reach};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    let range = number("range", 250.0);
    network.medium.reach =
        Reach::Radii { decode: range, interfere: range * number("sense", 1.0), sense: range * number("sense", 1.0) };
    network.manet.two_hop_refresh = number("refresh", 3.0) as u16;
    network.medium.basic_rate = Rate::from_bits_per_second((number("basic", 11.0) * 1e6) as u64);
    if number("fast", 0.0) > 0.0 {
        let medium = &mut network.medium;
        (medium.slot, medium.short_interframe_space) = (Duration::from_micros(2), Duration::from_micros(2));
        (medium.data_rate, medium.basic_rate) =
            (Rate::from_bits_per_second(100_000_000), Rate::from_bits_per_second(100_000_000));
        medium.preamble = Preamble::Short;
    }
    let hold = Duration::from_secs_f64(number("spf_hold", 0.1));
    let (flood, interval) = (number("flood_delay", 0.05), number("ls_interval", 5.0));
    network.router = Some(Arc::new(move |_, config| {
        config.spf_hold = hold;
        config.flood_delay = Duration::from_secs_f64(flood);
        config.min_ls_interval = Duration::from_secs_f64(interval);
    }));
    network.start_within = Duration::from_secs_f64(number("start_within", 2.0));
    if let Some(slowest) = words.get("slowest") {
        let speed = Span::new(*slowest, number("fastest", 10.0));
        network.model = Model::RandomWaypoint { speed, pause: Span::only(0.0) };
    }
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
    println!(
        "  {:.2} bidirectional neighbours with {:.3} changes, {:.2} adjacent ones with {:.3}, per node and second",
        seen.bidirectional, seen.bidirectional_changes, seen.adjacent, seen.adjacency_changes
    );
    println!("  by type {:?}; {} events, {:.1} s", seen.by_type, seen.events, began.elapsed().as_secs_f64());
    Ok(())
}
