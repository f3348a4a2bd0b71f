//! Programs whose datagrams are carried over two paths.

use anabranch_mptcp::EndpointConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::datagrams::{Carrier, DatagramFlow, DatagramsConfig, DatagramsResult, Pattern};
use anabranch_sim::link::{DelayModel, RateModel};
use anabranch_sim::topology::{NoPaths, PathConfig, ServerAddresses, disjoint_paths};
use anabranch_sim::{Change, LinkConfig, RunResult, World, WorldConfig};
use bytes::Bytes;
use std::collections::VecDeque;

/// Sends each datagram unchanged, alternating between the paths or duplicated on all of them, after two octets for the
/// flow.
struct InTurn {
    paths: usize,
    copies: bool,
    sent: usize,
    out: VecDeque<(usize, Bytes)>,
    came: VecDeque<(u16, Bytes)>,
}

impl InTurn {
    fn boxed(paths: usize, copies: bool) -> Box<dyn Carrier> {
        Box::new(Self { paths, copies, sent: 0, out: VecDeque::new(), came: VecDeque::new() })
    }
}

impl Carrier for InTurn {
    fn send(&mut self, _now: Instant, flow: u16, payload: Bytes) -> bool {
        let packet: Bytes = [&flow.to_be_bytes()[..], &payload].concat().into();
        let all = 0..self.paths;
        let paths = if self.copies { all } else { self.sent % self.paths..self.sent % self.paths + 1 };
        self.out.extend(paths.map(|path| (path, packet.clone())));
        self.sent += 1;
        true
    }
    fn handle_packet(&mut self, _now: Instant, _path: usize, packet: &[u8]) {
        let (flow, payload) = packet.split_at(2);
        self.came.push_back((u16::from_be_bytes([flow[0], flow[1]]), Bytes::copy_from_slice(payload)));
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self) -> Option<(usize, Bytes)> {
        self.out.pop_front()
    }
    fn poll_datagram(&mut self) -> Option<(u16, Bytes)> {
        self.came.pop_front()
    }
    fn poll_timeout(&self) -> Instant {
        Instant::NEVER
    }
}

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn at(value: u64) -> Instant {
    Instant::ZERO + millis(value)
}

/// 100 datagrams of 970 bytes in each direction, every 10 ms: packets of 1,000 bytes with two octets and 28 of headers.
fn call() -> DatagramFlow {
    DatagramFlow {
        name: "call".to_owned(),
        pattern: Pattern::Even { rate: Rate::from_bits_per_second(776_000), size: 970 },
        sends: [true, true],
        start: at(1_000),
        stop: at(2_000),
        deadline: None,
    }
}

/// Two paths of 8 Mbit/s with 5 and 18 ms; the first is down from `down` on.
fn run(flow: DatagramFlow, copies: bool, down: Option<u64>) -> RunResult {
    let mut world = World::new(WorldConfig { seed: 3, ..WorldConfig::default() });
    let host = |world: &mut World, name: &str| world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths));
    let (client, server) = (host(&mut world, "client"), host(&mut world, "server"));
    let path = |(name, delay): (&str, u64)| {
        let link = LinkConfig {
            rate: RateModel::Fixed(Rate::from_bits_per_second(8_000_000)),
            delay: DelayModel::Fixed(millis(delay)),
            ..LinkConfig::default()
        };
        PathConfig { name: name.to_owned(), access_up: link.clone(), access_down: link, ..PathConfig::default() }
    };
    let paths = [("a", 5), ("b", 18)].map(path);
    let made = disjoint_paths(&mut world, client, server, &paths, ServerAddresses::One);
    let config = DatagramsConfig {
        client: made.iter().map(|path| path.client).collect(),
        server: made[0].server,
        flows: vec![flow],
        sample: millis(500),
    };
    world.add_datagrams(config, InTurn::boxed(2, copies), InTurn::boxed(2, copies));
    for time in down.into_iter().map(at) {
        [made[0].access_up, made[0].access_down]
            .into_iter()
            .for_each(|link| world.schedule(time, Change::LinkState(link, false)));
    }
    world.run_until(at(3_000));
    world.results()
}

fn session(result: &RunResult) -> &DatagramsResult {
    result.datagrams.first().expect("there is one session")
}

#[test]
fn each_datagram_takes_what_its_path_takes_and_is_counted_there() {
    let result = run(call(), false, None);
    let session = session(&result);
    assert_eq!(session.scores.len(), 2, "one each way");
    for score in &session.scores {
        assert_eq!((score.sent.len(), score.order.len(), score.repeated), (100, 100, 0));
        for (number, sent) in score.sent.iter().enumerate() {
            // 1,000 bytes take 1 ms.
            let delay = if number % 2 == 0 { 6 } else { 19 };
            assert_eq!(sent.arrived, Some(sent.at + millis(delay)));
            // The second is sent 10 ms later and arrives 3 ms before the first.
            assert_eq!(sent.reordered, number % 2 == 1 && number < 99, "{number}");
        }
    }
    for path in &session.octets {
        assert_eq!(path.iter().map(|octets| (octets.from_client, octets.from_server)).max(), Some((25_000, 25_000)));
        assert_eq!(path.iter().map(|octets| octets.from_client).sum::<u64>(), 50_000);
    }
}

#[test]
fn copies_come_once_each_to_the_program_unless_the_carrier_removes_them_and_a_dead_path_loses_its_own() {
    let result = run(call(), true, Some(1_500));
    for score in &session(&result).scores {
        assert_eq!(score.order.len(), 100);
        assert!((49..=51).contains(&score.repeated), "{}", score.repeated);
        let late = score.sent.iter().filter(|sent| sent.arrived == Some(sent.at + millis(19))).count();
        assert!((49..=51).contains(&late), "{late}");
    }
}

#[test]
fn an_answer_is_scored_from_its_request_on() {
    let pattern = Pattern::Requests { interval: millis(20), request: 70, answer: 470 };
    let result = run(DatagramFlow { pattern, ..call() }, false, None);
    let [score] = session(&result).scores.as_slice() else { panic!("answers alone are scored") };
    assert!(score.to_client && score.sent.len() > 25 && score.order.len() == score.sent.len());
    // 100 bytes up and 500 down take 0.6 ms; each end alternates, so that both use the same path.
    let quick = score.sent.iter().filter(|sent| sent.arrived == Some(sent.at + Duration::from_micros(10_600)));
    assert!(quick.count() > 5);
}

#[test]
fn a_run_with_datagrams_has_the_same_trace_hash_each_time() {
    let hash = |copies| run(call(), copies, None).trace_hash;
    assert_eq!(hash(false), hash(false));
    assert_ne!(hash(false), hash(true));
}
