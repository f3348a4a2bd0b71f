//! A path that stops delivering while its interface stays up.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_sim::application::Sending;
use anabranch_sim::recorder::Measurements;
use anabranch_sim::reference::{Bottleneck, connection, upload};
use anabranch_sim::topology::{Path, PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, Change, FlowConfig, FlowId, HostId, Side, World, WorldConfig};
use std::sync::Arc;

const DEFAULT: &str = "anabranch";

/// Milliseconds after which the connection is in its steady state.
const SETTLED: u64 = 4_000;

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The default combination with the default parameters of the protocol.
pub fn default_config() -> ConnectionConfig {
    let none = Settings::new;
    let policies = Policies {
        congestion: Arc::new(move || table::build(congestion::TABLE, DEFAULT, &none()).expect("in the table")),
        scheduler: Arc::new(move || table::build(scheduler::TABLE, DEFAULT, &none()).expect("in the table")),
        reliability: anabranch_mptcp::config::fully_reliable(),
    };
    let mut config = ConnectionConfig { policies, ..connection("cubic", true) };
    config.tcp.delayed_ack = Duration::from_millis(40);
    config.tcp.min_rto = Duration::from_millis(200);
    config
}

/// The direction of a path that fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ways {
    Both,
    Forward,
    Backward,
}

/// An outage of a path, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Outage {
    path: usize,
    ways: Ways,
    from: u64,
    to: u64,
}

/// Traffic, paths and outages.
#[derive(Clone, Debug)]
struct Case {
    paths: Vec<Bottleneck>,
    sending: Sending,
    receive_buffer: u64,
    outages: Vec<Outage>,
    seed: u64,
    /// The server sends.
    download: bool,
}

impl Case {
    fn bulk(paths: &[Bottleneck], outages: &[Outage]) -> Self {
        Self {
            paths: paths.to_vec(),
            sending: Sending::Endless,
            receive_buffer: 4_000_000,
            outages: outages.to_vec(),
            seed: 1,
            download: false,
        }
    }

    fn world(&self) -> (World, [HostId; 2]) {
        let manager = || table::build(path_manager::TABLE, DEFAULT, &Settings::new()).expect("in the table");
        let mut world = World::new(WorldConfig { seed: self.seed, ..WorldConfig::default() });
        let client = world.add_host("client", &EndpointConfig::default(), manager());
        let server = world.add_host("server", &EndpointConfig::default(), manager());
        let path = |(index, path): (usize, &Bottleneck)| PathConfig {
            name: index.to_string(),
            access_up: path.forward(),
            access_down: path.backward(),
            ..PathConfig::default()
        };
        let paths: Vec<PathConfig> = self.paths.iter().enumerate().map(path).collect();
        let paths: Vec<Path> = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
        let receive_buffer = BufferSize::Fixed(self.receive_buffer);
        let config = ConnectionConfig { receive_buffer, ..default_config() };
        let flow = upload("bulk", (client, paths[0].client), paths[0].server, Instant::ZERO, &config);
        let direction = if self.download { Application::download } else { Application::upload };
        world.add_flow(FlowConfig {
            application: direction(self.sending.clone()),
            record: Some(Duration::from_millis(5)),
            ..flow
        });
        for outage in &self.outages {
            let Path { access_up, access_down, .. } = paths[outage.path];
            for (link, spared) in [(access_up, Ways::Backward), (access_down, Ways::Forward)] {
                if outage.ways != spared {
                    world.schedule(ms(outage.from), Change::LinkState(link, false));
                    world.schedule(ms(outage.to), Change::LinkState(link, true));
                }
            }
        }
        (world, [client, server])
    }

