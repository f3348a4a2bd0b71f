//! Fallback when MPTCP does not work on a path: to plain TCP, or with one subflow less (RFC 8684, section 3.7).

use super::orders::{create, obedient_pair};
use super::peer::{Peer, capable, options, reset_reason};
use crate::pair::{Fate, Pair, config, pattern, policies};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Event, FallbackCause};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{CapableKeys, DataSequence, Dss, Mapping, dss_checksum};
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, MptcpOption, Packet};

const SECOND: Duration = Duration::from_secs(1);

fn stripped(packet: &Packet) -> Fate {
    let mut packet = packet.clone();
    packet.segment.options.dss = None;
    packet.segment.options.mptcp.clear();
    Fate::Instead(Box::new(packet))
}

/// A middlebox that strips MPTCP options from packets selected by `which`.
fn strip(pair: &mut Pair, which: impl Fn(usize, &Packet) -> bool + 'static) {
    pair.judge = Box::new(move |from, _, packet| if which(from, packet) { stripped(packet) } else { Fate::Deliver });
}

fn is_syn(packet: &Packet) -> bool {
    packet.segment.flags.contains(Flags::SYN)
}

fn speaks_mptcp(packet: &Packet) -> bool {
    packet.segment.options.dss.is_some() || !packet.segment.options.mptcp.is_empty()
}

/// Both send in turn and close; every byte arrives, and both ends report these causes of the fallback.
fn exchange(pair: &mut Pair, id: ConnectionId, causes: [&[FallbackCause]; 2]) {
    let data = pattern(30_000);
    for round in 1..=2 {
        assert_eq!(pair.write_all(0, id, &data, SECOND * 10), 0);
        pair.run(SECOND * 5);
        let server = pair.accepted().expect("accepted");
        assert_eq!(pair.write_all(1, server, &data, SECOND * 10), 0);
        pair.run(SECOND * 5);
        assert_eq!((pair.received[1].len(), pair.received[0].len()), (data.len() * round, data.len() * round));
    }
    let server = pair.accepted().unwrap();
    for (host, id) in [(0, id), (1, server)] {
        assert_eq!(pair.received[host], [&data[..], &data].concat());
        assert_eq!(pair.hosts[host].protocol(id), Some(Protocol::Tcp));
        let heard = pair.events[host].iter().filter_map(|event| match event {
            Event::FellBack(_, cause) => Some(*cause),
            _ => None,
        });
        assert_eq!(heard.collect::<Vec<_>>(), causes[host], "host {host}");
        assert_eq!(pair.hosts[host].counters().fallbacks.total(), causes[host].len() as u64, "host {host}");
    }
    pair.sent = [Vec::new(), Vec::new()];
    for (host, id) in [(0, id), (1, server)] {
        pair.hosts[host].close(pair.now, id).unwrap();
        pair.settle();
        pair.run(SECOND);
    }
    assert!(!pair.sent.iter().flatten().any(|(_, packet)| speaks_mptcp(packet)), "nothing of MPTCP is left");
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)));
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)));
}

/// An application cannot use events of a connection that it does not know.
fn assert_accepted_comes_first(pair: &Pair) {
    let first = pair.events[1].first();
    assert!(matches!(first, Some(Event::Accepted { .. })), "{:?}", pair.events[1]);
}

fn one_path() -> Pair {
    obedient_pair(1).0
}

#[test]
fn a_server_without_mptcp_is_spoken_to_in_plain_tcp() {
    let mut pair = one_path();
    let mut plain = config();
    plain.multipath = false;
    let id = pair.connect(config(), plain);
    exchange(&mut pair, id, [&[FallbackCause::NotCapable], &[]]);
}

#[test]
fn a_client_without_mptcp_is_spoken_to_in_plain_tcp() {
    let mut pair = one_path();
    let mut plain = config();
    plain.multipath = false;
    let id = pair.connect(plain, config());
    exchange(&mut pair, id, [&[], &[FallbackCause::NotCapable]]);
    assert_accepted_comes_first(&pair);
}

