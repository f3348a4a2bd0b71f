//! What the targets that drive endpoints have in common: hosts, their settings out of a few bytes, and a stream of bytes that
//! differ from place to place.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EcnMode, Endpoint, EndpointConfig, Policies};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::{Duration, congestion, path_manager, scheduler};
use bytes::Bytes;
use core::net::IpAddr;
use std::sync::Arc;

pub const PORT: u16 = 4433;

/// Most bytes of a receive buffer, and of a send buffer.
pub const BUFFER: u64 = 64 * 1024;

pub fn address(host: u8, path: u8) -> IpAddr {
    IpAddr::from([10, 0, path, 1 + host])
}

/// A host with few places, so that limits are met.
pub fn endpoint(seed: u8, manager: &'static str) -> Endpoint {
    let manager = table::build(path_manager::TABLE, manager, &Settings::new()).expect("it is in the table");
    let config =
        EndpointConfig { seed: [seed; 32], max_connections: 32, max_half_open: 8, ..EndpointConfig::default() };
    Endpoint::new(config, manager)
}

/// Settings out of three bytes.
pub fn config([what, tcp, policy]: [u8; 3]) -> ConnectionConfig {
    let controls = ["new_reno", "cubic", "lia", "olia", "balia", "bbr"];
    let control = controls[usize::from(policy % 6)];
    let schedulers =
        ["lowest_rtt", "anabranch", "linux", "round_robin", "redundant", "blest", "ecf", "primary_overflow"];
    let chosen = schedulers[usize::from(policy / 6 % 8)];
    let mut config = ConnectionConfig::new(Policies {
        congestion: Arc::new(move || {
            table::build(congestion::TABLE, control, &Settings::new())
                .or_else(|_| table::build(congestion::TABLE, "new_reno", &Settings::new()))
                .expect("one of them is in the table")
        }),
        scheduler: Arc::new(move || table::build(scheduler::TABLE, chosen, &Settings::new()).expect("in the table")),
        reliability: anabranch_mptcp::config::fully_reliable(),
    });
    let buffer = [BUFFER, 20_000, 3_000, BUFFER][usize::from(what & 3)];
    config.receive_buffer =
        if what & 4 == 0 { BufferSize::Fixed(buffer) } else { BufferSize::Auto { initial: buffer / 2, max: buffer } };
    config.send_buffer = BUFFER;
    config.buffers_per_subflow = false;
    config.checksum = what & 8 != 0;
    config.receiver.charge_out_of_order = what & 16 != 0;
    config.receiver.data_in_subflow_order = what & 32 != 0;
    config.deny_join_initial = what & 64 != 0;
    config.multipath = what & 128 == 0;
    config.max_subflows = 4;
    // All ends within minutes, so that the fuzzer sees many ends.
    (config.tcp.max_timeouts, config.tcp.syn_attempts, config.tcp.keepalive_probes) = (4, 3, 3);
    (config.tcp.time_wait, config.tcp.fin_wait_2) = (Duration::from_secs(5), Duration::from_secs(5));
    config.survive_without_subflows = Duration::from_secs(10);
    config.tcp.options.timestamps = tcp & 1 == 0;
    config.tcp.options.sack = tcp & 2 == 0;
    config.tcp.options.window_scaling = tcp & 4 == 0;
    config.tcp.ecn = if tcp & 8 == 0 { EcnMode::Off } else { EcnMode::Request };
    config.tcp.nagle = tcp & 16 == 0;
    config.tcp.pacing = tcp & 32 != 0;
    config.tcp.tail_loss_probe = tcp & 64 == 0;
    config.tcp.mtu = if tcp & 128 == 0 { 1500 } else { 576 };
    config
}

/// The byte of a stream at a place.
#[allow(dead_code, reason = "not every target has streams")]
pub fn byte(at: u64, seed: u8) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed
}

/// So many bytes of it.
#[allow(dead_code, reason = "not every target has streams")]
pub fn bytes(from: u64, length: usize, seed: u8) -> Bytes {
    (from..from + length as u64).map(|at| byte(at, seed)).collect()
}
