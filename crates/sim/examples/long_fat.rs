//! Long fat paths: goodput, what is sent again, and time per packet.
//!
//! `long_fat [MBIT [RTT_MS [LOSS [CONGESTION [SCHEDULER [PATHS [SECONDS [SHARE]]]]]]]]`: paths of that rate, each with
//! a queue of `SHARE` (1) bandwidth-delay products. The receive buffer grows from 128 kB as it is needed, and is never
//! the limit later. The second half of the time counts.
//!
//! `long_fat table [SCHEDULER]`: a table of 1 Gbit/s, 100, 300 and 600 ms, without loss and with 1 %, for the
//! congestion controls of users, beside what the model of each allows.
//!
//! `long_fat buffers`: a table of 1 Gbit/s, one path and two, with the buffers that the network commands had (4 and 6
//! MiB for each path) and have.
#![allow(clippy::print_stdout)]

use anabranch_mptcp::{BufferSize, ConnectionConfig, TcpConfig};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, scheduler};
use anabranch_sim::RunResult;
use anabranch_sim::reference::{Bottleneck, PACKET, SEGMENT, connection, direct};
use std::sync::Arc;

/// Bytes that the receive buffer begins with, as by default.
const FIRST_BUFFER: u64 = 128 * 1024;

/// Sizes of the buffers at both ends.
#[derive(Clone, Copy)]
enum Buffers {
    /// They are never the limit.
    Ample,
    /// As in Linux before 6.17: a send buffer of 4 MiB and a receive buffer of at most 6 MiB for each path.
    Small,
    /// [`ConnectionConfig::grow_buffers`].
    Growing,
}

/// What is transferred over what.
struct Transfer {
    mbit: f64,
    rtt_ms: f64,
    loss: f64,
    control: String,
    scheduler: String,
    paths: usize,
    seconds: f64,
    /// Bandwidth-delay products that the queue holds.
    share: f64,
    buffers: Buffers,
}

/// What came of the second half.
struct Outcome {
    /// Goodput.
    mbit: f64,
    /// Share of the bytes sent that was sent again.
    again: f64,
    /// Share of the packets sent that the links dropped.
    lost: f64,
    packets: u64,
    /// Of the whole run, by the clock.
    nanoseconds_per_packet: f64,
}

impl Transfer {
    fn run(&self) -> Outcome {
        let volume = self.mbit * 1e6 / 8.0 * self.rtt_ms / 1e3;
        let queue = (volume * self.share / f64::from(PACKET)) as usize;
        let bottleneck = Bottleneck::new(self.mbit as u64, (self.rtt_ms / 2.0) as u64, queue.max(10));
        let path = Bottleneck { loss: self.loss, ..bottleneck };
        let (mut world, _) = direct(1, &vec![path; self.paths], &self.config(volume));
        let half = Instant::ZERO + Duration::from_secs_f64(self.seconds / 2.0);
        let began = std::time::Instant::now();
        world.run_until(half);
        let before = world.results();
        world.run_until(half + Duration::from_secs_f64(self.seconds / 2.0));
        let took = began.elapsed().as_nanos() as f64;
        let after = world.results();
        let [from, to] = [&before, &after].map(|results| &results.flows[0]);
        let sent = (to.client.stats.bytes_sent - from.client.stats.bytes_sent) as f64;
        let again = (to.client.stats.bytes_retransmitted - from.client.stats.bytes_retransmitted) as f64;
        let dropped = |results: &RunResult| results.links.iter().map(|link| link.counters.drops.total()).sum::<u64>();
        let lost = (dropped(&after) - dropped(&before)) as f64;
        let packets = to.client.stats.segments_sent + to.server.stats.segments_sent;
        Outcome {
            mbit: (to.server.read - from.server.read) as f64 * 8e-6 / (self.seconds / 2.0),
            again: again / (sent + again).max(1.0),
            lost: lost / (to.client.stats.segments_sent - from.client.stats.segments_sent).max(1) as f64,
            packets,
            nanoseconds_per_packet: took / packets.max(1) as f64,
        }
    }

    fn config(&self, volume: f64) -> ConnectionConfig {
        let buffer = (volume * 8.0 * self.paths as f64) as u64 + (4 << 20);
        let (control, order) = (self.control.clone(), self.scheduler.clone());
        let mut config = ConnectionConfig {
            receive_buffer: BufferSize::Auto { initial: FIRST_BUFFER, max: buffer },
            send_buffer: buffer,
            ..connection("new_reno", true)
        };
        match self.buffers {
            Buffers::Ample => {}
            Buffers::Small => {
                config.send_buffer = 4 << 20;
                config.receive_buffer = BufferSize::Auto { initial: FIRST_BUFFER, max: 6 << 20 };
            }
            Buffers::Growing => config.grow_buffers(),
        }
        config.tcp = TcpConfig { mtu: PACKET as u16, ..TcpConfig::default() };
        config.policies.congestion = Arc::new(move || {
            table::build(congestion::TABLE, &control, &Settings::new()).expect("a congestion control")
        });
        config.policies.scheduler =
            Arc::new(move || table::build(scheduler::TABLE, &order, &Settings::new()).expect("a scheduler"));
        config
    }

