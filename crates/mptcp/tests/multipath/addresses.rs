//! Address announcements: ADD_ADDR and REMOVE_ADDR (RFC 8684, section 3.4).

use super::orders::{Heard, Orders, create, established, obedient_pair};
use super::peer::{Peer, options};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::Event;
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, PathAction};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::Dss;
use anabranch_wire::{Flags, MptcpOption, Packet};
use std::net::{IpAddr, SocketAddr};

const SECOND: Duration = Duration::from_secs(1);

/// ADD_ADDRs in flight: ID, address, port, and whether it is an echo.
fn announcements(packets: &[Packet]) -> Vec<(u8, IpAddr, Option<u16>, bool)> {
    let all = packets.iter().flat_map(|packet| packet.segment.options.mptcp.iter());
    let of_option = |option: &MptcpOption| match option {
        MptcpOption::AddAddress { address_id, address, port, truncated_hmac } => {
            Some((*address_id, *address, *port, truncated_hmac.is_none()))
        }
        _ => None,
    };
    all.filter_map(of_option).collect()
}

fn removals(packets: &[Packet]) -> Vec<Vec<u8>> {
    let all = packets.iter().flat_map(|packet| packet.segment.options.mptcp.iter());
    let of_option = |option: &MptcpOption| match option {
        MptcpOption::RemoveAddress { address_ids } => Some(address_ids.clone()),
        _ => None,
    };
    all.filter_map(of_option).collect()
}

fn sent(pair: &Pair, host: usize) -> Vec<Packet> {
    pair.sent[host].iter().map(|(_, packet)| packet.clone()).collect()
}

/// A pair that has exchanged data, with two subflows if `join`.
fn warm_pair(paths: usize, join: bool) -> (Pair, [Orders; 2], ConnectionId, ConnectionId) {
    let (mut pair, orders) = obedient_pair(paths);
    let id = pair.connect(config(), config());
    pair.write_all(0, id, b"hello", Duration::ZERO);
    pair.run(Duration::from_millis(100));
    if join {
        orders[0].give(&mut pair, 0, create(id, 2, 0, false));
        pair.run(Duration::from_millis(100));
        assert_eq!(established(&pair, 1), 2);
    }
    let server = pair.accepted().unwrap();
    pair.sent = [Vec::new(), Vec::new()];
    (pair, orders, id, server)
}

fn warm_peer() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer
}

#[test]
fn an_announced_address_is_echoed_and_can_be_joined() {
    let (mut pair, orders, id, server) = warm_pair(2, false);
    orders[1].give(&mut pair, 1, PathAction::Announce { connection: server, local: AddressId(2) });
    pair.run(SECOND * 5);
    assert_eq!(announcements(&sent(&pair, 1)), [(2, address(1, 1), None, false)]);
    assert_eq!(announcements(&sent(&pair, 0)), [(2, address(1, 1), None, true)]);
    let announced = Heard::Announced(AddressId(2), SocketAddr::new(address(1, 1), crate::pair::PORT));
    assert!(orders[0].heard().contains(&announced));
    orders[0].give(&mut pair, 0, create(id, 2, 2, false));
    pair.run(SECOND);
    assert_eq!(established(&pair, 1), 2);
    let view = &pair.hosts[1].subflow_views(pair.now, server)[1];
    assert_eq!((view.local_address, view.remote_address), (AddressId(2), AddressId(2)));
}

#[test]
fn an_address_behind_a_translator_is_announced_as_its_public_one_and_joined_at_its_own() {
    let mut peer = warm_peer();
    let public: IpAddr = "192.0.2.7".parse().unwrap();
    peer.host.handle_address_up_as(peer.now, AddressId(2), address(1, 1), public);
    let connection = peer.id();
    peer.orders.clone().give_to(&mut peer.host, peer.now, PathAction::Announce { connection, local: AddressId(2) });
    peer.settle();
    let said = peer.take();
    assert_eq!(announcements(&said), [(2, public, None, false)]);
    let hmac = said.iter().flat_map(|packet| &packet.segment.options.mptcp).find_map(|option| match option {
        MptcpOption::AddAddress { truncated_hmac, .. } => *truncated_hmac,
        _ => None,
    });
    assert!(peer.keys.verify_add_address(2, public, None, hmac.unwrap()));
    // The echo has the announced address.
    let echo = MptcpOption::AddAddress { address_id: 2, address: public, port: None, truncated_hmac: None };
    peer.send(0, Flags::ACK, options(vec![echo]), &[]);
    peer.run(SECOND * 100);
    assert_eq!(announcements(&peer.take()), []);
    peer.join(1);
    let views = peer.host.subflow_views(peer.now, connection);
    assert_eq!(views.last().map(|view| view.local_address), Some(AddressId(2)));
}

