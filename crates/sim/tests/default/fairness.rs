//! The default's share of a shared bottleneck.

use super::dead_path::default_config;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, PACKET_IN_NS3, connection, shared};

const MBIT: u64 = 20;

/// Goodput of a connection with `subflows` subflows relative to a TCP connection in the second minute; the queue is in
/// bandwidth-delay products.
fn share(rival: &'static str, subflows: usize, round_trip_ms: u64, queue: f64) -> f64 {
    let product = MBIT as f64 * 1e3 * round_trip_ms as f64 / 8.0 / f64::from(PACKET_IN_NS3);
    let bottleneck = Bottleneck::new(MBIT, round_trip_ms / 2, (product * queue) as usize);
    let mut own = default_config();
    own.multipath = true;
    let mut world = shared(1, subflows, 1, &bottleneck, &own, &connection(rival, false));
    let mut read = |seconds| {
        world.run_until(Instant::ZERO + Duration::from_secs(seconds));
        world.results().flows.iter().map(|flow| flow.receiver().read).collect::<Vec<_>>()
    };
    let before = read(60);
    let gained: Vec<u64> = read(120).iter().zip(before).map(|(after, before)| after - before).collect();
    gained[0] as f64 / gained[1] as f64
}

#[test]
fn two_subflows_take_more_than_one_tcp_from_a_short_queue() {
    // Stated in docs/default-policy.md: fairness here requires a coupled congestion control.
    for rival in ["cubic", "new_reno"] {
        let [one, two] = [1, 2].map(|subflows| share(rival, subflows, 20, 0.5));
        assert!(two > 1.1 && two > one, "{rival}: {one} {two}");
    }
}

#[test]
#[ignore = "prints the table of docs/measurements/default-policy.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    println!(
        "\n| TCP | RTT, ms | queue, bandwidth-delay products | one subflow | two subflows |\n|---|---|---|---|---|"
    );
    for rival in ["cubic", "new_reno"] {
        for round_trip in [20, 100] {
            for queue in [0.5, 1.0, 4.0] {
                let [one, two] = [1, 2].map(|subflows| share(rival, subflows, round_trip, queue));
                println!("| {rival} | {round_trip} | {queue} | {one:.1} | {two:.1} |");
            }
        }
    }
}
