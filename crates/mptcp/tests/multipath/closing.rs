//! How connections end: DATA_FIN in every order, FIN, resets, fast close, the loss of all subflows (RFC 8684, sections
//! 3.3.3, 3.5, 3.6).

use super::orders::obedient_pair;
use super::peer::{Peer, mapping, options};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::OperationError;
use anabranch_mptcp::{CloseCause, Event, Protocol};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::Dss;
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, MptcpOption, Packet};
use std::collections::BTreeSet;
use std::net::SocketAddr;

const SECOND: Duration = Duration::from_secs(1);

fn has_data_fin(packet: &Packet) -> bool {
    packet.segment.options.dss.is_some_and(|dss| dss.data_fin)
}

fn has_fin(packet: &Packet) -> bool {
    packet.segment.flags.contains(Flags::FIN)
}

/// A peer with two subflows.
fn two_subflows() -> Peer {
    let mut peer = Peer::connected(config());
    peer.join(1);
    peer.acknowledge(0, 0);
    peer.take();
    peer
}

/// A pair on two paths whose connection is open at both ends.
fn open_pair() -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(2);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(200));
    let server = pair.accepted().unwrap();
    (pair, id, server)
}

fn assert_finished(pair: &Pair, ids: [ConnectionId; 2]) {
    for (host, id) in ids.into_iter().enumerate() {
        assert!(pair.events[host].contains(&Event::EndOfStream(id)), "host {host}: {:?}", pair.events[host]);
        assert!(pair.events[host].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[host]);
    }
}

#[test]
fn data_fin_goes_with_the_last_data_and_counts_as_an_octet() {
    let mut peer = two_subflows();
    let id = peer.id();
    peer.host.write(peer.now, id, bytes::Bytes::from_static(b"hello")).unwrap();
    peer.host.close(peer.now, id).unwrap();
    peer.settle();
    let last = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    assert_eq!((has_data_fin(&last), mapping(&last).unwrap().length), (true, 6));
    peer.acknowledge(0, 6);
    assert_eq!(peer.host.connection_view(peer.now, id).unwrap().data_una, 5);
    peer.run(SECOND * 5);
    assert!(!peer.take().iter().any(has_data_fin), "it is acknowledged");
}

#[test]
fn data_fin_alone_has_subflow_sequence_0_and_length_1_and_goes_on_every_subflow() {
    let mut peer = two_subflows();
    peer.close();
    let said = peer.take();
    assert_eq!(said.len(), 2);
    for packet in &said {
        let mapping = mapping(packet).unwrap();
        assert_eq!((has_data_fin(packet), mapping.subflow_seq, mapping.length), (true, 0, 1));
        assert!(packet.segment.payload.is_empty() && !has_fin(packet));
    }
    assert_ne!(said[0].ip.source, said[1].ip.source);
}

#[test]
fn data_fin_is_sent_again_until_it_is_acknowledged_or_abandoned_in_the_end() {
    let mut peer = two_subflows();
    peer.close();
    peer.take();
    let rto = peer.host.subflow_views(peer.now, peer.id()).iter().map(|view| view.rto).max().unwrap();
    // After twice the retransmission timeout, and then with doubling pauses.
    let (mut last, mut pause) = (peer.now, rto * 2);
    for _ in 0..4 {
        while !peer.take().iter().any(has_data_fin) {
            peer.run(Duration::from_millis(1));
        }
        let waited = peer.now.since(last);
        assert!(waited.abs_diff(pause) <= Duration::from_millis(2), "{waited:?} and not {pause:?}");
        (last, pause) = (peer.now, pause * 2);
    }
    peer.run(SECOND * 3_600);
    assert!(peer.events.contains(&Event::Closed(peer.id(), CloseCause::TimedOut)), "{:?}", peer.events);
}