#[test]
fn an_announcement_is_repeated_until_echoed_but_not_for_ever() {
    let (mut pair, orders, _, server) = warm_pair(2, false);
    let lose = |option: &MptcpOption| matches!(option, MptcpOption::AddAddress { .. });
    pair.judge = Box::new(move |from, _, packet| match from == 1 && packet.segment.options.mptcp.iter().any(lose) {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    orders[1].give(&mut pair, 1, PathAction::Announce { connection: server, local: AddressId(2) });
    pair.run(SECOND * 1_000);
    assert_eq!(announcements(&sent(&pair, 1)).len(), 4);
    assert_eq!(orders[0].heard(), [Heard::Established]);
}

#[test]
fn an_announcement_whose_echo_is_lost_comes_again_and_is_echoed_again() {
    let (mut pair, orders, _, server) = warm_pair(2, false);
    let mut lost = false;
    pair.judge = Box::new(move |from, _, packet| {
        let echo = from == 0 && !announcements(std::slice::from_ref(packet)).is_empty();
        if echo && !std::mem::replace(&mut lost, true) { Fate::Drop } else { Fate::Deliver }
    });
    orders[1].give(&mut pair, 1, PathAction::Announce { connection: server, local: AddressId(2) });
    pair.run(SECOND * 100);
    assert_eq!((announcements(&sent(&pair, 1)).len(), announcements(&sent(&pair, 0)).len()), (2, 2));
    let heard = orders[0].heard();
    assert_eq!(heard.iter().filter(|heard| matches!(heard, Heard::Announced(..))).count(), 1);
}

#[test]
fn an_announcement_with_a_wrong_hmac_is_ignored() {
    let mut peer = warm_peer();
    let (address_id, address, port) = (5, "192.0.2.7".parse().unwrap(), None);
    let right = peer.keys.sign_add_address(address_id, address, port);
    let announce = |hmac| MptcpOption::AddAddress { address_id, address, port, truncated_hmac: Some(hmac) };
    peer.send(0, Flags::ACK, options(vec![announce(right ^ 1)]), &[]);
    assert_eq!(peer.take(), []);
    assert_eq!(peer.host.stats(peer.id()).unwrap().bad_hmacs, 1);
    peer.send(0, Flags::ACK, options(vec![announce(right)]), &[]);
    assert_eq!(announcements(&peer.take()), [(5, address, None, true)]);
}

#[test]
fn an_announced_port_is_echoed_and_used_and_without_one_it_is_that_of_the_subflow() {
    let mut peer = warm_peer();
    let flow = peer.join(1);
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    let v4: IpAddr = "192.0.2.7".parse().unwrap();
    for (flow, id, ip, port) in [(0, 5, v4, Some(8_080)), (0, 6, v6, Some(443)), (flow, 7, v6, None)] {
        let hmac = peer.keys.sign_add_address(id, ip, port);
        let option = MptcpOption::AddAddress { address_id: id, address: ip, port, truncated_hmac: Some(hmac) };
        peer.take();
        peer.send(flow, Flags::ACK, options(vec![option]), &[]);
        assert_eq!(announcements(&peer.take()), [(id, ip, port, true)]);
        let expected = SocketAddr::new(ip, port.unwrap_or(41_001));
        assert!(peer.orders.heard().contains(&Heard::Announced(AddressId(id), expected)), "{:?}", peer.orders.heard());
    }
}

// A join to it would go nowhere, or to a service of this host.
#[test]
fn an_address_that_no_other_host_can_have_is_echoed_and_not_passed_on() {
    let mut peer = warm_peer();
    let impossible =
        ["127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.5", "::1", "::", "ff02::5", "::ffff:127.0.0.1"];
    for (address_id, address) in (5..).zip(impossible) {
        let (ip, port): (IpAddr, _) = (address.parse().unwrap(), None);
        let hmac = peer.keys.sign_add_address(address_id, ip, port);
        let option = MptcpOption::AddAddress { address_id, address: ip, port, truncated_hmac: Some(hmac) };
        peer.send(0, Flags::ACK, options(vec![option]), &[]);
        assert_eq!(announcements(&peer.take()), [(address_id, ip, port, true)]);
    }
    assert!(!peer.orders.heard().iter().any(|heard| matches!(heard, Heard::Announced(..))));
}

#[test]
fn an_identifier_cannot_move_to_another_address_but_may_get_another_port() {
    let mut peer = warm_peer();
    let announce = |peer: &mut Peer, ip: &str, port| {
        let ip = ip.parse().unwrap();
        let hmac = peer.keys.sign_add_address(5, ip, port);
        let option = MptcpOption::AddAddress { address_id: 5, address: ip, port, truncated_hmac: Some(hmac) };
        peer.send(0, Flags::ACK, options(vec![option]), &[]);
        peer.orders.heard().iter().filter(|heard| matches!(heard, Heard::Announced(..))).count()
    };
    assert_eq!(announce(&mut peer, "192.0.2.7", Some(80)), 1);
    assert_eq!(announce(&mut peer, "192.0.2.8", Some(80)), 1);
    assert_eq!(announce(&mut peer, "192.0.2.7", Some(81)), 2);
    peer.send(0, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![5] }]), &[]);
    assert_eq!(announce(&mut peer, "192.0.2.8", Some(80)), 3);
}

