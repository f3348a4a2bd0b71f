//! One flow over one drop-tail link: goodput compared with ns-3 on sixteen links.
//!
//! ns-3's figures are from its Python wheel 3.44 and Debian's 3.37; two nodes on a point-to-point link, drop-tail queue
//! at the device, 1400-byte segments, SACK and timestamps, delayed acknowledgements (2 segments, 200 ms), initial
//! window 10, minimum retransmission timeout 1 s, buffers of 4 MB, 100 s.
//!
//! **NewReno.** ns-3 has two: `TcpNewReno` adds a segment's square over the window for each acknowledgement, so that
//! delayed acknowledgements halve its growth; `TcpLinuxReno` counts segments acknowledged. Ours counts bytes
//! acknowledged (RFC 3465): one segment per window and round trip, independent of delayed acknowledgements. Where the
//! queue is much shorter than the bandwidth-delay product, growth dominates, and ns-3's two differ by up to 14 % (100
//! ms, 10 packets). Ours must be within 5 % of the range between the two everywhere, and is within 1 % in nearly all
//! cases.
//!
//! **CUBIC.** ns-3 changed its CUBIC between 3.37 and 3.44, and the two differ by up to 35 % where the queue is short.
//! Ours must be within 5 % of 3.37 everywhere (it is within 1.5 %), and of 3.44 where those two agree.

use super::golden;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::reference::{Bottleneck, ONE_LINK, connection, direct, goodput};
use core::fmt::Write;

const QUEUES: [usize; 4] = [10, 25, 50, 200];

/// ns-3's Mbit/s by one-way delay (ms) and queue.
type Grid = [(u64, [f64; 4]); 4];

const NEW_RENO: Grid = [
    (5, [9.507, 9.627, 9.627, 9.627]),
    (20, [8.473, 9.431, 9.616, 9.616]),
    (50, [7.504, 8.510, 9.317, 9.578]),
    (100, [5.942, 7.050, 8.589, 9.497]),
];
const LINUX_RENO: Grid = [
    (5, [9.526, 9.603, 9.627, 9.627]),
    (20, [7.820, 8.811, 9.618, 9.618]),
    (50, [7.902, 8.733, 9.289, 9.590]),
    (100, [6.779, 7.596, 8.105, 9.534]),
];
const CUBIC_337: Grid = [
    (5, [9.627, 9.627, 9.627, 9.627]),
    (20, [9.532, 9.618, 9.618, 9.618]),
    (50, [8.795, 9.523, 9.587, 9.590]),
    (100, [8.040, 8.826, 9.318, 9.534]),
];
const CUBIC_344: Grid = [
    (5, [9.627, 9.624, 9.624, 9.611]),
    (20, [8.555, 9.390, 9.563, 9.577]),
    (50, [7.007, 8.113, 9.189, 9.535]),
    (100, [5.937, 6.777, 7.717, 9.377]),
];

/// Mbit/s in 100 s from the first SYN, segments lost, and timeouts.
fn run(congestion: &'static str, bottleneck: Bottleneck) -> (f64, u64, u64) {
    let (mut world, _) = direct(1, &[bottleneck], &connection(congestion, false));
    let rate = goodput(&mut world, 0, Instant::ZERO, Instant::ZERO + Duration::from_secs(100));
    let result = world.results();
    (rate, result.drops().total(), result.flows[0].client.stats.timeouts)
}

fn table(congestion: &'static str, (first, second): (&str, &str), ns3: [&Grid; 2]) -> (String, Vec<[f64; 3]>) {
    let mut table = format!(
        "# {congestion}: Mbit/s in 100 s over 10 Mbit/s\n# delay ms, queue, Mbit/s, {first}, {second}, lost, timeouts\n"
    );
    let mut cells = Vec::new();
    for ((delay, a), (_, b)) in ns3[0].iter().zip(ns3[1]) {
        for ((queue, a), b) in QUEUES.iter().zip(a).zip(b) {
            let (rate, lost, timeouts) = run(congestion, Bottleneck::new(10, *delay, *queue));
            writeln!(table, "{delay:4} {queue:4} {rate:9.6} {a:6.3} {b:6.3} {lost:5} {timeouts:2}").unwrap();
            cells.push([rate, *a, *b]);
        }
    }
    (table, cells)
}

#[test]
fn new_reno_is_within_5_percent_of_ns3s_two_on_sixteen_links() {
    let (table, cells) = table("new_reno", ("ns-3 TcpNewReno", "TcpLinuxReno"), [&NEW_RENO, &LINUX_RENO]);
    for [ours, a, b] in &cells {
        assert!((0.95 * a.min(*b)..=1.05 * a.max(*b)).contains(ours), "{ours} is neither {a} nor {b}\n{table}");
    }
    golden::check("one_link_new_reno.txt", &table);
}

#[test]
fn cubic_is_within_5_percent_of_ns3_on_sixteen_links() {
    let (table, cells) = table("cubic", ("ns-3.37 TcpCubic", "ns-3.44"), [&CUBIC_337, &CUBIC_344]);
    for [ours, old, new] in &cells {
        assert!((ours / old - 1.0).abs() < 0.05, "{ours} is not {old}\n{table}");
        let agree = (old / new - 1.0).abs() < 0.02;
        assert!(!agree || (ours / new - 1.0).abs() < 0.05, "{ours} is not {new}\n{table}");
    }
    golden::check("one_link_cubic.txt", &table);
}

#[test]
fn on_10_mbit_20_ms_and_50_packets_both_are_within_5_percent_of_9_607() {
    // NewReno 9.616 and CUBIC 9.563 by our own measurement of ns-3 3.44; 9.607 by another. The capacity of the link is
    // 10 * 1400 / 1454 = 9.629.
    for (congestion, measured) in [("new_reno", 9.616), ("cubic", 9.563)] {
        let (rate, _, timeouts) = run(congestion, ONE_LINK);
        assert!((rate / 9.607 - 1.0).abs() < 0.05, "{congestion}: {rate}");
        assert!((rate / measured - 1.0).abs() < 0.01, "{congestion}: {rate}");
        assert!(rate < 10.0 * 1400.0 / 1454.0, "{congestion}: {rate}");
        assert_eq!(timeouts, 0);
    }
}
