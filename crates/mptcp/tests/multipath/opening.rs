//! Opening a connection: MP_CAPABLE in its four forms, and failures (RFC 8684, section 3.1).

use super::orders::{Heard, create, established, obedient_pair};
use super::peer::{Peer, capable, options};
use crate::pair::{Fate, PORT, Pair, address, config, pattern};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{CloseCause, Event, FallbackCause};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{CapableFlags, CapableKeys};
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, MptcpOption, Packet};
use std::net::SocketAddr;

fn capable_of(packet: &Packet) -> Option<(u8, CapableFlags, CapableKeys)> {
    packet.segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable { version, flags, keys } => Some((*version, *flags, *keys)),
        _ => None,
    })
}

fn is_failure(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::Fail { .. })
}

fn is_syn(packet: &Packet) -> bool {
    packet.segment.flags.contains(Flags::SYN)
}

/// Drops the nth packet (from 0) of a host selected by `which`.
fn drop_nth(pair: &mut Pair, host: usize, nth: usize, which: fn(&Packet) -> bool) {
    let mut seen = 0;
    pair.judge = Box::new(move |from, _, packet| {
        if from != host || !which(packet) {
            return Fate::Deliver;
        }
        seen += 1;
        if seen == nth + 1 { Fate::Drop } else { Fate::Deliver }
    });
}

/// The client sends 5000 bytes, the server 3000; both arrive, and the connection ends normally.
fn exchange_and_close(pair: &mut Pair, client: anabranch_policy::ids::ConnectionId) {
    let (up, down) = (pattern(5_000), pattern(3_000));
    assert_eq!(pair.write_all(0, client, &up, Duration::from_secs(20)), 0);
    pair.run(Duration::from_secs(5));
    let server = pair.accepted().expect("accepted");
    assert_eq!(pair.write_all(1, server, &down, Duration::from_secs(20)), 0);
    pair.hosts[0].close(pair.now, client).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(5));
    assert_eq!((pair.received[1].len(), pair.received[0].len()), (up.len(), down.len()));
    assert_eq!(pair.received[1], up);
    assert_eq!(pair.received[0], down);
    assert!(pair.events[0].contains(&Event::Closed(client, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)), "{:?}", pair.events[1]);
}

#[test]
fn mp_capable_has_a_form_for_syn_syn_ack_ack_and_first_data() {
    let (mut pair, _) = obedient_pair(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.write_all(0, id, &pattern(100), Duration::ZERO), 0);
    pair.run(Duration::from_millis(100));
    let forms: Vec<_> = pair.sent[0].iter().filter_map(|(_, packet)| capable_of(packet)).collect();
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    let (_, _, CapableKeys::Receiver(server)) = capable_of(&pair.sent[1][0].1).unwrap() else { panic!() };
    assert_eq!(forms[0], (1, flags, CapableKeys::None));
    let CapableKeys::Both { sender, receiver } = forms[1].2 else { panic!("{forms:?}") };
    assert_eq!(receiver, server);
    let first = CapableKeys::BothWithData { sender, receiver, length: 100, checksum: None };
    assert_eq!(forms[2..], [(1, flags, first)]);
    // The SYN/ACK has no other MPTCP option, and the data no DSS beside MP_CAPABLE.
    let data = pair.sent[0].iter().find(|(_, packet)| !packet.segment.payload.is_empty()).unwrap();
    assert_eq!(data.1.segment.options.dss, None);
}

#[test]
fn a_second_segment_sent_before_any_answer_carries_a_dss_and_the_first_is_repeated_with_mp_capable() {
    let (mut pair, _) = obedient_pair(1);
    drop_nth(&mut pair, 0, 0, |packet| !packet.segment.payload.is_empty());
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, &pattern(4_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.received[1], pattern(4_000));
    let data: Vec<_> = pair.sent[0].iter().filter(|(_, packet)| !packet.segment.payload.is_empty()).collect();
    assert!(capable_of(&data[0].1).is_some() && data[0].1.segment.options.dss.is_none());
    assert!(capable_of(&data[1].1).is_none() && data[1].1.segment.options.dss.is_some());
    let again = data[1..].iter().find(|(_, packet)| packet.segment.seq == data[0].1.segment.seq).expect("it was lost");
    assert!(capable_of(&again.1).is_some() && again.1.segment.options.dss.is_none());
}

