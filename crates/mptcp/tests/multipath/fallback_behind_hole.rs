//! A fallback while something that the peer sent before is missing (RFC 8684, section 3.7). What is missing was sent with
//! mappings, and may be data that was sent before, which plain TCP would read twice.

use super::peer::{Peer, options};
use crate::pair::config;
use anabranch_mptcp::{ConnectionConfig, Event, Protocol};
use anabranch_wire::mptcp::{DataSequence, Dss, Mapping};
use anabranch_wire::{Flags, MptcpOption, TcpOptions};

/// `abc` has arrived. The peer has sent it again at data level, which is on its way, at 4:7 of the subflow.
fn again_on_its_way(checksum: bool) -> (Peer, TcpOptions) {
    let mut peer = Peer::connected(ConnectionConfig { checksum, ..config() });
    peer.send_data(0, 0, b"abc");
    let again = with_dss(peer.map(0, 4, b"abc", false));
    (peer, again)
}

fn with_dss(dss: Dss) -> TcpOptions {
    TcpOptions { dss: Some(dss), ..TcpOptions::default() }
}

fn infinite(peer: &Peer, offset: u64, subflow_seq: u32) -> TcpOptions {
    let data_seq = DataSequence::Long(peer.number(offset));
    let mapping = Mapping { data_seq, subflow_seq, length: 0, checksum: peer.checksum.then_some(0) };
    with_dss(Dss { mapping: Some(mapping), ..Dss::default() })
}

#[test]
fn data_sent_twice_before_an_infinite_mapping_that_overtakes_it_is_read_once() {
    for checksum in [false, true] {
        let (mut peer, again) = again_on_its_way(checksum);
        let last = infinite(&peer, 3, 7);
        peer.send_at(0, 7, Flags::ACK, last.clone(), b"def");
        assert_eq!(peer.protocol(), Protocol::Tcp);
        peer.send_at(0, 10, Flags::ACK, TcpOptions::default(), b"ghi");
        peer.send_at(0, 4, Flags::ACK, again, b"abc");
        assert_eq!(peer.received, b"abc", "checksum {checksum}");
        // What came behind the hole was not acknowledged: it comes again.
        peer.send_at(0, 7, Flags::ACK, last, b"def");
        peer.send_at(0, 10, Flags::ACK, TcpOptions::default(), b"ghi");
        assert_eq!(peer.received, b"abcdefghi", "checksum {checksum}");
    }
}

#[test]
fn the_same_before_mp_fail() {
    let (mut peer, again) = again_on_its_way(false);
    let fail = MptcpOption::Fail { data_seq: peer.remote.initial_data_seq.wrapping_add(1) };
    peer.send_at(0, 7, Flags::ACK, options(vec![fail]), &[]);
    assert_eq!(peer.protocol(), Protocol::Tcp);
    peer.send_at(0, 4, Flags::ACK, again, b"abc");
    peer.send_at(0, 7, Flags::ACK, infinite(&peer, 3, 7), b"def");
    assert_eq!(peer.received, b"abcdef");
}

#[test]
fn of_two_segments_with_the_infinite_mapping_the_first_begins_plain_tcp() {
    let (mut peer, again) = again_on_its_way(false);
    peer.send_at(0, 10, Flags::ACK, infinite(&peer, 3, 7), b"ghi");
    peer.send_at(0, 7, Flags::ACK, infinite(&peer, 3, 7), b"def");
    peer.send_at(0, 4, Flags::ACK, again, b"abc");
    for (seq, payload) in [(7, b"def"), (10, b"ghi")] {
        peer.send_at(0, seq, Flags::ACK, TcpOptions::default(), payload);
    }
    assert_eq!(peer.received, b"abcdefghi");
}

#[test]
fn a_mapping_of_before_holds_for_the_part_of_it_that_is_missing() {
    for checksum in [false, true] {
        let mut peer = Peer::connected(ConnectionConfig { checksum, ..config() });
        peer.send_data(0, 0, b"abcdef");
        // The same six bytes again under one mapping, of which only the first half arrives.
        let again = with_dss(peer.map(0, 7, b"abcdef", false));
        peer.send_at(0, 7, Flags::ACK, again, b"abc");
        peer.send_at(0, 13, Flags::ACK, infinite(&peer, 6, 13), b"ghi");
        peer.send_at(0, 10, Flags::ACK, TcpOptions::default(), b"def");
        peer.send_at(0, 13, Flags::ACK, infinite(&peer, 6, 13), b"ghi");
        assert_eq!(peer.received, b"abcdefghi", "checksum {checksum}");
    }
}

