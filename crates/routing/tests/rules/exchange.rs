//! The exchange of databases (RFC 2328, 10; RFC 5614, 7; RFC 5243).

use anabranch_routing::counters::DropReason;
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{Destination, Event, InterfaceChange, InterfaceConfig, InterfaceKind, NeighborState};
use anabranch_wire::ospf::lls::MdrDescription;
use anabranch_wire::ospf::{
    Body, DatabaseDescription, DescriptionFlags, InterfaceId, LinkStateRequest, Lls, LsaHeader, LsaKey, LsaType,
    RouterId, Tlv,
};

use crate::bench::{Bench, OPTIONS, Says, eager, hears, mdr, mdr_hears, other, router_lsa, set, source};

fn description(flags: [bool; 3], sequence: u32, headers: Vec<LsaHeader>) -> Body {
    let flags = DescriptionFlags { init: flags[0], more: flags[1], master: flags[2], ipv6_mtu_differs: false };
    Body::DatabaseDescription(DatabaseDescription { options: OPTIONS, interface_mtu: 1500, flags, sequence, headers })
}

/// Router 5 and its neighbour, forming an adjacency.
fn beginning(neighbor: u32) -> Bench {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(neighbor, hears(&[5]))]);
    assert_eq!(bench.state(neighbor), NeighborState::ExStart);
    bench
}

#[test]
fn rfc5614_7_4_the_first_description_tells_the_roles_and_the_others_do_not() {
    let mut bench = beginning(9);
    let (first, lls) = bench.descriptions().remove(0);
    assert!(first.flags.init && first.flags.more && first.flags.master && first.headers.is_empty());
    // Sent while the interface was Waiting, so that there is no Parent yet.
    assert_eq!(lls.unwrap().mdr_description().unwrap().designated_router, RouterId::NONE);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    let (second, lls) = bench.descriptions().remove(0);
    assert_eq!((second.flags.master, second.sequence, lls), (false, 500, None));
}

#[test]
fn rfc5614_7_4_a_first_description_that_is_repeated_tells_the_roles_of_now() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    // Waiting: the adjacency is needed before the first election.
    bench.hello(9, hears(&[5]));
    let (_, lls) = bench.descriptions().remove(0);
    assert_eq!(lls.unwrap().mdr_description().unwrap().designated_router, RouterId(0));
    bench.pass_with(8, &[(9, hears(&[5]))]);
    let all = bench.descriptions();
    let roles = all.last().unwrap().1.as_ref().unwrap().mdr_description().unwrap();
    assert_ne!(roles.designated_router, RouterId(0));
}

#[test]
fn rfc2328_10_6_the_larger_router_id_is_the_master() {
    let mut bench = beginning(3);
    let sequence = bench.descriptions().last().unwrap().0.sequence;
    // The neighbour's claim to be master is ignored; ours is repeated at once, so that it need not wait for
    // RxmtInterval.
    bench.give(3, false, description([true, true, true], 700, vec![]), None);
    assert_eq!(bench.state(3), NeighborState::ExStart);
    assert_eq!(bench.descriptions().len(), 1);
    bench.give(3, false, description([false, false, false], sequence, vec![]), None);
    assert_eq!(bench.state(3), NeighborState::Exchange);
    let (next, _) = bench.descriptions().remove(0);
    assert_eq!((next.flags.master, next.sequence), (true, sequence.wrapping_add(1)));
    assert!(!next.headers.is_empty());
}

#[test]
fn rfc2328_10_8_the_master_repeats_its_description() {
    let mut bench = beginning(3);
    let sequence = bench.descriptions().last().unwrap().0.sequence;
    bench.give(3, false, description([false, true, false], sequence, vec![]), None);
    bench.sent.clear();
    // After 1, 2 and 4 s, of which the last is too late for a neighbour that does not answer.
    bench.pass_with(5, &[(3, hears(&[5]))]);
    let all = bench.descriptions();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one.0.sequence == sequence.wrapping_add(1)));
}

#[test]
fn rfc2328_10_6_the_slave_answers_a_description_again_that_comes_again() {
    let mut bench = beginning(9);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    let first = bench.descriptions();
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    assert_eq!(bench.descriptions().last(), first.last());
    assert_eq!(bench.dropped(DropReason::DuplicateDescription), 1);
}

#[test]
fn rfc2328_10_6_a_description_out_of_sequence_begins_the_exchange_again() {
    for wrong in [
        description([false, true, true], 502, vec![]),
        description([false, true, false], 501, vec![]),
        description([true, true, true], 501, vec![]),
    ] {
        let mut bench = beginning(9);
        bench.give(9, false, description([true, true, true], 500, vec![]), None);
        assert_eq!(bench.state(9), NeighborState::Exchange);
        bench.give(9, false, wrong, None);
        assert_eq!(bench.state(9), NeighborState::ExStart);
    }
}