#[test]
fn any_one_of_the_first_ten_packets_may_be_lost() {
    for (host, nth) in (0..2).flat_map(|host| (0..10).map(move |nth| (host, nth))) {
        let mut pair = Pair::new(2);
        drop_nth(&mut pair, host, nth, |_| true);
        let id = pair.connect(config(), config());
        exchange_and_close(&mut pair, id);
        assert!(!pair.events[0].iter().any(|e| matches!(e, Event::FellBack(..))), "packet {nth} of host {host}");
    }
}

#[test]
fn with_the_third_ack_lost_the_first_data_brings_the_keys() {
    let (mut pair, _) = obedient_pair(1);
    drop_nth(&mut pair, 0, 0, |packet| !is_syn(packet));
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(30));
    assert_eq!(pair.accepted(), None);
    assert_eq!(pair.write_all(0, id, &pattern(10), Duration::ZERO), 0);
    pair.run(Duration::from_millis(30));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.hosts[1].protocol(server), Some(Protocol::Multipath));
    assert_eq!(pair.received[1], pattern(10));
}

#[test]
fn with_the_third_ack_lost_and_no_data_the_syn_ack_again_brings_the_keys() {
    let (mut pair, _) = obedient_pair(1);
    drop_nth(&mut pair, 0, 0, |packet| !is_syn(packet));
    pair.connect(config(), config());
    pair.run(Duration::from_secs(3));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.hosts[1].protocol(server), Some(Protocol::Multipath));
}

#[test]
fn the_server_may_send_the_first_data() {
    let (mut pair, _) = obedient_pair(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(50));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.write_all(1, server, &pattern(2_000), Duration::ZERO), 0);
    pair.run(Duration::from_millis(200));
    assert_eq!(pair.received[0], pattern(2_000));
    assert_eq!(pair.write_all(0, id, &pattern(100), Duration::ZERO), 0);
    // It had a DATA_ACK, so that the client's first data needs no MP_CAPABLE.
    let data = pair.sent[0].iter().rfind(|(_, packet)| !packet.segment.payload.is_empty()).unwrap();
    assert!(capable_of(&data.1).is_none() && data.1.segment.options.dss.is_some());
}

#[test]
fn both_may_send_their_first_data_at_once() {
    let (mut pair, _) = obedient_pair(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(50));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.write_all(0, id, &pattern(900), Duration::ZERO), 0);
    assert_eq!(pair.write_all(1, server, &pattern(800), Duration::ZERO), 0);
    pair.run(Duration::from_millis(500));
    assert_eq!((pair.received[1].as_slice(), pair.received[0].as_slice()), (&pattern(900)[..], &pattern(800)[..]));
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
}

#[test]
fn a_mapping_that_overtakes_the_keys_is_dropped_and_not_taken_for_plain_tcp() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let dss = peer.map(3, 4, b"def", false);
    peer.send_at(0, 4, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"def");
    assert_eq!(peer.events, []);
    let keys = CapableKeys::BothWithData {
        sender: peer.keys.local.0,
        receiver: peer.keys.remote.0,
        length: 3,
        checksum: None,
    };
    peer.send(0, Flags::ACK, options(vec![capable(keys)]), b"abc");
    peer.send_data(0, 3, b"def");
    assert_eq!(peer.protocol(), Protocol::Multipath);
    assert_eq!(peer.received, b"abcdef");
}

/// ADD_ADDR needs no DSS beside it, and an attacker who sees the numbers can send one without the keys.
#[test]
fn an_announcement_that_overtakes_the_keys_is_not_taken_for_plain_tcp() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let address = crate::pair::address(0, 1);
    let announcement = MptcpOption::AddAddress { address_id: 2, address, port: None, truncated_hmac: Some(7) };
    // Also where the SYN/ACK had to be repeated.
    for _ in 0..3 {
        peer.send(0, Flags::ACK, options(vec![announcement.clone()]), b"");
        assert_eq!(peer.events, []);
        peer.run(Duration::from_secs(2));
    }
    let keys = CapableKeys::Both { sender: peer.keys.local.0, receiver: peer.keys.remote.0 };
    peer.send(0, Flags::ACK, options(vec![capable(keys)]), b"");
    peer.send_data(0, 0, b"abc");
    assert_eq!((peer.protocol(), peer.received.as_slice()), (Protocol::Multipath, &b"abc"[..]));
}

/// A Linux client that writes and closes at once sends its key with its first data once; later a DATA_FIN replaces it.
#[test]
fn a_peer_whose_first_byte_comes_without_the_keys_is_answered_in_plain_tcp() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let dss = peer.map(0, 1, b"abc", true);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"abc");
    assert_eq!((peer.protocol(), peer.received.as_slice()), (Protocol::Tcp, &b"abc"[..]));
    // Until it receives that, none of its data is acknowledged, and it is retransmitted after the first.
    assert!(peer.take().iter().any(|packet| packet.segment.options.mptcp.iter().any(is_failure)));
    let again = peer.map(0, 4, b"abc", true);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(again), ..TcpOptions::default() }, b"abc");
    peer.send(0, Flags::ACK, TcpOptions::default(), b"def");
    assert_eq!(peer.received, b"abcdef");
    peer.send(0, Flags::ACK | Flags::FIN, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
}

