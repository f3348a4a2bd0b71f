//! The receiver reports losses of a slow path on a fast one. The sender reinjects there once, before the slow subflow
//! could detect them. Both ends must support it.

use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability;
use anabranch_policy::scheduler::{Answer, Chunk, ChunkKind, Decision, Needs, Scheduler, Work, again, unsent};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::{Flags, MptcpOption, Packet};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const QUICK: usize = 0;
const SLOW: usize = 1;

/// Sends new data on the fastest or slowest subflow, and reinjects on the other.
struct Always {
    new: usize,
    repairs: bool,
}

impl Scheduler for Always {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let quick = (self.new == QUICK) == (chunk.kind == ChunkKind::New);
        let usable = subflows.iter().filter(|subflow| subflow.usable());
        let by_time = |subflow: &&SubflowView| subflow.smoothed_rtt;
        let chosen = if quick { usable.min_by_key(by_time) } else { usable.max_by_key(by_time) };
        chosen.map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        if work.missing() && self.repairs {
            work.repair_missing();
        }
        let first = again(self, connection, work, subflows).or_else(|| unsent(self, connection, work, subflows));
        first.unwrap_or(Answer::Wait)
    }
    fn needs(&self) -> Needs {
        Needs { outstanding: self.repairs, ..Needs::default() }
    }
}

fn with(new: usize, repairs: bool, reliability: &'static str) -> ConnectionConfig {
    let mut config = ConnectionConfig { framing: Framing::Messages, ..config() };
    config.policies.scheduler = Arc::new(move || Box::new(Always { new, repairs }));
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, reliability, &Settings::new()).expect("in the table"));
    config
}

fn path(packet: &Packet) -> usize {
    let std::net::IpAddr::V4(to) = packet.ip.destination else { panic!("IPv4") };
    usize::from(to.octets()[2])
}

fn missing(packet: &Packet) -> Vec<Notice> {
    let notices = packet.segment.options.mptcp.iter().filter_map(Notice::of);
    notices.filter(|notice| matches!(notice, Notice::Missing { .. })).collect()
}

struct Bench {
    pair: Pair,
    id: ConnectionId,
    server: ConnectionId,
    /// The number of the client's data segments before one is lost.
    passes: Rc<Cell<usize>>,
    notices_are_lost: Rc<Cell<bool>>,
}