    /// Runs to `end`, and samples the sender's state about its first outage every millisecond.
    fn run(&self, end: u64) -> Seen {
        let (mut world, [client, server]) = self.world();
        let (sender, side) = if self.download { (server, Side::Server) } else { (client, Side::Client) };
        let first = self.outages[0];
        let mut evidence = None;
        let mut moved_at = None;
        for now in first.from..end.min(first.from + 1_000) {
            world.run_until(ms(now));
            let id = world.connection(FlowId(0), side).expect("it is open");
            let views = world.endpoint(sender).subflow_views(world.now(), id);
            let view = &views[first.path];
            if view.stale && evidence.is_none() {
                let silence = ms(now).since(view.last_progress);
                let next = world.endpoint(sender).connection_view(world.now(), id).expect("it is open").data_nxt;
                evidence = Some(Evidence { at: now, silence, smoothed: view.smoothed_rtt, next });
            }
            let next = world.endpoint(sender).connection_view(world.now(), id).expect("it is open").data_nxt;
            if evidence.is_some_and(|evidence| next > evidence.next) {
                moved_at = moved_at.or(Some(now));
            }
        }
        world.run_until(ms(end));
        let measured = world.results().flows[0].measurements.clone().expect("it is recorded");
        Seen { evidence, moved_at, measured }
    }
}

/// The sender's state when a subflow became stale.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    at: u64,
    silence: Duration,
    smoothed: Duration,
    /// The next byte of the stream to be sent for the first time.
    next: u64,
}

/// Results of a run.
struct Seen {
    evidence: Option<Evidence>,
    /// When new data was sent after that, in milliseconds; reinjections of the stale subflow's data come first.
    moved_at: Option<u64>,
    measured: Box<Measurements>,
}

impl Seen {
    /// The longest time within an interval in which the stream did not advance, in milliseconds.
    fn stall(&self, from: u64, to: u64) -> u64 {
        let (mut longest, mut last) = (0, from);
        let series = &self.measured.series;
        for (time, delivered) in series.time.iter().zip(&series.delivered_bytes) {
            let time = (time * 1e3).round() as u64;
            if (from..=to).contains(&time) && *delivered > 0 {
                // It advanced within the interval that ends now.
                longest = longest.max(time - last);
                last = time;
            }
        }
        longest.max(to - last)
    }

    /// Bytes acknowledged on a path within an interval.
    fn acked(&self, path: usize, from: u64, to: u64) -> u64 {
        let series = &self.measured.subflows[path];
        let rows = series.time.iter().zip(&series.acked_bytes);
        let within = rows.filter(|(time, _)| (from + 1..=to).contains(&((*time * 1e3).round() as u64)));
        within.map(|(_, bytes)| bytes).sum()
    }

    /// Milliseconds from the end of an outage until its path carries its share again.
    fn back_after(&self, outage: &Outage, end: u64) -> Option<u64> {
        let before = self.acked(outage.path, outage.from - 2_000, outage.from) / 4;
        let mut ends = (outage.to..=end.saturating_sub(500)).step_by(20).map(|start| start + 500);
        let enough = |end: &u64| self.acked(outage.path, end - 500, *end) * 10 > before * 8;
        ends.find(enough).map(|end| end - outage.to)
    }
}

/// 10 Mbit/s and 50 ms, 20 Mbit/s and 20 ms; queues of one bandwidth-delay product.
const FIFTY: Bottleneck = Bottleneck::new(10, 25, 43);
const TWENTY: Bottleneck = Bottleneck::new(20, 10, 34);

/// Limits in milliseconds: two round trips of 50 ms from the evidence; without progress; back to its share.
const MOVED: u64 = 100;
const STALL: u64 = 300;
const BACK: u64 = 2_000;

/// Outages of one second of a path at times 37 ms apart, to meet all states of congestion control.
fn outages(path: usize, ways: Ways, count: u64) -> impl Iterator<Item = Outage> {
    (0..count).map(move |n| {
        let from = SETTLED + 37 * n;
        Outage { path, ways, from, to: from + 1_000 + 13 * n }
    })
}

/// Runs the case until 2.5 s after its first outage, and asserts that nothing stalls.
fn run_without_stall(case: &Case) -> Seen {
    let outage = case.outages[0];
    let end = outage.to + BACK + 500;
    let seen = case.run(end);
    let stall = seen.stall(outage.from - 100, end);
    assert!(stall <= STALL, "{stall} ms in {case:?}");
    seen
}

