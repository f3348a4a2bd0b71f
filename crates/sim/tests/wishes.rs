//! Requests of users and applications to a scheduler: weights of paths, an order of them, a priority, a play-out time.

use anabranch_mptcp::{BufferSize, ConnectionConfig, Policies};
use anabranch_policy::rate::Rate;
use anabranch_policy::scheduler;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::{Pace, Sending};
use anabranch_sim::reference::{Bottleneck, connection, goodput, two_hosts, upload};
use anabranch_sim::{Application, Change, FlowConfig, FlowId, Side, World};
use std::sync::Arc;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// NewReno on each path, and a scheduler with its defaults.
fn scheduled(name: &'static str) -> ConnectionConfig {
    with_settings(name, &[])
}

/// NewReno on each path, and a scheduler with these settings.
fn with_settings(name: &'static str, settings: &[(&str, &str)]) -> ConnectionConfig {
    let settings = settings.iter().fold(Settings::new(), |all, (name, value)| all.with(name, value));
    let base = connection("new_reno", true);
    let scheduler = Arc::new(move || table::build(scheduler::TABLE, name, &settings).expect("in the table"));
    let mut config = ConnectionConfig { policies: Policies { scheduler, ..base.policies.clone() }, ..base };
    config.tcp.min_rto = Duration::from_millis(200);
    config.tcp.nagle = false;
    config
}

/// Bytes that the server has read of a flow.
fn read(world: &mut World, flow: usize) -> u64 {
    world.results().flows[flow].server.read
}

/// Two uploads over one path with 3 % loss, of priority 1 and of `priority`; bytes of each that arrive in 60 s.
fn beside_the_highest(priority: u8, scheduler: &'static str) -> [u64; 2] {
    let lossy = Bottleneck { loss: 0.03, ..Bottleneck::new(20, 20, 50) };
    let (mut world, client, paths) = two_hosts(1, &[lossy]);
    for priority in [1, priority] {
        let config = ConnectionConfig { priority, ..scheduled(scheduler) };
        world.add_flow(upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, &config));
    }
    world.run_until(at(60.0));
    [0, 1].map(|flow| read(&mut world, flow))
}

#[test]
fn two_connections_of_different_priority_get_different_speeds_over_a_path_that_loses() {
    // 3 % loss takes 300 from the quality per 100 segments, and their acknowledgements add 50 to 100: bad after some
    // 2,000. Losses, not the other connection, limit each: the one of priority 1 keeps its speed.
    let alike = beside_the_highest(1, "qoe");
    assert_eq!(alike, beside_the_highest(6, "lowest_rtt"));
    assert!(alike[0].abs_diff(alike[1]) < alike[0] / 10, "{alike:?}");
    // More than the table's 1/2, 1/4 and 1/8: a slower sender loses less, and so has a larger window.
    let mut least = alike[1];
    for (priority, most) in [(2, 0.8), (3, 0.5), (6, 0.3)] {
        let [first, second] = beside_the_highest(priority, "qoe");
        assert!(first.abs_diff(alike[0]) < alike[0] / 10, "{priority}: {first}, alone {alike:?}");
        assert!((second as f64) < most * first as f64 && second < least, "{priority}: {first}, {second}");
        least = second;
    }
}

#[test]
fn a_priority_that_changes_on_the_way_counts_from_then_on() {
    let lossy = Bottleneck { loss: 0.03, ..Bottleneck::new(20, 20, 50) };
    let (mut world, client, paths) = two_hosts(1, &[lossy]);
    world.add_flow(upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, &scheduled("qoe")));
    world.schedule(at(40.0), Change::Priority(FlowId(0), Side::Client, 6));
    let mut marks = [20.0, 40.0, 60.0].map(|end| {
        world.run_until(at(end));
        read(&mut world, 0)
    });
    marks[2] -= marks[1];
    marks[1] -= marks[0];
    assert!(marks[2] * 2 < marks[1], "{marks:?}");
}

/// Two pieces of 60 kB, 500 ms apart, over two paths of which the faster one silently fails in the pause; returns when
/// the second had arrived completely. From 0.4 s on the player has data for `play_out_left_ms` milliseconds, if it
/// reports so.
fn second_piece(scheduler: &'static str, play_out_left_ms: Option<u64>) -> f64 {
    let (mut world, client, paths) = two_hosts(1, &[Bottleneck::new(20, 10, 50), Bottleneck::new(10, 15, 50)]);
    let config = ConnectionConfig { receive_buffer: BufferSize::Fixed(1_000_000), ..scheduled(scheduler) };
    world.add_flow(FlowConfig {
        name: "pieces".to_owned(),
        client,
        from: Some(paths[0].client),
        to: paths[0].server,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application: Application {
            client_sends: Sending::Requests {
                size: 60_000,
                response: 100,
                think: Duration::from_millis(500),
                count: 2,
            },
            server_sends: Sending::Responses { request: 60_000, size: 100 },
            ..Application::upload(Sending::Nothing)
        },
        client_config: config.clone(),
        server_config: config,
        record: None,
    });
    for link in [paths[0].access_up, paths[0].access_down] {
        world.schedule(at(0.4), Change::LinkState(link, false));
    }
    if let Some(left) = play_out_left_ms {
        world.schedule(at(0.4), Change::PlayOutLeft(FlowId(0), Side::Client, Some(Duration::from_millis(left))));
    }
    world.run_until(at(0.4));
    assert_eq!(read(&mut world, 0), 60_000);
    let mut times = (400..4_000).map(|ms| f64::from(ms) / 1e3);
    let arrived = times.find(|end| {
        world.run_until(at(*end));
        read(&mut world, 0) == 120_000
    });
    arrived.expect("it arrives")
}

