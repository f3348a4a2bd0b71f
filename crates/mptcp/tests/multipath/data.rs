//! Data transfer: mappings, data-level acknowledgements, windows, retransmission (RFC 8684, sections 3.3 to 3.3.6).

use super::orders::{create, obedient_pair};
use super::peer::{Peer, capable, mapping, reset_reason};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{BufferSize, ConnectionConfig, Event, JoinedSegments};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{CapableKeys, DataAck, DataSequence, Dss, Mapping};
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, Packet};

/// A peer with two subflows and an unused stream.
fn two_subflows(config: ConnectionConfig) -> Peer {
    let mut peer = Peer::connected(config);
    peer.join(1);
    peer.take();
    peer
}

fn with_dss(dss: Dss) -> TcpOptions {
    TcpOptions { dss: Some(dss), ..TcpOptions::default() }
}

/// Sends payload without a mapping.
fn send_bare(peer: &mut Peer, flow: usize, payload: &[u8]) {
    peer.send(flow, Flags::ACK, TcpOptions::default(), payload);
}

#[test]
fn data_is_put_in_order_by_data_sequence_whatever_subflow_brings_it() {
    let mut peer = two_subflows(config());
    peer.send_data(1, 3, b"def");
    assert_eq!((peer.received.len(), peer.acknowledged()), (0, Some(0)));
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.received, b"abcdef");
    assert_eq!(peer.acknowledged(), Some(6));
}

#[test]
fn the_first_copy_of_data_counts() {
    let mut peer = two_subflows(config());
    peer.send_data(0, 0, b"abc");
    peer.send_data(1, 0, b"XYZdef");
    assert_eq!(peer.received, b"abcdef");
    // Also after a hole.
    peer.send_data(0, 9, b"jkl");
    peer.send_data(1, 9, b"XYZ");
    peer.send_data(1, 6, b"ghi");
    assert_eq!(peer.received, b"abcdefghijkl");
}

#[test]
fn each_byte_is_counted_on_the_path_that_brought_it_first() {
    let mut peer = two_subflows(config());
    peer.send_data(0, 0, b"abc");
    peer.send_data(1, 0, b"XYZdef");
    peer.send_data(1, 9, b"jk");
    let reports = peer.host.subflow_reports(peer.id());
    let counts: Vec<u64> = reports.iter().map(|report| report.bytes_received).collect();
    assert_eq!(counts, [3, 5]);
    assert_eq!(reports[1].remote.ip(), address(0, 1));
}

#[test]
fn data_sequence_numbers_of_4_octets_are_taken_and_acknowledged() {
    let mut peer = two_subflows(config());
    let mut dss = peer.map(0, 1, b"abc", false);
    let Some(mapping) = &mut dss.mapping else { panic!() };
    mapping.data_seq = DataSequence::Short(peer.number(0) as u32);
    dss.data_ack = Some(DataAck::Short(peer.remote.initial_data_seq.wrapping_add(1) as u32));
    peer.send(0, Flags::ACK, with_dss(dss), b"abc");
    assert_eq!(peer.received, b"abc");
    assert_eq!(peer.acknowledged(), Some(3));
}

#[test]
fn an_8_octet_sequence_number_is_acknowledged_with_8_octets() {
    let mut peer = two_subflows(config());
    peer.send_data(0, 0, b"abc");
    peer.run(Duration::from_millis(50));
    let acks: Vec<_> = peer.take().iter().filter_map(|packet| packet.segment.options.dss?.data_ack).collect();
    assert_eq!(acks, [DataAck::Long(peer.number(3))]);
}

#[test]
fn short_data_acks_free_the_send_buffer_like_long_ones() {
    for long in [true, false] {
        let mut peer = two_subflows(config());
        peer.write(b"hello");
        let ack = peer.data_ack(5);
        let ack = if let (DataAck::Long(number), false) = (ack, long) { DataAck::Short(number as u32) } else { ack };
        peer.signal(0, Dss { data_ack: Some(ack), ..Dss::default() });
        assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 5);
    }
}