#[test]
fn an_address_that_goes_down_is_withdrawn_on_another_subflow_and_its_data_goes_there() {
    let (mut pair, orders, id, server) = warm_pair(2, true);
    let data = pattern(1_000_000);
    pair.write_all(0, id, &data, Duration::ZERO);
    pair.run(Duration::from_millis(100));
    // Path 1 loses everything from now on.
    pair.judge = Box::new(|_, _, packet| match [packet.ip.source, packet.ip.destination].contains(&address(0, 1)) {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    pair.run(Duration::from_millis(50));
    let before = pair.received[1].len();
    pair.hosts[0].handle_address_down(pair.now, AddressId(2));
    orders[0].give(&mut pair, 0, PathAction::Remove { connection: id, local: AddressId(2) });
    // Without a timer.
    pair.run(Duration::from_millis(150));
    assert!(pair.received[1].len() > before, "{before}");
    pair.run(SECOND * 2);
    assert_eq!(removals(&sent(&pair, 0)), [[2]]);
    assert!(orders[1].heard().contains(&Heard::Removed(AddressId(2))));
    let gone = Event::SubflowClosed(server, SubflowId(1), CloseReason::AddressGone);
    assert!(pair.events[1].contains(&gone), "{:?}", pair.events[1]);
    pair.run(SECOND * 10);
    assert_eq!(pair.received[1][5..], data);
}

#[test]
fn with_full_mesh_an_address_that_goes_down_is_withdrawn_once_under_the_identifier_the_peer_knows() {
    for (local, wire) in [(1, 0), (2, 2)] {
        let mut pair = Pair::new(2);
        let id = pair.connect(config(), config());
        pair.write_all(0, id, b"hello", Duration::ZERO);
        pair.run(SECOND);
        pair.sent = [Vec::new(), Vec::new()];
        pair.hosts[0].handle_address_down(pair.now, AddressId(local));
        pair.settle();
        pair.run(SECOND * 5);
        assert_eq!(removals(&sent(&pair, 0)), [[wire]]);
        let left = pair.hosts[1].subflow_views(pair.now, pair.accepted().unwrap());
        assert!(!left.is_empty() && left.iter().all(|view| view.remote_address != AddressId(wire)), "{left:?}");
    }
}

#[test]
fn a_withdrawn_address_that_still_answers_keepalives_keeps_its_subflow() {
    let mut peer = warm_peer();
    let flow = peer.join(1);
    peer.take();
    let remove = || options(vec![MptcpOption::RemoveAddress { address_ids: vec![1] }]);
    peer.send(0, Flags::ACK, remove(), &[]);
    let probe = peer.take().into_iter().find(|packet| packet.ip.source == address(1, 1)).unwrap();
    // One before the peer's next expected number: it must answer (RFC 9293, section 3.8.4).
    assert_eq!(probe.segment.seq, peer.flows[flow].host_initial + (peer.flows[flow].ack - 1));
    peer.now += Duration::from_millis(20);
    peer.acknowledge(flow, 0);
    peer.run(SECOND * 30);
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 2);
    // It is used again.
    peer.send_data(flow, 5, b"abc");
    assert_eq!(peer.received, b"helloabc");
}

#[test]
fn a_withdrawn_address_that_answers_no_probe_is_reset_after_three() {
    let mut peer = warm_peer();
    peer.join(1);
    peer.take();
    peer.send(0, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![1, 9] }]), &[]);
    peer.run(SECOND * 30);
    let on_path: Vec<Packet> = peer.take().into_iter().filter(|packet| packet.ip.source == address(1, 1)).collect();
    let resets = on_path.iter().filter(|packet| packet.segment.flags.contains(Flags::RST)).count();
    assert_eq!((on_path.len(), resets), (4, 1), "{on_path:?}");
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1);
}

