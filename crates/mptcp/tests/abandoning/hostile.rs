//! Invalid messages from the peer or an attacker: numbers out of range, notices of bytes that never existed, stream
//! ends within missing data.

use crate::bench::{Bench, LARGE, SEGMENT, at, framed, latency, message, message_bench, spe};
use crate::pair::{Pair, config, pattern};
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event, Framing, MessageOptions, Record};
use anabranch_policy::reliability::{self, Reason};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::mptcp::{DataAck, DataSequence};
use anabranch_wire::{Flags, MessageHeader, MptcpOption, Packet};
use bytes::Bytes;
use std::sync::Arc;

fn mapped(packet: &Packet) -> Option<u64> {
    match packet.segment.options.dss.as_ref()?.mapping?.data_seq {
        DataSequence::Long(number) if !packet.segment.payload.is_empty() => Some(number),
        DataSequence::Long(_) | DataSequence::Short(_) => None,
    }
}

/// The data sequence number of the stream's first byte.
fn base(bench: &Bench) -> u64 {
    bench.pair.sent[0].iter().find_map(|(_, packet)| mapped(packet)).unwrap() - at(0)
}

/// The next segment on the client's subflow, with this position in the stream.
fn next_segment(bench: &Bench, data_seq: u64, payload: &[u8]) -> Packet {
    let data = bench.pair.sent[0].iter().rev().find(|(_, packet)| mapped(packet).is_some());
    let mut packet = data.unwrap().1.clone();
    let length = packet.segment.payload.len() as u32;
    packet.segment.seq += length;
    packet.segment.payload = Bytes::copy_from_slice(payload);
    let mapping = packet.segment.options.dss.as_mut().unwrap().mapping.as_mut().unwrap();
    mapping.subflow_seq += length;
    mapping.length = payload.len() as u16;
    mapping.data_seq = DataSequence::Long(data_seq);
    packet
}

/// An acknowledgement as from `host`, with only these MPTCP options.
fn word(bench: &Bench, host: usize, options: Vec<MptcpOption>) -> Packet {
    let mut packet = bench.pair.sent[host].last().unwrap().1.clone();
    packet.segment.payload = Bytes::new();
    packet.segment.flags = Flags::ACK;
    packet.segment.options.dss = None;
    packet.segment.options.mptcp = options;
    packet
}

/// The server receives a notice as from the client.
fn tell(bench: &mut Bench, notice: Notice) {
    let packet = word(bench, 0, vec![notice.option()]);
    bench.pair.inject(1, packet);
}

fn withdrawn(bench: &Bench, offset: u64, length: u32) -> Notice {
    Notice::Withdrawn { data_seq: base(bench).wrapping_add(offset) as u32, length }
}

/// Six segments over two paths, of which the third is lost with all its retransmissions; then 50 ms.
fn with_a_hole(milliseconds: u64) -> Bench {
    let mut bench = Bench::new(2, config(), spe(config(), latency(milliseconds)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(6 * SEGMENT as usize));
    bench.run(50);
    bench
}

#[test]
fn bytes_from_before_the_beginning_of_the_stream_are_not_taken() {
    for before in [1, 5, 1_000, 1 << 31, 1 << 40] {
        let mut bench = Bench::new(1, config(), spe(config(), latency(100)));
        bench.write(&pattern(SEGMENT as usize));
        bench.run(100);
        let forged = next_segment(&bench, base(&bench).wrapping_sub(before), &pattern(1_000));
        bench.pair.inject(1, forged);
        bench.run(100);
        bench.write(&pattern(SEGMENT as usize));
        bench.run(3_000);
        assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    }
}

#[test]
fn withdrawals_of_what_was_never_sent_or_was_delivered_or_lies_beyond_the_end_change_nothing() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(60_000)));
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.run(100);
    tell(&mut bench, Notice::Hello { heard: true, repairs: false });
    for (offset, length) in [(0, 100), (at(2), 10), (at(100), u32::MAX), (at(4), 0), (u64::MAX, 3), (1 << 31, 1 << 31)]
    {
        let notice = withdrawn(&bench, offset, length);
        tell(&mut bench, notice);
    }
    // More than are remembered.
    for nth in 0..2_000 {
        let notice = withdrawn(&bench, at(1_000) + 10 * nth, 5);
        tell(&mut bench, notice);
    }
    bench.run(100);
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.pair.hosts[0].close(bench.now(), bench.id).unwrap();
    bench.pair.hosts[1].close(bench.now(), bench.server).unwrap();
    bench.run(3_000);
    assert_eq!(bench.read(), [(100, 8 * SEGMENT, None)]);
    assert_eq!(bench.stats().abandoned.total().gaps, 0);
    assert!(bench.pair.events[1].contains(&Event::Closed(bench.server, CloseCause::Finished)));
}

