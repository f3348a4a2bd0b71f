//! Segments without options where options pass: within a mapping that is known, or before it (RFC 8684, sections 3.3.1 and
//! 3.7).

use super::peer::{Peer, capable, options, reset_reason};
use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{ConnectionConfig, Protocol};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{CapableKeys, dss_checksum};
use anabranch_wire::{Flags, TcpOptions};

/// The peer's first mapping is that of MP_CAPABLE, for `abcdef`; `abc` has arrived.
fn first_half(checksum: bool) -> Peer {
    let mut peer = Peer::new(ConnectionConfig { checksum, ..config() });
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    let first = first_mapping(&peer);
    peer.send(0, Flags::ACK, first, b"abc");
    peer
}

fn first_mapping(peer: &Peer) -> TcpOptions {
    let sum = peer.checksum.then(|| dss_checksum(peer.number(0), 1, 6, [&b"abcdef"[..]]));
    let (sender, receiver) = (peer.keys.local.0, peer.keys.remote.0);
    options(vec![capable(CapableKeys::BothWithData { sender, receiver, length: 6, checksum: sum })])
}

#[test]
fn a_bare_segment_within_the_first_mapping_is_no_reason_to_fall_back() {
    for checksum in [false, true] {
        let mut peer = first_half(checksum);
        peer.send(0, Flags::ACK, TcpOptions::default(), b"def");
        assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Multipath, &b"abcdef"[..]), "{checksum}");
        // Sent again at data level, it is not read again.
        peer.send_data(0, 0, b"abcdef");
        assert_eq!(peer.received, b"abcdef", "{checksum}");
    }
}

#[test]
fn nor_is_one_that_acknowledges_our_data_before_the_mapping_is_complete() {
    let mut peer = first_half(true);
    peer.write(b"hello");
    peer.take();
    peer.send(0, Flags::ACK, TcpOptions::default(), b"def");
    assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Multipath, &b"abcdef"[..]));
}

#[test]
fn bare_data_that_overtakes_the_first_mapping_is_not_judged() {
    for checksum in [false, true] {
        let mut peer = Peer::new(ConnectionConfig { checksum, ..config() });
        peer.open(vec![capable(CapableKeys::None)]);
        peer.acknowledge_keys();
        peer.send_at(0, 4, Flags::ACK, TcpOptions::default(), b"def");
        assert_eq!((peer.protocol(), peer.received.len()), (Protocol::Multipath, 0), "{checksum}");
        let first = first_mapping(&peer);
        peer.send_at(0, 1, Flags::ACK, first, b"abc");
        peer.send_at(0, 4, Flags::ACK, TcpOptions::default(), b"def");
        assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Multipath, &b"abcdef"[..]), "{checksum}");
    }
}

#[test]
fn if_all_options_are_stripped_what_overtakes_the_first_data_is_read_once_it_comes_again() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.take();
    peer.send_at(0, 4, Flags::ACK, TcpOptions::default(), b"def");
    assert_eq!(peer.take().len(), 1, "it is out of order");
    for (seq, payload) in [(1, b"abc"), (4, b"def")] {
        peer.send_at(0, seq, Flags::ACK, TcpOptions::default(), payload);
    }
    assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Tcp, &b"abcdef"[..]));
}

/// The only subflow: `abc` came and `hello` was acknowledged at both levels. Then ` world` is acknowledged without
/// options.
fn answered_bare() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    peer.write(b"hello");
    peer.acknowledge(0, 5);
    peer.write(b" world");
    peer.take();
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    peer
}

/// What is sent to the peer as long as it does not answer with an option: sequence number, length, and the reason of a
/// reset.
fn asked(peer: &mut Peer) -> Vec<(i32, usize, Option<u8>)> {
    let next = peer.flows[0].host_initial + 12;
    let said = peer.take();
    said.iter()
        .map(|packet| (packet.segment.seq.distance(next), packet.segment.payload.len(), reset_reason(packet)))
        .collect()
}

#[test]
fn after_one_acknowledgement_without_options_the_peer_is_asked_before_its_only_subflow_is_given_up() {
    let mut peer = answered_bare();
    peer.run(Duration::from_millis(600));
    // A peer that fell back would read data that it is sent again.
    assert_eq!(asked(&mut peer), [(-1, 0, None)]);
    peer.acknowledge(0, 11);
    peer.run(Duration::from_secs(100));
    assert_eq!((peer.protocol(), peer.take().len()), (Protocol::Multipath, 0));
    peer.send_data(0, 3, b"def");
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn options_that_stay_away_from_the_only_subflow_end_it() {
    let mut peer = answered_bare();
    let mut said = Vec::new();
    for _ in 0..50 {
        peer.run(Duration::from_millis(100));
        let now = asked(&mut peer);
        if !now.is_empty() && now.iter().all(|(_, _, reason)| reason.is_none()) {
            peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
        }
        said.extend(now);
    }
    assert_eq!(said, [(-1, 0, None), (-1, 0, None), (0, 0, Some(6))]);
}

/// A middlebox that has forgotten the handshake takes all options that come back. A new subflow has some.
#[test]
fn a_connection_that_lost_its_only_subflow_so_is_joined_again() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    let data = pattern(3_000);
    let exchange = |pair: &mut Pair| {
        assert_eq!(pair.write_all(0, id, &data, Duration::from_secs(10)), 0);
        pair.run(Duration::from_secs(10));
    };
    exchange(&mut pair);
    let first = pair.sent[0][0].1.segment.source_port;
    pair.judge = Box::new(move |from, _, packet| {
        let mut bare = packet.clone();
        if from == 1 && packet.segment.destination_port == first {
            (bare.segment.options.mptcp, bare.segment.options.dss) = (Vec::new(), None);
        }
        Fate::Instead(Box::new(bare))
    });
    exchange(&mut pair);
    exchange(&mut pair);
    assert!(pair.received[1] == [&data[..], &data, &data].concat(), "{} bytes", pair.received[1].len());
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
}