#[test]
fn data_fin_is_acknowledged_only_once_all_data_is_here() {
    let mut peer = two_subflows();
    let fin = peer.data_fin(6);
    peer.signal(1, fin);
    assert_eq!(peer.acknowledged(), Some(0));
    peer.send_data(1, 3, b"def");
    assert_eq!(peer.acknowledged(), Some(0));
    assert!(!peer.events.iter().any(|event| matches!(event, Event::EndOfStream(_))));
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.acknowledged(), Some(7));
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())));
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn data_fin_may_come_with_data_and_may_come_again() {
    let mut peer = two_subflows();
    let dss = peer.map(0, 1, b"abc", true);
    for flow in [0, 1, 0] {
        peer.send_at(flow, 1, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"abc");
    }
    assert_eq!(peer.received, b"abc");
    for flow in [1, 0] {
        peer.take();
        peer.flows[flow].nxt = 4;
        peer.signal(flow, peer.data_fin(3));
        assert_eq!(peer.acknowledged(), Some(4));
    }
    let ends = peer.events.iter().filter(|event| matches!(event, Event::EndOfStream(_))).count();
    assert_eq!(ends, 1);
}

#[test]
fn a_data_fin_at_another_place_than_the_first_is_ignored() {
    let mut peer = two_subflows();
    peer.signal(0, peer.data_fin(3));
    peer.signal(0, peer.data_fin(2));
    peer.signal(0, peer.data_fin(9));
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.received, b"abc");
    assert_eq!(peer.acknowledged(), Some(4));
    // Nor can the stream end beyond the window, into which all data was sent, or before its beginning.
    let mut peer = two_subflows();
    for end in [1 << 28, u64::MAX] {
        peer.signal(0, peer.data_fin(end));
    }
    peer.send_data(0, 0, b"abc");
    peer.signal(0, peer.data_fin(3));
    assert_eq!((peer.received.as_slice(), peer.acknowledged()), (&b"abc"[..], Some(4)));
    // Nor can it end before received data.
    let mut peer = two_subflows();
    peer.send_data(0, 0, b"abc");
    peer.signal(0, peer.data_fin(2));
    peer.send_data(0, 3, b"def");
    peer.signal(0, peer.data_fin(6));
    assert_eq!((peer.received.as_slice(), peer.acknowledged()), (&b"abcdef"[..], Some(7)));
}

#[test]
fn subflows_close_with_fins_once_both_data_fins_are_acknowledged_and_not_before() {
    let mut peer = two_subflows();
    peer.close();
    assert!(!peer.take().iter().any(has_fin));
    peer.acknowledge(0, 1);
    assert!(!peer.take().iter().any(has_fin));
    peer.signal(0, peer.data_fin(0));
    let said = peer.take();
    assert_eq!(said.iter().filter(|packet| has_fin(packet)).count(), 2, "{said:?}");
    assert!(peer.events.contains(&Event::Closed(peer.id(), CloseCause::Finished)));
    // The other way round.
    let mut peer = two_subflows();
    peer.signal(0, peer.data_fin(0));
    peer.close();
    assert!(!peer.take().iter().any(has_fin));
    peer.acknowledge(0, 1);
    assert_eq!(peer.take().iter().filter(|packet| has_fin(packet)).count(), 2);
    // Both are in flight, and ours is unacknowledged.
    let mut peer = two_subflows();
    peer.close();
    peer.signal(0, peer.data_fin(0));
    assert!(!peer.take().iter().any(has_fin));
    peer.acknowledge(1, 1);
    assert_eq!(peer.take().iter().filter(|packet| has_fin(packet)).count(), 2);
}

#[test]
fn one_direction_may_end_long_before_the_other() {
    let (mut pair, id, server) = open_pair();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.settle();
    pair.run(SECOND * 100);
    assert!(pair.events[1].contains(&Event::EndOfStream(server)));
    assert_eq!(pair.write_all(1, server, &pattern(100_000), SECOND * 5), 0);
    pair.run(SECOND * 5);
    assert_eq!(pair.received[0], pattern(100_000));
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(SECOND);
    assert_finished(&pair, [id, server]);
}

#[test]
fn both_sides_may_close_at_once() {
    let (mut pair, id, server) = open_pair();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(SECOND);
    assert_finished(&pair, [id, server]);
    pair.run(SECOND * 200);
    assert_eq!((pair.hosts[0].connection_count(), pair.hosts[1].connection_count()), (0, 0));
}

