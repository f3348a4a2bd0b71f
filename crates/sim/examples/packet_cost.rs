//! What a packet costs per hop, without any transport: UDP over two links with a router between them, and cross
//! traffic on the second.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::EndpointConfig;
use anabranch_policy::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::{End, LinkConfig, UdpConfig, World, WorldConfig};

struct Idle;

impl PathManager for Idle {
    fn handle(&mut self, _now: Instant, _event: &PathEvent<'_>, _actions: &mut Vec<PathAction>) {}
}

fn main() {
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let mbit = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
    let router = world.add_router();
    let first = LinkConfig::new(mbit(100), Duration::from_millis(5), 100);
    let second = LinkConfig::new(mbit(100), Duration::from_millis(10), 100);
    let a_out = world.add_link("a out", &first, End::Hosts, End::Router(router));
    let b_in = world.add_link("b in", &second, End::Router(router), End::Hosts);
    let a = world.add_host("a", &EndpointConfig::default(), Box::new(Idle));
    let b = world.add_host("b", &EndpointConfig::default(), Box::new(Idle));
    let from = world.add_interface(a, a_out, &[]);
    let to = world.add_interface(b, a_out, &[b_in]);
    world.add_udp(UdpConfig::steady("load", from, to, mbit(90), 1500));
    let began = std::time::Instant::now();
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(200);
    world.run_until(Instant::ZERO + Duration::from_secs(seconds));
    let took = began.elapsed();
    let result = world.results();
    println!(
        "{} deliveries, {} events, {} dropped, {:.1} ns per packet and hop",
        result.deliveries,
        result.events,
        result.drops().total(),
        took.as_nanos() as f64 / result.deliveries as f64
    );
}
