//! The path manager one_way_delay: the receiver measures, suspends and resumes paths, and the sender obeys.

use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{
    ForwardDelays, Measurements, PathAction, PathEvent, PathManager, TABLE as PATH_MANAGERS,
};
use anabranch_policy::rate::Rate;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::{congestion, scheduler};
use anabranch_sim::application::Sending;
use anabranch_sim::link::LossModel;
use anabranch_sim::topology::{PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Application, Change, FlowConfig, FlowId, HostId, LinkConfig, Side, World, WorldConfig};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Events and actions of a path manager, by the client's address of the path: 1, 2 and 3, or 0 for the initial one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Backup(u8, bool),
    Suspend(u8),
    Resume(u8),
    SenderBlocked,
    ReceiverBlocked,
}

type Log = Arc<Mutex<Vec<(Instant, What)>>>;

/// A path manager whose events and actions are logged.
struct Watched {
    manager: Box<dyn PathManager>,
    at_client: bool,
    addresses: BTreeMap<SubflowId, AddressId>,
    log: Log,
}

impl PathManager for Watched {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        if let PathEvent::SubflowEstablished { subflow, local, remote, .. } = *event {
            self.addresses.insert(subflow, if self.at_client { local } else { remote });
        }
        let before = actions.len();
        self.manager.handle(now, event, actions);
        let mut log = self.log.lock().unwrap();
        match event {
            PathEvent::ReceiveBufferBlocked { .. } => log.push((now, What::SenderBlocked)),
            PathEvent::ReceiverBlocked { .. } => log.push((now, What::ReceiverBlocked)),
            _ => {}
        }
        let of = |subflow| self.addresses.get(&subflow).map_or(0, |address| address.0);
        for action in &actions[before..] {
            let what = match *action {
                PathAction::SetBackup { subflow, backup, .. } => What::Backup(of(subflow), backup),
                PathAction::Suspend { subflow, .. } => What::Suspend(of(subflow)),
                PathAction::Resume { subflow, .. } => What::Resume(of(subflow)),
                _ => continue,
            };
            log.push((now, what));
        }
    }
    fn measurements(&self) -> Measurements {
        self.manager.measurements()
    }
    fn forward_delays(&self) -> ForwardDelays {
        self.manager.forward_delays()
    }
}

/// full_mesh with measurements: both ends' events occur, without consequences.
struct OnlyListens(Box<dyn PathManager>);

impl PathManager for OnlyListens {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.0.handle(now, event, actions);
    }
    fn forward_delays(&self) -> ForwardDelays {
        ForwardDelays::OfArrivals
    }
}

fn manager(name: &str, settings: &[(&str, &str)]) -> Box<dyn PathManager> {
    let settings = settings.iter().fold(Settings::new(), |settings, (name, value)| settings.with(name, value));
    table::build(PATH_MANAGERS, name, &settings).unwrap()
}