#[test]
fn any_one_packet_of_the_end_may_be_lost() {
    for (host, nth) in (0..2).flat_map(|host| (0..8).map(move |nth| (host, nth))) {
        let (mut pair, id, server) = open_pair();
        let mut seen = 0;
        pair.judge = Box::new(move |from, _, _| {
            seen += usize::from(from == host);
            if from == host && seen == nth + 1 { Fate::Drop } else { Fate::Deliver }
        });
        pair.write_all(0, id, &pattern(3_000), SECOND);
        pair.hosts[0].close(pair.now, id).unwrap();
        pair.settle();
        pair.run(Duration::from_millis(500));
        pair.hosts[1].close(pair.now, server).unwrap();
        pair.settle();
        pair.run(SECOND * 20);
        assert_finished(&pair, [id, server]);
        assert_eq!(pair.received[1], pattern(3_000), "packet {nth} of host {host}");
        pair.run(SECOND * 400);
        let left = (pair.hosts[0].connection_count(), pair.hosts[1].connection_count());
        assert_eq!(left, (0, 0), "packet {nth} of host {host}");
    }
}

#[test]
fn a_connection_closed_before_its_handshake_ends_is_closed_after_it() {
    for data in [0, 100, 5_000] {
        let (mut pair, _) = obedient_pair(1);
        let id = pair.connect(config(), config());
        pair.write_all(0, id, &pattern(data), Duration::ZERO);
        pair.hosts[0].close(pair.now, id).unwrap();
        pair.settle();
        let begin = pair.now;
        let end = pair.now + Duration::from_millis(150);
        while pair.step(end) && !pair.events[1].iter().any(|event| matches!(event, Event::EndOfStream(_))) {}
        let server = pair.accepted().unwrap();
        assert!(pair.events[1].contains(&Event::EndOfStream(server)), "{data} bytes");
        assert!(pair.now.since(begin) < Duration::from_millis(150), "no timer had to help");
        assert_eq!(pair.received[1], pattern(data));
        pair.hosts[1].close(pair.now, server).unwrap();
        pair.settle();
        pair.run(SECOND * 5);
        assert_finished(&pair, [id, server]);
    }
}

#[test]
fn a_fin_without_data_fin_closes_its_subflow_only() {
    let mut peer = two_subflows();
    peer.send(1, Flags::FIN | Flags::ACK, TcpOptions::default(), &[]);
    let said = peer.take();
    assert_eq!(said.iter().filter(|packet| has_fin(packet)).count(), 1);
    peer.send(1, Flags::ACK, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::SubflowClosed(peer.id(), SubflowId(1), CloseReason::Normal)));
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.received, b"abc");
}

#[test]
fn when_all_subflows_are_closed_the_connection_ends_only_after_a_timeout() {
    let mut peer = two_subflows();
    for flow in [0, 1] {
        peer.send(flow, Flags::FIN | Flags::ACK, TcpOptions::default(), &[]);
        peer.send(flow, Flags::ACK, TcpOptions::default(), &[]);
    }
    let id = peer.id();
    peer.run(SECOND * 59);
    assert!(!peer.events.iter().any(|event| matches!(event, Event::Closed(..))), "{:?}", peer.events);
    peer.run(SECOND * 2);
    assert!(peer.events.contains(&Event::Closed(id, CloseCause::TimedOut)), "{:?}", peer.events);
}

/// Not in SYN-SENT, where the connection would be deleted (RFC 9293, section 3.10.4).
#[test]
fn an_application_that_leaves_a_connection_without_subflows_does_not_abort_it() {
    let mut peer = two_subflows();
    for flow in [0, 1] {
        peer.send(flow, Flags::RST | Flags::ACK, TcpOptions::default(), &[]);
    }
    let id = peer.id();
    peer.host.discard(peer.now, id).unwrap();
    peer.settle();
    assert!(!peer.events.iter().any(|event| matches!(event, Event::Closed(..))), "{:?}", peer.events);
    peer.join(2);
    assert!(peer.take().iter().any(has_data_fin));
}

#[test]
fn within_that_time_a_join_continues_the_connection() {
    let mut peer = two_subflows();
    peer.send_data(0, 0, b"abc");
    for flow in [0, 1] {
        peer.send(flow, Flags::RST | Flags::ACK, TcpOptions::default(), &[]);
    }
    assert!(peer.host.subflow_views(peer.now, peer.id()).is_empty());
    peer.write(b"more");
    peer.run(SECOND * 30);
    let flow = peer.join(2);
    peer.send_data(flow, 3, b"def");
    assert_eq!(peer.received, b"abcdef");
    assert!(peer.take().iter().any(|packet| &packet.segment.payload[..] == b"more"));
    peer.run(SECOND * 40);
    assert!(!peer.events.iter().any(|event| matches!(event, Event::Closed(..))));
}