#[test]
fn a_withdrawal_of_four_gigabytes_reaches_to_the_first_byte_that_is_here() {
    let mut bench = with_a_hole(60_000);
    tell(&mut bench, Notice::Hello { heard: true, repairs: false });
    let notice = withdrawn(&bench, at(1), u32::MAX);
    tell(&mut bench, notice);
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Withdrawn)), (at(3), 3 * SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    assert_eq!(bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked, at(6));
}

#[test]
fn beside_256_withdrawals_that_the_stream_has_not_reached_no_other_is_remembered() {
    for (count, honoured) in [(255, true), (256, false)] {
        let mut bench = with_a_hole(60_000);
        tell(&mut bench, Notice::Hello { heard: true, repairs: false });
        for nth in 0..count {
            let notice = withdrawn(&bench, at(1_000) + 10 * nth, 5);
            tell(&mut bench, notice);
        }
        let notice = withdrawn(&bench, at(2), SEGMENT as u32);
        tell(&mut bench, notice);
        bench.run(1_000);
        assert_eq!(bench.stats().abandoned.withdrawn.gaps == 1, honoured);
    }
}

#[test]
fn withdrawals_that_the_stream_has_gone_over_are_forgotten() {
    let mut bench = with_a_hole(60_000);
    tell(&mut bench, Notice::Hello { heard: true, repairs: false });
    for nth in 0..280 {
        let notice = withdrawn(&bench, 10 * nth, 5);
        tell(&mut bench, notice);
    }
    let notice = withdrawn(&bench, at(2), SEGMENT as u32);
    tell(&mut bench, notice);
    bench.run(1_000);
    assert_eq!(bench.stats().abandoned.withdrawn.gaps, 1);
}

