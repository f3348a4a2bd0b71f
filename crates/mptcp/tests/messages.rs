//! Messages over a connection: written and read whole, in order, with the fields of their headers.

mod pair;

use anabranch_mptcp::OperationError;
use anabranch_mptcp::{BufferSize, ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MessageHeader;
use bytes::Bytes;
use pair::{Fate, Pair, config, pattern};

fn framed() -> ConnectionConfig {
    ConnectionConfig { framing: Framing::Messages, ..config() }
}

/// Both ends with messages, after the handshake.
fn open(client: ConnectionConfig, server: ConnectionConfig) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(2);
    pair.reading = [false, false];
    let id = pair.connect(client, server);
    pair.run(Duration::from_millis(100));
    let accepted = pair.accepted().unwrap();
    (pair, id, accepted)
}

fn options(importance: u8, millis: u64) -> MessageOptions {
    MessageOptions { importance, play_out: Duration::from_millis(millis), lifetime: None }
}

fn read_all(pair: &mut Pair, host: usize, id: ConnectionId) -> Vec<Record> {
    let now = pair.now;
    std::iter::from_fn(|| pair.hosts[host].read_record(now, id)).collect()
}

#[test]
fn messages_come_whole_and_in_order_with_their_headers_whatever_is_lost_on_the_way() {
    let (mut pair, id, server) = open(framed(), framed());
    let mut count = 0;
    pair.judge = Box::new(move |from, _, packet| {
        count += 1;
        if from == 0 && !packet.segment.payload.is_empty() && count % 5 == 0 { Fate::Drop } else { Fate::Deliver }
    });
    let lengths = [0, 1, 1_012, 5_000, 40_000, 100];
    let mut offset = 0;
    let mut expected = Vec::new();
    for (number, length) in lengths.into_iter().enumerate() {
        let payload = Bytes::from(pattern(length));
        let taken = pair.hosts[0].write_message(pair.now, id, payload.clone(), &options(9, number as u64 * 40));
        assert_eq!(taken, Ok(Some(number as u32)));
        let play_out = number as u64 * 40_000;
        let header = MessageHeader { number: number as u32, importance: 9, length: length as u32, play_out };
        expected.push((offset, header, payload));
        offset += 24 + length as u64;
    }
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(10));
    let records = read_all(&mut pair, 1, server);
    let read: Vec<_> = (records.into_iter())
        .map(|record| match record {
            Record::Message { offset, header, payload, .. } => (offset, header, payload),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(read, expected);
    let stats = pair.hosts[1].stats(server).unwrap();
    assert_eq!((stats.bytes_delivered, stats.abandoned.total().bytes), (offset, 0));
}

#[test]
fn a_message_is_taken_whole_or_not_at_all() {
    let small = ConnectionConfig { send_buffer: 2_000, buffers_per_subflow: false, ..framed() };
    let (mut pair, id, server) = open(small, framed());
    let message = |length| Bytes::from(pattern(length));
    let now = pair.now;
    assert_eq!(pair.hosts[0].write_message(now, id, message(1_000), &options(0, 0)), Ok(Some(0)));
    // 1,024 + 977 + 24 = 2,025 > 2,000.
    assert_eq!(pair.hosts[0].write_message(now, id, message(977), &options(0, 0)), Ok(None));
    let too_long = pair.hosts[0].write_message(now, id, message(1_977), &options(0, 0));
    assert_eq!(too_long, Err(OperationError::MessageTooLong));
    assert_eq!(pair.hosts[0].write(now, id, message(1)), Err(OperationError::WrongFraming));
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert!(pair.events[0].contains(&anabranch_mptcp::Event::Writable(id)));
    assert_eq!(pair.hosts[0].write_message(pair.now, id, message(977), &options(0, 0)), Ok(Some(1)));
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert_eq!(read_all(&mut pair, 1, server).len(), 2);
}

#[test]
fn a_message_on_a_connection_of_bytes_is_the_callers_mistake() {
    let (mut pair, id, _) = open(config(), config());
    let refused = pair.hosts[0].write_message(pair.now, id, Bytes::new(), &options(0, 0));
    assert_eq!(refused, Err(OperationError::WrongFraming));
}

#[test]
fn the_play_out_clock_starts_with_the_first_message_and_is_for_messages_only() {
    let (mut pair, id, server) = open(framed(), framed());
    let clock = pair.hosts[1].play_out_clock(server).unwrap();
    assert_eq!(clock.at(Duration::ZERO), None);
    pair.hosts[0].write_message(pair.now, id, Bytes::from(pattern(500)), &options(0, 40)).unwrap();
    let written = pair.now;
    pair.settle();
    pair.run(Duration::from_secs(1));
    let clock = pair.hosts[1].play_out_clock(server).unwrap();
    // It arrives after the path's 10 ms, with its playout time later by the latency; another, 60 ms later.
    let played = written + Duration::from_millis(10) + clock.latency();
    assert_eq!(clock.at(Duration::from_millis(40)), Some(played));
    assert_eq!(clock.at(Duration::from_millis(100)), Some(played + Duration::from_millis(60)));
    let (pair, _, server) = open(config(), config());
    assert!(pair.hosts[1].play_out_clock(server).is_none());
}

#[test]
fn bytes_of_a_stream_without_gaps_are_records_with_their_offsets() {
    let (mut pair, id, server) = open(config(), config());
    let data = pattern(10_000);
    pair.write_all(0, id, &data, Duration::ZERO);
    pair.run(Duration::from_secs(1));
    let mut read = Vec::new();
    for record in read_all(&mut pair, 1, server) {
        let Record::Bytes { offset, bytes } = record else { panic!("{record:?}") };
        assert_eq!(offset, read.len() as u64);
        read.extend_from_slice(&bytes);
    }
    assert_eq!(read, data);
    assert!(!pair.hosts[1].read_stops(server));
}

#[test]
fn who_listens_for_messages_and_gets_bytes_hears_of_them_as_a_gap_and_finds_the_message_behind() {
    let (mut pair, id, server) = open(config(), framed());
    let header = MessageHeader { number: 3, importance: 1, length: 5, play_out: 0 };
    let data = [&b"no message at all"[..], &header.encode().unwrap(), b"hello", b"rest"].concat();
    pair.write_all(0, id, &data, Duration::ZERO);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert!(pair.hosts[1].read_stops(server));
    assert_eq!(pair.hosts[1].read(pair.now, server, 100), None);
    let mut records = read_all(&mut pair, 1, server);
    let Record::Message { offset: 17, header: read, payload, arrived } = records.remove(1) else { panic!() };
    assert_eq!((read, &payload[..]), (header, &b"hello"[..]));
    assert!(arrived > Instant::ZERO && arrived <= pair.now);
    let gap = |offset, length| Record::Gap { offset, length, reason: Reason::Unframed };
    // 17 + 24 + 5 = 46.
    assert_eq!(records, [gap(0, 17), gap(46, 4)]);
    let stats = pair.hosts[1].stats(server).unwrap();
    assert_eq!((stats.abandoned.unframed.gaps, stats.abandoned.unframed.bytes), (2, 21));
}

#[test]
fn a_message_as_long_as_the_receive_buffer_can_be_arrives_and_a_longer_one_is_a_gap() {
    for (most, arrives) in [(30_000, true), (29_999, false)] {
        let receive_buffer = BufferSize::Auto { initial: 4_000, max: most };
        let server = ConnectionConfig { receive_buffer, buffers_per_subflow: false, ..framed() };
        let (mut pair, id, server) = open(framed(), server);
        pair.hosts[0].write_message(pair.now, id, Bytes::from(pattern(30_000 - 24)), &options(0, 0)).unwrap();
        pair.hosts[0].write_message(pair.now, id, Bytes::from(pattern(10)), &options(0, 0)).unwrap();
        pair.settle();
        let mut records = Vec::new();
        for _ in 0..100 {
            pair.run(Duration::from_millis(100));
            records.extend(read_all(&mut pair, 1, server));
        }
        let Some(Record::Message { offset: 30_000, .. }) = records.last() else { panic!("{records:?}") };
        let is_message = |record: &Record| matches!(record, Record::Message { .. });
        assert_eq!(records.iter().filter(|record| is_message(record)).count(), if arrives { 2 } else { 1 });
        let total: u64 = records.iter().map(Record::length).sum();
        assert_eq!(total, 30_000 + 34);
    }
}