#[test]
fn a_duplicate_saves_the_deadline_when_the_first_path_stalls() {
    // 60 kB are 44 segments: ten leave on the failed path, and the others on the slow one while its window opens from
    // ten in round trips of 30 ms and more. The segments on the failed path wait for its timeout, 23 ms of smoothed
    // round trip and at least 200 ms, unless they are duplicated: then the player, whose buffer would be empty at 0.8
    // s, does not stall.
    let plain = second_piece("lowest_rtt", None);
    let saved = second_piece("deadline_reinjection", Some(400));
    assert!(saved < 0.75 && plain > 0.85, "{saved} s, {plain} s without");
    // Without a play-out time, or with a long one, nothing is duplicated.
    assert_eq!(second_piece("deadline_reinjection", None), plain);
    assert_eq!(second_piece("deadline_reinjection", Some(60_000)), plain);
    assert_eq!(second_piece("lowest_rtt", Some(400)), plain);
}

/// Bytes that an upload sent on each of two paths between 5 s and 20 s, and Mbit/s that arrived meanwhile.
fn shares(config: &ConnectionConfig, sending: Sending) -> ([u64; 2], f64) {
    // 20 Mbit/s with a round trip of 20 ms, and 5 Mbit/s with 40 ms.
    let (mut world, client, paths) = two_hosts(1, &[Bottleneck::new(20, 10, 60), Bottleneck::new(5, 20, 60)]);
    let flow = upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, config);
    world.add_flow(FlowConfig { application: Application::upload(sending), ..flow });
    let sent = |world: &World| {
        let id = world.connection(FlowId(0), Side::Client).expect("it is open");
        let views = world.endpoint(client).subflow_views(world.now(), id);
        [0, 1].map(|path: usize| views[path].counters.bytes_sent)
    };
    world.run_until(at(5.0));
    let before = sent(&world);
    let mbit = goodput(&mut world, 0, at(5.0), at(20.0));
    let after = sent(&world);
    ([0, 1].map(|path| after[path] - before[path]), mbit)
}

#[test]
fn weights_are_kept_to_the_segment_at_the_speed_of_the_slowest_for_its_weight_or_follow_the_windows() {
    let weighted = |weights: &str, when_full: &str| {
        let config = with_settings("weighted", &[("weights", weights), ("when_full", when_full)]);
        shares(&config, Sending::Endless)
    };
    // 5 Mbit/s are 4.7 of payload, and the other path gets the weight times that; but at most 18.9.
    for (weight, slowest) in [(1, 2.0 * 4.7), (3, 4.0 * 4.7), (8, 18.9 * 9.0 / 8.0)] {
        let ([fast, slow], mbit) = weighted(&format!("{weight}:1"), "wait");
        // Segments assigned but not sent at either end of the interval are not counted: a few.
        assert!(fast.abs_diff(weight * slow) <= 4 * (weight + 1) * 1_400, "{weight}:1 {fast} {slow}");
        assert!((mbit / slowest - 1.0).abs() < 0.03, "{weight}:1 {mbit} Mbit/s");
    }
    let ([fast, slow], mbit) = weighted("1:1", "others");
    assert!(fast > 3 * slow && mbit > 23.0, "{fast} {slow} {mbit} Mbit/s");
}

#[test]
fn the_second_path_carries_what_the_first_has_no_room_for_and_nothing_before() {
    let overflow = |order, mbit: u64| {
        let pace = Pace { rate: Rate::from_bits_per_second(mbit * 1_000_000), share: None, on_off: None };
        let config = with_settings("primary_overflow", &[("order", order)]);
        shares(&config, Sending::Paced(pace)).0
    };
    // The slower path, whose address is the second, first: 4 Mbit/s fit, and of 10 the other carries the rest.
    assert_eq!(overflow("2", 4)[0], 0);
    let [fast, slow] = overflow("2", 10);
    assert!(fast.abs_diff(slow) < slow / 4, "{fast} {slow}");
    // The faster path first.
    assert_eq!(overflow("1", 10)[1], 0);
    let [fast, slow] = overflow("1", 23);
    assert!(slow > 0 && fast > 4 * slow, "{fast} {slow}");
}