/// Paths of 10 and 100 ms in each direction.
fn bench(client: ConnectionConfig, server: ConnectionConfig) -> Bench {
    let mut pair = Pair::new(2);
    pair.delay = vec![Duration::from_millis(10), Duration::from_millis(100)];
    pair.reading = [false, false];
    let (passes, notices_are_lost) = (Rc::new(Cell::new(usize::MAX)), Rc::new(Cell::new(false)));
    let (left, losing) = (Rc::clone(&passes), Rc::clone(&notices_are_lost));
    pair.judge = Box::new(move |from, _, packet| {
        if from == 1 {
            let lost = losing.get() && !missing(packet).is_empty();
            return if lost { Fate::Drop } else { Fate::Deliver };
        }
        if packet.segment.payload.is_empty() || left.get() == usize::MAX {
            return Fate::Deliver;
        }
        let lost = left.get() == 0;
        left.set(left.get().wrapping_sub(1));
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    let id = pair.connect(client, server);
    pair.run(Duration::from_millis(500));
    let server = pair.accepted().unwrap();
    let mut bench = Bench { pair, id, server, passes, notices_are_lost };
    bench.write(1_000);
    bench.pair.run(Duration::from_millis(1_000));
    bench
}

impl Bench {
    fn write(&mut self, length: usize) {
        let play_out = self.pair.now.since(Instant::ZERO);
        let options = MessageOptions { importance: 0, play_out, lifetime: None };
        let taken = self.pair.hosts[0].write_message(self.pair.now, self.id, Bytes::from(pattern(length)), &options);
        assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
        self.pair.settle();
    }
    /// Writes eight segments of which the third is lost, and waits a second. Returns the send times in milliseconds, by
    /// path.
    fn lose_one_of_eight(&mut self) -> [Vec<u64>; 2] {
        let (began, before) = (self.pair.now, self.pair.sent[0].len());
        self.passes.set(2);
        self.write(8 * 1_400);
        self.pair.run(Duration::from_millis(1_000));
        let mut left = [Vec::new(), Vec::new()];
        for (at, packet) in self.pair.sent[0][before..].iter().filter(|(_, packet)| !packet.segment.payload.is_empty())
        {
            left[path(packet)].push(at.since(began).as_millis());
        }
        left
    }
    fn told(&self) -> Vec<(Instant, usize, Notice)> {
        let sent = self.pair.sent[1].iter();
        sent.flat_map(|(at, packet)| missing(packet).into_iter().map(|notice| (*at, path(packet), notice))).collect()
    }
    fn messages(&mut self) -> usize {
        let now = self.pair.now;
        let records: Vec<Record> = std::iter::from_fn(|| self.pair.hosts[1].read_record(now, self.server)).collect();
        assert!(records.iter().all(|record| matches!(record, Record::Message { .. })), "{records:?}");
        records.len()
    }
    fn reinjected(&self) -> u64 {
        self.pair.hosts[0].stats(self.id).unwrap().bytes_reinjected
    }
}

#[test]
fn a_loss_on_a_slow_path_is_reinjected_on_a_fast_one_after_half_a_round_trip_of_each() {
    let mut bench = bench(with(SLOW, true, "spe"), with(SLOW, true, "spe"));
    let [quick, slow] = bench.lose_one_of_eight();
    // 100 ms there, 10 ms back. The slow path itself detects the loss after 200 ms and retransmits as well.
    assert_eq!(quick, [110]);
    assert_eq!((slow.len(), slow[slow.len() - 1]), (9, 200));
    let told = bench.told();
    assert_eq!((told.len(), told[0].1), (1, QUICK), "{told:?}");
    assert!(matches!(told[0].2, Notice::Missing { length: 1_380..=1_460, .. }), "{told:?}");
    assert_eq!(bench.messages(), 2);
}

#[test]
fn a_lost_report_costs_the_time_it_would_have_saved() {
    let mut bench = bench(with(SLOW, true, "spe"), with(SLOW, true, "spe"));
    bench.notices_are_lost.set(true);
    let [quick, slow] = bench.lose_one_of_eight();
    assert_eq!((quick.len(), slow[slow.len() - 1]), (0, 200));
    assert_eq!((bench.told().len(), bench.messages()), (1, 2));
}

#[test]
fn losses_are_not_reported_of_the_fast_path_nor_unasked_nor_under_full_reliability() {
    for (new, client, server) in [
        (QUICK, (true, "spe"), "spe"),
        (SLOW, (false, "spe"), "spe"),
        (SLOW, (true, "full"), "spe"),
        (SLOW, (true, "spe"), "full"),
    ] {
        let mut bench = bench(with(new, client.0, client.1), with(new, true, server));
        bench.lose_one_of_eight();
        assert_eq!((bench.told(), bench.reinjected(), bench.messages()), (vec![], 0, 2), "{new} {client:?} {server}");
    }
}

#[test]
fn a_peer_that_reports_false_losses_gets_each_outstanding_segment_once_more_and_no_other() {
    let mut bench = bench(with(SLOW, true, "spe"), with(SLOW, true, "spe"));
    let before = bench.pair.sent[0].len();
    bench.write(8 * 1_400);
    let template = bench.pair.sent[1].iter().rev().find(|(_, packet)| path(packet) == QUICK).unwrap().1.clone();
    let ids = missing_of(&mut bench);
    for (subflow_seq, length) in [(0, u32::MAX), (0, 1 << 30), (u32::MAX, 2), (1 << 31, 1 << 31), (7, 0)] {
        for (local_address, remote_address) in [ids, ids, (255, 255), (9, ids.1)] {
            let notice = Notice::Missing { local_address, remote_address, subflow_seq, length };
            bench.pair.inject(0, word(&template, vec![notice.option()]));
        }
    }
    bench.pair.run(Duration::from_millis(2_000));
    let sent = &bench.pair.sent[0][before..];
    let again = sent.iter().filter(|(_, packet)| path(packet) == QUICK && !packet.segment.payload.is_empty()).count();
    assert!((8..=9).contains(&again), "{again}");
    assert_eq!(bench.reinjected(), 8 * 1_400 + 24);
    let view = bench.pair.hosts[0].subflow_views(bench.pair.now, bench.id);
    assert_eq!(
        view.iter().map(|view| view.counters.bytes_lost).sum::<u64>(),
        0,
        "congestion control did not hear of it"
    );
    assert_eq!(bench.messages(), 2);
}

/// The slow subflow as identified by the server.
fn missing_of(bench: &mut Bench) -> (u8, u8) {
    let mut other = self::bench(with(SLOW, true, "spe"), with(SLOW, true, "spe"));
    other.lose_one_of_eight();
    let Notice::Missing { local_address, remote_address, .. } = other.told()[0].2 else { panic!("a notice") };
    assert_eq!(bench.pair.delay, other.pair.delay);
    (local_address, remote_address)
}

fn word(template: &Packet, options: Vec<MptcpOption>) -> Packet {
    let mut packet = template.clone();
    packet.segment.payload = Bytes::new();
    packet.segment.flags = Flags::ACK;
    packet.segment.options.dss = None;
    packet.segment.options.mptcp = options;
    packet
}
