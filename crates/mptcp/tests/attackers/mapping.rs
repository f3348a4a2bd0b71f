//! Contradictory, oversized and incomplete mappings (RFC 8684, sections 3.3, 3.7), and misplaced options.

use crate::pair::config;
use crate::peer::{Peer, capable, options, reset_reason};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, DataSequence, Dss, Mapping, dss_checksum};
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, MptcpOption};

fn warm_with(config: ConnectionConfig) -> Peer {
    let mut peer = Peer::connected(config);
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer
}

fn warm() -> Peer {
    warm_with(config())
}

fn with_dss(dss: Dss) -> TcpOptions {
    TcpOptions { dss: Some(dss), ..TcpOptions::default() }
}

/// A mapping of `length` bytes, declared with fewer.
fn long(peer: &Peer, offset: u64, subflow_seq: u32, length: u16) -> Dss {
    let data_seq = DataSequence::Long(peer.number(offset));
    let mapping = Some(Mapping { data_seq, subflow_seq, length, checksum: None });
    Dss { data_ack: Some(peer.data_ack(0)), mapping, data_fin: false }
}

fn subflows(peer: &Peer) -> usize {
    peer.host.subflow_views(peer.now, peer.id()).len()
}

// RFC 8684, section 3.3.1: "the first copy of data counts", on one subflow or two, in order or after a hole, whatever
// part overlaps.
#[test]
fn of_bytes_that_overlap_with_others_the_first_to_come_are_read() {
    let mut peer = warm();
    let joined = peer.join(1);
    peer.send_data(joined, 8, b"IJKL"); // ahead of a hole
    peer.send_data(0, 6, b"ghijklmn"); // around it
    peer.send_data(joined, 4, b"......"); // and over its edge, from what was read
    assert_eq!(peer.received, b"hello.ghIJKLmn");
    peer.send_data(0, 0, b"00000000000000end");
    assert_eq!(peer.received, b"hello.ghIJKLmnend");
}

// RFC 8684, section 3.8: what lies out of the window is dropped, before its beginning, too, in both sizes of numbers.
#[test]
fn numbers_before_the_beginning_of_the_stream_bring_nothing() {
    for short in [false, true] {
        let mut peer = Peer::connected(config());
        let mut dss = long(&peer, 0, 1, 6);
        let number = peer.number(0).wrapping_sub(3);
        let data_seq = if short { DataSequence::Short(number as u32) } else { DataSequence::Long(number) };
        dss.mapping.as_mut().unwrap().data_seq = data_seq;
        peer.send_at(0, 1, Flags::ACK, with_dss(dss), b"...abc");
        peer.send_at(0, 1, Flags::ACK, with_dss(long(&peer, 0, 1, 3)), b"abc");
        assert_eq!(peer.received, b"abc", "short {short}");
    }
}

// RFC 8684, section 3.3.1: a mapping is fixed once it was processed. If another follows, the first counts.
#[test]
fn two_mappings_of_the_same_bytes_of_a_subflow_put_each_byte_of_the_stream_in_once() {
    let mut peer = warm();
    let at = peer.flows[0].nxt;
    let first = long(&peer, 5, at, 100);
    peer.send_at(0, at + 50, Flags::ACK, with_dss(first), &[b'b'; 50]);
    let second = long(&peer, 30, at, 100);
    peer.send_at(0, at, Flags::ACK, with_dss(second), &[b'a'; 50]);
    let third = long(&peer, 5, at, 100);
    peer.send_at(0, at, Flags::ACK, with_dss(third), &[b'c'; 50]);
    peer.flows[0].nxt = at + 100;
    let mut expected = b"hello".to_vec();
    expected.extend([b'a'; 50]);
    expected.extend([b'b'; 50]);
    assert_eq!(peer.received, expected);
    // Whatever else the peer may think of them, these bytes of the stream are there.
    peer.send_data(0, 5, &[b'd'; 25]);
    assert_eq!(peer.received, expected);
}

#[test]
fn the_mapping_that_came_ahead_of_its_data_counts_and_not_one_that_comes_with_it() {
    for checksum in [false, true] {
        let mut peer = warm_with(ConnectionConfig { checksum, ..config() });
        let at = peer.flows[0].nxt;
        let whole = b"abcdef";
        if checksum {
            // It is known with its first part.
            let first = peer.map(5, at, whole, false);
            peer.send_at(0, at, Flags::ACK, with_dss(first), b"abc");
        } else {
            peer.send_at(0, at, Flags::ACK, with_dss(peer.map(5, at, whole, false)), &[]);
        }
        let second = peer.map(8, at, whole, false);
        peer.send_at(0, at, Flags::ACK, with_dss(second), whole);
        assert_eq!(peer.received, b"helloabcdef", "checksum {checksum}");
    }
}