    /// Goodput that the model of the congestion control allows on one path, Mbit/s.
    fn allowed(&self) -> f64 {
        let rtt = self.rtt_ms / 1e3;
        let link = self.mbit * f64::from(SEGMENT) / f64::from(PACKET) * (1.0 - self.loss);
        match self.control.as_str() {
            // Average window in segments (RFC 9438, section 5.2), which is no smaller than Reno's.
            "cubic" if self.loss > 0.0 => {
                let reno = (1.5 / self.loss).sqrt();
                let segments = (1.054 * (rtt.powi(3) / self.loss.powi(3)).powf(0.25)).max(reno);
                link.min(segments * f64::from(SEGMENT) * 8e-6 / rtt)
            }
            // Every 5 s half a bandwidth-delay product for a round trip or 200 ms (draft-ietf-ccwg-bbr, section 5.3.4),
            // and half a round trip until no more is in flight.
            "bbr" => {
                let (drain, probe) = (rtt / 2.0, rtt.max(0.2));
                link * (1.0 - (drain + probe / 2.0) / (5.0 + drain + probe))
            }
            _ => link,
        }
    }
}

/// Long enough for start-up in the first half, also where a loss ends it early.
fn seconds(rtt_ms: f64) -> f64 {
    (rtt_ms / 7.5).clamp(20.0, 80.0)
}

fn print_table(scheduler: &str) {
    println!("| control | RTT, ms | loss | Mbit/s | of what its model allows | lost | sent again |");
    println!("|---|---|---|---|---|---|---|");
    for control in ["bounded_cubic", "bbr", "cubic"] {
        for rtt_ms in [100.0, 300.0, 600.0] {
            for loss in [0.0, 0.01] {
                let (control, scheduler) = (control.to_owned(), scheduler.to_owned());
                let seconds = seconds(rtt_ms);
                let transfer = Transfer {
                    mbit: 1000.0,
                    rtt_ms,
                    loss,
                    control,
                    scheduler,
                    paths: 1,
                    seconds,
                    share: 1.0,
                    buffers: Buffers::Ample,
                };
                let (outcome, allowed) = (transfer.run(), transfer.allowed());
                println!(
                    "| {} | {rtt_ms} | {} % | {:.1} | {:.2} | {:.2} % | {:.2} % |",
                    transfer.control,
                    loss * 100.0,
                    outcome.mbit,
                    outcome.mbit / allowed,
                    100.0 * outcome.lost,
                    100.0 * outcome.again,
                );
            }
        }
    }
}

fn print_buffers() {
    println!("| paths | RTT, ms | 4 and 6 MiB, Mbit/s | growing, Mbit/s | never the limit, Mbit/s |");
    println!("|---|---|---|---|---|");
    for (paths, rtt_ms) in [(1, 20.0), (1, 50.0), (1, 100.0), (1, 200.0), (2, 20.0), (2, 100.0)] {
        let goodput = |buffers: Buffers| {
            let [control, scheduler] = ["bounded_cubic", "anabranch"].map(str::to_owned);
            let transfer = Transfer {
                mbit: 1000.0,
                rtt_ms,
                loss: 0.0,
                control,
                scheduler,
                paths,
                seconds: seconds(rtt_ms),
                share: 1.0,
                buffers,
            };
            transfer.run().mbit
        };
        let [small, growing, ample] = [Buffers::Small, Buffers::Growing, Buffers::Ample].map(goodput);
        println!("| {paths} | {rtt_ms} | {small:.0} | {growing:.0} | {ample:.0} |");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &'static str| words.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let number = |at: usize, default: &'static str| word(at, default).parse::<f64>().expect("a number");
    if word(0, "") == "table" {
        return print_table(&word(1, "anabranch"));
    }
    if word(0, "") == "buffers" {
        return print_buffers();
    }
    let transfer = Transfer {
        mbit: number(0, "1000"),
        rtt_ms: number(1, "600"),
        loss: number(2, "0"),
        control: word(3, "anabranch"),
        scheduler: word(4, "anabranch"),
        paths: number(5, "1") as usize,
        seconds: number(6, "60"),
        share: number(7, "1"),
        buffers: Buffers::Ample,
    };
    let Outcome { mbit, again, lost, packets, nanoseconds_per_packet } = transfer.run();
    println!(
        "{mbit:.1} Mbit/s, {:.2} of what the model allows, {:.2} % lost, {:.2} % sent again, {nanoseconds_per_packet:.0} ns per packet, {packets} packets",
        mbit / transfer.allowed(),
        100.0 * lost,
        100.0 * again
    );
}