#[test]
fn options_stripped_from_the_syn() {
    let mut pair = one_path();
    strip(&mut pair, |from, packet| from == 0 && is_syn(packet));
    let id = pair.connect(config(), config());
    exchange(&mut pair, id, [&[FallbackCause::NotCapable], &[FallbackCause::NotCapable]]);
}

#[test]
fn options_stripped_from_the_syn_ack() {
    let mut pair = one_path();
    strip(&mut pair, |from, packet| from == 1 && is_syn(packet));
    let id = pair.connect(config(), config());
    exchange(&mut pair, id, [&[FallbackCause::NotCapable], &[FallbackCause::OptionsStripped]]);
    assert_accepted_comes_first(&pair);
}

#[test]
fn options_stripped_from_all_that_the_client_sends_after_its_syn() {
    let mut pair = one_path();
    strip(&mut pair, |from, packet| from == 0 && !is_syn(packet));
    let id = pair.connect(config(), config());
    exchange(&mut pair, id, [&[FallbackCause::OptionsStripped], &[FallbackCause::OptionsStripped]]);
    assert_accepted_comes_first(&pair);
}

#[test]
fn options_stripped_from_the_third_ack_only() {
    let mut pair = one_path();
    let first = std::cell::Cell::new(true);
    strip(&mut pair, move |from, packet| from == 0 && !is_syn(packet) && first.replace(false));
    let id = pair.connect(config(), config());
    pair.run(SECOND);
    exchange(&mut pair, id, [&[FallbackCause::OptionsStripped], &[FallbackCause::OptionsStripped]]);
}

#[test]
fn options_stripped_from_all_that_the_server_sends_after_its_syn_ack() {
    let mut pair = one_path();
    strip(&mut pair, |from, packet| from == 1 && !is_syn(packet));
    let id = pair.connect(config(), config());
    exchange(&mut pair, id, [&[FallbackCause::OptionsStripped], &[FallbackCause::Peer]]);
}

#[test]
fn options_stripped_after_the_third_ack_from_the_client_and_the_server_sends_first() {
    let mut pair = one_path();
    let id = pair.connect(config(), config());
    pair.run(SECOND);
    strip(&mut pair, |from, _| from == 0);
    let server = pair.accepted().unwrap();
    pair.write_all(1, server, &pattern(20_000), SECOND);
    pair.run(SECOND * 3);
    assert_eq!(pair.received[0], pattern(20_000));
    pair.received[0].clear();
    exchange(&mut pair, id, [&[FallbackCause::Peer], &[FallbackCause::OptionsStripped]]);
}

#[test]
fn options_stripped_both_ways_after_the_handshake() {
    let mut pair = one_path();
    let id = pair.connect(config(), config());
    pair.run(SECOND);
    strip(&mut pair, |_, _| true);
    exchange(&mut pair, id, [&[FallbackCause::OptionsStripped], &[FallbackCause::OptionsStripped]]);
}

/// A peer whose only subflow has delivered some data, and has acknowledged the endpoint's.
fn one_subflow(config: ConnectionConfig) -> Peer {
    let mut peer = Peer::connected(config);
    peer.send_data(0, 0, b"abc");
    peer.write(b"hello");
    peer.acknowledge(0, 5);
    peer.take();
    peer
}

fn infinite(peer: &Peer, offset: u64, subflow_seq: u32) -> Dss {
    let data_seq = DataSequence::Long(peer.number(offset));
    let mapping = Mapping { data_seq, subflow_seq, length: 0, checksum: peer.checksum.then_some(0) };
    Dss { data_ack: None, mapping: Some(mapping), data_fin: false }
}