// RFC 8684, section 3.3.1: bytes without a mapping are refused. 8 for each that is next on its subflow, 32 in total.
#[test]
fn a_mapping_of_another_range_of_its_subflow_does_not_map_the_bytes_beside_it() {
    for elsewhere in [1_000_000, u32::MAX - 5, 1 << 31] {
        let mut peer = warm();
        peer.join(1);
        peer.take();
        let at = peer.flows[0].nxt;
        for attempt in 1..=4 {
            let dss = long(&peer, 5, at.wrapping_add(elsewhere), 3);
            peer.send_at(0, at, Flags::ACK, with_dss(dss), b"abc");
            assert_eq!(peer.received, b"hello");
            // Each has a mapping: nothing suggests that options are stripped.
            assert_eq!(subflows(&peer), 2, "{attempt}");
        }
        peer.send_data(0, 5, b"abc");
        assert_eq!(peer.received, b"helloabc");
    }
}

// RFC 8684, section 3.7: an infinite mapping ends MPTCP on the only subflow there has been, and otherwise ends its
// subflow.
#[test]
fn a_mapping_of_length_0_in_mid_connection_ends_its_subflow_beside_others() {
    let mut peer = warm();
    let joined = peer.join(1);
    peer.take();
    let at = peer.flows[joined].nxt;
    let dss = long(&peer, 5, at, 0);
    peer.send(joined, Flags::ACK, with_dss(dss), b"abc");
    assert_eq!(peer.take().iter().find_map(reset_reason), Some(6));
    assert_eq!((subflows(&peer), peer.protocol(), peer.received.as_slice()), (1, Protocol::Multipath, &b"hello"[..]));
    peer.send_data(0, 5, b" world");
    assert_eq!(peer.received, b"hello world");
}

#[test]
fn a_mapping_over_the_end_of_the_window_brings_what_lies_inside() {
    let mut small = config();
    small.receive_buffer = BufferSize::Fixed(1_000);
    small.buffers_per_subflow = false;
    let mut peer = Peer::connected(small);
    peer.reading = false;
    let (at, payload) = (peer.flows[0].nxt, vec![7; 1_200]);
    peer.send_data(0, 0, &payload);
    let state = peer.host.receive_state(peer.id()).unwrap();
    assert_eq!((state.next, state.readable), (1_000, 1_000));
    // Data beyond the buffer was not acknowledged.
    assert_eq!(peer.acknowledged(), Some(1_000));
    let last = peer.take().pop().expect("an answer");
    assert_eq!((last.segment.ack, last.segment.window), (peer.flows[0].peer_initial + at, 0));
}

// RFC 8684, section 3.3.3: the stream ends at its DATA_FIN.
#[test]
fn data_behind_the_end_of_the_stream_is_not_read() {
    let mut peer = warm();
    peer.signal(0, peer.data_fin(5));
    peer.send_data(0, 5, b"more");
    peer.send_data(0, 3, b"lo and more");
    peer.signal(0, peer.data_fin(9));
    assert_eq!(peer.received, b"hello");
    let ends = peer.events.iter().filter(|event| matches!(event, anabranch_mptcp::Event::EndOfStream(_)));
    assert_eq!(ends.count(), 1);
}

// A DATA_FIN before received data, or 2^63 bytes away, is ignored.
#[test]
fn an_end_that_cannot_be_is_ignored() {
    let mut peer = warm();
    for end in [0, 4, u64::MAX, u64::MAX - 1_000] {
        peer.signal(0, peer.data_fin(end));
    }
    peer.send_data(0, 5, b" world");
    peer.signal(0, peer.data_fin(11));
    assert_eq!(peer.received, b"hello world");
    assert!(peer.events.iter().any(|event| matches!(event, anabranch_mptcp::Event::EndOfStream(_))));
}

fn checked() -> ConnectionConfig {
    ConnectionConfig { checksum: true, ..config() }
}

/// Sends a part of a mapping of `length` bytes of 7 at `offset`, which starts at `at` on the subflow.
fn send_part(peer: &mut Peer, offset: u64, at: u32, length: u16, (from, to): (u32, u32)) {
    let number = peer.number(offset);
    let whole = vec![7; usize::from(length)];
    let checksum = Some(dss_checksum(number, at, length, [&whole[..]]));
    let mapping = Some(Mapping { data_seq: DataSequence::Long(number), subflow_seq: at, length, checksum });
    let dss = Dss { data_ack: Some(peer.data_ack(0)), mapping, data_fin: false };
    peer.send_at(0, at + from, Flags::ACK, with_dss(dss), &whole[from as usize..to as usize]);
}

// RFC 8684, section 3.3.1: a checksum covers a whole mapping. A retransmission with other boundaries still fills the
// hole.
#[test]
fn a_hole_of_a_mapping_under_a_checksum_may_be_filled_by_a_segment_with_other_borders() {
    for (from, to) in [(100, 200), (50, 250), (0, 300), (99, 201), (100, 250), (50, 200)] {
        let mut peer = warm_with(checked());
        let at = peer.flows[0].nxt;
        send_part(&mut peer, 5, at, 300, (0, 100));
        send_part(&mut peer, 5, at, 300, (200, 300));
        assert_eq!(peer.received.len(), 5);
        send_part(&mut peer, 5, at, 300, (from, to));
        assert_eq!(peer.received.len(), 305, "{from} to {to}");
    }
}