/// Asserts also that data moves within two round trips after evidence of three smoothed ones, and that the path is back
/// in time.
fn moves_and_comes_back(case: &Case) {
    let outage = case.outages[0];
    let seen = run_without_stall(case);
    let evidence = seen.evidence.expect("it is noticed");
    assert!(evidence.silence >= evidence.smoothed * 3, "{evidence:?} in {case:?}");
    let moved = seen.moved_at.expect("new data is sent") - evidence.at;
    assert!(moved <= MOVED, "{moved} ms in {case:?}");
    let back = seen.back_after(&outage, outage.to + BACK + 500);
    assert!(back.is_some_and(|back| back <= BACK), "{back:?} ms in {case:?}");
}

/// Bytes per second delivered in an interval.
fn goodput(seen: &Seen, from: u64, to: u64) -> u64 {
    let series = &seen.measured.series;
    let rows = series.time.iter().zip(&series.delivered_bytes);
    let within = rows.filter(|(time, _)| (from + 1..=to).contains(&((*time * 1e3).round() as u64)));
    within.map(|(_, bytes)| bytes).sum::<u64>() * 1_000 / (to - from)
}

#[test]
fn when_either_of_two_like_paths_dies_its_data_moves_and_when_it_recovers_it_carries_its_share() {
    for path in [0, 1] {
        for outage in outages(path, Ways::Both, 20) {
            moves_and_comes_back(&Case::bulk(&[FIFTY; 2], &[outage]));
        }
    }
}

#[test]
fn a_path_that_is_dead_in_one_direction_only_is_dead() {
    for ways in [Ways::Forward, Ways::Backward] {
        for outage in outages(0, ways, 20) {
            moves_and_comes_back(&Case::bulk(&[FIFTY; 2], &[outage]));
        }
    }
}

#[test]
fn what_the_server_sends_moves_too() {
    for ways in [Ways::Both, Ways::Forward, Ways::Backward] {
        for outage in outages(0, ways, 10) {
            moves_and_comes_back(&Case { download: true, ..Case::bulk(&[FIFTY; 2], &[outage]) });
        }
    }
}

#[test]
fn a_queue_of_many_products_or_of_a_half_makes_no_difference() {
    for queue in [21, 172, 860] {
        for outage in outages(0, Ways::Forward, 10) {
            moves_and_comes_back(&Case::bulk(&[Bottleneck { queue, ..FIFTY }; 2], &[outage]));
        }
    }
}

#[test]
fn the_faster_and_the_slower_of_two_paths_and_one_of_three_may_die() {
    for (paths, path) in [(vec![TWENTY, FIFTY], 0), (vec![TWENTY, FIFTY], 1), (vec![TWENTY, FIFTY, FIFTY], 1)] {
        for ways in [Ways::Both, Ways::Forward] {
            for outage in outages(path, ways, 10) {
                moves_and_comes_back(&Case::bulk(&paths, &[outage]));
            }
        }
    }
}

#[test]
fn a_path_dies_while_all_lose_one_packet_in_a_hundred() {
    let lossy = [Bottleneck { loss: 0.01, ..FIFTY }; 2];
    for ways in [Ways::Both, Ways::Forward] {
        for (seed, outage) in outages(1, ways, 20).enumerate() {
            moves_and_comes_back(&Case { seed: seed as u64, ..Case::bulk(&lossy, &[outage]) });
        }
    }
}

#[test]
fn with_a_receive_buffer_of_64_kb_nothing_stalls_either() {
    // One path of 50 ms fills this window; the other may be unused, so that it has no share to return to.
    for path in [0, 1] {
        for outage in outages(path, Ways::Both, 20) {
            let seen = run_without_stall(&Case { receive_buffer: 64_000, ..Case::bulk(&[FIFTY; 2], &[outage]) });
            let before = goodput(&seen, outage.from - 2_000, outage.from);
            let after = goodput(&seen, outage.to + 1_500, outage.to + 2_500);
            assert!(after * 10 > before * 8, "{after} of {before} bytes per second, {outage:?}");
        }
    }
}

