//! A fallback for a wrong checksum, of which the peer is told with MP_FAIL (RFC 8684, section 3.7): however the peer
//! answers, the number of MP_FAILs is limited and the connection comes to its end.

use super::peer::{Peer, options};
use crate::pair::config;
use anabranch_mptcp::{ConnectionConfig, Event, Protocol};
use anabranch_policy::time::Duration;
use anabranch_wire::{Flags, MptcpOption, Packet, TcpOptions};

fn checked() -> ConnectionConfig {
    ConnectionConfig { checksum: true, ..config() }
}

/// `abc` has arrived, and `dXf` in place of `def`.
fn damaged() -> Peer {
    let mut peer = Peer::connected(checked());
    peer.send_data(0, 0, b"abc");
    peer.take();
    let dss = peer.map(3, peer.flows[0].nxt, b"def", false);
    peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"dXf");
    assert_eq!(peer.protocol(), Protocol::Tcp);
    peer
}

fn failures(packets: &[Packet]) -> usize {
    let is_failure = |option: &&MptcpOption| matches!(option, MptcpOption::Fail { .. });
    packets.iter().flat_map(|packet| &packet.segment.options.mptcp).filter(is_failure).count()
}

fn infinite(packet: &Packet) -> bool {
    super::peer::mapping(packet).is_some_and(|mapping| mapping.length == 0)
}

fn fin(packet: &&Packet) -> bool {
    packet.segment.flags.contains(Flags::FIN)
}

#[test]
fn a_peer_that_answers_each_mp_fail_with_its_data_fin_is_not_sent_one_for_each() {
    let mut peer = damaged();
    let end = peer.data_fin(6);
    let mut all = 0;
    // Linux has no space for its own MP_FAIL beside this.
    for _ in 0..40 {
        let said = failures(&peer.take());
        all += said;
        for _ in 0..=said {
            peer.signal(0, end);
        }
    }
    assert_eq!(all, 1);
    assert!(peer.events.contains(&Event::EndOfStream(peer.id())), "{:?}", peer.events);
    for _ in 0..200 {
        peer.run(Duration::from_secs(1));
        let said = failures(&peer.take());
        all += said;
        (0..said).for_each(|_| peer.signal(0, end));
    }
    assert_eq!(all, 8);
}

#[test]
fn the_fin_of_a_host_that_has_nothing_to_send_tells_of_the_fallback_and_is_not_withheld() {
    let mut peer = damaged();
    peer.signal(0, peer.data_fin(6));
    assert_eq!(failures(&peer.take()), 1);
    peer.close();
    let said = peer.take();
    let fins: Vec<_> = said.iter().filter(fin).collect();
    assert_eq!(fins.len(), 1, "{said:?}");
    assert!(infinite(fins[0]));
    // Linux falls back by it, and so do we: both ends are closed.
    peer.send(0, Flags::ACK | Flags::FIN, TcpOptions::default(), &[]);
    assert!(peer.events.iter().any(|event| matches!(event, Event::Closed(..))), "{:?}", peer.events);
}

#[test]
fn a_lost_mp_fail_is_repeated_by_a_timer_that_backs_off_and_not_after_an_answer() {
    let mut peer = damaged();
    peer.take();
    let mut at = Vec::new();
    for step in 0..2_000 {
        peer.run(Duration::from_millis(100));
        at.extend(core::iter::repeat_n(step, failures(&peer.take())));
    }
    assert_eq!(at.len(), 7, "{at:?}");
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] >= pair[0]) && gaps[4] > 4 * gaps[0], "{at:?}");
    for answer in [TcpOptions::default(), options(vec![MptcpOption::Fail { data_seq: 0 }])] {
        let mut peer = damaged();
        peer.take();
        peer.send(0, Flags::ACK, answer, &[]);
        peer.run(Duration::from_secs(200));
        assert_eq!(failures(&peer.take()), 0);
    }
}

#[test]
fn after_a_fallback_that_the_peer_never_answers_both_ends_of_the_stream_arrive() {
    let mut peer = damaged();
    peer.close();
    assert_eq!(peer.take().iter().filter(fin).count(), 1);
    peer.run(Duration::from_secs(1));
    peer.send(0, Flags::ACK, TcpOptions::default(), b"ghi");
    assert_eq!(peer.received, b"abcdXfghi");
}
