//! Schedulers in the lab: every one completes its transfers, and those that wait for the fast path avoid head-of-line
//! blocking by the slow one in a small buffer.

use anabranch_mptcp::{BufferSize, ConnectionConfig, Policies};
use anabranch_policy::scheduler;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::{Checked, Sending};
use anabranch_sim::reference::{Bottleneck, connection, direct, goodput, two_hosts};
use anabranch_sim::topology::Path;
use anabranch_sim::{Application, Change, FlowConfig, World};
use std::sync::Arc;

/// 20 Mbit/s with 20 ms, and 2 Mbit/s with 200 ms round-trip time.
const FAST_AND_SLOW: [Bottleneck; 2] = [Bottleneck::new(20, 10, 50), Bottleneck::new(2, 100, 50)];

/// Neither opportunistic retransmission nor penalisation.
const BARE: &[(&str, &str)] = &[("opportunistic_retransmission", "off"), ("penalise", "never")];

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// CUBIC on each path, and a scheduler.
fn scheduled(name: &'static str, settings: &[(&str, &str)]) -> ConnectionConfig {
    let settings = settings.iter().fold(Settings::new(), |all, (name, value)| all.with(name, value));
    let base = connection("cubic", true);
    let scheduler = Arc::new(move || table::build(scheduler::TABLE, name, &settings).expect("a name in the table"));
    ConnectionConfig { policies: Policies { scheduler, ..base.policies.clone() }, ..base }
}

/// Mbit/s between 5 s and 35 s over both paths with the given buffers in bytes.
fn upload(name: &'static str, settings: &[(&str, &str)], (receive, send): (u64, u64)) -> f64 {
    let buffers =
        ConnectionConfig { receive_buffer: BufferSize::Fixed(receive), send_buffer: send, ..scheduled(name, settings) };
    goodput(&mut direct(1, &FAST_AND_SLOW, &buffers).0, 0, at(5.0), at(35.0))
}

/// A verified upload of `bytes` bytes from a client with an address on each path.
fn finite(seed: u64, paths: &[Bottleneck], bytes: u64, config: &ConnectionConfig) -> (World, Vec<Path>) {
    let (mut world, client, paths) = two_hosts(seed, paths);
    world.add_flow(FlowConfig {
        name: "file".to_owned(),
        client,
        from: Some(paths[0].client),
        to: paths[0].server,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application: Application::upload(Sending::Bytes(bytes)).verified(),
        client_config: config.clone(),
        server_config: config.clone(),
        record: None,
    });
    (world, paths)
}

#[test]
fn every_scheduler_finishes_over_three_lossy_paths_of_unlike_delays() {
    let paths = [(10, 10), (4, 40), (2, 150)]
        .map(|(mbit, delay_ms)| Bottleneck { loss: 0.01, ..Bottleneck::new(mbit, delay_ms, 30) });
    for member in scheduler::TABLE {
        for (seed, receive) in [(1, 32_000), (2, 1_000_000)] {
            let receive_buffer = BufferSize::Fixed(receive);
            let config = ConnectionConfig { receive_buffer, ..scheduled(member.name, &[]) };
            let (mut world, _) = finite(seed, &paths, 1_000_000, &config);
            assert!(world.run_until_finished(at(60.0)), "{} seed {seed}", member.name);
            let server = &world.results().flows[0].server;
            assert_eq!((server.read, server.checked), (1_000_000, Checked::Pattern), "{}", member.name);
        }
    }
}

#[test]
fn every_scheduler_finishes_on_the_slow_path_when_the_fast_one_dies_without_a_word() {
    for member in scheduler::TABLE {
        let (mut world, paths) = finite(1, &FAST_AND_SLOW, 3_000_000, &scheduled(member.name, &[]));
        for link in [paths[0].access_up, paths[0].access_down] {
            world.schedule(at(0.5), Change::LinkState(link, false));
        }
        // 2 MB are left, which take 8 s at 2 Mbit/s, and there are timeouts of at least 1 s. The replica of Linux
        // retransmits one segment per timeout of the connection; that of ns-2's module waits until the subflow is
        // closed.
        let limit = if ["linux", "ns2"].contains(&member.name) { 1_500.0 } else { 40.0 };
        assert!(world.run_until_finished(at(limit)), "{}", member.name);
        let server = &world.results().flows[0].server;
        assert_eq!((server.read, server.checked), (3_000_000, Checked::Pattern), "{}", member.name);
    }
}

#[test]
fn blest_keeps_a_small_receive_buffer_for_the_fast_path() {
    // Plain TCP on the fast path alone gets 19.1 Mbit/s through this buffer. The slow path causes head-of-line blocking
    // in it, unless the scheduler waits for the fast path.
    let buffers = (128_000, 4_000_000);
    let blest = upload("blest", BARE, buffers);
    assert!(blest > 18.0, "{blest}");
    for (name, settings) in [("lowest_rtt", BARE), ("round_robin", &[])] {
        let other = upload(name, settings, buffers);
        assert!(other < 0.5 * blest, "{name} {other}, blest {blest}");
    }
}

#[test]
fn ecf_waits_for_the_fast_path_where_little_is_unsent_and_is_the_lowest_rtt_where_much_is() {
    // k is the data written but not assigned to a subflow. 256 kB of send buffer are a few windows of the fast path;
    // with 4 MB there is always more than the fast path could send sooner.
    let little = (128_000, 256_000);
    let ecf = upload("ecf", BARE, little);
    assert!(ecf > 18.0, "{ecf}");
    for (name, settings) in [("lowest_rtt", BARE), ("round_robin", &[])] {
        let other = upload(name, settings, little);
        assert!(other < 0.5 * ecf, "{name} {other}, ecf {ecf}");
    }
    let much = (128_000, 4_000_000);
    assert_eq!(upload("ecf", BARE, much), upload("lowest_rtt", BARE, much));
}
