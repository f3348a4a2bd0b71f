//! A connection starts on any working path: the first path is dead from the beginning.

use super::dead_path::default_config;
use anabranch_mptcp::{ConnectionConfig, EndpointConfig, Framing, InitialPath};
use anabranch_policy::path_manager;
use anabranch_policy::reliability::ESSENTIAL;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::{FrameToSend, Sending};
use anabranch_sim::reference::{Bottleneck, upload};
use anabranch_sim::topology::{Path, PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, Change, FlowConfig, HostId, World, WorldConfig};

/// 10 Mbit/s and 50 ms; 20 Mbit/s and 20 ms.
const PATHS: [Bottleneck; 2] = [Bottleneck::new(10, 25, 43), Bottleneck::new(20, 10, 34)];

/// A client and a server with the path manager `anabranch`, and these paths between them.
pub fn scene(paths: &[Bottleneck]) -> (World, HostId, Vec<Path>) {
    let manager = || table::build(path_manager::TABLE, "anabranch", &Settings::new()).expect("in the table");
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let client = world.add_host("client", &EndpointConfig::default(), manager());
    let server = world.add_host("server", &EndpointConfig::default(), manager());
    let path = |path: &Bottleneck| PathConfig {
        access_up: path.forward(),
        access_down: path.backward(),
        ..PathConfig::default()
    };
    let paths: Vec<PathConfig> = paths.iter().map(path).collect();
    let paths = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
    (world, client, paths)
}

/// When ten kilobytes have arrived and the connection is closed, with the first path dead until `dead`; and the trace
/// hash.
fn arrived(config: &ConnectionConfig, dead: u64) -> (Option<Instant>, u64) {
    let (mut world, client, paths) = scene(&PATHS);
    let flow = upload("start", (client, paths[0].client), paths[0].server, Instant::ZERO, config);
    world.add_flow(FlowConfig { application: Application::upload(Sending::Bytes(10_000)), ..flow });
    if dead > 0 {
        for link in [paths[0].access_up, paths[0].access_down] {
            world.schedule(Instant::ZERO, Change::LinkState(link, false));
            world.schedule(Instant::ZERO + Duration::from_millis(dead), Change::LinkState(link, true));
        }
    }
    let finished = world.run_until_finished(Instant::ZERO + Duration::from_secs(30));
    (finished.then(|| world.now()), world.results().trace_hash)
}

#[test]
fn a_dead_first_path_costs_one_race_interval() {
    let config = default_config();
    let alone = ConnectionConfig { initial_path: InitialPath::First, ..config.clone() };
    let ((healthy, hash), (unraced, unraced_hash)) = (arrived(&config, 0), arrived(&alone, 0));
    // If the first path answers in time, the same packets are sent as without racing.
    assert_eq!((healthy, hash), (unraced, unraced_hash));
    let (late, _) = arrived(&config, 100_000);
    let (never, _) = arrived(&alone, 100_000);
    assert_eq!(never, None);
    let (late, healthy) = (late.expect("it arrives over the second"), healthy.expect("it arrives"));
    let limit = healthy + Duration::from_millis(250);
    assert!(late <= limit, "{late:?}, and {healthy:?} where the first path is alive");
}

/// Less than two full segments are acknowledged 40 ms late, which is no queue: it does not end start-up on the first path,
/// nor is the second, which had a probe a second, taken to be full. Nor is the first full because more is in flight than
/// the application's rate takes. (While start-up ended so, the 60 MB took 5.6 s.)
#[test]
fn after_five_seconds_of_little_traffic_a_transfer_has_both_paths_at_once() {
    for (bytes, every_ms) in [(1_000, 100), (2_243, 82), (5_000, 20)] {
        let ([fast, slow], end) = little_then_much(bytes, every_ms);
        assert!(slow * 8 > fast, "{slow} and {fast} bytes over paths of 80 and 300 Mbit/s");
        // 60 MB take 1.35 s at the sum of both.
        assert!(end < Instant::ZERO + Duration::from_millis(6_600), "{bytes} bytes each {every_ms} ms: {end:?}");
    }
}

/// So many bytes at such intervals for five seconds, then 60 MB: the bytes that paths of 300 and 80 Mbit/s carry with the
/// combination of the network commands, and when all have arrived.
fn little_then_much(bytes: u32, every_ms: u64) -> ([u64; 2], Instant) {
    // 10 ms and 30 ms, queues of 50 ms.
    let (mut world, client, paths) = scene(&[Bottleneck::new(300, 5, 1_251), Bottleneck::new(80, 15, 334)]);
    let frame = |millis: u64, bytes: u32| FrameToSend {
        at: Duration::from_millis(millis),
        play_out: Duration::from_millis(millis),
        importance: ESSENTIAL,
        lifetime: None,
        bytes,
    };
    let little = (0..5_000 / every_ms).map(|number| frame(number * every_ms, bytes));
    let much = (0..60).map(|_| frame(5_000, 1_000_000));
    let frames: Vec<FrameToSend> = little.chain(much).collect();
    let config = ConnectionConfig { framing: Framing::Messages, ..ConnectionConfig::default() };
    let flow = upload("little, then much", (client, paths[0].client), paths[0].server, Instant::ZERO, &config);
    world.add_flow(FlowConfig { application: Application::video(frames.into()), ..flow });
    assert!(world.run_until_finished(Instant::ZERO + Duration::from_secs(30)));
    let carried = [&paths[0], &paths[1]].map(|path| world.link_counters(path.access_up).delivered_bytes);
    (carried, world.now())
}
