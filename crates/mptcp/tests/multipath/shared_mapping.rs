//! Several segments under one mapping (RFC 8684, section 3.3.1), sent and received.

use super::orders::{create, obedient_pair};
use super::peer::{Peer, mapping, reset_reason};
use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Event};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::scheduler::{Chunk, Decision, Needs, Scheduler};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::mptcp::Mapping;
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, Packet};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Payload of a full segment with a mapping in 1500 bytes, after 20 of IP, 20 of TCP, 12 of timestamps and 28 of DSS.
const MAPPED: usize = 1_420;
/// Without DSS.
const BARE: usize = 1_448;

/// The first subflow that answers carries everything, and queues this many segments, which may share a mapping.
struct Queueing {
    segments: u64,
    per_mapping: u32,
}

impl Scheduler for Queueing {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let can_take = |s: &&SubflowView| s.usable() && !s.stale && Some(s.id) != chunk.last_sent_on;
        let first = subflows.iter().find(can_take);
        match first.filter(|subflow| subflow.queued < self.segments * u64::from(subflow.mss)) {
            Some(subflow) => Decision::Send(subflow.id),
            None => Decision::Wait(None),
        }
    }
    fn needs(&self) -> Needs {
        Needs { segments_per_mapping: self.per_mapping, ..Needs::default() }
    }
}

/// Paced; this many segments are queued, and as many may share a mapping.
fn queueing(segments: u32) -> ConnectionConfig {
    let mut config = config();
    config.policies.scheduler =
        Arc::new(move || Box::new(Queueing { segments: u64::from(segments), per_mapping: segments }));
    config.tcp.pacing = true;
    config
}

/// The client's data segments.
fn data(pair: &Pair) -> Vec<Packet> {
    let sent = pair.sent[0].iter().map(|(_, packet)| packet);
    sent.filter(|packet| !packet.segment.payload.is_empty()).cloned().collect()
}

fn length(packet: &Packet) -> usize {
    packet.segment.payload.len()
}

