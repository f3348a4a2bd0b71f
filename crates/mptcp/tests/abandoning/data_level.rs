//! Abandoned bytes: acknowledgements, reading, counters and windows.

use crate::bench::{Bench, SEGMENT, at, data_ack, latency, spe};
use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig, Endpoint, Record};
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Packet, SeqNumber};
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn a_hole_is_abandoned_when_its_lifetime_is_over_and_what_follows_is_read() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    bench.lost.borrow_mut().push(at(2));
    let began = bench.now();
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(1_000);
    let expected = [(100, 2 * SEGMENT, None), (at(2), SEGMENT, Some(Reason::Expired)), (at(3), 7 * SEGMENT, None)];
    assert_eq!(bench.read(), expected);
    // The segment after it arrives after 10 ms and waits for 300.
    let gap = bench.records.iter().find(|(_, record)| matches!(record, Record::Gap { .. })).unwrap();
    assert_eq!(gap.0, began + Duration::from_millis(310));
    let stats = bench.stats();
    assert_eq!((stats.abandoned.expired.gaps, stats.abandoned.expired.bytes), (1, SEGMENT));
    assert_eq!(stats.bytes_delivered, 100 + 9 * SEGMENT);
}

#[test]
fn a_plain_read_stops_at_a_gap_until_that_was_read_as_a_record() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    // No records are read meanwhile.
    bench.pair.run(Duration::from_millis(1_000));
    let (host, server) = (&mut bench.pair.hosts[1], bench.server);
    assert!(!host.read_stops(server));
    let read = |host: &mut Endpoint| {
        let parts = core::iter::from_fn(|| host.read(bench.pair.now, server, usize::MAX));
        parts.map(|part| part.len() as u64).sum::<u64>()
    };
    assert_eq!((read(host), host.read_stops(server)), (2 * SEGMENT, true));
    assert!(matches!(host.read_record(bench.pair.now, server), Some(Record::Gap { .. })));
    assert_eq!((host.read_stops(server), read(host), host.read_stops(server)), (false, 7 * SEGMENT, false));
}

#[test]
fn abandoned_data_is_acknowledged_at_data_level_and_not_on_the_subflow() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(300)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(250);
    let before = bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked;
    bench.run(250);
    let after = bench.pair.hosts[0].stats(bench.id).unwrap().bytes_acked;
    assert_eq!((before, after), (at(2), at(10)));
    let view = &bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0];
    // The hole and the data after it are not acknowledged on the subflow: data is in flight or will be retransmitted.
    assert!(view.in_flight > 0 || bench.pair.hosts[0].poll_timeout() < Instant::NEVER, "{view:?}");
    // It is retransmitted until it arrives; then it is dropped and counted once.
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
    // No window extends beyond the read or abandoned data by more than the buffer.
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
fn while_nobody_reads_the_window_ends_where_the_buffer_does_whatever_is_abandoned() {
    let size = 20 * SEGMENT;
    let server = ConnectionConfig { receive_buffer: BufferSize::Fixed(size), buffers_per_subflow: false, ..config() };
    let mut bench = Bench::new(2, config(), spe(server, latency(200)));
    let read = data_ack(&bench.pair.sent[1].last().unwrap().1).unwrap();
    bench.lost.borrow_mut().extend([at(2), at(9)]);
    bench.write(&pattern(60 * SEGMENT as usize));
    bench.pair.run(Duration::from_secs(3));
    let told = |packet: &Packet| Some(data_ack(packet)? + u64::from(packet.segment.window) - read);
    let edge = bench.pair.sent[1].iter().filter_map(|(_, packet)| told(packet)).max();
    // The hundred bytes read first are too few for a window update.
    assert_eq!(edge, Some(size - 100));
    assert_eq!(bench.stats().abandoned.expired.bytes, 2 * SEGMENT);
    let state = bench.pair.hosts[1].receive_state(bench.server).unwrap();
    assert!(state.readable + state.out_of_order <= size - 100, "{state:?}");
}

#[test]
fn a_gap_among_bytes_that_are_kept_together_stands_where_it_was() {
    let mut bench = Bench::new(1, config(), spe(config(), latency(50)));
    bench.pair.hosts[0].set_nagle(bench.now(), bench.id, false).unwrap();
    // The last pieces are short enough to be kept with those before the gap.
    bench.lost.borrow_mut().push(100 + 35 * 50);
    let data = pattern(40 * 50);
    for piece in data.chunks(50) {
        bench.write(piece);
        bench.pair.run(Duration::from_millis(1));
    }
    bench.pair.run(Duration::from_millis(200));
    bench.run(1);
    assert_eq!(bench.read(), [(100, 1_750, None), (1_850, 50, Some(Reason::Expired)), (1_900, 200, None)]);
    for (_, record) in &bench.records {
        if let Record::Bytes { offset, bytes } = record {
            let place = *offset as usize - 100;
            assert_eq!(bytes[..], data[place..place + bytes.len()]);
        }
    }
}

#[test]
fn under_full_reliability_nothing_is_abandoned() {
    let mut bench = Bench::new(1, config(), config());
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(5_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
    assert_eq!(bench.stats().abandoned.total().bytes, 0);
}

#[test]
fn where_the_sender_wants_checksums_nothing_is_abandoned_and_ours_asks_for_none() {
    let wants = ConnectionConfig { checksum: true, ..config() };
    // We request none.
    let bench = Bench::new(1, config(), spe(wants.clone(), latency(100)));
    let asks = |packet: &Packet| {
        let capable = packet.segment.options.mptcp.iter();
        capable.clone().any(
            |option| matches!(option, anabranch_wire::MptcpOption::Capable { flags, .. } if flags.checksum_required),
        )
    };
    assert!(!bench.pair.sent[1].iter().any(|(_, packet)| asks(packet)));
    // The peer requests checksums: they are used, and a mapping with a hole is never verified.
    let mut bench = Bench::new(1, wants, spe(config(), latency(100)));
    bench.lost.borrow_mut().push(at(2));
    bench.write(&pattern(10 * SEGMENT as usize));
    bench.run(2_000);
    assert_eq!(bench.read(), [(100, 2 * SEGMENT, None)]);
}

#[test]
fn in_plain_tcp_nothing_is_abandoned() {
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
    // As from Linux's segmentation offload: one mapping for all five, on each.
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
