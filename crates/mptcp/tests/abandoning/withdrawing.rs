//! The sender withdraws useless data, and both ends exchange notices.

use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::keys::Key;
use anabranch_mptcp::{ConnectionConfig, Endpoint, EndpointConfig, Event, Framing, MessageOptions, Record};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager;
use anabranch_policy::reliability::{self, Outstanding, Reason, Terms, Unit};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;
use anabranch_wire::mptcp::CapableKeys;
use anabranch_wire::mptcp::notice::{EXPERIMENT, Notice};
use anabranch_wire::{MptcpOption, Packet};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

fn with(policy: &'static str, settings: Settings) -> ConnectionConfig {
    let mut config = ConnectionConfig { framing: Framing::Messages, buffers_per_subflow: false, ..config() };
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, policy, &settings).expect("in the table"));
    config
}

fn lifetime(millis: u64) -> Settings {
    Settings::new().with("lifetime", millis)
}

fn notices(packet: &Packet) -> Vec<Notice> {
    packet.segment.options.mptcp.iter().filter_map(Notice::of).collect()
}

struct Bench {
    pair: Pair,
    id: ConnectionId,
    server: ConnectionId,
    /// If set, the client's data on this path, or on all, is lost.
    black: Rc<Cell<Option<usize>>>,
    /// Number of notices still to be lost.
    notices_to_lose: Rc<Cell<usize>>,
}

const EVERYWHERE: usize = 99;

fn bench(paths: usize, client: ConnectionConfig, server: ConnectionConfig) -> Bench {
    bench_of(Pair::new(paths), client, server)
}

fn bench_of(pair: Pair, client: ConnectionConfig, server: ConnectionConfig) -> Bench {
    bench_that_loses(pair, client, server, |_, _| false)
}

/// The client's data is also lost where `lost` says so.
fn bench_that_loses(
    mut pair: Pair,
    client: ConnectionConfig,
    server: ConnectionConfig,
    lost: impl Fn(Instant, &Packet) -> bool + 'static,
) -> Bench {
    pair.reading = [false, false];
    let (black, notices_to_lose) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(0_usize)));
    let (dark, losing) = (Rc::clone(&black), Rc::clone(&notices_to_lose));
    pair.judge = Box::new(move |from, now, packet| {
        if from == 0 && lost(now, packet) {
            return Fate::Drop;
        }
        let std::net::IpAddr::V4(to) = packet.ip.destination else { return Fate::Deliver };
        let here = dark.get().is_some_and(|path: usize| path == EVERYWHERE || path == usize::from(to.octets()[2]));
        if from == 0 && here && !packet.segment.payload.is_empty() {
            return Fate::Drop;
        }
        if notices(packet).iter().any(|notice| !matches!(notice, Notice::Hello { .. })) && losing.get() > 0 {
            losing.set(losing.get() - 1);
            return Fate::Drop;
        }
        Fate::Deliver
    });
    let id = pair.connect(client, server);
    pair.run(Duration::from_millis(50));
    let server = pair.accepted().unwrap();
    let mut bench = Bench { pair, id, server, black, notices_to_lose };
    bench.write(76, None);
    bench.pair.run(Duration::from_millis(300));
    assert_eq!(bench.read(), [(0, 100, None)]);
    bench
}

impl Bench {
    fn write(&mut self, length: usize, lifetime: Option<u64>) {
        let lifetime = lifetime.map(Duration::from_millis);
        let options = MessageOptions { importance: 1, play_out: Duration::ZERO, lifetime };
        let taken = self.pair.hosts[0].write_message(self.pair.now, self.id, Bytes::from(pattern(length)), &options);
        assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
        self.pair.settle();
    }
    fn run(&mut self, millis: u64) {
        self.pair.run(Duration::from_millis(millis));
    }
    fn read(&mut self) -> Vec<(u64, u64, Option<Reason>)> {
        let now = self.pair.now;
        let records: Vec<Record> = std::iter::from_fn(|| self.pair.hosts[1].read_record(now, self.server)).collect();
        self.pair.settle();
        let read = records.into_iter().map(|record| {
            let reason = if let Record::Gap { reason, .. } = &record { Some(*reason) } else { None };
            (record.offset(), record.length(), reason)
        });
        read.collect()
    }
    fn stats(&self, host: usize) -> anabranch_mptcp::stats::ConnectionStats {
        self.pair.hosts[host].stats([self.id, self.server][host]).unwrap()
    }
}