#[test]
fn an_infinite_mapping_makes_all_that_follows_plain_tcp() {
    let mut peer = one_subflow(config());
    let dss = infinite(&peer, 3, peer.flows[0].nxt);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    peer.send(0, Flags::ACK, TcpOptions::default(), b"ghi");
    assert_eq!(peer.received, b"abcdefghi");
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::Peer)));
    peer.take();
    // From now on only subflow acknowledgements free the send buffer.
    peer.write(b"world");
    let said = peer.take();
    // Its own last mapping is infinite too; then no more MPTCP options.
    assert_eq!(super::peer::mapping(&said[0]).unwrap().length, 0);
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 10);
    peer.write(b"again");
    assert!(!peer.take().iter().any(speaks_mptcp));
}

/// Nothing will bring what the mapping leaves out: an error is better than a stream that only looks complete.
#[test]
fn an_infinite_mapping_beyond_the_next_byte_resets_the_subflow() {
    let mut peer = one_subflow(config());
    let dss = infinite(&peer, 8, peer.flows[0].nxt);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    assert_eq!(peer.received, b"abc");
    let said = peer.take();
    assert_eq!(said.iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)], "{said:?}");
    assert!(!peer.events.iter().any(|event| matches!(event, Event::FellBack(..))), "{:?}", peer.events);
}

/// The segment that ends MPTCP may be the last that acknowledges anything; small segments and the buffer wait for it.
#[test]
fn what_the_subflow_has_acknowledged_counts_from_the_fallback_on() {
    let mut peer = one_subflow(config());
    peer.write(b"hello");
    let dss = infinite(&peer, 3, peer.flows[0].nxt);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 10);
    peer.take();
    peer.write(b"again");
    assert!(peer.take().iter().any(|packet| packet.segment.payload == b"again"[..]), "Nagle does not hold it");
}

#[test]
fn an_infinite_mapping_that_meets_a_join_on_its_way_ends_the_join_and_not_the_connection() {
    let mut peer = one_subflow(config());
    let (flow, _) = peer.begin_join(1, false);
    let dss = infinite(&peer, 3, peer.flows[0].nxt);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    assert_eq!(peer.received, b"abcdef");
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::Peer)), "{:?}", peer.events);
    let resets: Vec<Packet> =
        peer.take().into_iter().filter(|packet| packet.segment.flags.contains(Flags::RST)).collect();
    assert_eq!(resets.len(), 1);
    assert_eq!(resets[0].ip.destination, peer.flows[flow].peer.ip());
}

/// Linux does so if our packets lose their options from the first data on.
#[test]
fn a_peer_whose_data_had_a_mapping_may_fall_back_in_silence_before_it_acknowledges_ours_at_data_level() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    peer.write(b"hello");
    peer.take();
    peer.send(0, Flags::ACK, TcpOptions::default(), b"def");
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::OptionsStripped)), "{:?}", peer.events);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"ghi");
    assert_eq!(peer.received, b"abcdefghi");
    assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 5);
}

// After a timeout the subflow returned its unsent data, and the DATA_FIN was sent before it. A peer that acknowledges
// it without an option may have fallen back silently, and read the end in place of the rest.
#[test]
fn data_that_went_out_of_its_order_is_not_finished_by_an_acknowledgement_without_options() {
    let settings = ConnectionConfig { policies: policies("new_reno", "linux"), ..config() };
    let mut peer = Peer::connected(settings);
    peer.send_data(0, 0, b"abc");
    peer.write(b"h");
    peer.run(SECOND);
    peer.write(&pattern(1_500));
    peer.run(SECOND);
    peer.take();
    peer.close();
    let sent: Vec<Packet> = peer.take().into_iter().filter(|packet| packet.segment.payload.len() > 1).collect();
    assert_eq!(sent.iter().map(|packet| packet.segment.payload.len()).collect::<Vec<_>>(), [484], "the end of 1,500");
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    let events = format!("{:?}", peer.events);
    assert!(!events.contains("FellBack"), "{events}");
}