#[test]
fn a_mapping_may_cover_many_segments_and_stand_on_each_of_them_or_only_on_the_first() {
    let data = pattern(40_000);
    for (repeated, checksum) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut config = config();
        config.checksum = checksum;
        let mut peer = two_subflows(config);
        let dss = peer.map(0, peer.flows[1].nxt, &data, false);
        for (i, part) in data.chunks(1_400).enumerate() {
            let options = if repeated || i == 0 { with_dss(dss) } else { TcpOptions::default() };
            peer.send(1, Flags::ACK, options, part);
        }
        assert_eq!(peer.received.len(), data.len(), "repeated {repeated}, checksum {checksum}");
        assert_eq!(peer.received, data);
    }
}

#[test]
fn segments_of_a_long_mapping_may_come_in_any_order() {
    let data = pattern(14_000);
    for checksum in [false, true] {
        let mut config = config();
        config.checksum = checksum;
        let mut peer = two_subflows(config);
        let dss = peer.map(0, 1, &data, false);
        for i in [9, 3, 0, 7, 1, 2, 8, 4, 6, 5, 3] {
            let part = &data[i * 1_400..(i + 1) * 1_400];
            peer.send_at(1, 1 + i as u32 * 1_400, Flags::ACK, with_dss(dss), part);
        }
        assert_eq!(peer.received, data, "checksum {checksum}");
    }
}

#[test]
fn a_mapping_with_a_checksum_may_have_hundreds_of_short_segments() {
    let data = pattern(60_000);
    let mut config = config();
    config.checksum = true;
    let mut peer = two_subflows(config);
    let dss = peer.map(0, 1, &data, false);
    // The first comes last, so that none of the other 599 can be delivered earlier.
    for i in (1..600).chain([0]) {
        peer.send_at(1, 1 + i as u32 * 100, Flags::ACK, with_dss(dss), &data[i * 100..(i + 1) * 100]);
    }
    assert_eq!(peer.received, data);
}

#[test]
fn segments_of_a_mapping_with_a_checksum_may_overlap() {
    let data = pattern(300);
    let mut config = config();
    config.checksum = true;
    let mut peer = two_subflows(config);
    let dss = peer.map(0, 1, &data, false);
    // Each octet acknowledged on the subflow has been kept: no data needs a third transmission.
    for (from, to) in [(100, 200), (50, 120), (180, 260), (10, 290), (0, 10), (290, 300)] {
        peer.send_at(1, 1 + from as u32, Flags::ACK, with_dss(dss), &data[from..to]);
    }
    assert_eq!(peer.received, data);
}

#[test]
fn one_segment_may_hold_the_end_of_one_mapping_and_the_beginning_of_the_next() {
    for checksum in [false, true] {
        let mut config = config();
        config.checksum = checksum;
        let mut peer = two_subflows(config);
        let (first, second) = (peer.map(0, 1, b"abcdef", false), peer.map(6, 7, b"ghijkl", false));
        peer.send(1, Flags::ACK, with_dss(first), b"abc");
        peer.send(1, Flags::ACK, with_dss(second), b"defghi");
        peer.send(1, Flags::ACK, TcpOptions::default(), b"jkl");
        assert_eq!(peer.received, b"abcdefghijkl", "checksum {checksum}");
        // Consecutive on the subflow, but not in the stream: these two are never merged.
        let (first, second) = (peer.map(18, 13, b"stuvwx", false), peer.map(12, 19, b"mnopqr", false));
        peer.send(1, Flags::ACK, with_dss(first), b"stu");
        peer.send(1, Flags::ACK, with_dss(second), b"vwxmno");
        peer.send(1, Flags::ACK, TcpOptions::default(), b"pqr");
        assert_eq!(peer.received, b"abcdefghijklmnopqrstuvwx", "checksum {checksum}");
    }
}