#[test]
fn rfc2328_10_6_a_description_with_a_larger_mtu_is_rejected() {
    let mut bench = beginning(9);
    let Body::DatabaseDescription(mut body) = description([true, true, true], 500, vec![]) else { unreachable!() };
    body.interface_mtu = 1501;
    bench.give(9, false, Body::DatabaseDescription(body), None);
    assert_eq!((bench.state(9), bench.dropped(DropReason::Mtu)), (NeighborState::ExStart, 1));
}

#[test]
fn rfc5614_7_5_and_rfc5243_what_the_neighbour_described_is_not_described_to_it() {
    let mut bench = beginning(9);
    // More than one description holds: the last three remain for the second answer.
    let many: Vec<_> = (1000..1100).map(|router| router_lsa(router, 0, &[])).collect();
    bench.update(9, true, &many);
    bench.update(9, true, &[router_lsa(1200, 5, &[]), router_lsa(1201, 5, &[]), router_lsa(1202, 5, &[])]);
    bench.sent.clear();
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    let described = |bench: &mut Bench| -> Vec<u32> {
        bench.descriptions()[0].0.headers.iter().map(|one| one.key.advertising.0).collect()
    };
    assert!(!described(&mut bench).contains(&1200));
    // The master has the same 1200, an older 1201, and a newer 1202.
    let headers =
        [(1200, 5), (1201, 4), (1202, 6)].map(|(router, sequence)| router_lsa(router, sequence, &[]).header());
    bench.give(9, false, description([false, true, true], 501, headers.to_vec()), None);
    let described = described(&mut bench);
    assert!(!described.contains(&1200) && described.contains(&1201) && !described.contains(&1202), "{described:?}");
}

#[test]
fn rfc2328_10_9_what_is_lacking_is_requested_and_the_adjacency_is_full_when_it_came() {
    let mut bench = beginning(9);
    let lsa = router_lsa(77, 0, &[9]);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    bench.give(9, false, description([false, false, true], 501, vec![lsa.header()]), None);
    assert_eq!(bench.state(9), NeighborState::Loading);
    let requests = bench.take(|packet| match &packet.body {
        Body::LinkStateRequest(request) => Some(request.keys.clone()),
        _ => None,
    });
    assert_eq!(requests.iter().map(|(_, _, keys)| keys.clone()).collect::<Vec<_>>(), [vec![lsa.lsa.key()]]);
    // It is lost; the request is repeated after HelloInterval, and then later each time.
    bench.pass_with(2, &[(9, hears(&[5]))]);
    let again = bench.take(|packet| matches!(packet.body, Body::LinkStateRequest(_)).then_some(()));
    assert_eq!(again.len(), 1);
    bench.update(9, false, &[lsa]);
    assert_eq!(bench.state(9), NeighborState::Full);
}

#[test]
fn a_new_instance_is_taken_at_once_after_one_that_was_requested() {
    let mut bench = beginning(9);
    let old = router_lsa(77, 0, &[9]);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    bench.give(9, false, description([false, false, true], 501, vec![old.header()]), None);
    bench.update(9, false, &[old]);
    assert_eq!(bench.state(9), NeighborState::Full);
    let newer = router_lsa(77, 1, &[5, 9]);
    bench.update(9, true, std::slice::from_ref(&newer));
    assert_eq!(bench.lsa(LsaType::ROUTER, 77).unwrap().lsa, newer.lsa);
    // That was the one that may.
    bench.update(9, true, &[router_lsa(77, 2, &[9])]);
    assert_eq!(bench.dropped(DropReason::LsaTooSoon), 1);
}

#[test]
fn a_request_asks_for_as_much_as_one_update_has_room_for() {
    let mut bench = beginning(9);
    let links: Vec<u32> = (1..=60).collect();
    // 24 bytes and 16 for each link are 984: one fits into 1500.
    let lsas: Vec<_> = (71..=73).map(|router| router_lsa(router, 0, &links)).collect();
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    let headers = lsas.iter().map(|aged| aged.header()).collect();
    bench.give(9, false, description([false, false, true], 501, headers), None);
    for lsa in lsas {
        let requests = bench.take(|packet| match &packet.body {
            Body::LinkStateRequest(request) => Some(request.keys.clone()),
            _ => None,
        });
        assert_eq!(requests.into_iter().map(|(_, _, keys)| keys).collect::<Vec<_>>(), [vec![lsa.lsa.key()]]);
        bench.update(9, false, &[lsa]);
    }
    assert_eq!(bench.state(9), NeighborState::Full);
}

