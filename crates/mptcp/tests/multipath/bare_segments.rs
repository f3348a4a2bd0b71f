//! Segments without options where options pass: within a mapping that is known, or before it (RFC 8684, sections 3.3.1 and
//! 3.7).

use super::peer::{Peer, capable, options};
use crate::pair::config;
use anabranch_mptcp::{ConnectionConfig, Protocol};
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
