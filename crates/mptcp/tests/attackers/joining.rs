//! Floods of joins (RFC 8684, section 3.2).

use crate::pair::{address, config};
use crate::peer::{Peer, options, reset_reason};
use anabranch_policy::time::Duration;
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, MptcpOption};

fn warm() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer
}

/// The connection carries on where it was.
fn goes_on(peer: &mut Peer) {
    let end = peer.received.len() as u64;
    peer.send_data(0, end, b" and on");
    assert!(peer.received.ends_with(b" and on"));
    assert_eq!(peer.received.len() as u64, end + 7);
}

fn subflows(peer: &Peer) -> usize {
    peer.host.subflow_views(peer.now, peer.id()).len()
}

fn join_syn(token: u32) -> Vec<MptcpOption> {
    vec![MptcpOption::JoinSyn { backup: false, address_id: 3, token, nonce: 7 }]
}

/// A complete join, always with the same address ID.
fn join_from(peer: &mut Peer, path: usize, port: u16) {
    let token = peer.remote.token;
    peer.syn(path, port, join_syn(token));
    let answer = peer.said.pop().expect("an answer");
    let Some(MptcpOption::JoinSynAck { nonce, .. }) = answer.segment.options.mptcp.first() else {
        panic!("{answer:?}")
    };
    let hmac = peer.keys.sign_join_ack(7, *nonce);
    let flow = peer.flows.last_mut().unwrap();
    (flow.host_initial, flow.ack) = (answer.segment.seq, 1);
    let flow = peer.flows.len() - 1;
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
}

#[test]
fn ten_thousand_guesses_of_the_token_cost_a_reset_each_and_no_place() {
    let mut peer = warm();
    for guess in 1..=10_000_u32 {
        let token = peer.remote.token ^ guess;
        peer.syn(1, 20_000 + guess as u16, join_syn(token));
        assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)]);
        peer.flows.pop();
    }
    assert_eq!((peer.host.counters().refused_joins, subflows(&peer)), (10_000, 1));
    goes_on(&mut peer);
}

// An attacker that has seen the token, but not the key, can start joins without completing them: at most eight besides
// the first subflow. Their SYN/ACKs are sent after 0, 1, 3, 7, 15 and 31 s, and after 63 s they are dropped.
#[test]
fn joins_that_are_begun_and_not_finished_hold_eight_places_for_63_seconds() {
    let mut peer = warm();
    let token = peer.remote.token;
    for port in 0..100 {
        peer.syn(1, 20_000 + port, join_syn(token));
        assert!(subflows(&peer) <= 9);
    }
    assert_eq!(subflows(&peer), 9);
    peer.take();
    peer.run(Duration::from_millis(62_900));
    let answers = peer.take().iter().filter(|packet| packet.segment.flags.contains(Flags::SYN)).count();
    assert_eq!(answers, 8 * 5);
    assert_eq!(subflows(&peer), 9);
    peer.run(Duration::from_millis(200));
    assert_eq!(subflows(&peer), 1);
    goes_on(&mut peer);
    peer.join(1);
    assert_eq!(subflows(&peer), 2);
}

// They do not block a genuine join: the oldest attempt is evicted.
#[test]
fn a_join_that_is_finished_finds_a_place_among_those_that_are_not() {
    let mut peer = warm();
    let token = peer.remote.token;
    for port in 0..100 {
        peer.syn(1, 20_000 + port, join_syn(token));
    }
    peer.take();
    let joined = peer.join(2);
    assert_eq!(subflows(&peer), 9);
    peer.send_data(joined, 5, b" world");
    assert_eq!(peer.received, b"hello world");
    // Completed joins keep their places: with nine subflows none can be evicted.
    (0..7).for_each(|port| join_from(&mut peer, 1, 30_000 + port));
    peer.syn(1, 31_000, join_syn(token));
    let last = peer.take().pop().expect("an answer");
    assert_eq!((subflows(&peer), reset_reason(&last)), (9, Some(3)));
}

// RFC 8684, section 3.2: a valid first segment proves nothing about the third.
#[test]
fn a_thousand_wrong_proofs_cost_a_reset_each() {
    let mut peer = warm();
    for wrong in 0..1_000_u16 {
        let (flow, nonce) = peer.begin_join(1, false);
        let mut hmac = peer.keys.sign_join_ack(77, nonce);
        hmac[usize::from(wrong % 20)] ^= 1 << (wrong % 8);
        peer.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
        assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)]);
        assert_eq!(subflows(&peer), 1);
        peer.flows.pop();
    }
    goes_on(&mut peer);
}

// RFC 8684, section 3.2: "retransmitted until acknowledged", so each is answered once, without other effects.
#[test]
fn a_third_segment_again_and_again_is_answered_and_changes_nothing() {
    let mut peer = warm();
    let (flow, nonce) = peer.begin_join(1, false);
    let proof = options(vec![MptcpOption::JoinAck { hmac: peer.keys.sign_join_ack(77, nonce) }]);
    for _ in 0..100 {
        peer.send(flow, Flags::ACK, proof.clone(), &[]);
        let said = peer.take();
        assert!(said.len() == 1 && said[0].segment.payload.is_empty(), "{said:?}");
    }
    assert_eq!(subflows(&peer), 2);
    let events = peer.events.iter().filter(|event| matches!(event, anabranch_mptcp::Event::SubflowEstablished(..)));
    assert_eq!(events.count(), 2);
    goes_on(&mut peer);
}

// Subflows are identified by the peer's addresses, not by the IDs it announces.
#[test]
fn joins_with_the_same_address_identifier_are_subflows_of_their_own() {
    let mut peer = warm();
    for path in [1, 2, 3] {
        join_from(&mut peer, path, 30_000);
    }
    assert_eq!(subflows(&peer), 4);
    goes_on(&mut peer);
}

// RFC 5961, section 4: a SYN between addresses and ports in use is no join, whatever its options.
#[test]
fn a_join_from_the_address_and_port_of_a_subflow_is_challenged() {
    let mut peer = warm();
    peer.run(Duration::from_millis(200));
    let token = peer.remote.token;
    peer.send_at(0, 900_000, Flags::SYN, options(join_syn(token)), &[]);
    let said = peer.take();
    assert!(said.len() == 1 && said[0].segment.flags == Flags::ACK, "{said:?}");
    assert_eq!(subflows(&peer), 1);
    goes_on(&mut peer);
}

// An address that is not local is refused for a join with the right token too.
#[test]
fn a_join_to_an_address_that_is_not_ours_is_reset() {
    let mut peer = warm();
    let token = peer.remote.token;
    peer.host.handle_address_down(peer.now, anabranch_policy::ids::AddressId(4));
    peer.syn(3, 30_000, join_syn(token));
    let said = peer.take();
    assert!(said.iter().all(|packet| packet.ip.source == address(1, 3)), "{said:?}");
    assert!(said.len() == 1 && said[0].segment.flags.contains(Flags::RST), "{said:?}");
    assert_eq!(subflows(&peer), 1);
}

// Data before the proof is ignored: the peer may not send it (RFC 8684, section 3.2), and an attacker has no key.
#[test]
fn data_on_a_join_before_its_proof_is_not_taken() {
    let mut peer = warm();
    let (flow, _) = peer.begin_join(1, false);
    let dss = peer.map(5, 1, b"EVIL!", false);
    peer.send(flow, Flags::ACK, TcpOptions { dss: Some(dss), ..TcpOptions::default() }, b"EVIL!");
    assert_eq!((peer.received.as_slice(), subflows(&peer)), (&b"hello"[..], 1));
    goes_on(&mut peer);
}