#[test]
fn rfc4222_few_databases_are_exchanged_at_once_and_the_others_in_their_turn() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    let neighbors: Vec<u32> = (11..=16).collect();
    let hellos: Vec<(u32, Says)> = neighbors.iter().map(|router| (*router, hears(&[5]))).collect();
    bench.pass_with(2, &hellos);
    let lsa = |router: u32| router_lsa(router, 0, &[5]);
    for router in &neighbors {
        bench.give(*router, false, description([true, true, true], 500, vec![]), None);
    }
    let state = |bench: &Bench, state| neighbors.iter().filter(|router| bench.state(**router) == state).count();
    assert_eq!((state(&bench, NeighborState::Exchange), state(&bench, NeighborState::ExStart)), (4, 2));
    bench.descriptions();
    // One ends: the first of those that wait is told so, and begins.
    bench.give(11, false, description([false, false, true], 501, vec![lsa(11).header()]), None);
    assert_eq!(bench.descriptions().len(), 1, "the answer");
    bench.update(11, false, &[lsa(11)]);
    assert_eq!(bench.state(11), NeighborState::Full);
    let begun = bench.take(|packet| match &packet.body {
        Body::DatabaseDescription(description) => Some(description.flags.init),
        _ => None,
    });
    assert_eq!(
        begun.iter().map(|(_, to, init)| (*to, *init)).collect::<Vec<_>>(),
        [(Destination::Neighbor(RouterId(15), source(15)), true)]
    );
    bench.give(15, false, description([true, true, true], 500, vec![]), None);
    assert_eq!(bench.state(15), NeighborState::Exchange);
    assert_eq!(bench.state(16), NeighborState::ExStart);
}

#[test]
fn rfc2328_10_7_a_request_is_answered_and_one_for_what_is_not_there_begins_the_exchange_again() {
    let mut bench = beginning(9);
    bench.make_full(9);
    bench.pass(0.25);
    let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(5), ..LsaKey::default() };
    bench.sent.clear();
    bench.give(9, false, Body::LinkStateRequest(LinkStateRequest { keys: vec![key] }), None);
    assert_eq!(bench.updates()[0].2[0].lsa.key(), key);
    let missing = LsaKey { advertising: RouterId(66), ..key };
    bench.give(9, false, Body::LinkStateRequest(LinkStateRequest { keys: vec![missing] }), None);
    assert_eq!(bench.state(9), NeighborState::ExStart);
}

#[test]
fn rfc2328_13_step_6_an_lsa_older_than_what_its_sender_described_is_a_bad_exchange() {
    let mut bench = beginning(9);
    bench.update(9, true, &[router_lsa(77, 1, &[9])]);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    bench.give(9, false, description([false, false, true], 501, vec![router_lsa(77, 2, &[9]).header()]), None);
    assert_eq!(bench.state(9), NeighborState::Loading);
    bench.update(9, false, &[router_lsa(77, 1, &[9])]);
    assert_eq!(bench.state(9), NeighborState::ExStart);
}

#[test]
fn rfc5614_7_5_a_description_from_an_mdr_makes_an_adjacency_at_once() {
    // The neighbour is in state Init; its description says that it is an MDR and we are its backup parent.
    let mut bench = mdr();
    bench.hello(200, hears(&[]));
    assert_eq!(bench.state(200), NeighborState::Init);
    let roles = MdrDescription { designated_router: RouterId(200), backup_designated_router: RouterId(100) };
    let lls = Lls { tlvs: vec![Tlv::MdrDescription(roles)] };
    bench.give(200, false, description([true, true, true], 500, vec![]), Some(lls));
    assert_eq!(bench.state(200), NeighborState::Exchange);
}

#[test]
fn rfc5614_7_5_a_backup_mdr_that_asks_a_backup_mdr_for_an_adjacency_gets_it() {
    let (mut bench, hellos) = crate::bench::backup_mdr();
    let backup = Says { parent: 9, backup_parent: 8, ..hears(&[1, 5, 9]) };
    bench.hello(8, backup.clone());
    bench.pass_with(1, &[hellos[0].clone(), (8, backup), hellos[2].clone()]);
    bench.hello(8, Says { parent: 9, backup_parent: 8, ..hears(&[1, 5, 9]) });
    let before = bench.state(8);
    let roles = MdrDescription { designated_router: RouterId(9), backup_designated_router: RouterId(8) };
    let lls = Lls { tlvs: vec![Tlv::MdrDescription(roles)] };
    bench.give(8, false, description([true, true, true], 500, vec![]), Some(lls));
    assert_eq!((before, bench.state(8)), (NeighborState::TwoWay, NeighborState::Exchange));
}