#[test]
fn a_dss_after_the_fallback_is_ignored() {
    let mut peer = one_subflow(config());
    let dss = infinite(&peer, 3, peer.flows[0].nxt);
    peer.signal(0, dss);
    // An invalid mapping, but mappings do not count any more.
    peer.send_data(0, 900, b"def");
    assert_eq!(peer.received, b"abcdef");
    assert_eq!(peer.protocol(), Protocol::Tcp);
    // Nor do its DATA_ACKs: subflow acknowledgements do.
    peer.write(b"more");
    peer.acknowledge(0, 5);
    assert_eq!(peer.host.connection_view(peer.now, peer.id()).unwrap().data_una, 9);
}

#[test]
fn mp_fail_on_the_only_subflow_is_answered_and_ends_mptcp() {
    let mut peer = one_subflow(config());
    peer.write(b"world");
    peer.take();
    let data_seq = peer.remote.initial_data_seq.wrapping_add(6);
    let mut with = options(vec![MptcpOption::Fail { data_seq }]);
    with.dss = Some(Dss { data_ack: Some(peer.data_ack(5)), ..Dss::default() });
    peer.send(0, Flags::ACK, with, &[]);
    let fails = peer.take().into_iter().flat_map(|packet| packet.segment.options.mptcp);
    assert_eq!(fails.collect::<Vec<_>>(), [MptcpOption::Fail { data_seq: peer.number(3) }]);
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::Peer)));
    peer.write(b"again");
    assert_eq!(super::peer::mapping(&peer.take()[0]).unwrap().length, 0);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"def");
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn mp_fail_on_one_of_several_subflows_resets_it() {
    let mut peer = one_subflow(config());
    peer.join(1);
    peer.take();
    let data_seq = peer.remote.initial_data_seq.wrapping_add(1);
    let mut with = options(vec![MptcpOption::Fail { data_seq }]);
    with.dss = Some(Dss { data_ack: Some(peer.data_ack(0)), ..Dss::default() });
    peer.send(0, Flags::ACK, with, &[]);
    assert_eq!(reset_reason(&peer.take()[0]), Some(6));
    assert_eq!(peer.protocol(), Protocol::Multipath);
    peer.send_data(1, 3, b"def");
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn mp_fail_on_a_reset_ends_its_subflow_only() {
    let mut peer = one_subflow(config());
    peer.join(1);
    let data_seq = peer.remote.initial_data_seq;
    peer.send(1, Flags::RST | Flags::ACK, options(vec![MptcpOption::Fail { data_seq }]), &[]);
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1);
    assert_eq!(peer.protocol(), Protocol::Multipath);
    assert_eq!(peer.host.stats(peer.id()).unwrap().checksum_failures, 1);
}

fn checked() -> ConnectionConfig {
    let mut checked = config();
    checked.checksum = true;
    checked
}

/// Sends mapped data with a payload changed by a middlebox.
fn send_damaged(peer: &mut Peer, flow: usize, offset: u64, mapped: &[u8], arrives: &[u8]) {
    let dss = peer.map(offset, peer.flows[flow].nxt, mapped, false);
    peer.send(flow, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, arrives);
}

#[test]
fn a_wrong_checksum_on_the_only_subflow_is_answered_with_mp_fail_and_ends_mptcp() {
    let mut peer = one_subflow(checked());
    send_damaged(&mut peer, 0, 3, b"def", b"dXf");
    let said = peer.take();
    let fails: Vec<_> = said.iter().flat_map(|packet| packet.segment.options.mptcp.clone()).collect();
    assert_eq!(fails, [MptcpOption::Fail { data_seq: peer.number(3) }]);
    assert!(!said.iter().any(|packet| packet.segment.options.dss.is_some()));
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::Checksum)));
    // The changed stream is delivered, as by TCP.
    peer.send(0, Flags::ACK, TcpOptions::default(), b"ghi");
    assert_eq!(peer.received, b"abcdXfghi");
    // Our own stream continues under an infinite mapping, with a checksum of zero.
    peer.take();
    peer.write(b"more");
    let said = peer.take();
    let infinite: Vec<_> = said.iter().filter_map(super::peer::mapping).collect();
    let data_seq = DataSequence::Long(peer.remote.data_seq(5));
    assert_eq!(infinite, [Mapping { data_seq, subflow_seq: 6, length: 0, checksum: Some(0) }]);
}