/// A Linux client that closes at once has no key in its answer to the retransmitted SYN/ACK.
#[test]
fn a_peer_that_leaves_the_keys_out_of_its_answer_to_the_syn_ack_sent_again_is_answered_in_plain_tcp() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let ends = peer.data_fin(0);
    peer.signal(0, ends);
    // The keys may have been overtaken.
    assert_eq!(peer.events, []);
    peer.run(Duration::from_millis(1_500));
    peer.signal(0, ends);
    assert_eq!(peer.protocol(), Protocol::Tcp);
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::OptionsStripped)), "{:?}", peer.events);
    peer.send(0, Flags::ACK | Flags::FIN, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
}

#[test]
fn mp_capable_with_data_may_be_duplicated() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let (sender, receiver) = (peer.keys.local.0, peer.keys.remote.0);
    let both = || options(vec![capable(CapableKeys::BothWithData { sender, receiver, length: 3, checksum: None })]);
    peer.send_at(0, 1, Flags::ACK, both(), b"abc");
    peer.take();
    peer.send(0, Flags::ACK, both(), b"abc");
    assert_eq!(peer.received, b"abc");
    assert_eq!(peer.acknowledged(), Some(3));
    assert!(peer.take().iter().all(|packet| packet.segment.flags == Flags::ACK));
    assert_eq!(peer.protocol(), Protocol::Multipath);
}

/// A listener's answer to a SYN with this option, and whether the connection then uses MPTCP.
fn answer_to(version: u8, flags: CapableFlags) -> Option<(u8, CapableFlags, CapableKeys)> {
    let mut peer = Peer::new(config());
    let answer = peer.open(vec![MptcpOption::Capable { version, flags, keys: CapableKeys::None }]);
    capable_of(&answer)
}

#[test]
fn a_listener_answers_a_higher_version_with_its_own_and_ignores_a_lower_one() {
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    assert_eq!(answer_to(2, flags).map(|(version, ..)| version), Some(1));
    assert_eq!(answer_to(0, flags), None);
}

#[test]
fn an_offer_with_flag_b_or_without_an_algorithm_is_ignored() {
    let good = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    assert!(answer_to(1, good).is_some());
    assert_eq!(answer_to(1, CapableFlags { extensibility: true, ..good }), None);
    assert_eq!(answer_to(1, CapableFlags::default()), None);
}

#[test]
fn a_syn_without_mp_capable_gets_none_in_return() {
    let mut peer = Peer::new(config());
    let answer = peer.open(vec![]);
    assert_eq!(answer.segment.options.mptcp, []);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"plain");
    assert_eq!(peer.protocol(), Protocol::Tcp);
    assert_eq!(peer.received, b"plain");
}

#[test]
fn checksums_are_used_if_either_side_asks_for_them() {
    for (client, server) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut pair, _) = obedient_pair(1);
        let with = |checksum| {
            let mut config = config();
            config.checksum = checksum;
            config
        };
        let id = pair.connect(with(client), with(server));
        // Waiting data would replace the third ACK.
        pair.run(Duration::from_millis(50));
        assert_eq!(pair.write_all(0, id, &pattern(5_000), Duration::from_secs(1)), 0);
        pair.run(Duration::from_millis(200));
        assert_eq!(pair.received[1], pattern(5_000));
        let flags: Vec<_> =
            pair.sent[0].iter().filter_map(|(_, packet)| Some((packet, capable_of(packet)?.1))).collect();
        let [(_, syn), (third, confirmed), (_, first_data)] = flags[..] else { panic!("{flags:?}") };
        assert!(third.segment.payload.is_empty());
        let asked = [syn, confirmed, first_data].map(|flags| flags.checksum_required);
        assert_eq!(asked, [client, client || server, client || server], "flag A of SYN, third ACK and first data");
        let mappings = pair.sent[0].iter().filter_map(|(_, packet)| super::peer::mapping(packet));
        let checked: Vec<bool> = mappings.map(|mapping| mapping.checksum.is_some()).collect();
        assert!(checked.iter().all(|checked| *checked == (client || server)) && checked.len() >= 2, "{checked:?}");
    }
}