#[test]
fn identifier_0_withdraws_the_address_of_the_initial_subflow() {
    let mut peer = warm_peer();
    let flow = peer.join(1);
    peer.take();
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![0] }]), &[]);
    assert_eq!(peer.orders.heard().last(), Some(&Heard::Removed(AddressId(0))));
    peer.run(SECOND * 30);
    let views = peer.host.subflow_views(peer.now, peer.id());
    assert_eq!(views.iter().map(|view| view.remote_address).collect::<Vec<_>>(), [AddressId(1)]);
    peer.send_data(flow, 5, b"abc");
    assert_eq!(peer.received, b"helloabc");
}

/// Section 3.4.2: no subflow is opened to a withdrawn address. Announced again, identifier 0 may be another one.
#[test]
fn the_withdrawn_address_of_the_initial_subflow_is_not_joined_before_it_is_announced_anew() {
    let mut peer = warm_peer();
    let flow = peer.join(1);
    let id = peer.id();
    let joined = |peer: &mut Peer, local: u8| {
        peer.take();
        let orders = peer.orders.clone();
        orders.give_to(&mut peer.host, peer.now, create(id, local, 0, false));
        peer.settle();
        let said = peer.take();
        let syns = said.iter().filter(|packet| packet.segment.flags.contains(Flags::SYN));
        syns.map(|syn| SocketAddr::new(syn.ip.destination, syn.segment.destination_port)).collect::<Vec<_>>()
    };
    assert_eq!(joined(&mut peer, 3), [peer.flows[0].peer]);
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![0] }]), &[]);
    assert_eq!(joined(&mut peer, 4), []);
    let (address, port) = (address(0, 2), Some(7_000));
    let truncated_hmac = Some(peer.keys.sign_add_address(0, address, port));
    let announcement = MptcpOption::AddAddress { address_id: 0, address, port, truncated_hmac };
    peer.send(flow, Flags::ACK, options(vec![announcement]), &[]);
    assert_eq!(joined(&mut peer, 4), [SocketAddr::new(address, 7_000)]);
}

#[test]
fn an_address_that_still_works_is_withdrawn_on_another_subflow_too() {
    let (mut pair, orders, id, _) = warm_pair(2, true);
    orders[0].give(&mut pair, 0, PathAction::Remove { connection: id, local: AddressId(1) });
    pair.run(SECOND);
    let removing = |packet: &&Packet| !removals(std::slice::from_ref(packet)).is_empty();
    let said: Vec<Packet> = sent(&pair, 0).iter().filter(removing).cloned().collect();
    assert_eq!(removals(&said), [[0]]);
    assert_eq!(said[0].ip.source, address(0, 1));
    assert!(orders[1].heard().contains(&Heard::Removed(AddressId(0))));
}

#[test]
fn unknown_identifiers_are_ignored() {
    let mut peer = warm_peer();
    peer.send(0, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![200, 201] }]), &[]);
    assert_eq!(peer.take(), []);
    peer.run(SECOND * 10);
    assert!(!peer.take().iter().any(|packet| packet.segment.flags.contains(Flags::RST)));
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1);
}

#[test]
fn an_initial_address_is_withdrawn_as_identifier_0_once_a_new_subflow_can_say_so() {
    let (mut pair, orders, id, _) = warm_pair(2, false);
    pair.hosts[0].handle_address_down(pair.now, AddressId(1));
    orders[0].give(&mut pair, 0, PathAction::Remove { connection: id, local: AddressId(1) });
    assert!(pair.hosts[0].subflow_views(pair.now, id).is_empty());
    assert_eq!(removals(&sent(&pair, 0)), Vec::<Vec<u8>>::new());
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(SECOND * 10);
    assert_eq!(removals(&sent(&pair, 0)), [[0]]);
    let views = pair.hosts[1].subflow_views(pair.now, pair.accepted().unwrap());
    assert_eq!(views.iter().map(|view| view.remote_address).collect::<Vec<_>>(), [AddressId(2)]);
}

#[test]
fn acknowledgements_that_carry_a_signal_are_no_sign_of_congestion() {
    let mut tcp = config();
    tcp.tcp.options.sack = false;
    let mut peer = Peer::connected(tcp);
    peer.acknowledge(0, 0);
    peer.write(&pattern(10_000));
    peer.flows[0].ack = 1;
    peer.take();
    let bare = |peer: &Peer| Dss { data_ack: Some(peer.data_ack(0)), ..Dss::default() };
    for _ in 0..5 {
        let mut with = options(vec![MptcpOption::Priority { backup: true }]);
        with.dss = Some(bare(&peer));
        peer.send(0, Flags::ACK, with, &[]);
    }
    assert!(!peer.take().iter().any(|packet| !packet.segment.payload.is_empty()));
    for _ in 0..3 {
        let dss = bare(&peer);
        peer.signal(0, dss);
    }
    assert!(peer.take().iter().any(|packet| !packet.segment.payload.is_empty()), "plain duplicates are");
}