#[test]
fn an_address_that_goes_down_and_up_again_interrupts_the_connection_but_does_not_end_it() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    let data = pattern(2_000_000);
    pair.write_all(0, id, &data, Duration::ZERO);
    pair.run(Duration::from_millis(100));
    pair.hosts[0].handle_address_down(pair.now, AddressId(1));
    pair.settle();
    assert!(pair.hosts[0].subflow_views(pair.now, id).is_empty());
    pair.run(SECOND * 10);
    pair.hosts[0].handle_address_up(pair.now, AddressId(1), crate::pair::address(0, 0));
    pair.settle();
    pair.run(SECOND * 30);
    assert_eq!(pair.received[1].len(), data.len());
    assert_eq!(pair.received[1], data);
}

#[test]
fn a_reset_closes_its_subflow_only_and_its_data_is_reinjected() {
    let mut peer = two_subflows();
    peer.acknowledge(1, 0);
    peer.take();
    peer.write(&pattern(1_000));
    let first = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    let carrier = usize::from(first.ip.source == crate::pair::address(1, 1));
    peer.send(carrier, Flags::RST | Flags::ACK, TcpOptions::default(), &[]);
    let again = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).unwrap();
    assert_eq!(again.segment.payload, first.segment.payload);
    assert_ne!(again.ip.source, first.ip.source);
}

#[test]
fn the_reason_of_a_reset_tells_whether_to_try_again() {
    for (option, reason) in
        [(None, CloseReason::Reset), (Some(true), CloseReason::Reset), (Some(false), CloseReason::ProtocolError)]
    {
        let mut peer = two_subflows();
        let mptcp = option.map(|transient| MptcpOption::TcpReset { transient, flags: 7, reason: 2 });
        peer.send(1, Flags::RST | Flags::ACK, options(mptcp.into_iter().collect()), &[]);
        let id = peer.id();
        assert!(peer.events.contains(&Event::SubflowClosed(id, SubflowId(1), reason)), "{option:?}");
    }
}

#[test]
fn aborting_sends_mp_fastclose_with_the_peers_key_on_a_reset_of_every_subflow() {
    let mut peer = two_subflows();
    let id = peer.id();
    peer.host.abort(peer.now, id).unwrap();
    peer.settle();
    let said = peer.take();
    let sources: Vec<_> = said.iter().map(|packet| packet.ip.source).collect();
    assert_eq!(sources, [address(1, 0), address(1, 1)], "the initial subflow first, as Linux does");
    for packet in &said {
        assert!(packet.segment.flags.contains(Flags::RST));
        let fast_close = MptcpOption::FastClose { key: peer.keys.local.0 };
        assert!(packet.segment.options.mptcp.contains(&fast_close));
    }
    assert!(peer.events.contains(&Event::Closed(id, CloseCause::Aborted)));
    peer.run(SECOND);
    assert_eq!(peer.host.connection_count(), 0);
}

/// The subflow of a reset is closed by it; no reset answers a reset (RFC 9293, section 3.10.7).
#[test]
fn mp_fastclose_on_an_ack_or_a_reset_ends_the_connection_and_resets_all_subflows() {
    for (flags, open) in [(Flags::ACK, 2), (Flags::RST | Flags::ACK, 1)] {
        let mut peer = two_subflows();
        let id = peer.id();
        let key = peer.keys.remote.0;
        peer.send(0, flags, options(vec![MptcpOption::FastClose { key }]), &[]);
        let said = peer.take();
        let to = |packet: &Packet| SocketAddr::new(packet.ip.destination, packet.segment.destination_port);
        let answered: BTreeSet<SocketAddr> = said.iter().map(to).collect();
        assert_eq!((said.len(), answered.len()), (open, open), "{said:?}");
        assert_eq!(answered.contains(&peer.flows[0].peer), open == 2, "{said:?}");
        assert!(said.iter().all(|packet| packet.segment.flags.contains(Flags::RST)), "{said:?}");
        let fast_close = |option: &MptcpOption| matches!(option, MptcpOption::FastClose { .. });
        assert!(
            !said.iter().any(|packet| packet.segment.options.mptcp.iter().any(fast_close)),
            "it is not thrown back"
        );
        assert!(peer.events.contains(&Event::Closed(id, CloseCause::AbortedByPeer)));
    }
}