fn ours(settings: &[(&str, &str)]) -> Box<dyn PathManager> {
    manager("one_way_delay", settings)
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn connection(timestamp_drift: i32) -> ConnectionConfig {
    let policies = Policies {
        congestion: Arc::new(|| table::build(congestion::TABLE, "new_reno", &Settings::new()).unwrap()),
        scheduler: Arc::new(|| table::build(scheduler::TABLE, "round_robin", &Settings::new()).unwrap()),
        reliability: anabranch_mptcp::config::fully_reliable(),
    };
    let mut config = ConnectionConfig::new(policies);
    config.receive_buffer = BufferSize::Fixed(64 * 1024);
    config.tcp.timestamp_drift = timestamp_drift;
    config
}

fn path(name: &str, bits_per_second: u64, delay_ms: u64, loss: f64) -> PathConfig {
    let rate = Rate::from_bits_per_second(bits_per_second);
    let mut access_up = LinkConfig::new(rate, Duration::from_millis(delay_ms), 50);
    let access_down = LinkConfig::new(Rate::from_bits_per_second(10_000_000), Duration::from_millis(delay_ms), 50);
    access_up.loss = vec![LossModel::Uniform(loss)];
    let core = LinkConfig::new(Rate::from_bits_per_second(100_000_000), Duration::from_millis(2), 500);
    PathConfig { name: name.to_owned(), access_up, access_down, core_up: core.clone(), core_down: core }
}

/// An endless upload over two good paths and a third that is slow and lossy.
struct Lab {
    world: World,
    flow: FlowId,
    server: HostId,
    third: anabranch_sim::LinkId,
    at_client: Log,
    at_server: Log,
}

impl Lab {
    /// `drift` is that of the timestamp clocks in millionths.
    fn new(seed: u64, managers: [Box<dyn PathManager>; 2], drifts: [i32; 2]) -> Self {
        let mut world = World::new(WorldConfig { seed, wire: false, ipv6: false });
        let (at_client, at_server) = (Log::default(), Log::default());
        let [client, server] = managers;
        let mut host = |name: &str, manager, log: &Log| {
            let at_client = name == "client";
            let watched = Watched { manager, at_client, addresses: BTreeMap::new(), log: log.clone() };
            world.add_host(name, &EndpointConfig::default(), Box::new(watched))
        };
        let (client, server) = (host("client", client, &at_client), host("server", server, &at_server));
        // A full segment takes 120 ms on the third path, so that even a single probe is slower than 50 packets on the
        // others, which take 60 ms.
        let paths = [path("a", 10_000_000, 5, 0.0), path("b", 10_000_000, 10, 0.0), path("c", 100_000, 10, 0.01)];
        let paths = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
        let flow = world.add_flow(FlowConfig {
            name: "bulk".to_owned(),
            client,
            from: Some(paths[0].client),
            to: paths[0].server,
            start: Instant::ZERO,
            stop: Instant::NEVER,
            application: Application::upload(Sending::Endless),
            client_config: connection(drifts[0]),
            server_config: connection(drifts[1]),
            record: None,
        });
        Self { world, flow, server, third: paths[2].access_up, at_client, at_server }
    }

    fn run(&mut self, seconds: f64) {
        self.world.run_until(at(seconds));
    }

    /// From then on the third path is as fast as the others.
    fn mend_third_at(&mut self, seconds: f64) {
        self.world.schedule(at(seconds), Change::LinkRate(self.third, Rate::from_bits_per_second(20_000_000)));
    }

    /// Payload that arrived first on the third path so far.
    fn on_third(&self) -> u64 {
        let connection = self.world.connection(self.flow, Side::Server).unwrap();
        let reports = self.world.endpoint(self.server).subflow_reports(connection);
        let third = reports.iter().filter(|report| report.view.remote_address == AddressId(3));
        third.map(|report| report.bytes_received).sum()
    }

    fn read(&mut self) -> u64 {
        self.world.results().flows[0].server.read
    }
}

/// Times of an event within an interval, in seconds.
fn times(log: &Log, what: What, from: f64, to: f64) -> Vec<f64> {
    let log = log.lock().unwrap();
    let happened = log.iter().filter(|(time, is)| *is == what && *time >= at(from) && *time < at(to));
    happened.map(|(time, _)| time.as_secs_f64()).collect()
}

const WEIGHTED: &[(&str, &str)] = &[("average", "weighted")];

fn mesh() -> Box<dyn PathManager> {
    manager("full_mesh", &[])
}

#[test]
fn a_path_that_blocks_the_receive_buffer_is_named_left_measured_and_taken_back_when_it_is_good_again() {
    let mut lab = Lab::new(1, [ours(WEIGHTED), ours(WEIGHTED)], [0, 0]);
    lab.mend_third_at(20.0);
    lab.run(3.0);
    let named = times(&lab.at_server, What::Backup(3, true), 0.0, 3.0);
    let suspended = times(&lab.at_client, What::Suspend(3), 0.0, 3.0);
    // MP_PRIO needs 12 ms for the way back, and the path manager runs once per round trip.
    assert!(suspended[0] > named[0] && suspended[0] < named[0] + 0.3, "{named:?} {suspended:?}");
    let (left, before) = (lab.on_third(), lab.read());
    lab.run(20.0);
    assert_eq!(lab.on_third(), left, "but for probes, which bring nothing new, it carries nothing");
    // The other two have 20 Mbit/s, of which 1420 of 1500 bytes are payload: 18.9 Mbit/s, for 17 s, 40.2 MB.
    let read = lab.read() - before;
    assert!(read > 36_000_000, "{read}");
    assert_eq!(times(&lab.at_server, What::Backup(3, false), 0.0, 20.0), [0.0; 0]);
    lab.run(80.0);
    let back = times(&lab.at_server, What::Backup(3, false), 20.0, 80.0);
    let resumed = times(&lab.at_client, What::Resume(3), 20.0, 80.0);
    assert!(resumed[0] > back[0] && resumed[0] < back[0] + 0.1, "{back:?} {resumed:?}");
    assert!(lab.on_third() > left + 1_000_000);
}

#[test]
fn with_all_history_it_is_left_for_as_long_as_its_past_weighs() {
    let mut lab = Lab::new(1, [ours(&[]), ours(&[])], [0, 0]);
    lab.mend_third_at(20.0);
    lab.run(60.0);
    assert!(!times(&lab.at_server, What::Backup(3, true), 0.0, 3.0).is_empty());
    assert_eq!(times(&lab.at_server, What::Backup(3, false), 0.0, 60.0), [0.0; 0]);
}

/// Each connection's timestamps start at a random value of a range of 49 days, at both ends.
#[test]
fn clocks_that_are_days_apart_and_drift_by_100_millionths_change_nothing() {
    let run = |seed, drifts| {
        let mut lab = Lab::new(seed, [ours(WEIGHTED), ours(WEIGHTED)], drifts);
        lab.mend_third_at(20.0);
        lab.run(80.0);
        [(true, 0.0, 20.0), (false, 20.0, 80.0)]
            .map(|(named, from, to)| times(&lab.at_server, What::Backup(3, named), from, to)[0])
    };
    let reference = run(1, [0, 0]);
    for (seed, drifts) in [(2, [0, 0]), (3, [0, 0]), (1, [100, 0]), (1, [0, 100]), (4, [-100, 100])] {
        let [named, back] = run(seed, drifts);
        assert!((named - reference[0]).abs() < 0.1, "{seed} {drifts:?}: named at {named}, not {reference:?}");
        assert!((back - reference[1]).abs() < 5.0, "{seed} {drifts:?}: back at {back}, not {reference:?}");
    }
}

#[test]
fn a_sender_that_knows_only_backups_leaves_the_path_and_gets_it_back_after_a_time_without_data() {
    let mut lab = Lab::new(1, [mesh(), ours(&[])], [0, 0]);
    lab.run(60.0);
    assert_eq!(times(&lab.at_client, What::Suspend(3), 0.0, 60.0), [0.0; 0]);
    let named = times(&lab.at_server, What::Backup(3, true), 0.0, 60.0);
    let back = times(&lab.at_server, What::Backup(3, false), 0.0, 60.0);
    // Without probes: ten seconds after the last packet in flight.
    assert!(back[0] >= named[0] + 10.0, "{named:?} {back:?}");
    let mut plain = Lab::new(1, [mesh(), mesh()], [0, 0]);
    plain.run(60.0);
    let (with, without) = (lab.read(), plain.read());
    assert!(with > 10 * without, "{with} {without}");
}

#[test]
fn a_sender_that_is_never_told_does_as_full_mesh_does() {
    let mut alone = Lab::new(1, [ours(&[]), mesh()], [0, 0]);
    let mut plain = Lab::new(1, [mesh(), mesh()], [0, 0]);
    alone.run(10.0);
    plain.run(10.0);
    assert_eq!(alone.read(), plain.read());
    assert_eq!(alone.on_third(), plain.on_third());
}

#[test]
fn a_sender_that_measures_by_itself_needs_nobody() {
    let settings = [("measured_by", "sender"), ("average", "weighted")];
    let mut lab = Lab::new(1, [ours(&settings), mesh()], [0, 0]);
    lab.run(20.0);
    assert!(!times(&lab.at_client, What::Suspend(3), 0.0, 3.0).is_empty());
    let third = lab.on_third();
    assert!(third < 100_000, "{third}");
}

#[test]
fn when_the_receiver_is_blocked_the_sender_says_so_too() {
    let listens = || Box::new(OnlyListens(mesh()));
    let mut lab = Lab::new(1, [listens(), listens()], [0, 0]);
    lab.run(20.0);
    let blocked = times(&lab.at_server, What::ReceiverBlocked, 0.0, 20.0);
    assert!(blocked.len() > 20, "{}", blocked.len());
    for at in blocked {
        // The sender may have reported itself blocked earlier, while waiting for a round trip of the slow path; it
        // hears of the arrivals within 20 ms.
        assert!(!times(&lab.at_client, What::SenderBlocked, at - 2.0, at + 0.02).is_empty(), "{at}");
    }
}