#[test]
fn a_fin_behind_the_hole_ends_the_stream_there() {
    let (mut peer, again) = again_on_its_way(false);
    let fin = Flags::ACK | Flags::FIN;
    peer.send_at(0, 7, fin, infinite(&peer, 3, 7), b"def");
    peer.send_at(0, 4, Flags::ACK, again, b"abc");
    assert!(!peer.events.contains(&Event::EndOfStream(peer.id())));
    peer.send_at(0, 7, fin, infinite(&peer, 3, 7), b"def");
    assert_eq!(peer.received, b"abcdef");
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())));
}

#[test]
fn a_bare_fin_that_overtakes_the_infinite_mapping_and_a_hole_changes_nothing() {
    let (mut peer, again) = again_on_its_way(false);
    let fin = Flags::ACK | Flags::FIN;
    // Before a DATA_ACK of the peer it is the end of the stream in plain TCP.
    peer.send_at(0, 10, fin, TcpOptions::default(), b"ghi");
    assert_eq!(peer.protocol(), Protocol::Tcp);
    peer.send_at(0, 7, Flags::ACK, infinite(&peer, 3, 7), b"def");
    peer.send_at(0, 4, Flags::ACK, again, b"abc");
    peer.send_at(0, 7, Flags::ACK, infinite(&peer, 3, 7), b"def");
    peer.send_at(0, 10, fin, TcpOptions::default(), b"ghi");
    assert_eq!(peer.received, b"abcdefghi");
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())));
}

#[test]
fn a_segment_over_the_edge_of_the_hole_is_mapped_behind_it() {
    for checksum in [false, true] {
        let mut peer = Peer::connected(ConnectionConfig { checksum, ..config() });
        peer.send_data(0, 0, b"abcdef");
        // "abc" and "def" again, each with its mapping: the first is read when the peer falls back, the second is not.
        let first = with_dss(peer.map(0, 7, b"abc", false));
        let second = with_dss(peer.map(3, 10, b"def", false));
        peer.send_at(0, 7, Flags::ACK, first, b"abc");
        peer.send_at(0, 13, Flags::ACK, infinite(&peer, 6, 13), b"ghi");
        peer.send_at(0, 9, Flags::ACK, second, b"cdef");
        peer.send_at(0, 13, Flags::ACK, infinite(&peer, 6, 13), b"ghi");
        assert_eq!(peer.received, b"abcdefghi", "checksum {checksum}");
    }
}

/// The mapping tells where the stream goes on: what came before at data level is not read again.
#[test]
fn an_infinite_mapping_behind_the_next_byte_brings_what_it_repeats_once() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]] {
        let mut peer = Peer::connected(config());
        peer.send_data(0, 0, b"abcdef");
        peer.write(b"hello");
        peer.acknowledge(0, 5);
        // The peer sends "cdef" again and goes on.
        let at = peer.flows[0].nxt;
        let data_seq = DataSequence::Long(peer.number(2));
        let mapping = Mapping { data_seq, subflow_seq: at, length: 0, checksum: None };
        let infinite = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
        for part in order {
            let (skipped, payload) = [(0, &b"cd"[..]), (2, b"efgh"), (6, b"ijk")][part];
            let dss = (part == 0).then_some(infinite);
            peer.send_at(0, at + skipped, Flags::ACK, TcpOptions { dss, ..TcpOptions::default() }, payload);
        }
        // What came before the mapping was not taken, and comes again.
        for (skipped, payload) in [(2, &b"efgh"[..]), (6, b"ijk"), (9, b"lm")] {
            peer.send_at(0, at + skipped, Flags::ACK, TcpOptions::default(), payload);
        }
        assert_eq!((peer.protocol(), &peer.received[..]), (Protocol::Tcp, &b"abcdefghijklm"[..]), "{order:?}");
    }
}
