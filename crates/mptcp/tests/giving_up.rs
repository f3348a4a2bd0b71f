//! The receiver gives up: the rules that keep a sender that knows nothing of it unharmed, one test each.

mod pair;

use anabranch_mptcp::{BufferSize, ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability::{self, Reason};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::DataAck;
use anabranch_wire::{Packet, SeqNumber};
use bytes::Bytes;
use pair::{Fate, Pair, config, pattern};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// With the policy `spe` and these settings.
fn spe(mut config: ConnectionConfig, settings: Settings) -> ConnectionConfig {
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, "spe", &settings).expect("in the table"));
    config
}

fn latency(millis: u64) -> Settings {
    Settings::new().with("latency", millis).with("reserve", 0)
}

fn framed(config: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig { framing: Framing::Messages, ..config }
}

/// A sender that knows nothing of it, and a receiver that gives up.
struct Bench {
    pair: Pair,
    id: ConnectionId,
    server: ConnectionId,
    records: Vec<(Instant, Record)>,
    /// Data sequences of which every copy is lost.
    lost: Rc<RefCell<Vec<u64>>>,
}

impl Bench {
    fn new(paths: usize, client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let mut pair = Pair::new(paths);
        pair.reading = [false, false];
        let lost = Rc::new(RefCell::new(Vec::<u64>::new()));
        let doomed = Rc::clone(&lost);
        let mut initial = None;
        pair.judge = Box::new(move |from, _, packet| {
            let segment = &packet.segment;
            let mapping = segment.options.dss.as_ref().and_then(|dss| dss.mapping);
            let (Some(mapping), 0, false) = (mapping, from, segment.payload.is_empty()) else { return Fate::Deliver };
            let anabranch_wire::mptcp::DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
            let first = *initial.get_or_insert(number);
            let offset = number.wrapping_sub(first) + u64::from(FIRST);
            let end = offset + segment.payload.len() as u64;
            if doomed.borrow().iter().any(|byte| (offset..end).contains(byte)) { Fate::Drop } else { Fate::Deliver }
        });
        let id = pair.connect(client, server);
        pair.run(Duration::from_millis(50));
        let server = pair.accepted().unwrap();
        let mut bench = Self { pair, id, server, records: Vec::new(), lost };
        // The first data carries MP_CAPABLE and no mapping; then the second subflow comes.
        bench.write(&pattern(FIRST as usize));
        bench.run(200);
        bench.records.clear();
        bench
    }

    fn write(&mut self, data: &[u8]) {
        assert_eq!(self.pair.write_all(0, self.id, data, Duration::ZERO), 0);
    }

    fn run(&mut self, millis: u64) {
        let end = self.pair.now + Duration::from_millis(millis);
        loop {
            while let Some(record) = self.pair.hosts[1].read_record(self.pair.now, self.server) {
                self.records.push((self.pair.now, record));
            }
            self.pair.settle();
            if !self.pair.step(end) {
                break;
            }
        }
    }

    /// What was read: offset, length, and why if it is a gap.
    fn read(&self) -> Vec<(u64, u64, Option<Reason>)> {
        let mut read: Vec<(u64, u64, Option<Reason>)> = Vec::new();
        for (_, record) in &self.records {
            let reason = if let Record::Gap { reason, .. } = record { Some(*reason) } else { None };
            match read.last_mut() {
                Some(last) if last.2 == reason && reason.is_none() => last.1 += record.length(),
                _ => read.push((record.offset(), record.length(), reason)),
            }
        }
        read
    }

    fn stats(&self) -> anabranch_mptcp::stats::ConnectionStats {
        self.pair.hosts[1].stats(self.server).unwrap()
    }

    fn now(&self) -> Instant {
        self.pair.now
    }
}

const FIRST: u32 = 100;
/// Payload of a full segment: 1,500 - 40 - 12 - 28.
const SEGMENT: u64 = 1_420;

fn at(offset_in_segments: u64) -> u64 {
    u64::from(FIRST) + offset_in_segments * SEGMENT
}

fn data_ack(packet: &Packet) -> Option<u64> {
    match packet.segment.options.dss.as_ref()?.data_ack? {
        DataAck::Long(number) => Some(number),
        DataAck::Short(_) => None,
    }
}

#[test]
fn a_hole_is_given_up_when_its_lifetime_is_over_and_what_follows_is_read() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    bench.lost.borrow_mut().push(at(2));
    let began = bench.now();
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Expired)), (at(3), 7 * SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    // The segment behind it comes after 10 ms and waits for 300.
    let gap = bench.records.iter().find(|(_, record)| matches!(record, Record::Gap { .. })).unwrap();
    assert_eq!(gap.0, began + Duration::from_millis(310));
    let stats = bench.stats();
    assert_eq!((stats.abandoned.expired.gaps, stats.abandoned.expired.bytes), (1, SEGMENT));
    assert_eq!(stats.bytes_delivered, 100 + 9 * SEGMENT);
}