/// Connected; more than the segment that confirms MPTCP is acknowledged and read, so that the server has received a
/// DSS.
fn warmed_up(pair: &mut Pair, client: ConnectionConfig) -> ConnectionId {
    let id = pair.connect(client, config());
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.write_all(0, id, &pattern(3_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_millis(300));
    pair.received[1].clear();
    pair.sent[0].clear();
    id
}

fn transfer(pair: &mut Pair, id: ConnectionId, bytes: usize) {
    assert_eq!(pair.write_all(0, id, &pattern(bytes), Duration::from_secs(60)), 0);
    pair.run(Duration::from_secs(20));
    assert!(pair.received[1] == pattern(bytes), "{} of {bytes}", pair.received[1].len());
}

#[test]
fn eight_segments_under_one_mapping_are_one_with_it_and_seven_bare_ones_of_full_size() {
    let mut pair = Pair::new(1);
    let id = warmed_up(&mut pair, queueing(8));
    transfer(&mut pair, id, 60_000);
    let sent = data(&pair);
    let (head, rest) = sent.split_first().unwrap();
    let Some(Mapping { data_seq, subflow_seq: relative, .. }) = mapping(head) else { panic!() };
    let bytes = MAPPED + 7 * BARE;
    assert_eq!(length(head), MAPPED);
    let whole = Mapping { data_seq, subflow_seq: relative, length: bytes as u16, checksum: None };
    assert_eq!(mapping(head), Some(whole));
    for (at, packet) in rest[..7].iter().enumerate() {
        assert_eq!((length(packet), packet.wire_len()), (BARE, 1_500), "{at}");
        assert!(packet.segment.options.dss.is_none() && packet.segment.options.mptcp.is_empty(), "{at}");
        assert_eq!(packet.segment.seq, head.segment.seq + (MAPPED + at * BARE) as u32);
    }
    assert!(mapping(&rest[7]).is_some());
    assert!(sent.iter().all(|packet| packet.wire_len() <= 1_500));
}

#[test]
fn unasked_forbidden_with_checksums_or_in_plain_tcp_segments_share_no_mapping() {
    let checksums = |mut config: ConnectionConfig| {
        config.checksum = true;
        config
    };
    let plain = |mut config: ConnectionConfig| {
        config.multipath = false;
        config
    };
    let alone = |mut config: ConnectionConfig| {
        config.policies.scheduler = Arc::new(|| Box::new(Queueing { segments: 8, per_mapping: 1 }));
        config
    };
    let forbidden = |mut config: ConnectionConfig| {
        config.segments_per_mapping = 1;
        config
    };
    let clients = [
        (checksums(queueing(8)), true),
        (plain(queueing(8)), false),
        (alone(queueing(8)), true),
        (forbidden(queueing(8)), true),
    ];
    for (client, multipath) in clients {
        let mut pair = Pair::new(1);
        let id = warmed_up(&mut pair, client);
        transfer(&mut pair, id, 60_000);
        let own =
            |packet: &Packet| mapping(packet).is_some_and(|mapping| usize::from(mapping.length) == length(packet));
        assert!(data(&pair).iter().all(|packet| own(packet) == multipath));
    }
}

/// Loses the nth data segment under the first shared mapping, for each n in `lost`; returns the client's data segments.
fn after_losing(lost: &'static [usize]) -> Vec<Packet> {
    let mut pair = Pair::new(1);
    let id = warmed_up(&mut pair, queueing(8));
    let mut count = 0;
    pair.judge = Box::new(move |from, _, packet| {
        if from == 1 || packet.segment.payload.is_empty() {
            return Fate::Deliver;
        }
        count += 1;
        // One was sent before the shared mapping.
        if count >= 2 && lost.contains(&(count - 2)) { Fate::Drop } else { Fate::Deliver }
    });
    transfer(&mut pair, id, 60_000);
    assert!(!pair.events.iter().flatten().any(|event| matches!(event, Event::SubflowClosed(..) | Event::FellBack(..))));
    data(&pair)
}

#[test]
fn segments_under_a_shared_mapping_are_retransmitted_as_they_were_sent() {
    for lost in [&[0_usize][..], &[3], &[7], &[0, 3], &[0, 1, 2, 3, 4, 5, 6, 7], &[1, 2, 3, 4, 5, 6, 7]] {
        let sent = after_losing(lost);
        for index in lost {
            let original = &sent[1 + index];
            let mut again = sent[2 + index..].iter().filter(|packet| packet.segment.seq == original.segment.seq);
            let again = again.next().unwrap_or_else(|| panic!("{index} of {lost:?} is sent again"));
            assert_eq!((mapping(again), &again.segment.payload), (mapping(original), &original.segment.payload));
        }
    }
}

#[test]
fn segments_that_overtake_their_shared_mapping_are_dropped_and_sent_again() {
    let mut pair = Pair::new(1);
    let id = warmed_up(&mut pair, queueing(16));
    let mut count = 0_u64;
    pair.judge = Box::new(move |from, _, packet| {
        count += u64::from(from == 0 && !packet.segment.payload.is_empty());
        match (from, count % 5) {
            (0, 1) => Fate::Late(Duration::from_millis(3)),
            (0, 3) => Fate::Twice,
            _ => Fate::Deliver,
        }
    });
    transfer(&mut pair, id, 400_000);
    assert!(!pair.events.iter().flatten().any(|event| matches!(event, Event::SubflowClosed(..))));
}

#[test]
fn every_tenth_segment_lost_does_not_end_a_connection_with_shared_mappings() {
    for period in [10, 37, 151] {
        let mut pair = Pair::new(2);
        let id = warmed_up(&mut pair, queueing(16));
        let mut count = 0_u32;
        pair.judge = Box::new(move |_, _, _| {
            count += 1;
            if count.is_multiple_of(period) { Fate::Drop } else { Fate::Deliver }
        });
        transfer(&mut pair, id, 400_000);
        assert!(!pair.events.iter().flatten().any(|event| matches!(event, Event::SubflowClosed(..))), "{period}");
    }
}

/// On two paths, in the middle of a shared mapping on the first: the mapping's first segment, and the number of
/// segments sent.
fn within_a_shared_mapping(pair: &mut Pair, id: ConnectionId) -> (Packet, usize) {
    let rest = pattern(400_000);
    pair.hosts[0].write(pair.now, id, rest.into()).unwrap();
    pair.settle();
    let binds = |packet: &Packet| mapping(packet).is_some_and(|m| usize::from(m.length) > length(packet) + 3 * BARE);
    loop {
        let sent = data(pair);
        if let Some(head) = sent.iter().position(binds)
            && sent.len() == head + 2
        {
            return (sent[head].clone(), sent.len());
        }
        assert!(pair.step(pair.now + Duration::from_secs(1)));
    }
}

/// Two paths, the second of which the client opens on command.
fn two_paths() -> (Pair, ConnectionId, impl FnMut(&mut Pair, PathAction)) {
    let (mut pair, [orders, _]) = obedient_pair(2);
    let id = warmed_up(&mut pair, queueing(8));
    orders.give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    pair.sent[0].clear();
    (pair, id, move |pair: &mut Pair, action| orders.give(pair, 0, action))
}

#[test]
fn a_suspended_subflow_sends_what_its_last_mapping_covers_and_no_more() {
    let (mut pair, id, mut give) = two_paths();
    let (head, _) = within_a_shared_mapping(&mut pair, id);
    give(&mut pair, PathAction::Suspend { connection: id, subflow: SubflowId(0) });
    pair.run(Duration::from_secs(20));
    assert!(pair.received[1] == pattern(400_000), "{}", pair.received[1].len());
    let end = head.segment.seq + u32::from(mapping(&head).unwrap().length);
    let sent = data(&pair);
    let on_first = sent.iter().filter(|packet| packet.ip.source == head.ip.source);
    let last =
        on_first.clone().map(|packet| packet.segment.seq + length(packet) as u32).max_by_key(|s| s.distance(end));
    assert_eq!(last, Some(end), "all that was bound and nothing else");
    // The data under the mapping is on the other path too.
    let other: usize = sent.iter().filter(|packet| packet.ip.source != head.ip.source).map(length).sum();
    let first: usize = on_first.map(length).sum();
    assert!(other + first > pair.received[1].len() + 4 * BARE, "{other} {first} {}", pair.received[1].len());
}

#[test]
fn a_subflow_that_is_closed_within_a_shared_mapping_ends_behind_it() {
    let (mut pair, id, mut give) = two_paths();
    let (head, _) = within_a_shared_mapping(&mut pair, id);
    give(&mut pair, PathAction::CloseSubflow { connection: id, subflow: SubflowId(0) });
    pair.run(Duration::from_secs(20));
    assert!(pair.received[1] == pattern(400_000), "{}", pair.received[1].len());
    let end = head.segment.seq + u32::from(mapping(&head).unwrap().length);
    let fin = pair.sent[0].iter().map(|(_, packet)| packet).find(|packet| packet.segment.flags.contains(Flags::FIN));
    assert_eq!(fin.map(|fin| (fin.ip.source, fin.segment.seq)), Some((head.ip.source, end)));
}

#[test]
fn a_path_that_goes_within_a_shared_mapping_loses_no_byte() {
    let (mut pair, id, _) = two_paths();
    let (head, _) = within_a_shared_mapping(&mut pair, id);
    let gone = head.ip.source;
    pair.judge = Box::new(move |from, _, packet| {
        let path = if from == 0 { packet.ip.source } else { packet.ip.destination };
        if path == gone { Fate::Drop } else { Fate::Deliver }
    });
    pair.run(Duration::from_secs(60));
    assert!(pair.received[1] == pattern(400_000), "{}", pair.received[1].len());
}

#[test]
fn data_fin_goes_with_a_shared_mapping_or_by_itself_if_it_comes_later() {
    for early in [true, false] {
        let mut pair = Pair::new(1);
        let id = warmed_up(&mut pair, queueing(8));
        let bytes = MAPPED + 7 * BARE;
        pair.hosts[0].write(pair.now, id, pattern(bytes).into()).unwrap();
        if early {
            pair.hosts[0].close(pair.now, id).unwrap();
        }
        pair.settle();
        let binds = |packet: &Packet| mapping(packet).is_some_and(|m| usize::from(m.length) > length(packet) + 1);
        while !data(&pair).iter().any(binds) {
            assert!(pair.step(pair.now + Duration::from_secs(1)));
        }
        let head = data(&pair).into_iter().find(binds).unwrap();
        let dss = head.segment.options.dss.unwrap();
        assert_eq!(dss.data_fin, early);
        assert_eq!(usize::from(dss.mapping.unwrap().length), bytes + usize::from(early));
        if !early {
            pair.hosts[0].close(pair.now, id).unwrap();
        }
        pair.run(Duration::from_secs(5));
        assert_eq!(pair.received[1], pattern(bytes));
        let server = pair.accepted().unwrap();
        assert!(pair.events[1].contains(&Event::EndOfStream(server)), "early {early}");
        pair.hosts[1].close(pair.now, server).unwrap();
        pair.settle();
        pair.run(Duration::from_secs(5));
        assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "early {early}");
    }
}