#[test]
fn two_ends_that_abandon_data_say_so_to_each_other_and_stop_saying_it() {
    let mut bench = bench(1, with("spe", Settings::new()), with("pr_mptcp", Settings::new()));
    bench.run(10_000);
    for sent in &bench.pair.sent {
        let hellos = sent.iter().flat_map(|(_, packet)| notices(packet));
        let heard: Vec<_> = hellos.map(|notice| matches!(notice, Notice::Hello { heard: true, .. })).collect();
        assert!((1..=3).contains(&heard.len()) && heard.ends_with(&[true]), "{heard:?}");
    }
}

#[test]
fn under_full_reliability_nothing_is_offered_and_an_unanswered_offer_is_repeated_a_few_times() {
    let mut bench = bench(1, with("full", Settings::new()), with("spe", Settings::new()));
    bench.run(60_000);
    let experimental = |packet: &Packet| {
        let ours = |option: &MptcpOption| matches!(option, MptcpOption::Experimental { experiment: EXPERIMENT, .. });
        packet.segment.options.mptcp.iter().any(ours)
    };
    let count = |host: usize| bench.pair.sent[host].iter().filter(|(_, packet)| experimental(packet)).count();
    assert_eq!((count(0), count(1)), (0, 4));
}

#[test]
fn a_peer_that_heard_none_of_our_hellos_is_told_with_what_is_withdrawn() {
    let ends = || with("pr_mptcp", lifetime(200));
    // All hellos that the client sends unasked are lost.
    let hello = |packet: &Packet| notices(packet).iter().any(|notice| matches!(notice, Notice::Hello { .. }));
    let early = Instant::ZERO + Duration::from_secs(2);
    let lost = move |now: Instant, packet: &Packet| now < early && hello(packet);
    let mut bench = bench_that_loses(Pair::new(2), ends(), ends(), lost);
    bench.run(2_000);
    // A message is withdrawn after all its copies are lost: its path is dead.
    bench.black.set(Some(EVERYWHERE));
    bench.write(5_000, None);
    bench.run(250);
    bench.black.set(Some(0));
    bench.write(5_000, Some(60_000));
    bench.run(5_000);
    assert_eq!(bench.stats(0).messages_withdrawn, 1);
    assert_eq!(bench.read(), [(100, 5_024, Some(Reason::Withdrawn)), (5_124, 5_024, None)]);
}

#[test]
fn a_message_that_expires_before_it_was_sent_is_taken_out_of_the_stream_without_a_word() {
    let mut bench = bench(1, with("mo_pr", lifetime(200)), with("mo_pr", lifetime(200)));
    // The window is full and nothing returns.
    bench.black.set(Some(EVERYWHERE));
    bench.write(40_000, Some(60_000));
    bench.write(5_000, None);
    bench.write(5_000, Some(60_000));
    bench.run(250);
    let stats = bench.stats(0);
    assert_eq!((stats.messages_withdrawn, stats.bytes_withdrawn), (1, 5_024));
    bench.black.set(None);
    bench.run(20_000);
    assert_eq!(bench.read(), [(100, 40_024, None), (40_124, 5_024, None)]);
}

#[test]
fn who_waits_for_room_hears_of_what_a_message_leaves_that_is_taken_out() {
    let small = ConnectionConfig { send_buffer: 40_000, ..with("mo_pr", lifetime(200)) };
    let mut bench = bench(1, small, with("mo_pr", lifetime(200)));
    bench.black.set(Some(EVERYWHERE));
    // More than the congestion window.
    bench.write(20_000, Some(60_000));
    bench.write(14_000, None);
    let (now, id) = (bench.pair.now, bench.id);
    let short = bench.pair.hosts[0].write_message(now, id, Bytes::from(pattern(7_000)), &MessageOptions::default());
    assert!(matches!(short, Ok(None)), "{short:?}");
    bench.pair.events[0].clear();
    // Nothing is acknowledged.
    bench.run(250);
    assert_eq!(bench.stats(0).messages_withdrawn, 1);
    assert_eq!(bench.pair.events[0].iter().filter(|event| **event == Event::Writable(id)).count(), 1);
}