#[test]
fn who_has_not_said_that_it_knows_of_notices_withdraws_nothing() {
    let mut bench = with_a_hole(60_000);
    let notice = withdrawn(&bench, at(1), u32::MAX);
    tell(&mut bench, notice);
    bench.run(1_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
}

#[test]
fn the_peer_cannot_have_abandoned_more_than_it_acknowledged_whatever_it_says() {
    let mut bench = Bench::new(1, spe(config(), latency(100)), spe(config(), latency(100)));
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.run(100);
    for total in [1 << 30, 5, 1 << 31, u32::MAX, 7] {
        let notice = Notice::Abandoned { data_seq: 9, length: u32::MAX, total, reason: 200, worst: None };
        let packet = word(&bench, 1, vec![notice.option()]);
        bench.pair.inject(0, packet);
        bench.run(10);
        let stats = bench.pair.hosts[0].stats(bench.id).unwrap();
        assert!(stats.bytes_abandoned_by_peer <= stats.bytes_acked, "{stats:?}");
    }
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.run(1_000);
    assert_eq!(bench.read(), [(100, 8 * SEGMENT, None)]);
}

#[test]
fn a_data_ack_beyond_what_was_assigned_is_ignored() {
    let mut bench = Bench::new(1, spe(config(), latency(100)), spe(config(), latency(100)));
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.run(100);
    let mut ack =
        bench.pair.sent[1].iter().rev().find(|(_, packet)| packet.segment.options.dss.is_some()).unwrap().1.clone();
    let dss = ack.segment.options.dss.as_mut().unwrap();
    let honest = bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked;
    let Some(DataAck::Long(number)) = dss.data_ack else { panic!("{dss:?}") };
    for beyond in [1, SEGMENT, 1 << 33, u64::MAX / 2] {
        ack.segment.options.dss.as_mut().unwrap().data_ack = Some(DataAck::Long(number.wrapping_add(beyond)));
        bench.pair.inject(0, ack.clone());
        bench.run(10);
        assert_eq!(bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked, honest);
    }
}

/// Writes raw bytes on a connection whose reader expects messages.
fn forged(headers: &[(MessageHeader, usize)]) -> Bench {
    let mut bench = Bench::new(1, config(), framed(spe(config(), latency(300))));
    for (header, length) in headers {
        bench.write(&[&header.encode().unwrap()[..], &pattern(*length)].concat());
    }
    bench.run(1_000);
    bench
}

#[test]
fn a_header_that_says_four_gigabytes_is_a_gap_and_takes_no_memory() {
    let mut bench = forged(&[(MessageHeader { length: u32::MAX, ..MessageHeader::default() }, 10_000)]);
    let state = bench.pair.hosts[1].receive_state(bench.server).unwrap();
    assert_eq!((state.readable, state.out_of_order, state.buffer), (0, 0, 256 * 1024));
    bench.write(&pattern(50_000));
    bench.run(2_000);
    let gaps = bench.records.iter().map(|(_, record)| (record.length(), matches!(record, Record::Gap { .. })));
    // In the first hundred bytes, which are no message, a header might start up to the last 23.
    assert_eq!(gaps.fold((0, true), |all, gap| (all.0 + gap.0, all.1 && gap.1)), (23 + 60_024, true));
    assert_eq!(bench.stats().abandoned.unframed.bytes, 100 + 60_024);
}

#[test]
fn numbers_that_go_backward_and_play_out_times_of_years_are_handed_over_as_they_came() {
    let years = (1 << 48) - 1;
    let of = |number, play_out| (MessageHeader { number, play_out, length: 100, ..MessageHeader::default() }, 100);
    let bench = forged(&[of(7, 0), of(6, years), of(u32::MAX, 0), of(0, years), of(0, 1)]);
    let numbers = bench.records.iter().filter_map(|(_, record)| match record {
        Record::Message { header, .. } => Some((header.number, header.play_out)),
        Record::Bytes { .. } | Record::Gap { .. } => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [(7, 0), (6, years), (u32::MAX, 0), (0, years), (0, 1)]);
    // The message to be played in nine years arrived as fast as one to be played now, so the rest is late, and
    // received.
    assert_eq!(bench.stats().abandoned.expired.bytes, 0);
}

#[test]
fn after_a_play_out_time_of_years_the_time_of_all_later_is_over_but_only_what_is_missing_is_abandoned() {
    let mut bench = message_bench(latency(300), LARGE);
    message(&mut bench, 76, 1, (1 << 48) / 1_000 - 1);
    bench.run(100);
    bench.lost.borrow_mut().push(300);
    message(&mut bench, 1_976, 1, 200);
    message(&mut bench, 976, 1, 201);
    bench.run(1_000);
    assert_eq!(bench.read(), [(100, 100, None), (200, 2_000, Some(Reason::Overtaken)), (2_200, 1_000, None)]);
}

#[test]
fn the_stream_ends_behind_a_gap_once_all_behind_it_is_here() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(100)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.pair.hosts[0].close(bench.now(), bench.id).unwrap();
    bench.pair.hosts[1].close(bench.now(), bench.server).unwrap();
    bench.run(90);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Expired)), (at(3), SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    for host in [0, 1] {
        let ended = |event: &Event| matches!(event, Event::Closed(_, CloseCause::Finished));
        assert!(bench.pair.events[host].iter().any(ended), "{:?}", bench.pair.events[host]);
    }
}