/// Acknowledged data is not discarded; Linux keeps it, too.
#[test]
fn data_acknowledged_before_mp_fastclose_can_still_be_read() {
    for flags in [Flags::ACK, Flags::RST | Flags::ACK] {
        let mut peer = two_subflows();
        let (id, key) = (peer.id(), peer.keys.remote.0);
        peer.reading = false;
        peer.send_data(0, 0, b"abc");
        assert_eq!(peer.acknowledged(), Some(3));
        let much = bytes::Bytes::from(vec![0; 100_000_000]);
        assert!(peer.host.write(peer.now, id, much).unwrap() < 100_000_000);
        peer.settle();
        peer.send(0, flags, options(vec![MptcpOption::FastClose { key }]), &[]);
        assert!(peer.host.subflow_views(peer.now, id).is_empty());
        assert!(peer.events.contains(&Event::Writable(id)), "who waits for room learns that there will be none");
        let refused = peer.host.write(peer.now, id, bytes::Bytes::from_static(b"more"));
        assert_eq!(refused, Err(OperationError::Ended(CloseCause::AbortedByPeer)));
        peer.run(SECOND * 1_000);
        assert!(!peer.events.iter().any(|event| matches!(event, Event::Closed(..))), "{:?}", peer.events);
        assert_eq!(peer.host.read(peer.now, id, 2).as_deref(), Some(&b"ab"[..]));
        assert_eq!(peer.host.read(peer.now, id, 2).as_deref(), Some(&b"c"[..]));
        peer.settle();
        assert_eq!(peer.events.last(), Some(&Event::Closed(id, CloseCause::AbortedByPeer)));
        assert_eq!(peer.host.connection_count(), 0);
    }
}

#[test]
fn an_application_may_leave_what_it_has_not_read_after_mp_fastclose() {
    let mut peer = two_subflows();
    let (id, key) = (peer.id(), peer.keys.remote.0);
    peer.reading = false;
    peer.send_data(0, 0, b"abc");
    peer.send(0, Flags::ACK, options(vec![MptcpOption::FastClose { key }]), &[]);
    peer.host.discard(peer.now, id).unwrap();
    peer.settle();
    assert_eq!(peer.host.connection_count(), 0);
}

#[test]
fn a_data_fin_is_acknowledged_on_every_subflow() {
    let mut peer = two_subflows();
    peer.send_data(0, 0, b"abc");
    peer.take();
    peer.signal(0, peer.data_fin(3));
    let said = peer.take();
    let acks = said.iter().filter_map(|packet| packet.segment.options.dss?.data_ack).map(|ack| peer.offset_of(ack));
    assert_eq!(acks.collect::<Vec<_>>(), [4, 4]);
    assert_ne!(said[0].ip.source, said[1].ip.source);
}

#[test]
fn mp_fastclose_with_a_wrong_key_ends_nothing_but_the_subflow_that_it_resets() {
    let mut peer = two_subflows();
    let wrong = || options(vec![MptcpOption::FastClose { key: 1 }]);
    peer.send(0, Flags::ACK, wrong(), &[]);
    peer.send(1, Flags::RST | Flags::ACK, wrong(), &[]);
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1);
    peer.send_data(0, 0, b"abc");
    assert_eq!(peer.received, b"abc");
}

#[test]
fn an_abort_reaches_the_other_side_at_once() {
    let (mut pair, id, server) = open_pair();
    pair.hosts[0].abort(pair.now, id).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(50));
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::AbortedByPeer)), "{:?}", pair.events[1]);
    assert_eq!((pair.hosts[0].connection_count(), pair.hosts[1].connection_count()), (0, 0));
}

/// RFC 5961, section 3.2: a reset only counts at exactly the next expected byte.
#[test]
fn an_abort_reaches_a_peer_that_misses_something_on_the_only_path_that_is_left() {
    let (mut pair, id, server) = open_pair();
    let (on_path_0, mut first) = ([address(0, 0), address(1, 0)], true);
    pair.judge = Box::new(move |host, _, packet| {
        let alive = on_path_0.contains(&packet.ip.source) && on_path_0.contains(&packet.ip.destination);
        let missing = alive && host == 0 && !packet.segment.payload.is_empty() && core::mem::take(&mut first);
        if missing || !alive { Fate::Drop } else { Fate::Deliver }
    });
    pair.write_all(0, id, &pattern(12_000), Duration::ZERO);
    pair.run(Duration::from_millis(1));
    pair.hosts[0].abort(pair.now, id).unwrap();
    pair.settle();
    pair.run(SECOND);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::AbortedByPeer)), "{:?}", pair.events[1]);
    assert_eq!(pair.hosts[1].connection_count(), 0);
}