#[test]
fn what_was_sent_and_expires_is_withdrawn_by_a_word_that_may_be_lost() {
    for (policy, lost) in [("pr_mptcp", 0), ("mo_pr", 0), ("pr_mptcp", 4), ("mo_pr", 4)] {
        let mut bench = bench(2, with(policy, lifetime(150)), with(policy, lifetime(150)));
        bench.notices_to_lose.set(lost);
        bench.black.set(Some(EVERYWHERE));
        bench.write(5_000, None);
        bench.run(30);
        bench.black.set(None);
        // Its path is busy with retransmissions; this is the data after the hole.
        bench.write(1_000, Some(60_000));
        bench.black.set(Some(0));
        bench.run(400);
        bench.black.set(None);
        bench.run(10_000);
        let read = bench.read();
        let whole = read.iter().map(|record| record.1).sum::<u64>();
        assert_eq!(whole, 5_024 + 1_024, "{policy} {lost}: {read:?}");
        assert_eq!(read.last(), Some(&(5_124, 1_024, None)), "{policy} {lost}");
    }
}

#[test]
fn however_often_messages_are_written_a_withdrawal_is_repeated_once_a_round_trip() {
    let mut bench = bench(2, with("mo_pr", lifetime(60_000)), with("mo_pr", lifetime(60_000)));
    bench.black.set(Some(EVERYWHERE));
    bench.notices_to_lose.set(10_000);
    bench.write(5_000, Some(50));
    bench.run(100);
    assert_eq!(bench.stats(0).messages_withdrawn, 1);
    let before = bench.notices_to_lose.get();
    for _ in 0..200 {
        bench.write(100, None);
        bench.run(1);
    }
    // Round trips are of 20 ms at least, and each of four subflows has a notice in each.
    let told = before - bench.notices_to_lose.get();
    assert!((4..=44).contains(&told), "{told}");
}

#[test]
fn what_is_withdrawn_takes_nothing_along_that_lies_behind_it_in_the_same_hole() {
    for policy in ["mo_pr", "pr_mptcp"] {
        let mut bench = bench(2, with(policy, lifetime(100)), with(policy, lifetime(100)));
        bench.black.set(Some(EVERYWHERE));
        for lifetime in [None, Some(60_000), None] {
            bench.write(5_000, lifetime);
        }
        bench.run(80);
        bench.black.set(Some(0));
        bench.write(1_000, Some(60_000));
        bench.run(2_000);
        bench.black.set(None);
        bench.run(10_000);
        let withdrawn = Some(Reason::Withdrawn);
        let records =
            [(100, 5_024, withdrawn), (5_124, 5_024, None), (10_148, 5_024, withdrawn), (15_172, 1_024, None)];
        assert_eq!(bench.read(), records, "{policy}");
    }
}

#[test]
fn what_the_peer_has_of_a_message_does_not_count_as_withdrawn() {
    let mut bench = bench(1, with("mo_pr", lifetime(100)), with("mo_pr", lifetime(100)));
    bench.write(60_000, Some(35));
    bench.run(26);
    let stats = bench.stats(0);
    assert!(stats.bytes_acked > 100 && stats.messages_withdrawn == 1, "{stats:?}");
    // Its last byte is not withdrawn either.
    assert_eq!(stats.bytes_withdrawn, 100 + 60_024 - 1 - stats.bytes_acked);
}

#[test]
fn a_peer_that_hears_no_withdrawal_gets_the_data_after_all_and_nothing_that_was_sent_is_withdrawn_any_more() {
    let mut bench = bench(1, with("mo_pr", lifetime(60_000)), with("mo_pr", lifetime(60_000)));
    bench.notices_to_lose.set(usize::MAX);
    // More than the window: most of the withdrawn data was never assigned to the subflow.
    for first in [true, false] {
        bench.write(60_000, Some(15));
        bench.run(26);
        assert_eq!(bench.stats(0).messages_withdrawn == 1, first);
        bench.write(1_000, None);
        bench.run(9_000);
        assert_eq!(bench.read().is_empty(), first);
        bench.run(1_500);
    }
    let sizes: Vec<_> = bench.read().iter().map(|(_, length, reason)| (*length, *reason)).collect();
    assert_eq!(sizes, []);
    assert_eq!(bench.stats(1).bytes_delivered, 100 + 2 * (60_024 + 1_024));
    let stats = bench.stats(0);
    assert_eq!((stats.messages_withdrawn, stats.bytes_withdrawn), (0, 0));
}