#[test]
fn messages_that_leave_the_paths_half_idle_do_not_stall_either() {
    for ways in [Ways::Both, Ways::Forward, Ways::Backward] {
        for outage in outages(0, ways, 20) {
            // 8 of 20 Mbit/s. One in fifty pauses between messages is longer than 80 ms.
            let sending = Sending::Messages { size: 20_000, interval: Duration::from_millis(20) };
            run_without_stall(&Case { sending, ..Case::bulk(&[FIFTY; 2], &[outage]) });
        }
    }
}

#[test]
fn a_path_that_was_dead_for_long_carries_its_share_within_two_seconds() {
    for (path, seconds) in [(0, 5), (1, 5), (0, 20), (1, 20), (0, 60), (1, 60)] {
        for ways in [Ways::Both, Ways::Forward, Ways::Backward] {
            let from = SETTLED + 137 * seconds;
            let outage = Outage { path, ways, from, to: from + 1_000 * seconds };
            moves_and_comes_back(&Case::bulk(&[FIFTY; 2], &[outage]));
        }
    }
}

#[test]
fn paths_may_die_one_after_the_other() {
    for n in 0..10 {
        let from = SETTLED + 37 * n;
        let first = Outage { path: 0, ways: Ways::Both, from, to: from + 3_000 };
        // When the first carries its share again.
        let second = Outage { path: 1, from: first.to + BACK, to: first.to + BACK + 3_000, ..first };
        let case = Case::bulk(&[FIFTY; 2], &[first, second]);
        let end = second.to + BACK + 500;
        let seen = case.run(end);
        let stall = seen.stall(first.from - 100, end);
        assert!(stall <= STALL, "{stall} ms in {case:?}");
        let back = seen.back_after(&second, end);
        assert!(back.is_some_and(|back| back <= BACK), "{back:?} ms in {case:?}");
    }
}

#[test]
#[ignore = "prints a table of docs/measurements/default-policy.md"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn table() {
    let lossy = Bottleneck { loss: 0.01, ..FIFTY };
    let cases = [
        ("two paths", vec![FIFTY; 2], 0, Ways::Both, 4_000_000),
        ("the same, forward only", vec![FIFTY; 2], 0, Ways::Forward, 4_000_000),
        ("the same, backward only", vec![FIFTY; 2], 0, Ways::Backward, 4_000_000),
        ("the second of them", vec![FIFTY; 2], 1, Ways::Both, 4_000_000),
        ("the faster of 20 and 50 ms", vec![TWENTY, FIFTY], 0, Ways::Both, 4_000_000),
        ("the slower", vec![TWENTY, FIFTY], 1, Ways::Both, 4_000_000),
        ("the second of 20, 50 and 50 ms", vec![TWENTY, FIFTY, FIFTY], 1, Ways::Both, 4_000_000),
        ("two paths that lose 1 %", vec![lossy; 2], 0, Ways::Both, 4_000_000),
        ("two paths, receive buffer 64 kB", vec![FIFTY; 2], 0, Ways::Both, 64_000),
    ];
    println!("\n| case | stall | new data after detection | share again after |\n|---|---|---|---|");
    for (name, paths, path, ways, receive_buffer) in cases {
        let (mut stall, mut moved, mut back) = (0, 0, 0);
        for outage in outages(path, ways, 20) {
            let end = outage.to + BACK + 500;
            let seen = Case { receive_buffer, ..Case::bulk(&paths, &[outage]) }.run(end);
            let evidence = seen.evidence.map_or(0, |evidence| evidence.at);
            stall = stall.max(seen.stall(outage.from - 100, end));
            moved = moved.max(seen.moved_at.map_or(0, |at| at - evidence));
            back = back.max(seen.back_after(&outage, end).unwrap_or(9_999));
        }
        let back = if back < 9_999 { back.to_string() } else { "not used".to_owned() };
        println!("| {name} | {stall} | {moved} | {back} |");
    }
}
