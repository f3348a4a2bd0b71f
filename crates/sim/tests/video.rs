//! A live video in the lab: arrivals, their times, and notices of withdrawn data.

use anabranch_mptcp::{ConnectionConfig, EndpointConfig, Framing, Policies};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::path_manager;
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::{FrameToSend, VideoReceived};
use anabranch_sim::link::LossModel;
use anabranch_sim::topology::{PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, FlowConfig, LinkConfig, World, WorldConfig};

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// Frames of 1,000 bytes, every 20 ms.
fn frames(count: u64) -> Vec<FrameToSend> {
    let frame = |at: u64| FrameToSend {
        at: millis(20 * at),
        play_out: millis(20 * at),
        importance: (at % 3) as u8,
        lifetime: Some(millis(200)),
        bytes: 1000,
    };
    (0..count).map(frame).collect()
}

/// A path with a one-way delay and a loss rate.
fn path(name: &str, delay: u64, loss: f64) -> PathConfig {
    let mut access_up = LinkConfig::new(Rate::from_bits_per_second(10_000_000), millis(delay), 50);
    let access_down = access_up.clone();
    access_up.loss = vec![LossModel::Uniform(loss)];
    let core = LinkConfig::new(Rate::from_bits_per_second(100_000_000), millis(1), 500);
    PathConfig { name: name.to_owned(), access_up, access_down, core_up: core.clone(), core_down: core }
}

/// Number of messages that could be read within `latency` of their times, counted from the start of the run.
fn within(received: &VideoReceived, frames: &[FrameToSend], latency: Duration) -> usize {
    let pairs = frames.iter().zip(&received.messages);
    pairs.filter(|(frame, seen)| seen.is_some_and(|seen| seen.read <= Instant::ZERO + frame.at + latency)).count()
}

/// What the server received of `frames`, with `reliability` at both ends.
fn run(frames: &[FrameToSend], paths: &[PathConfig], reliability: &Choice, wire: bool) -> (VideoReceived, u64) {
    let mut world = World::new(WorldConfig { seed: 1, wire, ipv6: false });
    let manager = || table::build(path_manager::TABLE, "full_mesh", &Settings::new()).expect("a member");
    let client = world.add_host("client", &EndpointConfig::default(), manager());
    let server = world.add_host("server", &EndpointConfig::default(), manager());
    let paths = disjoint_paths(&mut world, client, server, paths, ServerAddresses::One);
    let combination = Combination { reliability: reliability.clone(), ..Combination::default() };
    let mut config = ConnectionConfig::new(Policies::of(&combination).expect("a combination"));
    config.framing = Framing::Messages;
    world.add_flow(FlowConfig {
        name: "video".to_owned(),
        client,
        from: Some(paths[0].client),
        to: paths[0].server,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application: Application::video(frames.into()),
        client_config: config.clone(),
        server_config: config,
        record: None,
    });
    assert!(world.run_until_finished(Instant::ZERO + Duration::from_secs(60)), "the video ends");
    let results = world.results();
    if let Some(check) = &results.wire {
        assert_eq!(check.mismatches, 0, "{:?}", check.first_mismatch);
    }
    let received = results.flows[0].server.video.as_deref().expect("a video was read").clone();
    assert_eq!(received.wrong, None);
    (received, results.trace_hash)
}

#[test]
fn all_frames_come_in_time_where_nothing_is_lost() {
    let frames = frames(500);
    let (received, _) = run(&frames, &[path("a", 20, 0.0), path("b", 25, 0.0)], &Choice::new("full"), false);
    assert_eq!(received.gaps, []);
    // The handshake takes one round trip of 42 ms; the message arrives after another 21 ms, and 0.9 ms of transmission.
    assert_eq!(within(&received, &frames, millis(90)), 500);
}

#[test]
fn full_reliability_delivers_all_and_some_of_it_late() {
    let frames = frames(1000);
    let (received, _) = run(&frames, &[path("a", 20, 0.05), path("b", 80, 0.1)], &Choice::new("full"), false);
    assert_eq!(received.gaps, []);
    assert!(received.messages.iter().all(Option::is_some) && received.messages.len() == 1000);
    let late = 1000 - within(&received, &frames, millis(150));
    assert!(late > 20, "{late} late");
}

#[test]
fn a_message_for_each_number_or_a_gap_and_the_same_with_every_packet_as_bytes() {
    let frames = frames(1000);
    let paths = [path("a", 20, 0.05), path("b", 80, 0.1)];
    let spe = Choice { name: "spe".to_owned(), settings: Settings::new().with("latency", "100") };
    let (received, hash) = run(&frames, &paths, &spe, false);
    let missing = (0..1000).filter(|at| received.messages.get(*at).is_none_or(Option::is_none)).count() as u64;
    let abandoned: u64 = received.gaps.iter().map(|gap| gap.length).sum();
    // A message has a header of 24 bytes.
    assert_eq!(abandoned, missing * 1024);
    assert!(missing > 0, "nothing was abandoned");
    let (again, same) = run(&frames, &paths, &spe, true);
    assert_eq!((again, same), (received, hash));
}