#[test]
fn the_sender_counts_what_the_receiver_abandoned_even_if_a_notice_is_lost() {
    let spe = || with("spe", Settings::new().with("latency", 100).with("reserve", 0));
    let mut bench = bench(2, spe(), spe());
    bench.notices_to_lose.set(1);
    for _ in 0..2 {
        bench.black.set(Some(EVERYWHERE));
        bench.write(1_000, None);
        bench.black.set(None);
        bench.write(1_000, None);
        bench.run(3_000);
    }
    let abandoned = bench.stats(1).abandoned.total().bytes;
    assert!(abandoned >= 1_024, "{abandoned}");
    assert_eq!(bench.stats(0).bytes_abandoned_by_peer, abandoned);
    assert_eq!(bench.stats(0).bytes_acked - abandoned, bench.stats(1).bytes_delivered);
}

#[test]
fn against_a_peer_that_does_not_know_of_it_nothing_is_withdrawn_that_was_sent() {
    let mut bench = bench(1, with("mo_pr", lifetime(100)), with("full", Settings::new()));
    bench.black.set(Some(EVERYWHERE));
    bench.write(5_000, None);
    bench.run(500);
    bench.black.set(None);
    bench.run(10_000);
    assert_eq!(bench.read(), [(100, 5_024, None)]);
    assert_eq!(bench.stats(0).messages_withdrawn, 0);
}

#[test]
fn a_withdrawn_tail_ends_the_stream_all_the_same() {
    for policy in ["pr_mptcp", "mo_pr", "too_late"] {
        let settings = if policy == "too_late" { Settings::new() } else { lifetime(100) };
        let mut bench = bench(2, with(policy, settings.clone()), with(policy, settings));
        bench.black.set(Some(EVERYWHERE));
        bench.write(60_000, None);
        bench.run(50);
        bench.pair.hosts[0].close(bench.pair.now, bench.id).unwrap();
        bench.run(3_000);
        bench.black.set(None);
        bench.pair.hosts[1].close(bench.pair.now, bench.server).unwrap();
        let mut read = Vec::new();
        for _ in 0..60 {
            bench.run(1_000);
            read.extend(bench.read());
        }
        let whole: u64 = read.iter().map(|record| record.1).sum();
        assert!(whole == 60_024, "{policy}: {read:?}");
        let ended = |event: &anabranch_mptcp::Event| matches!(event, anabranch_mptcp::Event::Closed(..));
        assert!(
            bench.pair.events.iter().all(|events| events.iter().any(ended)),
            "{policy}: {:?} {:?} {:?}",
            bench.pair.events,
            bench.stats(0),
            bench.pair.hosts[0].connection_view(bench.pair.now, bench.id),
        );
    }
}

#[test]
fn the_lower_32_bits_of_data_sequence_numbers_may_wrap_within_what_is_withdrawn() {
    for policy in ["mo_pr", "pr_mptcp"] {
        // With this seed the lower half of the client's data sequence numbers wraps after this many bytes.
        let (wraps, mut seed) = (39_323, [7; 32]);
        seed[..4].copy_from_slice(&86_033_u32.to_le_bytes());
        let mut pair = Pair::new(2);
        let manager = table::build(path_manager::TABLE, "full_mesh", &Settings::new()).unwrap();
        pair.hosts[0] = Endpoint::new(EndpointConfig { seed, ..EndpointConfig::default() }, manager);
        for path in 0..2 {
            pair.hosts[0].handle_address_up(Instant::ZERO, AddressId(1 + path as u8), address(0, path));
        }
        let mut bench = bench_of(pair, with(policy, lifetime(100)), with(policy, lifetime(100)));
        let first = bench.pair.sent[0].iter().find_map(|(_, packet)| key_of(packet)).unwrap().derive().data_seq(0);
        assert_eq!((first + wraps) as u32, 0);
        bench.write(36_000, Some(60_000));
        bench.run(500);
        bench.black.set(Some(EVERYWHERE));
        // It wraps within the first, and has wrapped in the third.
        for lifetime in [None, Some(60_000), None] {
            bench.write(5_000, lifetime);
        }
        bench.run(80);
        bench.black.set(Some(0));
        bench.write(1_000, Some(60_000));
        bench.run(2_000);
        bench.black.set(None);
        bench.run(10_000);
        let withdrawn = Some(Reason::Withdrawn);
        let records = [(100, 36_024, None), (36_124, 5_024, withdrawn), (41_148, 5_024, None)];
        let behind = [(46_172, 5_024, withdrawn), (51_196, 1_024, None)];
        assert_eq!(bench.read(), [&records[..], &behind].concat(), "{policy}");
    }
}