// Incomplete mappings are limited to 64 of at most 64 kB each, besides the window: 4 MB, however many start.
#[test]
fn mappings_that_are_never_completed_take_bounded_memory_and_do_not_shut_out_the_rest() {
    let mut peer = warm_with(checked());
    let at = peer.flows[0].nxt;
    for number in 0..200 {
        send_part(&mut peer, 5 + u64::from(number) * 1_000, at + number * 1_000, 1_000, (1, 1_000));
    }
    for number in 0..200 {
        send_part(&mut peer, 5 + u64::from(number) * 1_000, at + number * 1_000, 1_000, (0, 1_000));
    }
    assert_eq!(peer.received.len(), 5 + 200_000);
}

// RFC 8684, section 3.7, without checksums: MP_FAIL still takes effect, since nothing else can follow it.
#[test]
fn mp_fail_out_of_the_blue_ends_mptcp_in_good_order() {
    let mut peer = warm();
    let number = peer.number(5);
    peer.send(0, Flags::ACK, options(vec![MptcpOption::Fail { data_seq: number }]), &[]);
    assert_eq!(peer.protocol(), Protocol::Tcp);
    let answer = peer.take();
    let fails = |option: &MptcpOption| matches!(option, MptcpOption::Fail { .. });
    assert!(answer.iter().any(|packet| packet.segment.options.mptcp.iter().any(fails)), "{answer:?}");
    let at = peer.flows[0].nxt;
    peer.send_at(0, at, Flags::ACK, TcpOptions::default(), b" world");
    assert_eq!(peer.received, b"hello world");
}

// RFC 8684, section 3.1: the third segment must have our key; with another, its sender is not our peer.
#[test]
fn keys_that_are_not_ours_in_the_third_segment_end_in_plain_tcp() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    let keys = CapableKeys::Both { sender: peer.keys.local.0, receiver: peer.keys.remote.0 ^ 1 };
    peer.send(0, Flags::ACK, options(vec![capable(keys)]), &[]);
    assert_eq!(peer.protocol(), Protocol::Tcp);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"hello");
    assert_eq!(peer.received, b"hello");
}

// RFC 8684, section 3.1: flags C to G are ignored; B is reserved and must be 0.
#[test]
fn flags_of_an_offer_that_nobody_has_defined_do_not_hurt() {
    let flags =
        CapableFlags { hmac_sha256: true, checksum_required: true, extensibility: false, deny_join_initial: true };
    let mut peer = Peer::new(config());
    let answer = peer.open(vec![MptcpOption::Capable { version: 1, flags, keys: CapableKeys::None }]);
    let Some(MptcpOption::Capable { flags: said, .. }) = answer.segment.options.mptcp.first() else {
        panic!("{answer:?}")
    };
    assert!(said.hmac_sha256 && said.checksum_required && !said.extensibility);
}

// Handshake options on an established connection are ignored.
#[test]
fn options_of_a_handshake_in_mid_connection_change_nothing() {
    let other = CapableKeys::Both { sender: 1, receiver: 2 };
    let strange = [
        capable(other),
        MptcpOption::JoinAck { hmac: [9; 20] },
        MptcpOption::TcpReset { transient: true, flags: 7, reason: 255 },
        MptcpOption::Experimental { flags: 0, experiment: 0xdead, data: vec![1, 2, 3] },
        MptcpOption::Experimental { flags: 15, experiment: 0x4242, data: Vec::new() },
    ];
    for option in strange {
        let mut peer = warm();
        let joined = peer.join(1);
        for flow in [0, joined] {
            peer.send(flow, Flags::ACK, options(vec![option.clone()]), &[]);
        }
        assert_eq!((subflows(&peer), peer.protocol()), (2, Protocol::Multipath), "{option:?}");
        peer.send_data(joined, 5, b" world");
        peer.run(Duration::from_secs(1));
        assert_eq!(peer.received, b"hello world", "{option:?}");
    }
}

// RFC 8684, section 3.1: MP_CAPABLE has both keys, and maps the first data of the initial subflow.
#[test]
fn data_with_other_keys_or_on_another_subflow_is_not_mapped_by_them() {
    for (flow, wrong) in [(0, [1, 0]), (0, [0, 1]), (1, [0, 0])] {
        let mut peer = Peer::connected(config());
        peer.acknowledge(0, 0);
        peer.join(1);
        let (sender, receiver) = (peer.keys.local.0 ^ wrong[0], peer.keys.remote.0 ^ wrong[1]);
        let keys = CapableKeys::BothWithData { sender, receiver, length: 5, checksum: None };
        peer.send_at(flow, 1, Flags::ACK, options(vec![capable(keys)]), b"wrong");
        assert_eq!(peer.received, b"", "on {flow} with {wrong:?}");
        peer.send_data(flow, 0, b"right");
        assert_eq!(peer.received, b"right", "on {flow} with {wrong:?}");
    }
}