#[test]
fn a_mapping_may_come_ahead_of_its_data() {
    let mut peer = two_subflows(config());
    let dss = peer.map(0, 1, b"abcdef", false);
    peer.signal(1, dss);
    send_bare(&mut peer, 1, b"abc");
    send_bare(&mut peer, 1, b"def");
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn unmapped_data_is_not_taken_but_may_be_sent_again_with_its_mapping() {
    let mut peer = two_subflows(config());
    send_bare(&mut peer, 1, b"abc");
    assert_eq!(peer.received, b"");
    let dss = peer.map(0, 1, b"abc", false);
    peer.send_at(1, 1, Flags::ACK, with_dss(dss), b"abc");
    assert_eq!(peer.received, b"abc");
}

#[test]
fn a_joined_subflow_that_never_brings_mappings_is_reset_for_a_middlebox() {
    let mut peer = two_subflows(config());
    peer.take();
    for _ in 0..40 {
        peer.send_at(1, 1, Flags::ACK, TcpOptions::default(), b"abc");
    }
    let resets: Vec<_> = peer.take().iter().filter_map(reset_reason).collect();
    assert_eq!(resets, [6]);
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.received, b"abc");
}

/// RFC 8684, section 3.3.1: a peer with one small message sends nothing but its retransmissions, and must not wait for hours.
#[test]
fn the_only_subflow_is_reset_when_the_next_byte_comes_unmapped_again_and_again() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    peer.take();
    for _ in 0..4 {
        peer.send_at(0, 4, Flags::ACK, TcpOptions::default(), b"def");
    }
    assert_eq!(peer.take().iter().filter_map(reset_reason).collect::<Vec<_>>(), [6]);
    assert_eq!(peer.received, b"abc");
}

#[test]
fn a_checksum_that_was_not_agreed_on_or_is_missing_closes_the_subflow() {
    for agreed in [true, false] {
        let mut config = config();
        config.checksum = agreed;
        let mut peer = two_subflows(config);
        peer.checksum = !agreed;
        peer.send_data(1, 0, b"abc");
        assert_eq!(peer.take().iter().filter_map(reset_reason).collect::<Vec<_>>(), [1], "agreed {agreed}");
        assert_eq!(peer.received, b"");
    }
}

#[test]
fn data_beyond_the_window_is_dropped_and_not_acknowledged_at_data_level() {
    let mut peer = two_subflows(config());
    peer.send_data(1, 300_000, b"far");
    // If it were acknowledged on its subflow, it would not be retransmitted.
    let next = peer.flows[1].peer_initial + 1;
    assert_eq!(peer.take().iter().map(|packet| packet.segment.ack).collect::<Vec<_>>(), [next]);
    peer.send_data(0, 0, b"abc");
    assert_eq!((peer.received.as_slice(), peer.acknowledged()), (&b"abc"[..], Some(3)));
    let state = peer.host.receive_state(peer.id()).unwrap();
    assert_eq!(state.out_of_order, 0);
}

#[test]
fn data_acks_of_what_was_never_sent_are_ignored() {
    let mut peer = two_subflows(config());
    peer.write(b"hello");
    let before = peer.host.connection_view(peer.now, peer.id()).unwrap();
    peer.acknowledge(0, 1_000);
    let after = peer.host.connection_view(peer.now, peer.id()).unwrap();
    assert_eq!((after.data_una, after.window), (0, before.window));
    peer.acknowledge(1, 5);
    assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 5);
}

