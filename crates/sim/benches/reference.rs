//! Time for the networks of the comparison with ns-3, and as connections grow many: `cargo bench -p anabranch-sim`.
//!
//! The throughput that is printed counts packets sent by the endpoints. Where it stays the same from 10 connections to
//! 1,000, time is linear in packets.

use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::World;
use anabranch_sim::reference::{Bottleneck, FIFTY_FLOWS, ONE_LINK, TWO_LINKS, connection, crowd, direct};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// Runs a world; returns the packets that its endpoints sent.
fn run(mut world: World, seconds: u64) -> u64 {
    world.run_until(Instant::ZERO + Duration::from_secs(seconds));
    let flows = world.results().flows;
    flows.iter().map(|flow| flow.client.stats.segments_sent + flow.server.stats.segments_sent).sum()
}

fn bench(bencher: Bencher<'_, '_>, seconds: u64, world: impl Fn() -> World + Sync) {
    let packets = run(world(), seconds);
    bencher.counter(ItemsCount::new(packets)).with_inputs(&world).bench_values(|world| run(world, seconds));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn one_flow_for_100_seconds(bencher: Bencher<'_, '_>) {
    bench(bencher, 100, || direct(1, &[ONE_LINK], &connection("new_reno", false)).0);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn one_multipath_connection_for_100_seconds(bencher: Bencher<'_, '_>) {
    bench(bencher, 100, || direct(1, &TWO_LINKS, &connection("lia", true)).0);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn fifty_flows_for_100_seconds(bencher: Bencher<'_, '_>) {
    bench(bencher, 100, || crowd(1, 50, &FIFTY_FLOWS, &connection("new_reno", false)));
}

/// 1 Mbit/s for each connection, 10 simulated seconds.
#[divan::bench(args = [10, 100, 1000], sample_count = 5, sample_size = 1)]
fn connections(bencher: Bencher<'_, '_>, count: usize) {
    let bottleneck = Bottleneck::new(count as u64, 20, 10 * count);
    bench(bencher, 10, || crowd(1, count, &bottleneck, &connection("new_reno", false)));
}
