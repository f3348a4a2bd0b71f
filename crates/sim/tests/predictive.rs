//! The path manager predictive: a phone that leaves its Wi-Fi and returns, with another network everywhere.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_sim::application::Sending;
use anabranch_sim::link::{Coverage, CoveragePoint, LossModel, Schedule};
use anabranch_sim::topology::{PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, FlowConfig, FlowId, LinkConfig, World, WorldConfig};
use std::sync::Arc;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn connection() -> ConnectionConfig {
    let policies = Policies {
        congestion: Arc::new(|| table::build(congestion::TABLE, "cubic", &Settings::new()).expect("in the table")),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "lowest_rtt", &Settings::new()).expect("in the table")),
        reliability: anabranch_mptcp::config::fully_reliable(),
    };
    let mut config = ConnectionConfig::new(policies);
    config.receive_buffer = BufferSize::Fixed(128 * 1024);
    config
}

/// A path with 15 ms and loss towards the server.
fn path(name: &str, megabits: u64, loss: f64) -> PathConfig {
    let rate = Rate::from_bits_per_second(1_000_000 * megabits);
    let mut access_up = LinkConfig::new(rate, Duration::from_millis(15), 50);
    let access_down = access_up.clone();
    access_up.loss = vec![LossModel::Uniform(loss)];
    let core = LinkConfig::new(Rate::from_bits_per_second(100_000_000), Duration::from_millis(1), 500);
    PathConfig { name: name.to_owned(), access_up, access_down, core_up: core.clone(), core_down: core }
}

/// Leaves from 20 s on: in 15 s the rate falls from 11 to 1 Mbit/s and the loss grows to 10 %; down from 35 to 45 s,
/// recovered at 60 s. As in the experiment `maps`.
fn walk(path: &mut PathConfig) {
    let point = |seconds, rate, loss| CoveragePoint { at: at(seconds), rate, loss };
    let edge = (1.0 / 11.0, 0.1);
    let course =
        vec![point(20.0, 1.0, 0.0), point(35.0, edge.0, edge.1), point(45.0, edge.0, edge.1), point(60.0, 1.0, 0.0)];
    path.access_up.coverage = Coverage::new(course.clone());
    path.access_up.schedule = Schedule::DownDuring(vec![(at(35.0), at(45.0))]);
    path.access_down.schedule = Schedule::DownDuring(vec![(at(35.0), at(45.0))]);
}

/// Results of a run of 80 s.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// In megabytes.
    read: f64,
    /// The longest time without a new byte from 18 to 50 s, in seconds.
    stall: f64,
    /// Sum of the times without a new byte beyond 0.3 s, from 18 to 50 s, in seconds.
    stalled: f64,
}

fn world(seed: u64, manager: &str, settings: &Settings, sending: Sending) -> (World, FlowId) {
    let mut world = World::new(WorldConfig { seed, wire: false, ipv6: false });
    let mut host = |name: &str| {
        let manager = table::build(path_manager::TABLE, manager, settings).expect("in the table");
        world.add_host(name, &EndpointConfig::default(), manager)
    };
    let (client, server) = (host("client"), host("server"));
    let mut wifi = path("Wi-Fi", 11, 0.01);
    walk(&mut wifi);
    let paths =
        disjoint_paths(&mut world, client, server, &[wifi, path("WiMAX", 10, 0.01)], ServerAddresses::OnePerPath);
    let flow = world.add_flow(FlowConfig {
        name: "bulk".to_owned(),
        client,
        from: Some(paths[0].client),
        to: paths[0].server,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application: Application::upload(sending).in_messages(1000),
        client_config: connection(),
        server_config: connection(),
        record: None,
    });
    (world, flow)
}

fn run(seed: u64, manager: &str, settings: &Settings) -> Outcome {
    let (mut world, _) = world(seed, manager, settings, Sending::Endless);
    let (mut read, mut since, mut stall, mut stalled) = (0, 18.0, 0.0_f64, 0.0);
    for tick in 0..=4000 {
        let now = f64::from(tick) * 0.02;
        world.run_until(at(now));
        let total = world.results().flows[0].server.read;
        if total > read || !(18.0..=50.0).contains(&now) {
            if (18.0..=50.0).contains(&now) {
                stall = stall.max(now - since);
                stalled += (now - since - 0.3).max(0.0);
            }
            since = now;
        }
        read = total;
    }
    Outcome { read: read as f64 / 1e6, stall, stalled }
}

fn mean(outcomes: &[Outcome], value: fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(value).sum::<f64>() / outcomes.len() as f64
}

/// A call: messages of 1000 bytes every 20 ms on average. For the messages from 18 to 50 s: mean latency, share above
/// 150 ms, and longest latency in seconds.
fn call(seed: u64, manager: &str, settings: &Settings) -> [f64; 3] {
    let sending = Sending::Messages { size: 1000, interval: Duration::from_millis(20) };
    let (mut world, _) = world(seed, manager, settings, sending);
    world.run_until(at(60.0));
    let results = world.results();
    let latencies: Vec<f64> = results.flows[0]
        .messages()
        .filter(|(written, _)| (at(18.0)..at(50.0)).contains(written))
        .map(|(written, read)| read.map_or(10.0, |read| (read - written).as_secs_f64()))
        .collect();
    let count = latencies.len() as f64;
    let late = latencies.iter().filter(|latency| **latency > 0.15).count() as f64;
    [latencies.iter().sum::<f64>() / count, late / count, latencies.iter().copied().fold(0.0, f64::max)]
}

/// The path's rate falls, but a low-rate sender still gets everything through and does not see the change. On seeds 1 to 32
/// the share of messages above 150 ms is 1.92 % with `full_mesh` and 2.00 % with `predictive`; the means differ by 0.4 %.
#[test]
fn a_call_that_fills_no_path_sees_nothing_coming_and_is_not_harmed() {
    let runs = |manager: &str| {
        let runs: Vec<[f64; 3]> = (1..=16).map(|seed| call(seed, manager, &Settings::new())).collect();
        [0, 1, 2].map(|index| runs.iter().map(|run| run[index]).sum::<f64>() / runs.len() as f64)
    };
    let (plain, foreseen) = (runs("full_mesh"), runs("predictive"));
    for ((plain, foreseen), more) in plain.into_iter().zip(foreseen).zip([1.02, 1.05, 1.02]) {
        assert!(foreseen <= more * plain, "{foreseen} {plain}");
    }
}

/// With `persistence` inside it stalls as little: observing the path helps, not the forecast. The difference is some
/// hundredths of a second, and some sets of eight seeds do not show it.
#[test]
fn leaving_a_wifi_that_fades_stalls_less_if_somebody_watches_it() {
    let runs = |manager: &str, settings: &Settings| {
        let outcomes: Vec<Outcome> = (1..=64).map(|seed| run(seed, manager, settings)).collect();
        let [read, stall, stalled] = [|o: &Outcome| o.read, |o: &Outcome| o.stall, |o: &Outcome| o.stalled]
            .map(|value: fn(&Outcome) -> f64| mean(&outcomes, value));
        Outcome { read, stall, stalled }
    };
    let plain = runs("full_mesh", &Settings::new());
    let foreseen = runs("predictive", &Settings::new());
    assert!(foreseen.stall < plain.stall, "{foreseen:?} {plain:?}");
    assert!(foreseen.stalled < plain.stalled, "{foreseen:?} {plain:?}");
    assert!(foreseen.read > 0.97 * plain.read, "{foreseen:?} {plain:?}");
}