#[test]
fn a_segment_without_a_data_ack_acknowledges_its_subflow_only_and_its_window_counts_for_nothing() {
    let mut peer = Peer::new(config());
    peer.window = 10_000;
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.acknowledge(0, 0);
    peer.write(b"hello");
    let state = |peer: &Peer| {
        let view = peer.host.connection_view(peer.now, peer.id()).unwrap();
        let acknowledged = peer.host.subflow_views(peer.now, peer.id())[0].counters.bytes_acked;
        (acknowledged, view.data_una, view.data_una + view.window)
    };
    assert_eq!(state(&peer), (0, 0, 10_000));
    peer.flows[0].window = 20_000;
    peer.signal(0, Dss { data_ack: None, ..peer.map(0, 1, b"abc", false) });
    assert_eq!(state(&peer), (5, 0, 10_000));
    peer.signal(0, Dss { data_ack: None, ..peer.data_fin(3) });
    assert_eq!(state(&peer), (5, 0, 10_000));
    // With a DATA_ACK it counts, but does not move the right edge left.
    peer.acknowledge(0, 5);
    assert_eq!(state(&peer), (5, 5, 20_005));
    peer.flows[0].window = 0;
    peer.acknowledge(0, 5);
    assert_eq!(state(&peer), (5, 5, 20_005));
}

#[test]
fn what_subflows_acknowledged_and_the_data_level_did_not_is_sent_again() {
    let mut peer = two_subflows(config());
    peer.acknowledge(0, 0);
    peer.acknowledge(1, 0);
    peer.take();
    peer.write(&pattern(500));
    let first = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    // A middlebox acknowledges, and the data is lost after it.
    peer.acknowledge(0, 0);
    peer.acknowledge(1, 0);
    peer.run(Duration::from_secs(3));
    let again = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    assert_eq!(again.segment.payload, first.segment.payload);
    assert_eq!(mapping(&again).unwrap().data_seq, mapping(&first).unwrap().data_seq);
}

#[test]
fn data_of_a_silent_subflow_goes_out_on_another_and_again_on_its_own() {
    let mut peer = two_subflows(config());
    peer.acknowledge(0, 0);
    peer.acknowledge(1, 0);
    peer.take();
    peer.write(&pattern(1_000));
    let first = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    let from = |packet: &Packet| packet.ip.source == first.ip.source;
    peer.run(Duration::from_secs(2));
    let again: Vec<Packet> = peer.take().into_iter().filter(|packet| !packet.segment.payload.is_empty()).collect();
    assert!(again.iter().any(|packet| !from(packet)), "on the other subflow");
    assert!(again.iter().any(from), "on its own subflow");
    let numbers = again.iter().map(|packet| mapping(packet).unwrap().data_seq);
    assert!(numbers.into_iter().all(|number| number == mapping(&first).unwrap().data_seq));
    // Although acknowledged at data level, the data stays outstanding on the first subflow.
    let acknowledged_on = usize::from(from(&first) && first.ip.source == address(1, 0));
    peer.flows[1 - acknowledged_on].ack = 1;
    peer.acknowledge(acknowledged_on, 1_000);
    peer.take();
    peer.run(Duration::from_secs(8));
    assert!(peer.take().iter().any(|packet| from(packet) && !packet.segment.payload.is_empty()));
}

#[test]
fn a_lossy_path_and_a_reordering_one_still_deliver_the_stream() {
    let mut pair = Pair::new(2);
    let mut count = 0_u32;
    pair.judge = Box::new(move |_, _, packet| {
        count += 1;
        match packet.ip.source == address(0, 1) {
            true if count.is_multiple_of(11) => Fate::Drop,
            false if count.is_multiple_of(7) => Fate::Late(Duration::from_millis(15)),
            _ => Fate::Deliver,
        }
    });
    let id = pair.connect(config(), config());
    let data = pattern(1_000_000);
    assert_eq!(pair.write_all(0, id, &data, Duration::from_secs(60)), 0);
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.received[1].len(), data.len());
    assert_eq!(pair.received[1], data);
}