#[test]
fn a_sender_that_receives_too_sends_data_acks_without_delay() {
    let mut pair = Pair::new(1);
    let id = warmed_up(&mut pair, queueing(16));
    let server = pair.accepted().unwrap();
    // When the client received or acknowledged a byte, by number at data level.
    type Log = Vec<(Instant, usize)>;
    let log: Rc<RefCell<(Log, Log)>> = Rc::default();
    let inner = Rc::clone(&log);
    let delay = pair.delay[0];
    pair.judge = Box::new(move |from, now, packet| {
        let mut log = inner.borrow_mut();
        if from == 1 && !packet.segment.payload.is_empty() {
            log.0.push((now + delay, length(packet)));
        } else if from == 0 && packet.segment.options.dss.is_some_and(|dss| dss.data_ack.is_some()) {
            log.1.push((now, 0));
        }
        Fate::Deliver
    });
    pair.hosts[1].write(pair.now, server, pattern(250_000).into()).unwrap();
    pair.hosts[0].write(pair.now, id, pattern(250_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(10));
    assert!(pair.received[1] == pattern(pair.received[1].len()) && pair.received[1].len() == 250_000);
    assert!(pair.received[0] == pattern(pair.received[0].len()) && pair.received[0].len() == 250_000);
    let log = log.borrow();
    let most = config().tcp.delayed_ack;
    for (arrived, _) in &log.0 {
        let next = log.1.iter().map(|(at, _)| *at).find(|at| at >= arrived).expect("acknowledged");
        assert!(next.since(*arrived) <= most, "{:?}", next.since(*arrived));
    }
}

#[test]
fn bytes_that_overtake_a_shared_mapping_do_not_end_their_subflow() {
    let mut peer = Peer::connected(config());
    peer.join(1);
    peer.take();
    let bytes = pattern(3_000);
    let dss = peer.map(0, 1, &bytes, false);
    for _ in 0..3 {
        for at in (100..3_000).step_by(100) {
            peer.send_at(1, 1 + at as u32, Flags::ACK, TcpOptions::default(), &bytes[at..at + 100]);
        }
    }
    assert!(peer.take().iter().all(|packet| reset_reason(packet).is_none()));
    peer.send_at(1, 1, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, &bytes[..100]);
    for at in (100..3_000).step_by(100) {
        peer.send_at(1, 1 + at as u32, Flags::ACK, TcpOptions::default(), &bytes[at..at + 100]);
    }
    assert_eq!(peer.received, bytes);
}

/// Mappings of two segments of ten bytes, after one missing byte.
fn send_two_segments(peer: &mut Peer, bytes: &[u8], pair: usize) {
    let at = 1 + 20 * pair;
    let dss = peer.map(at as u64, 1 + at as u32, &bytes[at..at + 20], false);
    let with = TcpOptions { dss: Some(dss), ..TcpOptions::default() };
    peer.send_at(1, 1 + at as u32, Flags::ACK, with, &bytes[at..at + 10]);
    peer.send_at(1, 11 + at as u32, Flags::ACK, TcpOptions::default(), &bytes[at + 10..at + 20]);
}

#[test]
fn behind_a_missing_byte_more_mappings_may_come_than_are_remembered() {
    let mut peer = Peer::connected(config());
    peer.join(1);
    peer.take();
    let bytes = pattern(12_001);
    (0..600).for_each(|pair| send_two_segments(&mut peer, &bytes, pair));
    let state = peer.host.receive_state(peer.id()).unwrap();
    assert_eq!(state.out_of_order, 12_000);
    let dss = peer.map(0, 1, &bytes[..1], false);
    peer.send_at(1, 1, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, &bytes[..1]);
    assert_eq!(peer.received, bytes);
}

#[test]
fn a_mapping_that_cannot_be_remembered_is_not_acknowledged_but_that_of_the_next_byte_always_can_be() {
    let mut peer = Peer::connected(ConnectionConfig { receive_buffer: BufferSize::Fixed(100_000), ..config() });
    peer.join(1);
    peer.take();
    let bytes = pattern(40_000);
    let with = |dss| TcpOptions { dss: Some(dss), ..TcpOptions::default() };
    // 600 mappings from byte 10,000 on, none of which continues another; 512 are remembered.
    for at in (10_000..34_000).step_by(40) {
        let dss = peer.map(at as u64, 1 + at as u32, &bytes[at..at + 20], false);
        peer.send_at(1, 1, Flags::ACK, with(dss), &[]);
    }
    let dss = peer.map(35_000, 35_001, &bytes[35_000..35_020], false);
    peer.send_at(1, 35_001, Flags::ACK, with(dss), &bytes[35_000..35_010]);
    assert_eq!(peer.host.receive_state(peer.id()).unwrap().out_of_order, 0);
    // The first waiting data has a shared mapping too.
    let dss = peer.map(0, 1, &bytes[..10_000], false);
    for at in (0..10_000).step_by(1_000) {
        let options = if at == 0 { with(dss) } else { TcpOptions::default() };
        peer.send_at(1, 1 + at as u32, Flags::ACK, options, &bytes[at..at + 1_000]);
    }
    assert_eq!(peer.received, bytes[..10_000]);
    assert!(peer.take().iter().all(|packet| reset_reason(packet).is_none()));
}
