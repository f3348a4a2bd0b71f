//! Long fat paths: goodput, what is sent again, and time per packet.
//!
//! `long_fat [MBIT [RTT_MS [LOSS [CONGESTION [SCHEDULER [PATHS [SECONDS [SHARE]]]]]]]]`: paths of that rate, each with a queue of
//! `SHARE` (1) bandwidth-delay products, and buffers that are never the limit. The second half of the time counts.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::{BufferSize, ConnectionConfig, TcpConfig};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, scheduler};
use anabranch_sim::reference::{Bottleneck, PACKET, connection, direct};
use std::sync::Arc;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &'static str| words.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let number = |at: usize, default: &'static str| word(at, default).parse::<f64>().expect("a number");
    let (mbit, rtt, loss) = (number(0, "1000"), number(1, "600"), number(2, "0"));
    let (control, order) = (word(3, "anabranch"), word(4, "anabranch"));
    let (paths, seconds, share) = (number(5, "1") as usize, number(6, "60"), number(7, "1"));
    let volume = mbit * 1e6 / 8.0 * rtt / 1e3;
    let queue = (volume * share / f64::from(PACKET)) as usize;
    let path = Bottleneck { loss, ..Bottleneck::new(mbit as u64, (rtt / 2.0) as u64, queue.max(10)) };
    let buffer = (volume * 8.0 * paths as f64) as u64 + (4 << 20);
    let mut config = ConnectionConfig {
        receive_buffer: BufferSize::Fixed(buffer),
        send_buffer: buffer,
        ..connection("new_reno", true)
    };
    config.tcp = TcpConfig { mtu: PACKET as u16, ..TcpConfig::default() };
    config.policies.congestion =
        Arc::new(move || table::build(congestion::TABLE, &control, &Settings::new()).expect("a congestion control"));
    config.policies.scheduler =
        Arc::new(move || table::build(scheduler::TABLE, &order, &Settings::new()).expect("a scheduler"));
    let (mut world, _) = direct(1, &vec![path; paths], &config);
    let half = Instant::ZERO + Duration::from_secs_f64(seconds / 2.0);
    let began = std::time::Instant::now();
    world.run_until(half);
    let before = world.results();
    world.run_until(half + Duration::from_secs_f64(seconds / 2.0));
    let took = began.elapsed().as_nanos() as f64;
    let after = world.results();
    let [from, to] = [&before, &after].map(|results| &results.flows[0]);
    let (sent, again) = (
        (to.client.stats.bytes_sent - from.client.stats.bytes_sent) as f64,
        (to.client.stats.bytes_retransmitted - from.client.stats.bytes_retransmitted) as f64,
    );
    let packets = to.client.stats.segments_sent + to.server.stats.segments_sent;
    println!(
        "{:.1} Mbit/s, {:.2} % sent again, {:.0} ns per packet, {packets} packets",
        (to.server.read - from.server.read) as f64 * 8e-6 / (seconds / 2.0),
        100.0 * again / (sent + again).max(1.0),
        took / packets.max(1) as f64,
    );
}