#[test]
fn what_is_given_up_is_acknowledged_at_data_level_and_not_on_the_subflow() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(250);
    let before = bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked;
    bench.run(250);
    let after = bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked;
    assert_eq!((before, after), (at(2), at(10)));
    let view = &bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0];
    // The hole and what came behind it are not acknowledged on the subflow: something is out, or waits to go again.
    assert!(view.in_flight > 0 || bench.pair.hosts[0].poll_timeout() < Instant::NEVER, "{view:?}");
    // The retransmission goes on until it arrives; then it is dropped and counted, once.
    bench.lost.borrow_mut().clear();
    bench.run(5_000);
    assert_eq!(bench.stats().late_bytes_received, SEGMENT);
    assert_eq!(bench.stats().duplicate_bytes_received, 0);
    let view = &bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0];
    assert_eq!(view.in_flight, 0);
}

#[test]
fn nothing_is_acknowledged_that_was_not_seen_so_that_a_lost_tail_waits_for_something_later() {
    let mut bench = Bench::new(2, config(), spe(config(), latency(100)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(3 * SEGMENT as usize));
    bench.run(150);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    assert_eq!(bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked, at(2));
    bench.write(&pattern(SEGMENT as usize));
    bench.run(1_000);
    assert_eq!(bench.read()[1..], [(at(2), SEGMENT, Some(Reason::Expired)), (at(3), SEGMENT, None)]);
}

#[test]
fn the_end_of_the_stream_is_nothing_that_was_seen_behind_a_hole() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(100)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(3 * SEGMENT as usize));
    bench.pair.hosts[0].close(bench.now(), bench.id).unwrap();
    bench.run(3_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    bench.lost.borrow_mut().clear();
    bench.pair.hosts[1].close(bench.now(), bench.server).unwrap();
    bench.run(20_000);
    assert_eq!(bench.read(), [(100, 3 * SEGMENT, None)]);
    assert!(bench.pair.events[0].iter().any(|event| matches!(event, anabranch_mptcp::Event::Closed(..))));
}

#[test]
fn the_window_counts_from_the_new_data_ack_and_what_waits_out_of_order_stays_within_it() {
    let size = 20 * SEGMENT;
    let server = ConnectionConfig { receive_buffer: BufferSize::Fixed(size), buffers_per_subflow: false, ..config() };
    let mut bench = Bench::new(2, config(), spe(server, latency(200)));
    bench.lost.borrow_mut().extend([at(2), at(9)]);
    bench.pair.sent[1].clear();
    let mut edge = 0;
    bench.write(&pattern(60 * SEGMENT as usize));
    bench.run(3_000);
    // Nobody was told of more than the buffer holds beyond what was read or given up.
    let first = data_ack(&bench.pair.sent[1][0].1).unwrap();
    for (_, packet) in &bench.pair.sent[1] {
        let Some(ack) = data_ack(packet) else { continue };
        let window = u64::from(packet.segment.window);
        assert!(window <= size, "{window}");
        let told = ack - first + window;
        assert!(told >= edge, "the edge went back");
        edge = told;
    }
    assert_eq!(bench.stats().abandoned.expired.bytes, 2 * SEGMENT);
    assert_eq!(bench.stats().bytes_delivered, 100 + 58 * SEGMENT);
}