#[test]
fn no_subflow_is_opened_to_an_address_with_flag_c() {
    let mut pair = Pair::new(2);
    let mut denying = config();
    denying.deny_join_initial = true;
    let id = pair.connect(config(), denying);
    assert_eq!(pair.write_all(0, id, &pattern(5_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    assert!(capable_of(&pair.sent[1][0].1).unwrap().1.deny_join_initial);
    let joins = pair.sent[0].iter().filter(|(_, packet)| is_syn(packet)).skip(1);
    let to: Vec<_> = joins.map(|(_, packet)| packet.ip.destination).collect();
    assert!(!to.is_empty() && to.iter().all(|to| *to == address(1, 1)), "{to:?}");
}

#[test]
fn joins_wait_until_a_dss_option_has_come_in() {
    let (mut pair, orders) = obedient_pair(2);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(50));
    assert_eq!(orders[0].heard(), []);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    assert_eq!(pair.sent[0].iter().filter(|(_, packet)| is_syn(packet)).count(), 1);
    // The server knows the connection, and must wait as well.
    let server = pair.accepted().unwrap();
    orders[1].give(&mut pair, 1, create(server, 2, 0, false));
    assert_eq!(pair.sent[1].iter().filter(|(_, packet)| is_syn(packet)).count(), 1);
    assert_eq!(pair.hosts[1].counters().impossible_actions, 1);
    assert_eq!(pair.write_all(0, id, b"x", Duration::ZERO), 0);
    pair.run(Duration::from_millis(100));
    assert_eq!(orders[0].heard(), [Heard::Established]);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    assert_eq!(established(&pair, 0), 2);
}

#[test]
fn simultaneous_open_ends_in_plain_tcp_that_works() {
    let (mut pair, _) = obedient_pair(1);
    let remote = |host: usize| SocketAddr::new(address(host, 0), PORT);
    // Both connect; what each sends is redirected to the other's port, as if both had bound it.
    let mut ids = Vec::new();
    for host in 0..2 {
        ids.push(pair.hosts[host].connect(pair.now, None, remote(1 - host), config()).unwrap());
    }
    let now = pair.now;
    let syns = [0, 1].map(|host: usize| pair.hosts[host].poll_transmit(now).unwrap());
    let ports = [0, 1].map(|host: usize| syns[host].segment.source_port);
    pair.judge = Box::new(move |from, _, packet| {
        let mut packet = packet.clone();
        packet.segment.source_port = PORT;
        packet.segment.destination_port = ports[1 - from];
        Fate::Instead(Box::new(packet))
    });
    for (host, mut syn) in syns.into_iter().enumerate() {
        syn.segment.source_port = PORT;
        syn.segment.destination_port = ports[1 - host];
        pair.inject(1 - host, syn);
    }
    pair.run(Duration::from_millis(100));
    for (host, id) in ids.into_iter().enumerate() {
        assert!(pair.events[host].contains(&Event::Connected(id)), "{:?}", pair.events[host]);
        assert_eq!(pair.hosts[host].protocol(id), Some(Protocol::Tcp));
        assert_eq!(pair.write_all(host, id, &pattern(2_000), Duration::ZERO), 0);
    }
    pair.run(Duration::from_millis(500));
    assert_eq!((pair.received[0].len(), pair.received[1].len()), (2_000, 2_000));
}

#[test]
fn unanswered_syns_are_followed_by_plain_ones() {
    let (mut pair, _) = obedient_pair(1);
    pair.judge = Box::new(|_, _, packet| match is_syn(packet) && capable_of(packet).is_some() {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let id = pair.connect(config(), config());
    pair.run(Duration::from_secs(30));
    assert!(pair.events[0].contains(&Event::FellBack(id, FallbackCause::SynLost)), "{:?}", pair.events[0]);
    let with_option = pair.sent[0].iter().filter(|(_, packet)| is_syn(packet) && capable_of(packet).is_some());
    assert_eq!(with_option.count(), 3);
    exchange_and_close(&mut pair, id);
}

#[test]
fn data_that_was_written_before_the_handshake_ended_goes_in_the_place_of_the_third_ack() {
    let (mut pair, _) = obedient_pair(1);
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, b"hello", Duration::ZERO), 0);
    pair.run(Duration::from_millis(25));
    let [(_, syn), (_, third)] = &pair.sent[0][..] else { panic!("{:?}", pair.sent[0]) };
    assert!(is_syn(syn) && third.segment.payload[..] == *b"hello");
    assert!(matches!(capable_of(third), Some((_, _, CapableKeys::BothWithData { length: 5, .. }))));
}