#[test]
fn a_peer_that_vanishes_in_mid_transfer_ends_in_a_timeout() {
    let (mut pair, id, server) = open_pair();
    pair.judge = Box::new(|_, now, _| match now < Instant::ZERO + SECOND {
        true => Fate::Deliver,
        false => Fate::Drop,
    });
    pair.run(SECOND);
    pair.write_all(0, id, &pattern(100_000), SECOND);
    pair.write_all(1, server, &pattern(100_000), SECOND);
    pair.run(SECOND * 7_200);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::TimedOut)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::TimedOut)), "{:?}", pair.events[1]);
}

/// RFC 8684, section 3.3.3 and appendix D: the peer's stream has ended, and it closes its subflows while we may still send.
#[test]
fn a_peer_that_closes_its_subflows_behind_its_data_fin_gets_the_rest_of_our_stream() {
    for together in [false, true] {
        let mut peer = Peer::connected(config());
        peer.send_data(0, 0, b"question");
        let end = peer.data_fin(8);
        if !together {
            peer.signal(0, end);
        }
        let acknowledged = Dss { data_ack: Some(peer.data_ack(0)), ..Dss::default() };
        let dss = if together { end } else { acknowledged };
        peer.send(0, Flags::FIN | Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, &[]);
        assert!(!peer.take().iter().any(has_fin), "our half is still needed");
        peer.write(b"answer");
        let answer = peer.take().into_iter().find(|packet| packet.segment.payload == b"answer"[..]);
        assert!(answer.is_some_and(|packet| mapping(&packet).unwrap().length == 6), "together: {together}");
        peer.acknowledge(0, 6);
        peer.close();
        assert!(peer.take().iter().any(has_data_fin));
        peer.acknowledge(0, 7);
        assert!(peer.take().iter().any(has_fin));
        assert!(peer.events.contains(&Event::Closed(peer.id(), CloseCause::Finished)), "{:?}", peer.events);
    }
}

/// A FIN on the only subflow ends neither stream: unacknowledged data is sent first, and then the FIN is answered.
#[test]
fn a_fin_on_the_last_subflow_is_answered_when_our_data_has_arrived() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"question");
    peer.write(&pattern(60_000));
    let acknowledged = Dss { data_ack: Some(peer.data_ack(0)), ..Dss::default() };
    peer.send(0, Flags::FIN | Flags::ACK, TcpOptions { dss: Some(acknowledged), ..TcpOptions::default() }, &[]);
    let mut rounds = 0;
    while peer.flows[0].ack <= 60_000 && rounds < 100 {
        assert!(!peer.take().iter().any(has_fin));
        peer.acknowledge(0, u64::from(peer.flows[0].ack - 1));
        rounds += 1;
    }
    assert!(rounds > 1 && rounds < 100, "{rounds}");
    assert!(!peer.take().iter().any(has_fin));
    peer.acknowledge(0, 60_000);
    assert!(peer.take().iter().any(has_fin));
}

// Section 3.3.3: the length counts the DATA_FIN, so that it is 1 at least. Linux takes no other without data.
#[test]
fn a_data_fin_of_length_0_ends_nothing() {
    let mut peer = two_subflows();
    let mut dss = peer.data_fin(0);
    dss.mapping.as_mut().unwrap().length = 0;
    peer.signal(0, dss);
    peer.send_data(0, 0, b"abc");
    assert_eq!((peer.received.as_slice(), peer.acknowledged()), (&b"abc"[..], Some(3)));
    peer.signal(0, peer.data_fin(3));
    assert_eq!(peer.acknowledged(), Some(4));
}

// Section 3.3.1: the length 0 is that of the infinite mapping. One that calls itself the end as well does not cut the
// stream.
#[test]
fn data_under_a_data_fin_of_length_0_does_not_end_the_stream_before_itself() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    let mut dss = peer.map(3, 4, b"def", true);
    dss.mapping.as_mut().unwrap().length = 0;
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    assert!(!peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
    assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Tcp, &b"abcdef"[..]));
}
