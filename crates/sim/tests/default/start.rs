//! A connection starts on any working path: the first path is dead from the beginning.

use super::dead_path::default_config;
use anabranch_mptcp::{ConnectionConfig, EndpointConfig, InitialPath};
use anabranch_policy::path_manager;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::Sending;
use anabranch_sim::reference::{Bottleneck, upload};
use anabranch_sim::topology::{Path, PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, Change, FlowConfig, World, WorldConfig};

/// 10 Mbit/s and 50 ms; 20 Mbit/s and 20 ms.
const PATHS: [Bottleneck; 2] = [Bottleneck::new(10, 25, 43), Bottleneck::new(20, 10, 34)];

/// When ten kilobytes have arrived and the connection is closed, with the first path dead until `dead`; and the trace
/// hash.
fn arrived(config: &ConnectionConfig, dead: u64) -> (Option<Instant>, u64) {
    let manager = || table::build(path_manager::TABLE, "anabranch", &Settings::new()).expect("in the table");
    let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
    let client = world.add_host("client", &EndpointConfig::default(), manager());
    let server = world.add_host("server", &EndpointConfig::default(), manager());
    let path = |path: &Bottleneck| PathConfig {
        access_up: path.forward(),
        access_down: path.backward(),
        ..PathConfig::default()
    };
    let paths: Vec<PathConfig> = PATHS.iter().map(path).collect();
    let paths: Vec<Path> = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
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
