//! Address announcements by attackers, or too many (RFC 8684, sections 3.3.8, 3.4).

use crate::orders::{Heard, create};
use crate::pair::{address, config};
use crate::peer::{Peer, options};
use anabranch_policy::ids::AddressId;
use anabranch_policy::time::Duration;
use anabranch_wire::{Flags, MptcpOption, Packet};
use std::net::IpAddr;

fn warm() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer
}

fn announce(peer: &mut Peer, id: u8, address: IpAddr, port: Option<u16>, wrong: u64) {
    let hmac = peer.keys.sign_add_address(id, address, port) ^ wrong;
    let option = MptcpOption::AddAddress { address_id: id, address, port, truncated_hmac: Some(hmac) };
    peer.send(0, Flags::ACK, options(vec![option]), &[]);
}

/// Our path manager joins the address with this ID.
fn join_announced(peer: &mut Peer, id: u8) {
    let order = create(peer.id(), 1, id, false);
    peer.orders.give_to(&mut peer.host, peer.now, order);
    peer.settle();
}

fn subflows(peer: &Peer) -> usize {
    peer.host.subflow_views(peer.now, peer.id()).len()
}

fn goes_on(peer: &mut Peer) {
    let end = peer.received.len() as u64;
    peer.send_data(0, end, b" and on");
    assert!(peer.received.ends_with(b" and on"));
    assert_eq!(subflows(peer), 1);
}

#[test]
fn a_thousand_spoofed_announcements_are_counted_and_nothing_else() {
    let mut peer = warm();
    for wrong in 1..=1_000 {
        announce(&mut peer, wrong as u8, address(0, 2), None, wrong);
    }
    assert_eq!(peer.take().len(), 0, "no echo");
    assert_eq!(peer.host.stats(peer.id()).unwrap().bad_hmacs, 1_000);
    assert_eq!(peer.orders.heard(), [Heard::Established]);
    goes_on(&mut peer);
}

// At most 32 addresses are remembered, and only these can be joined; each announcement is echoed, as required (RFC
// 8684, section 3.4.1).
#[test]
fn of_a_flood_of_announcements_32_are_remembered() {
    let mut peer = warm();
    for id in 1..=255 {
        announce(&mut peer, id, IpAddr::from([10, 9, 9, id]), Some(80), 0);
    }
    let heard = peer.orders.heard();
    assert_eq!(heard.iter().filter(|heard| matches!(heard, Heard::Announced(..))).count(), 32);
    let echoes = peer.take().iter().filter(|packet| !packet.segment.options.mptcp.is_empty()).count();
    assert_eq!(echoes, 255);
    goes_on(&mut peer);
}

// An ID announced for one address after another without withdrawal stays with the first.
#[test]
fn an_identifier_announced_for_a_hundred_addresses_stays_with_the_first() {
    let mut peer = warm();
    for last in 1..=100 {
        announce(&mut peer, 7, IpAddr::from([10, 9, 9, last]), Some(80), 0);
    }
    let announced = peer.orders.heard().into_iter().filter(|heard| matches!(heard, Heard::Announced(..)));
    let first = "10.9.9.1:80".parse().unwrap();
    assert_eq!(announced.collect::<Vec<_>>(), [Heard::Announced(AddressId(7), first)]);
    goes_on(&mut peer);
}

// RFC 9293, MUST-46, also for subflows: only unicast addresses are joined. Otherwise a peer could make us send SYNs to
// a whole network.
#[test]
fn an_announced_address_that_is_not_one_host_is_not_joined() {
    for (nobody, counted) in
        [("0.0.0.0", 1), ("255.255.255.255", 1), ("224.0.0.1", 1), ("239.9.9.9", 1), ("10.9.9.9", 0)]
    {
        let mut peer = warm();
        announce(&mut peer, 7, nobody.parse().unwrap(), None, 0);
        join_announced(&mut peer, 7);
        assert_eq!(peer.host.counters().impossible_actions, counted, "{nobody}");
        let there = |packet: &Packet| packet.ip.destination == nobody.parse::<IpAddr>().unwrap();
        assert_eq!(peer.take().iter().filter(|packet| there(packet)).count() as u64, 1 - counted, "{nobody}");
    }
}

// Nobody listens on port 0.
#[test]
fn an_announced_port_0_is_not_joined() {
    let mut peer = warm();
    announce(&mut peer, 7, IpAddr::from([10, 9, 9, 9]), Some(0), 0);
    join_announced(&mut peer, 7);
    assert_eq!(peer.host.counters().impossible_actions, 1);
    assert!(!peer.take().iter().any(|packet| packet.segment.flags.contains(Flags::SYN)));
}

// Whatever a peer announces and a path manager joins, the SYNs are bounded by the limit on subflows and by the number
// of SYN retransmissions.
#[test]
fn a_flood_of_announcements_makes_us_send_a_bounded_number_of_syns() {
    let mut peer = warm();
    for id in 1..=255 {
        announce(&mut peer, id, IpAddr::from([10, 9, 9, id]), Some(80), 0);
        join_announced(&mut peer, id);
    }
    assert_eq!(subflows(&peer), 9);
    peer.run(Duration::from_millis(1_100));
    let syns = peer.take().iter().filter(|packet| packet.segment.flags == Flags::SYN).count();
    // Eight besides the first, each retransmitted after a second.
    assert_eq!(syns, 16);
}

#[test]
fn echoes_of_what_was_never_announced_change_nothing() {
    let mut peer = warm();
    for id in 0..=255 {
        let option =
            MptcpOption::AddAddress { address_id: id, address: address(1, 1), port: None, truncated_hmac: None };
        peer.send(0, Flags::ACK, options(vec![option]), &[]);
    }
    assert_eq!((peer.take().len(), peer.orders.heard()), (0, vec![Heard::Established]));
    goes_on(&mut peer);
}

// RFC 8684, section 3.4.2: a withdrawn address is probed by keepalive, whose answer keeps the subflow, even if all IDs
// are withdrawn at once, and again every second.
#[test]
fn a_withdrawal_of_all_identifiers_ends_no_subflow_that_answers() {
    let mut peer = warm();
    let joined = peer.join(1);
    peer.take();
    for _ in 0..20 {
        for first in (0..=255_u8).step_by(8) {
            let address_ids = (first..=first.saturating_add(7)).collect();
            peer.send(0, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids }]), &[]);
        }
        for _ in 0..10 {
            peer.run(Duration::from_millis(100));
            let probes = peer.take();
            assert!(probes.len() <= 4, "{probes:?}");
            for flow in [0, joined] {
                peer.acknowledge(flow, 0);
            }
        }
    }
    peer.take();
    assert_eq!(subflows(&peer), 2);
    peer.send_data(0, 5, b" world");
    peer.send_data(joined, 11, b"!");
    assert_eq!(peer.received, b"hello world!");
}

// RFC 8684, section 3.3.8: MP_PRIO applies to its own subflow, so that no ID can be forged. A thousand of them are all
// processed, and the last counts; a single subflow still carries data as backup.
#[test]
fn a_thousand_changes_of_priority_end_as_the_last_says() {
    let mut peer = warm();
    for change in 0..1_000 {
        let backup = change % 2 == 1;
        peer.send(0, Flags::ACK, options(vec![MptcpOption::Priority { backup }]), &[]);
    }
    assert!(peer.host.subflow_views(peer.now, peer.id())[0].backup);
    peer.write(&[7; 100]);
    assert_eq!(peer.take().iter().map(|packet| packet.segment.payload.len()).sum::<usize>(), 100);
    goes_on(&mut peer);
}