#[test]
fn data_out_of_order_does_not_move_the_right_edge_of_the_window() {
    let mut peer = two_subflows(ConnectionConfig { receive_buffer: BufferSize::Fixed(60_000), ..config() });
    let mut edge = 0;
    for (flow, offset) in [(0, 30_000), (1, 10_000), (0, 20_000), (1, 50_000), (0, 0)] {
        peer.send_data(flow, offset, &pattern(1_000));
        for packet in peer.take() {
            let Some(Dss { data_ack: Some(ack), .. }) = packet.segment.options.dss else { continue };
            let right = peer.offset_of(ack) + u32::from(packet.segment.window);
            assert!(right >= edge, "{right} after {edge}, on subflow {flow}");
            edge = right;
        }
    }
    assert_eq!(edge, 60_000);
}

#[test]
fn the_window_is_shared_by_all_subflows_and_its_right_edge_never_moves_left() {
    let mut pair = Pair::new(2);
    pair.reading[1] = false;
    let mut small = config();
    small.receive_buffer = BufferSize::Fixed(60_000);
    let id = pair.connect(config(), small);
    pair.write_all(0, id, &pattern(300_000), Duration::from_secs(5));
    pair.run(Duration::from_secs(5));
    let server = pair.accepted().unwrap();
    let state = pair.hosts[1].receive_state(server).unwrap();
    assert!(state.readable + state.out_of_order <= 60_000, "{state:?}");
    assert!(state.readable > 50_000, "{state:?}");
    for _ in 0..40 {
        let goal = pair.received[1].len() + 10_000;
        while pair.received[1].len() < goal {
            let Some(bytes) = pair.hosts[1].read(pair.now, server, 10_000) else { break };
            pair.received[1].extend_from_slice(&bytes);
        }
        pair.settle();
        pair.run(Duration::from_millis(300));
    }
    let shift = pair.sent[1][0].1.segment.options.window_scale.unwrap();
    let mut edge = 0;
    let mut first = None;
    for (_, packet) in pair.sent[1].iter().filter(|(_, packet)| !packet.segment.flags.contains(Flags::SYN)) {
        let Some(Dss { data_ack: Some(DataAck::Long(number)), .. }) = packet.segment.options.dss else { continue };
        let offset = number.wrapping_sub(*first.get_or_insert(number)) as i64;
        let right = offset + (i64::from(packet.segment.window) << shift);
        // Windows are rounded down to a multiple of the scale.
        assert!(right + (1 << shift) > edge, "{right} after {edge}");
        edge = edge.max(right);
    }
    assert_eq!(pair.received[1], pattern(pair.received[1].len()));
    assert!(pair.received[1].len() > 200_000, "{}", pair.received[1].len());
}

#[test]
fn a_subflow_with_a_smaller_window_gets_no_more_than_that() {
    let mut peer = Peer::connected(config());
    peer.window = 3_000; // of the join's SYN too
    peer.join(1);
    peer.send_data(0, 0, b"x");
    peer.acknowledge(1, 0);
    peer.take();
    peer.write(&pattern(60_000));
    let mut sent = [0, 0];
    for _ in 0..20 {
        for packet in peer.take().iter().filter(|packet| !packet.segment.payload.is_empty()) {
            sent[usize::from(packet.ip.source == address(1, 1))] += packet.segment.payload.len();
        }
        // Subflow 0 acknowledges everything; subflow 1 nothing.
        peer.acknowledge(0, 0);
    }
    assert!((1..=3_000).contains(&sent[1]), "{sent:?}");
    assert!(sent[0] > 30_000, "{sent:?}");
}

#[test]
fn the_option_that_ends_a_mapping_of_nothing_is_no_mapping() {
    // A zero-length DSS without DATA_FIN is an infinite mapping; on one of two subflows it cannot apply.
    let mut peer = two_subflows(config());
    let number = peer.number(0);
    let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq: 1, length: 0, checksum: None };
    peer.take();
    peer.signal(1, Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
    assert_eq!(peer.take().iter().filter_map(reset_reason).collect::<Vec<_>>(), [6]);
    assert_eq!(peer.protocol(), Protocol::Multipath);
}