#[test]
fn octets_beyond_the_window_are_not_acknowledged_before_their_checksum_is_looked_at() {
    let mut peer = one_subflow(ConnectionConfig { receive_buffer: BufferSize::Fixed(2_000), ..checked() });
    peer.reading = false;
    peer.send_data(0, 3, &[b'x'; 1_997]);
    peer.take();
    // A window probe is changed in flight. The subflow must not acknowledge it: after a fallback it would not be
    // retransmitted, and there is no room for it.
    let end = peer.flows[0].peer_initial + peer.flows[0].nxt;
    send_damaged(&mut peer, 0, 2_000, b"yyyy", b"zzzz");
    assert_eq!(peer.take().last().map(|packet| packet.segment.ack), Some(end));
    assert_eq!(peer.protocol(), Protocol::Multipath);
    let (now, id) = (peer.now, peer.id());
    assert_eq!(peer.host.read(now, id, usize::MAX).map(|bytes| bytes.len()), Some(1_997));
    peer.reading = true;
    peer.settle();
    peer.flows[0].nxt -= 4;
    peer.send_data(0, 2_000, b"yyyy");
    assert_eq!(peer.received, b"abcyyyy");
}

#[test]
fn parts_of_later_mappings_that_wait_for_their_checksum_survive_the_fallback() {
    let mut peer = one_subflow(checked());
    let first = peer.map(3, 4, b"defghi", false);
    let second = peer.map(9, 10, b"jklmno", false);
    let with = |dss| TcpOptions { dss: Some(dss), ..TcpOptions::default() };
    peer.send_at(0, 10, Flags::ACK, with(second), b"jkl");
    peer.send_at(0, 4, Flags::ACK, with(first), b"dXf");
    peer.send_at(0, 7, Flags::ACK, with(first), b"ghi");
    assert_eq!(peer.protocol(), Protocol::Tcp);
    peer.send_at(0, 13, Flags::ACK, TcpOptions::default(), b"mno");
    assert_eq!(peer.received, b"abcdXfghijklmno");
}

#[test]
fn a_wrong_checksum_on_one_of_several_subflows_resets_it_with_mp_fail() {
    // The initial subflow too: data of the other may be missing.
    for (damaged, other) in [(1, 0), (0, 1)] {
        let mut peer = one_subflow(checked());
        assert_eq!(peer.join(1), 1);
        peer.take();
        send_damaged(&mut peer, damaged, 3, b"def", b"dXf");
        let said = peer.take();
        assert_eq!(said.len(), 1);
        assert_eq!(reset_reason(&said[0]), Some(6));
        assert!(said[0].segment.options.mptcp.contains(&MptcpOption::Fail { data_seq: peer.number(3) }));
        let closed = Event::SubflowClosed(peer.id(), SubflowId(damaged as u32), CloseReason::ProtocolError);
        assert!(peer.events.contains(&closed), "{:?}", peer.events);
        // Not acknowledged at data level, so it is reinjected on the other.
        assert_eq!(peer.received, b"abc");
        peer.send_data(other, 3, b"def");
        assert_eq!((peer.received.as_slice(), peer.protocol()), (b"abcdef".as_slice(), Protocol::Multipath));
    }
}

#[test]
fn a_wrong_checksum_on_the_last_of_several_subflows_resets_it_since_data_may_not_be_contiguous() {
    let mut peer = one_subflow(checked());
    peer.join(1);
    peer.send(1, Flags::RST | Flags::ACK, TcpOptions::default(), &[]);
    peer.take();
    send_damaged(&mut peer, 0, 3, b"def", b"dXf");
    assert_eq!(reset_reason(&peer.take()[0]), Some(6));
    assert_eq!(peer.received, b"abc");
    assert_eq!(peer.protocol(), Protocol::Multipath);
}