#[test]
fn under_full_reliability_nothing_is_given_up() {
    let mut bench = Bench::new(1, config(), config());
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(5_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    assert_eq!(bench.stats().abandoned.total().bytes, 0);
}

#[test]
fn where_the_sender_wants_checksums_nothing_is_given_up_and_ours_asks_for_none() {
    let wants = ConnectionConfig { checksum: true, ..config() };
    // We ask for none.
    let bench = Bench::new(1, config(), spe(wants.clone(), latency(100)));
    let asks = |packet: &Packet| {
        let capable = packet.segment.options.mptcp.iter();
        capable.clone().any(
            |option| matches!(option, anabranch_wire::MptcpOption::Capable { flags, .. } if flags.checksum_required),
        )
    };
    assert!(!bench.pair.sent[1].iter().any(|(_, packet)| asks(packet)));
    // The peer does: they are agreed on, and a mapping with a hole is never believed.
    let mut bench = Bench::new(1, wants, spe(config(), latency(100)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(2_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
}

#[test]
fn in_plain_tcp_nothing_is_given_up() {
    let plain = ConnectionConfig { multipath: false, ..config() };
    let mut pair = Pair::new(1);
    pair.reading = [false, false];
    let mut count = 0;
    pair.judge = Box::new(move |from, _, packet| {
        count += usize::from(from == 0 && !packet.segment.payload.is_empty());
        // The third data segment, and its first copies.
        let third = packet.segment.payload.len() == 500;
        if from == 0 && third && count < 10 { Fate::Drop } else { Fate::Deliver }
    });
    let id = pair.connect(plain, spe(config(), latency(100)));
    pair.run(Duration::from_millis(100));
    let server = pair.accepted().unwrap();
    for length in [1_448, 1_448, 500, 1_448, 1_448] {
        pair.write_all(0, id, &pattern(length), Duration::ZERO);
    }
    pair.hosts[0].set_nagle(pair.now, id, false).unwrap();
    pair.run(Duration::from_secs(60));
    let mut length = 0;
    while let Some(record) = pair.hosts[1].read_record(pair.now, server) {
        assert!(matches!(record, Record::Bytes { .. }), "{record:?}");
        length += record.length();
    }
    assert_eq!(length, 4 * 1_448 + 500);
}

#[test]
fn segments_of_one_burst_that_repeat_its_mapping_are_placed_one_by_one_around_a_hole() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(200)));
    // As Linux's segmentation offload sends it: one mapping for all five, on each.
    let whole = pattern(5 * SEGMENT as usize);
    let burst = Rc::new(RefCell::new((0_u32, None::<(SeqNumber, anabranch_wire::mptcp::Mapping)>)));
    let state = Rc::clone(&burst);
    bench.pair.judge = Box::new(move |from, _, packet| {
        if from == 1 || packet.segment.payload.is_empty() {
            return Fate::Deliver;
        }
        let mut state = state.borrow_mut();
        let Some(own) = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping) else { return Fate::Deliver };
        let (first, mapping) = *state.1.get_or_insert((packet.segment.seq, own));
        let place = packet.segment.seq - first;
        if place == 2 * SEGMENT as u32 {
            return Fate::Drop;
        }
        let mut changed = packet.clone();
        if let Some(dss) = changed.segment.options.dss.as_mut() {
            dss.mapping = Some(anabranch_wire::mptcp::Mapping { length: 5 * SEGMENT as u16, ..mapping });
        }
        Fate::Instead(Box::new(changed))
    });
    bench.write(&whole);
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Expired)), (at(3), 2 * SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    let bytes: Vec<u8> = (bench.records.iter())
        .flat_map(|(_, record)| if let Record::Bytes { bytes, .. } = record { bytes.to_vec() } else { Vec::new() })
        .collect();
    assert_eq!(bytes, [&whole[..2 * SEGMENT as usize], &whole[3 * SEGMENT as usize..]].concat());
}

// Messages.

fn message(bench: &mut Bench, length: usize, importance: u8, millis: u64) {
    put(bench, length, importance, millis);
    bench.pair.settle();
}

/// Written, and not sent yet.
fn put(bench: &mut Bench, length: usize, importance: u8, millis: u64) {
    let options = MessageOptions { importance, play_out: Duration::from_millis(millis), lifetime: None };
    let taken = bench.pair.hosts[0].write_message(bench.now(), bench.id, Bytes::from(pattern(length)), &options);
    assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
}

/// As `Bench::new`, with messages; the first of 76 bytes.
fn message_bench(settings: Settings, receive_buffer: BufferSize) -> Bench {
    let server = ConnectionConfig { receive_buffer, buffers_per_subflow: false, ..config() };
    let mut pair_bench = {
        let (client, server) = (framed(config()), spe(framed(server), settings));
        let mut pair = Pair::new(1);
        pair.reading = [false, false];
        let lost = Rc::new(RefCell::new(Vec::<u64>::new()));
        let doomed = Rc::clone(&lost);
        let mut initial = None;
        pair.judge = Box::new(move |from, _, packet| {
            let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
            let (Some(mapping), 0, false) = (mapping, from, packet.segment.payload.is_empty()) else {
                return Fate::Deliver;
            };
            let anabranch_wire::mptcp::DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
            let offset = number.wrapping_sub(*initial.get_or_insert(number)) + u64::from(FIRST);
            let end = offset + packet.segment.payload.len() as u64;
            if doomed.borrow().iter().any(|byte| (offset..end).contains(byte)) { Fate::Drop } else { Fate::Deliver }
        });
        let id = pair.connect(client, server);
        pair.run(Duration::from_millis(50));
        let server = pair.accepted().unwrap();
        Bench { pair, id, server, records: Vec::new(), lost }
    };
    message(&mut pair_bench, 76, 0, 0);
    pair_bench.run(100);
    assert_eq!(pair_bench.read(), [(0, 100, None)]);
    pair_bench.records.clear();
    pair_bench
}