#[test]
fn checksums_hold_on_two_lossy_paths_both_ways() {
    let (mut pair, orders) = obedient_pair(2);
    let mut checked = config();
    checked.checksum = true;
    let id = pair.connect(checked.clone(), checked);
    pair.write_all(0, id, b"x", Duration::ZERO);
    pair.run(Duration::from_millis(100));
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    let mut count = 0_u32;
    pair.judge = Box::new(move |_, _, _| {
        count += 1;
        if count.is_multiple_of(23) { Fate::Drop } else { Fate::Deliver }
    });
    let server = pair.accepted().unwrap();
    pair.write_all(1, server, &pattern(200_000), Duration::from_secs(30));
    pair.write_all(0, id, &pattern(200_000), Duration::from_secs(30));
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.received[0], pattern(200_000));
    assert_eq!(pair.received[1][1..], pattern(200_000));
    assert!(!pair.events.iter().flatten().any(|event| matches!(event, Event::FellBack(..))));
}

#[test]
fn what_left_as_one_is_sent_again_one_by_one_under_the_mapping_that_it_had() {
    let mut peer = Peer::connected(config());
    peer.take();
    peer.write(&pattern(4_000));
    let first: Vec<Packet> = peer.take().into_iter().filter(|packet| !packet.segment.payload.is_empty()).collect();
    let [head, .., last] = first.as_slice() else { panic!("several segments") };
    let whole = Mapping { length: 4_000, ..mapping(head).expect("data is mapped") };
    peer.host.handle_joined(&JoinedSegments {
        local: peer.flows[0].host,
        remote: peer.flows[0].peer,
        seq: head.segment.seq,
        length: 4_000,
        data_fin: false,
    });
    assert!(!peer.host.resends());
    // No answers: from the first timeout on everything is retransmitted.
    let again = loop {
        peer.run(Duration::from_millis(200));
        let again = peer.take().into_iter().find(|packet| packet.segment.seq == head.segment.seq);
        if let Some(again) = again {
            break again;
        }
    };
    assert_eq!(mapping(&again), Some(whole));
    assert_eq!(again.segment.payload, head.segment.payload);
    // The last one follows under the same mapping, and closing does not add to it.
    peer.close();
    peer.flows[0].ack = last.segment.seq - peer.flows[0].host_initial;
    peer.acknowledge(0, 0);
    let rest = loop {
        if let Some(rest) = peer.take().into_iter().find(|packet| packet.segment.seq == last.segment.seq) {
            break rest;
        }
        peer.run(Duration::from_millis(200));
    };
    assert_eq!(mapping(&rest), Some(whole));
}

/// RFC 9293, section 3.9.1.2: PSH means that no more data waits; a receiver's offload delivers its data at each.
#[test]
fn only_the_last_segment_of_what_was_written_is_pushed() {
    for multipath in [true, false] {
        let mut peer = Peer::new(ConnectionConfig { multipath, ..config() });
        peer.open(if multipath { vec![capable(CapableKeys::None)] } else { Vec::new() });
        match multipath {
            true => peer.acknowledge_keys(),
            false => peer.send(0, Flags::ACK, TcpOptions::default(), &[]),
        }
        peer.take();
        let id = peer.id();
        peer.host.set_nagle(peer.now, id, false).unwrap();
        let pushes = |said: Vec<Packet>| -> Vec<bool> {
            let data = said.into_iter().filter(|packet| !packet.segment.payload.is_empty());
            data.map(|packet| packet.segment.flags.contains(Flags::PSH)).collect()
        };
        peer.write(&pattern(3_000));
        let first = pushes(peer.take());
        assert!(first.len() > 2 && first.iter().rev().skip(1).all(|push| !push) && first.last() == Some(&true));
        // More than the window: the rest follows acknowledgements.
        peer.write(&pattern(60_000));
        assert!(pushes(peer.take()).iter().all(|push| !push));
    }
}