#[test]
fn a_wrong_checksum_of_the_first_data_ends_mptcp() {
    let mut peer = Peer::new(checked());
    peer.open(vec![capable(CapableKeys::None)]);
    let keys = CapableKeys::BothWithData {
        sender: peer.keys.local.0,
        receiver: peer.keys.remote.0,
        length: 3,
        checksum: Some(0xdead),
    };
    peer.send(0, Flags::ACK, options(vec![capable(keys)]), b"abc");
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::Checksum)), "{:?}", peer.events);
    assert_eq!(peer.received, b"abc");
}

#[test]
fn the_checksum_of_our_data_fin_alone_is_that_of_its_pseudo_header() {
    let mut peer = one_subflow(checked());
    peer.close();
    let [said] = &peer.take()[..] else { panic!("a DATA_FIN") };
    let Some(Dss { mapping: Some(Mapping { data_seq, checksum, .. }), data_fin: true, .. }) = said.segment.options.dss
    else {
        panic!("{said:?}")
    };
    let number = peer.remote.data_seq(5);
    assert_eq!((data_seq, checksum), (DataSequence::Long(number), Some(dss_checksum(number, 0, 1, []))));
}

#[test]
fn a_wrong_checksum_of_a_data_fin_alone_is_ignored() {
    let mut peer = one_subflow(checked());
    let mut dss = peer.data_fin(3);
    let mapping = dss.mapping.as_mut().unwrap();
    mapping.checksum = mapping.checksum.map(|checksum| checksum ^ 1);
    peer.signal(0, dss);
    assert!(!peer.events.contains(&Event::EndOfStream(peer.id())));
    peer.signal(0, peer.data_fin(3));
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())));
}

#[test]
fn a_middlebox_that_changes_payload_is_survived_on_one_path_and_on_two() {
    for paths in [1, 2] {
        let (mut pair, orders) = obedient_pair(paths);
        let id = pair.connect(checked(), checked());
        pair.write_all(0, id, b"x", Duration::ZERO);
        pair.run(Duration::from_millis(100));
        if paths == 2 {
            orders[0].give(&mut pair, 0, create(id, 2, 0, false));
            pair.run(Duration::from_millis(100));
        }
        let last = crate::pair::address(0, paths - 1);
        let mut count = 0;
        pair.judge = Box::new(move |_, _, packet| {
            let chosen = packet.ip.source == last && packet.segment.payload.len() > 100;
            count += u32::from(chosen);
            if !chosen || count != 10 {
                return Fate::Deliver;
            }
            let mut packet = packet.clone();
            let mut payload = packet.segment.payload.to_vec();
            payload[50] ^= 0xff;
            packet.segment.payload = payload.into();
            Fate::Instead(Box::new(packet))
        });
        pair.write_all(0, id, &pattern(500_000), SECOND * 10);
        pair.run(SECOND * 10);
        assert_eq!(pair.received[1].len(), 500_001);
        let wrong = pair.received[1][1..].iter().zip(pattern(500_000)).filter(|(a, b)| **a != *b).count();
        // With one path the change is delivered, as by TCP; with two the data is reinjected on the other.
        assert_eq!(wrong, if paths == 1 { 1 } else { 0 });
        let server = pair.accepted().unwrap();
        let expected = if paths == 1 { Protocol::Tcp } else { Protocol::Multipath };
        assert_eq!(pair.hosts[1].protocol(server), Some(expected));
        assert_eq!(pair.hosts[0].protocol(id), Some(expected));
    }
}