const LARGE: BufferSize = BufferSize::Fixed(1 << 20);

#[test]
fn a_message_of_which_a_segment_is_missing_is_given_up_whole_at_its_time() {
    let mut bench = message_bench(latency(300), LARGE);
    // The first message was sent at 50 ms and came at 60: the base.
    bench.lost.borrow_mut().push(100 + 2_000);
    message(&mut bench, 4_000, 9, 60);
    message(&mut bench, 500, 9, 100);
    bench.run(2_000);
    let gap = (100, 4_024, Some(Reason::Expired));
    assert_eq!(bench.read(), [gap, (4_124, 524, None)]);
    // 60 + 60 + 300 ms.
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(420));
    assert_eq!(bench.stats().abandoned.expired.bytes, 4_024);
}

#[test]
fn a_later_message_whose_time_comes_first_overtakes_the_missing_one() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().push(100 + 2_000);
    message(&mut bench, 4_000, 9, 100);
    message(&mut bench, 500, 9, 60);
    bench.run(2_000);
    assert_eq!(bench.read()[0], (100, 4_024, Some(Reason::Overtaken)));
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(420));
}

#[test]
fn a_message_whose_header_is_lost_is_a_gap_up_to_the_next_header() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().push(100);
    message(&mut bench, 4_000, 9, 60);
    message(&mut bench, 500, 9, 70);
    message(&mut bench, 5_000, 9, 80);
    bench.run(2_000);
    let read = bench.read();
    assert_eq!(read.iter().filter(|(_, _, reason)| reason.is_some()).map(|(_, length, _)| length).sum::<u64>(), 4_024);
    assert_eq!(read.last(), Some(&(4_124, 524 + 5_024, None)));
}

#[test]
fn a_hole_over_the_end_of_one_message_and_the_header_of_the_next_takes_both_and_the_third_is_read() {
    let mut bench = message_bench(latency(300), LARGE);
    // Segments of 1,420 from 100 on: the second is 1,520..2,940, and the first message ends at 2,124.
    bench.lost.borrow_mut().push(2_000);
    for millis in [60, 70, 80] {
        put(&mut bench, 2_000, 9, millis);
    }
    bench.pair.settle();
    bench.run(2_000);
    let read = bench.read();
    let gaps: Vec<_> = read.iter().filter(|(_, _, reason)| reason.is_some()).collect();
    assert_eq!(gaps.iter().map(|(_, length, _)| length).sum::<u64>(), 2 * 2_024);
    assert_eq!(read.last(), Some(&(100 + 2 * 2_024, 2_024, None)));
}

#[test]
fn a_blocked_buffer_gives_up_what_is_unimportant_and_keeps_what_must_come() {
    for (importance, given_up) in [(255, true), (0, false)] {
        let mut bench = message_bench(latency(60_000), BufferSize::Fixed(30_000));
        bench.lost.borrow_mut().push(100 + 2_000);
        message(&mut bench, 4_000, importance, 0);
        for _ in 0..40 {
            message(&mut bench, 1_000, 0, 10);
        }
        bench.run(2_000);
        let blocked = bench.stats().abandoned.blocked;
        assert_eq!((blocked.gaps, blocked.bytes), if given_up { (1, 4_024) } else { (0, 0) });
        // What is lost on its subflow for good keeps that slow; what comes at last is dropped, or was waited for.
        bench.lost.borrow_mut().clear();
        bench.run(20_000);
        assert_eq!(bench.stats().bytes_delivered, 100 + 40 * 1_024 + if given_up { 0 } else { 4_024 });
    }
}

#[test]
fn when_several_messages_are_torn_each_is_given_up_for_itself() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().extend([100 + 2_000, 100 + 2 * 4_024 + 3_000]);
    for number in 0..4 {
        message(&mut bench, 4_000, 9, 30 * number);
    }
    bench.run(3_000);
    let gap = |number: u64| (100 + number * 4_024, 4_024, Some(Reason::Expired));
    let whole = |number: u64| (100 + number * 4_024, 4_024, None);
    assert_eq!(bench.read(), [gap(0), whole(1), gap(2), whole(3)]);
    assert_eq!(bench.stats().abandoned.expired.gaps, 2);
    // 60 + 0 + 300 and 60 + 60 + 300 ms.
    let times = [0, 2].map(|at| bench.records[at].0.since(Instant::ZERO).as_millis());
    assert_eq!(times, [360, 420]);
}