fn key_of(packet: &Packet) -> Option<Key> {
    packet.segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable { keys: CapableKeys::Both { sender, .. }, .. } => Some(Key(*sender)),
        _ => None,
    })
}

#[test]
fn the_sender_hears_which_path_the_receiver_calls_its_worst() {
    let spe = || with("spe", Settings::new().with("latency", 200).with("reserve", 0));
    let worst = |manager| {
        let mut pair = Pair::with_path_managers(2, ["full_mesh", manager]);
        pair.delay[1] = Duration::from_millis(40);
        let mut bench = bench_of(pair, spe(), spe());
        // More than one path takes at once.
        bench.write(60_000, None);
        bench.run(1_000);
        bench.black.set(Some(EVERYWHERE));
        bench.write(1_000, None);
        bench.black.set(None);
        bench.write(1_000, None);
        bench.run(3_000);
        assert!(bench.stats(0).bytes_abandoned_by_peer > 0);
        let (subflow, behind) = bench.pair.hosts[0].worst_path_of_peer(bench.id)?;
        let views = bench.pair.hosts[0].subflow_views(bench.pair.now, bench.id);
        let view = views.into_iter().find(|view| view.id == subflow)?;
        Some((view.remote_address, behind))
    };
    let (towards, behind) = worst("one_way_delay").unwrap();
    // The server's second address is at the end of the slow path.
    assert_eq!(towards, AddressId(2));
    // 40 ms minus 10, and the rounding of the timestamp clocks.
    assert!((29..=31).contains(&behind.as_millis()), "{behind:?}");
    assert_eq!(worst("full_mesh"), None, "nobody measures");
}

/// Refuses to start messages of importance 2, and records the queue for the others.
struct Choosy(Arc<std::sync::Mutex<Vec<Vec<u8>>>>);

impl reliability::Reliability for Choosy {
    fn terms(&self) -> Terms {
        Terms { sender: Some(Unit::Message), ..Terms::FULL }
    }
    fn begin(&mut self, _: Instant, waiting: &[Outstanding], paths: &[SubflowView]) -> bool {
        assert_eq!(paths.len(), 1);
        self.0.lock().unwrap().push(waiting.iter().map(|message| message.importance).collect());
        waiting.first().is_none_or(|first| first.importance < 2)
    }
}

#[test]
fn each_message_is_begun_or_taken_out_when_its_turn_has_come() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut choosy = with("full", Settings::new());
    let log = Arc::clone(&asked);
    choosy.policies.reliability = Arc::new(move || Box::new(Choosy(Arc::clone(&log))));
    let mut bench = bench(1, choosy, with("spe", Settings::new()));
    asked.lock().unwrap().clear();
    for importance in [1, 2, 2, 0] {
        let options = MessageOptions { importance, play_out: Duration::ZERO, lifetime: None };
        let taken = bench.pair.hosts[0].write_message(bench.pair.now, bench.id, Bytes::from(pattern(76)), &options);
        assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
    }
    bench.pair.settle();
    bench.run(500);
    // The scheduler is asked about the second although a segment of the first would include its start.
    assert_eq!(*asked.lock().unwrap(), [vec![1, 2, 2, 0], vec![2, 2, 0], vec![2, 0], vec![0]]);
    assert_eq!(bench.read(), [(100, 100, None), (200, 100, None)]);
    let stats = bench.stats(0);
    assert_eq!((stats.messages_withdrawn, stats.bytes_withdrawn), (2, 200));
}

#[test]
fn of_many_withdrawals_the_peer_hears_those_first_that_it_comes_to_first() {
    let mut bench = bench(2, with("mo_pr", lifetime(60_000)), with("mo_pr", lifetime(60_000)));
    // All of it is lost on the first path, and not assigned to the second before it is withdrawn, the first message
    // last.
    bench.black.set(Some(EVERYWHERE));
    bench.write(1_396, Some(120));
    for _ in 0..9 {
        bench.write(1_396, Some(50));
    }
    bench.run(150);
    assert_eq!(bench.stats(0).messages_withdrawn, 10);
    bench.black.set(Some(0));
    bench.run(5_000);
    assert_eq!(bench.stats(0).bytes_acked, 100 + 10 * 1_420);
}
