//! What TCP costs in the lab: one flow on 10 Mbit/s and 20 ms, and fifty on 100 Mbit/s, for 100 simulated seconds.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::{ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, scheduler};
use anabranch_sim::application::Sending;
use anabranch_sim::topology::{NoPaths, dumbbell};
use anabranch_sim::{Application, FlowConfig, LinkConfig, World, WorldConfig};
use std::sync::Arc;

fn run(flows: usize, mbit: u64, seconds: u64) {
    let policies = Policies {
        congestion: Arc::new(|| table::build(congestion::TABLE, "new_reno", &Settings::new()).expect("it is there")),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).expect("it is there")),
    };
    let config = ConnectionConfig { multipath: false, ..ConnectionConfig::new(policies) };
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let mut hosts = |side: &str| -> Vec<_> {
        let endpoint = EndpointConfig::default();
        (0..flows).map(|n| world.add_host(&format!("{side} {n}"), &endpoint, Box::new(NoPaths))).collect()
    };
    let (left, right) = (hosts("left"), hosts("right"));
    let free = LinkConfig::default();
    let queue = (mbit * 10).max(50) as usize;
    let link = LinkConfig::new(Rate::from_bits_per_second(mbit * 1_000_000), Duration::from_millis(20), queue);
    let bell = dumbbell(&mut world, &left, &right, &free, &link, &link);
    for (n, (from, to)) in bell.left.iter().zip(&bell.right).enumerate() {
        world.add_flow(FlowConfig {
            name: format!("flow {n}"),
            client: left[n],
            from: Some(*from),
            to: *to,
            start: Instant::ZERO + Duration::from_millis(10) * n as u64,
            stop: Instant::NEVER,
            application: Application::upload(Sending::Endless),
            client_config: config.clone(),
            server_config: config.clone(),
            record: None,
        });
    }
    let began = std::time::Instant::now();
    world.run_until(Instant::ZERO + Duration::from_secs(seconds));
    let took = began.elapsed();
    let result = world.results();
    let read: u64 = result.flows.iter().map(|flow| flow.server.read).sum();
    let packets: u64 =
        result.flows.iter().map(|flow| flow.client.stats.segments_sent + flow.server.stats.segments_sent).sum();
    println!(
        "{flows} flows, {mbit} Mbit/s: {:.2} Mbit/s goodput, {packets} packets, {} deliveries, {:.3} s, {:.0} ns per packet",
        read as f64 * 8e-6 / seconds as f64,
        result.deliveries,
        took.as_secs_f64(),
        took.as_nanos() as f64 / packets.max(1) as f64
    );
}

/// `tcp_cost [FLOWS MBIT SECONDS]`; without words both.
fn main() {
    let words: Vec<u64> = std::env::args().skip(1).map(|word| word.parse().expect("a whole number")).collect();
    match words[..] {
        [flows, mbit, seconds] => run(flows as usize, mbit, seconds),
        _ => {
            run(1, 10, 100);
            run(50, 100, 100);
        }
    }
}