#[test]
fn an_abort_with_a_gap_open_ends_the_connection_and_abandons_nothing_more() {
    let mut bench = with_a_hole(200);
    bench.pair.hosts[0].abort(bench.now(), bench.id).unwrap();
    bench.run(3_000);
    assert!(bench.pair.events[1].contains(&Event::Closed(bench.server, CloseCause::AbortedByPeer)));
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
}

#[test]
fn what_nobody_will_read_is_refused_though_it_follows_a_gap() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(200)));
    bench.lost.borrow_mut().push(at(0));
    bench.write(&pattern(4 * SEGMENT as usize));
    bench.pair.hosts[0].close(bench.now(), bench.id).unwrap();
    bench.run(50);
    bench.pair.hosts[1].discard(bench.now(), bench.server).unwrap();
    bench.run(1_000);
    // As for bytes in order, the peer is told.
    assert!(bench.pair.events[1].contains(&Event::Closed(bench.server, CloseCause::Aborted)));
    assert!(bench.pair.events[0].contains(&Event::Closed(bench.id, CloseCause::AbortedByPeer)));
}

#[test]
fn a_reader_that_does_not_read_has_no_more_than_4096_gaps_waiting() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(1)));
    bench.write(&pattern(SEGMENT as usize));
    bench.run(100);
    // Every second byte, in segments of one.
    for nth in 0..12_000 {
        let mut forged = next_segment(&bench, base(&bench) + at(1) + 1 + 2 * nth, b"x");
        forged.segment.seq += nth as u32;
        forged.segment.options.dss.as_mut().unwrap().mapping.as_mut().unwrap().subflow_seq += nth as u32;
        bench.pair.inject(1, forged);
        bench.pair.run(Duration::from_millis(5));
    }
    assert_eq!(bench.stats().abandoned.expired.gaps, 4_096);
    bench.run(3_000);
    assert!(bench.stats().abandoned.expired.gaps > 4_096, "the reader has read");
}

fn with(policy: &'static str, settings: Settings) -> ConnectionConfig {
    let mut config = ConnectionConfig { framing: Framing::Messages, buffers_per_subflow: false, ..config() };
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, policy, &settings).expect("in the table"));
    config
}

#[test]
fn a_sender_does_not_fall_back_while_the_peer_may_wait_for_what_was_withdrawn() {
    let side = || with("mo_pr", Settings::new().with("lifetime", 5));
    let mut pair = Pair::new(1);
    let id = pair.connect(side(), side());
    pair.run(Duration::from_millis(200));
    pair.reading = [false, false];
    let put = |pair: &mut Pair, length: usize, lifetime: u64| {
        let lifetime = Some(Duration::from_millis(lifetime));
        let options = MessageOptions { importance: 1, play_out: Duration::ZERO, lifetime };
        pair.hosts[0].write_message(pair.now, id, Bytes::from(pattern(length)), &options).unwrap();
        pair.settle();
    };
    put(&mut pair, 76, 60_000);
    pair.run(Duration::from_millis(300));
    // More than the window: most is withdrawn before it is assigned to the subflow, and assigned data is not lost. The
    // data outstanding on the subflow continues the stream once the rest is acknowledged.
    put(&mut pair, 60_000, 15);
    pair.run(Duration::from_millis(26));
    assert_eq!(pair.hosts[0].stats(id).unwrap().messages_withdrawn, 1);
    let mut fail = pair.sent[1].last().unwrap().1.clone();
    fail.segment.payload = Bytes::new();
    fail.segment.flags = Flags::ACK;
    fail.segment.options.dss = None;
    fail.segment.options.mptcp = vec![MptcpOption::Fail { data_seq: 0 }];
    pair.inject(0, fail);
    pair.run(Duration::from_secs(5));
    let fell_back = |event: &Event| matches!(event, Event::FellBack(..));
    assert!(!pair.events[0].iter().any(fell_back), "{:?}", pair.events[0]);
    let server = pair.accepted().unwrap();
    while let Some(record) = pair.hosts[1].read_record(pair.now, server) {
        let Record::Message { payload, .. } = record else { continue };
        assert_eq!(payload, pattern(payload.len()));
    }
}
