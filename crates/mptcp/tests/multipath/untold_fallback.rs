//! A fallback that the peer cannot know of: it has had DATA_ACKs, its own options do not arrive any more, and no data
//! of ours waits that could carry the infinite mapping (RFC 8684, section 3.7).

use super::peer::{Peer, options};
use crate::pair::config;
use anabranch_mptcp::{Event, FallbackCause};
use anabranch_wire::{Flags, MptcpOption, Packet, TcpOptions};

/// A peer that has had a DATA_ACK, and acknowledges `hello` without an option.
fn unheard() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"abc");
    peer.write(b"hello");
    peer.take();
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::OptionsStripped)), "{:?}", peer.events);
    peer
}

/// The data sequence numbers of the MP_FAILs among these packets.
fn failures(packets: &[Packet]) -> Vec<u64> {
    let options = packets.iter().flat_map(|packet| &packet.segment.options.mptcp);
    let number = |option: &MptcpOption| match option {
        MptcpOption::Fail { data_seq } => Some(*data_seq),
        _ => None,
    };
    options.filter_map(number).collect()
}

#[test]
fn a_peer_that_is_not_heard_any_more_is_told_with_mp_fail_from_where_it_is_not() {
    let mut peer = unheard();
    let number = peer.number(3);
    assert_eq!(failures(&peer.take()), [number]);
    // Its answer does not arrive; what does may be data that it sends again at data level. Seven more can be lost.
    for _ in 0..12 {
        peer.send(0, Flags::ACK, TcpOptions::default(), b"d");
    }
    assert_eq!(failures(&peer.take()), [number; 7]);
    assert_eq!(peer.received, b"abcdddddddddddd");
}

#[test]
fn mp_fail_is_not_sent_again_once_the_infinite_mapping_is_on_its_way() {
    let mut peer = unheard();
    peer.take();
    peer.write(b"world");
    let said = peer.take();
    assert_eq!(super::peer::mapping(&said[0]).map(|mapping| mapping.length), Some(0));
    peer.send(0, Flags::ACK, TcpOptions::default(), b"d");
    assert!(failures(&peer.take()).is_empty());
}

#[test]
fn mp_fail_is_not_sent_again_once_the_peer_is_heard() {
    let mut peer = unheard();
    peer.take();
    peer.send(0, Flags::ACK, options(vec![MptcpOption::Fail { data_seq: 0 }]), &[]);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"d");
    assert!(failures(&peer.take()).is_empty());
}

#[test]
fn a_peer_that_had_no_data_ack_of_ours_falls_back_by_itself() {
    let mut peer = Peer::connected(config());
    peer.send(0, Flags::ACK, TcpOptions::default(), b"abc");
    assert!(peer.events.iter().any(|event| matches!(event, Event::FellBack(..))), "{:?}", peer.events);
    assert!(failures(&peer.take()).is_empty());
}