#[test]
fn options_lost_on_a_joined_subflow_reset_it_for_a_middlebox() {
    let mut peer = one_subflow(config());
    peer.join(1);
    peer.take();
    peer.write(&pattern(60_000));
    assert!(peer.take().iter().any(|packet| packet.ip.source == crate::pair::address(1, 1)));
    // An acknowledgement of data, without a DSS.
    peer.send(1, Flags::ACK, TcpOptions::default(), &[]);
    assert_eq!(peer.take().iter().filter_map(reset_reason).collect::<Vec<_>>(), [6]);
    // What it acknowledged has not arrived at data level, and goes on the other at once.
    peer.acknowledge(0, 5);
    assert_eq!(peer.host.stats(peer.id()).unwrap().bytes_reinjected, 508);
    for _ in 0..20 {
        peer.acknowledge(0, 5);
        peer.run(Duration::from_millis(100));
    }
    assert!(peer.host.stats(peer.id()).unwrap().bytes_reinjected > 10_000, "{:?}", peer.host.stats(peer.id()));
}

// Found by the fuzz target `drive_hostile`.
#[test]
fn a_peer_that_ended_its_stream_before_the_fallback_and_never_sends_fin_is_not_waited_for_for_ever() {
    let mut peer = one_subflow(config());
    let data_fin = peer.data_fin(3);
    peer.signal(0, data_fin);
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())));
    let fail = options(vec![MptcpOption::Fail { data_seq: peer.remote.initial_data_seq.wrapping_add(6) }]);
    peer.send(0, Flags::ACK, fail, &[]);
    assert_eq!(peer.protocol(), Protocol::Tcp);
    // It acknowledges our FIN, too, and then is silent.
    peer.close();
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::Closed(peer.id(), CloseCause::Finished)), "{:?}", peer.events);
    peer.run(SECOND * 100);
    assert_eq!(peer.host.connection_count(), 0);
}

#[test]
fn a_fin_without_options_where_dss_went_both_ways_closes_the_subflow_and_does_not_cut_the_stream() {
    let mut peer = one_subflow(config());
    peer.send(0, Flags::FIN | Flags::ACK, TcpOptions::default(), &[]);
    assert_eq!(peer.protocol(), Protocol::Multipath);
    let flow = peer.join(1);
    peer.send_data(flow, 3, b"def");
    assert_eq!(peer.received, b"abcdef");
    assert!(!peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
}

#[test]
fn a_fin_without_options_where_dss_went_both_ways_and_nothing_follows_is_an_error() {
    let mut peer = one_subflow(config());
    peer.send(0, Flags::FIN | Flags::ACK, TcpOptions::default(), &[]);
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    peer.run(SECOND * 300);
    assert!(!peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
    assert!(peer.events.contains(&Event::Closed(peer.id(), CloseCause::TimedOut)), "{:?}", peer.events);
}

#[test]
fn a_fin_without_options_before_anything_was_acknowledged_at_data_level_ends_the_stream_as_in_plain_tcp() {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    peer.send(0, Flags::FIN | Flags::ACK, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::OptionsStripped)), "{:?}", peer.events);
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
}

// These segments equal those of an MPTCP server that loses its options from its first data on, and closes only its
// subflow. The two cannot be distinguished; RFC 8684 (section 3.7) treats this as plain TCP.
#[test]
fn a_server_that_has_fallen_back_writes_and_closes_at_once_is_read_to_its_end() {
    let mut pair = one_path();
    strip(&mut pair, |from, packet| from == 0 && !is_syn(packet));
    let id = pair.connect(config(), config());
    let end = pair.now + SECOND;
    while pair.accepted().is_none() && pair.step(end) {}
    let server = pair.accepted().unwrap();
    let data = pattern(10_000);
    assert_eq!(pair.write_all(1, server, &data, Duration::ZERO), 0);
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(SECOND);
    assert_eq!(pair.received[0], data);
    assert!(pair.events[0].contains(&Event::EndOfStream(id)), "{:?}", pair.events[0]);
}