#[test]
fn rfc5614_7_2_an_mdr_other_is_adjacent_with_its_parent_only_and_with_who_asks_by_the_a_bit() {
    let (mut bench, hellos) = other();
    bench.pass_with(1, &hellos);
    assert_eq!(bench.state(9), NeighborState::ExStart, "its Parent");
    assert_eq!((bench.state(8), bench.state(7)), (NeighborState::TwoWay, NeighborState::TwoWay));
    bench.hello(7, Says { a_bit: true, ..hears(&[1, 8, 9]) });
    bench.pass_with(1, &hellos[..2]);
    assert_eq!(bench.state(7), NeighborState::ExStart);
}

#[test]
fn rfc5614_7_3_an_adjacency_of_two_mdr_others_is_dropped() {
    let (mut bench, _) = other();
    assert_eq!(bench.state(9), NeighborState::ExStart);
    // 9 is no longer an MDR.
    bench.hello(9, hears(&[1, 7, 8]));
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    bench.hello(9, mdr_hears(9, &[1, 7, 8]));
    assert_eq!(bench.state(9), NeighborState::ExStart);
}

/// A description that ends any adjacency.
pub fn mismatch() -> Body {
    description([true, true, true], 9999, vec![])
}

/// A MANET interface that does not accept neighbours whose exchange does not end.
fn finishing(interface: &mut InterfaceConfig, adj_connectivity: AdjConnectivity) {
    set(interface, adj_connectivity, LsaFullness::Full);
    if let InterfaceKind::Manet(manet) = &mut interface.kind {
        manet.acceptance.finishing = true;
    }
}

/// A neighbour of the highest priority that is an MDR says nothing but Hello.
fn stranger() -> Says {
    Says { parent: 99, ..hears(&[5, 3]) }
}

#[test]
fn a_neighbour_whose_exchange_does_not_end_is_not_accepted_for_a_while() {
    let mut bench = Bench::new(5, |_, interface| finishing(interface, AdjConnectivity::Uniconnected));
    bench.pass_with(4, &[(3, mdr_hears(3, &[5, 99])), (99, stranger())]);
    assert_eq!(bench.state(99), NeighborState::ExStart);
    bench.pass_with(3, &[(3, mdr_hears(3, &[5, 99])), (99, stranger())]);
    assert_eq!(bench.state(99), NeighborState::Down);
    assert!(bench.dropped(DropReason::Unfinished) > 0);
    assert_eq!(bench.router.counters().exchanges_failed, 1);
    let told: Vec<Event> = core::iter::from_fn(|| bench.router.poll_event()).collect();
    assert!(
        told.iter().any(|event| matches!(event, Event::Unfinished { neighbor: RouterId(99), other_mtu: None, .. }))
    );
}

#[test]
fn an_mtu_that_changes_begins_exchanges_anew() {
    let mut bench = Bench::new(5, |_, interface| finishing(interface, AdjConnectivity::Full));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    let Body::DatabaseDescription(mut body) = description([true, true, true], 500, vec![]) else { return };
    body.interface_mtu = 1400;
    bench.give(9, false, Body::DatabaseDescription(body.clone()), None);
    // Ours has another MTU, so that it does not answer.
    bench.pass_with(5, &[(9, hears(&[5]))]);
    assert_eq!(bench.state(9), NeighborState::Down);
    let told: Vec<Event> = core::iter::from_fn(|| bench.router.poll_event()).collect();
    assert!(told.iter().any(|event| matches!(event, Event::Unfinished { other_mtu: Some(1400), .. })), "{told:?}");
    bench.descriptions();
    bench.router.handle_interface(bench.now, InterfaceId(1), InterfaceChange::Mtu(1400)).unwrap();
    bench.pass_with(1, &[(9, hears(&[5]))]);
    assert_eq!(bench.state(9), NeighborState::ExStart);
    assert_eq!(bench.descriptions().last().unwrap().0.interface_mtu, 1400);
    assert!(bench.router.handle_interface(bench.now, InterfaceId(1), InterfaceChange::Mtu(1279)).is_err());
    assert!(bench.router.handle_interface(bench.now, InterfaceId(1), InterfaceChange::Mtu(1280)).is_ok());
}

#[test]
fn an_mtu_that_changes_begins_unfinished_exchanges_anew_and_leaves_who_is_full() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(8, hears(&[5])), (9, hears(&[5]))]);
    bench.make_full(8);
    bench.give(9, false, description([true, true, true], 500, vec![]), None);
    assert_eq!(bench.state(9), NeighborState::Exchange);
    bench.descriptions();
    bench.router.handle_interface(bench.now, InterfaceId(1), InterfaceChange::Mtu(1400)).unwrap();
    bench.pass(0.1);
    assert_eq!((bench.state(8), bench.state(9)), (NeighborState::Full, NeighborState::ExStart));
    assert!(bench.descriptions().iter().all(|(one, _)| one.flags.init && one.interface_mtu == 1400));
}
