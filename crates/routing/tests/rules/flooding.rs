//! Flooding and acknowledgments (RFC 5614, 8; RFC 2328, 13).

use anabranch_policy::Duration;
use anabranch_routing::counters::DropReason;
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{Destination, InterfaceChange, InterfaceConfig, NeighborState};
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, InterfaceId, Lsa, LsaType, RouterId};

use crate::bench::{Bench, backup_mdr, eager, hears, mdr, mdr_hears, other, router_lsa, set, source};

/// The number of multicast updates about one router.
fn floods_of(bench: &mut Bench, router: u32) -> usize {
    let all = bench.updates();
    let of = |lsas: &[anabranch_wire::ospf::AgedLsa]| {
        lsas.iter().filter(|aged| aged.lsa.key().advertising == RouterId(router)).count()
    };
    all.iter().filter(|(_, to, _)| *to == Destination::AllSpfRouters).map(|(_, _, lsas)| of(lsas)).sum()
}

#[test]
fn rfc5614_8_1_an_mdr_floods_a_new_lsa_back_within_100_ms_and_that_acknowledges_it() {
    let mut bench = mdr();
    let counted = bench.router.counters().lsas_flooded;
    bench.update(1, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.1);
    assert_eq!(bench.router.counters().lsas_flooded, counted + 1);
    let updates = bench.updates();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].1, Destination::AllSpfRouters);
    // The age grows by InfTransDelay.
    assert_eq!(updates[0].2[0].age, 2);
    bench.pass_with(8, &[(1, hears(&[100])), (2, hears(&[100]))]);
    let about = |headers: &[anabranch_wire::ospf::LsaHeader]| {
        headers.iter().any(|header| header.key.advertising == RouterId(77))
    };
    assert!(!bench.acknowledgments().iter().any(|(_, _, headers)| about(headers)));
}

#[test]
fn rfc5614_8_1_step_2_nothing_is_flooded_if_the_sender_s_neighbours_are_all_ours() {
    let mut bench = Bench::new(100, |_, _| {});
    bench.pass_with(3, &[(1, hears(&[2, 100])), (2, hears(&[1, 100]))]);
    bench.sent.clear();
    // As multicast 2 has received it; as unicast it has not.
    bench.update(1, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.2);
    assert_eq!(floods_of(&mut bench, 77), 0);
    bench.update(1, false, &[router_lsa(78, 0, &[1])]);
    bench.pass(0.2);
    assert_eq!(floods_of(&mut bench, 78), 1);
}

#[test]
fn rfc5614_8_1_step_3_an_mdr_other_never_floods_back() {
    let (mut bench, hellos) = other();
    bench.update(9, false, &[router_lsa(77, 0, &[1])]);
    bench.pass_with(3, &hellos);
    assert_eq!(floods_of(&mut bench, 77), 0);
}

#[test]
fn rfc5614_8_2_an_mdr_other_acknowledges_a_new_lsa_late_and_to_all() {
    let (mut bench, hellos) = other();
    // The exchange with its Parent, an MDR.
    bench.make_full(9);
    bench.sent.clear();
    bench.update(9, true, &[router_lsa(77, 0, &[1])]);
    let start = bench.now;
    bench.pass_with(8, &hellos);
    let acks = bench.acknowledgments();
    assert_eq!(acks.len(), 1);
    let (at, to, headers) = &acks[0];
    assert_eq!(*to, Destination::AllSpfRouters);
    assert_eq!(headers.len(), 1);
    // RxmtInterval 7 s, AckInterval 1 s: from 5.5 to 6.5 s.
    let waited = at.since(start);
    assert!((Duration::from_millis(5500)..=Duration::from_millis(6500)).contains(&waited), "{waited}");
}

#[test]
fn rfc5614_3_2_packets_of_delayed_acknowledgments_are_ack_interval_apart() {
    let (mut bench, hellos) = other();
    bench.make_full(9);
    bench.sent.clear();
    let mut came = Vec::new();
    for router in 100..140 {
        bench.update(9, true, &[router_lsa(router, 0, &[1])]);
        came.push(bench.now);
        if router % 4 == 3 {
            bench.pass_with(1, &hellos);
        } else {
            bench.pass(0.2);
        }
    }
    bench.pass_with(8, &hellos);
    let acks = bench.acknowledgments();
    assert_eq!(acks.iter().map(|(_, _, headers)| headers.len()).sum::<usize>(), came.len());
    for pair in acks.windows(2) {
        assert!(pair[1].0.since(pair[0].0) >= Duration::from_secs(1));
    }
    for (at, _, headers) in &acks {
        for header in headers {
            let waited = at.since(came[header.key.advertising.0 as usize - 100]);
            assert!((Duration::from_millis(5500)..=Duration::from_millis(6500)).contains(&waited), "{waited}");
        }
    }
}

#[test]
fn rfc5614_8_1_2_a_backup_mdr_floods_after_the_backup_wait_if_someone_was_not_reached() {
    let (mut bench, hellos) = backup_mdr();
    // 9 and its neighbour 8 have it; 1 does not.
    bench.update(9, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.49);
    assert_eq!(floods_of(&mut bench, 77), 0);
    bench.pass(0.11);
    assert_eq!(floods_of(&mut bench, 77), 1);
    bench.pass_with(1, &hellos);
}

#[test]
fn rfc5614_8_a_backup_mdr_does_not_flood_if_another_does_it_in_time() {
    let (mut bench, _) = backup_mdr();
    bench.update(9, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.3);
    // 8 multicasts the same, which 1 receives.
    bench.update(8, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(1.0);
    assert_eq!(floods_of(&mut bench, 77), 0);
}

#[test]
fn rfc5614_8_4_a_backup_mdr_does_not_flood_if_the_one_left_acknowledges_in_time() {
    let mut bench = Bench::new(5, |_, _| {});
    let hellos = [(9, mdr_hears(9, &[5, 8])), (8, mdr_hears(8, &[6, 5, 9])), (6, mdr_hears(6, &[5, 8]))];
    bench.pass_with(3, &hellos);
    assert_eq!(bench.level(), anabranch_routing::neighborhood::Level::BackupMdr);
    // 6 has us as its parent, so that we are adjacent and its acknowledgments count.
    bench.hello(6, crate::bench::Says { parent: 6, backup_parent: 5, ..hears(&[5, 8]) });
    bench.make_full(6);
    bench.sent.clear();
    let lsa = router_lsa(77, 0, &[1]);
    bench.update(9, true, std::slice::from_ref(&lsa));
    bench.acknowledge(6, &[lsa.header()]);
    bench.pass(1.0);
    assert_eq!(floods_of(&mut bench, 77), 0);
}

#[test]
fn rfc5614_8_2_a_duplicate_sent_to_all_is_not_acknowledged_one_sent_to_an_mdr_is_at_once() {
    let mut bench = mdr();
    let lsa = router_lsa(77, 0, &[1]);
    bench.update(1, true, std::slice::from_ref(&lsa));
    bench.pass(0.2);
    bench.sent.clear();
    bench.update(1, true, std::slice::from_ref(&lsa));
    assert!(bench.acknowledgments().is_empty());
    bench.update(1, false, std::slice::from_ref(&lsa));
    let acks = bench.acknowledgments();
    assert_eq!((acks.len(), acks[0].0, acks[0].1), (1, bench.now, Destination::AllSpfRouters));
}

#[test]
fn rfc5614_8_2_a_duplicate_sent_to_an_mdr_other_is_acknowledged_within_the_ack_interval() {
    let (mut bench, hellos) = other();
    let lsa = router_lsa(77, 0, &[1]);
    bench.update(9, true, std::slice::from_ref(&lsa));
    bench.pass_with(20, &hellos);
    bench.sent.clear();
    // Repeatedly from two neighbours: the deadline is not delayed further.
    let mut acks = Vec::new();
    for _ in 0..6 {
        bench.update(9, false, std::slice::from_ref(&lsa));
        assert!(bench.acknowledgments().is_empty());
        bench.pass_with(1, &hellos);
        acks.extend(bench.acknowledgments());
    }
    assert!(acks.len() >= 3, "{acks:?}");
}

#[test]
fn rfc5614_8_an_update_is_taken_from_two_way_neighbours_and_not_from_others() {
    let mut bench = mdr();
    bench.hello(3, hears(&[]));
    assert_eq!(bench.state(3), NeighborState::Init);
    bench.update(3, true, &[router_lsa(77, 0, &[1])]);
    assert_eq!(bench.dropped(DropReason::NeighborState), 1);
    assert!(bench.lsa(LsaType::ROUTER, 77).is_none());
    bench.update(2, true, &[router_lsa(77, 0, &[1])]);
    assert!(bench.lsa(LsaType::ROUTER, 77).is_some());
}

#[test]
fn rfc5614_8_step_8_who_sends_an_old_lsa_gets_the_newer_one_if_it_takes_part_in_the_exchange() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.update(9, true, &[router_lsa(77, 5, &[1])]);
    bench.pass_with(2, &[(9, hears(&[5]))]);
    bench.sent.clear();
    bench.update(9, true, &[router_lsa(77, 4, &[1])]);
    let updates = bench.updates();
    assert_eq!((updates.len(), updates[0].1), (1, Destination::Neighbor(RouterId(9), source(9))));
    assert_eq!(updates[0].2[0].lsa.sequence(), LsaSequence(LsaSequence::INITIAL.0 + 5));
    // From a neighbour in state 2-Way: no answer.
    let mut bench = mdr();
    bench.update(2, true, &[router_lsa(77, 5, &[1])]);
    bench.pass(0.5);
    bench.sent.clear();
    // 1 is not adjacent if this router is not its parent: it is an MDR Other with another one.
    assert_eq!(bench.state(2), NeighborState::TwoWay);
    bench.update(2, true, &[router_lsa(77, 4, &[1])]);
    assert!(bench.updates().is_empty());
    assert_eq!(bench.dropped(DropReason::LsaOlder), 1);
}

#[test]
fn rfc2328_13_step_8_the_newer_one_is_not_sent_again_within_min_ls_arrival() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.update(9, true, &[router_lsa(77, 5, &[1])]);
    bench.pass_with(2, &[(9, hears(&[5]))]);
    let mut answers = |pass: f64| {
        bench.pass(pass);
        bench.sent.clear();
        bench.update(9, true, &[router_lsa(77, 4, &[1])]);
        bench.updates().len()
    };
    assert_eq!([answers(0.0), answers(0.99), answers(0.01)], [1, 0, 1]);
}

#[test]
fn rfc2328_13_step_5a_an_instance_that_comes_sooner_than_min_ls_arrival_is_dropped() {
    let mut bench = mdr();
    let (start, mut dropped) = (bench.now, 0);
    // In ms. The second one may come soon, and then none before MinLSArrival is kept on the average.
    for (sequence, (at, taken)) in [
        (0, true),
        (10, true),
        (1000, false),
        (1009, false),
        (1011, true),
        (2009, false),
        (2012, true),
        (5000, true),
        (5001, true),
        (7000, true),
        (8500, true),
        // Twice MinLSArrival after the last but one, and MinLSArrival after the last.
        (9000, true),
        (10_000, true),
    ]
    .into_iter()
    .enumerate()
    {
        bench.pass_until(start + Duration::from_millis(at));
        // A sign of life.
        bench.hello(1, hears(&[100]));
        bench.update(1, true, &[router_lsa(77, sequence as i32, &[1])]);
        dropped += u64::from(!taken);
        assert_eq!(bench.dropped(DropReason::LsaTooSoon), dropped, "{at} ms");
        let known = bench.lsa(LsaType::ROUTER, 77).unwrap().lsa.sequence();
        assert_eq!(known == LsaSequence(LsaSequence::INITIAL.0 + sequence as i32), taken, "{at} ms");
    }
}

#[test]
fn rfc5614_8_3_what_is_not_acknowledged_is_sent_again_to_the_neighbour_alone() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    bench.pass_with(8, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.sent.clear();
    let again = bench.router.counters().lsas_retransmitted;
    bench.update(8, true, &[router_lsa(77, 0, &[1]), router_lsa(78, 0, &[1])]);
    bench.pass_with(8, &[(9, hears(&[5])), (8, hears(&[5]))]);
    let to_9 = Destination::Neighbor(RouterId(9), source(9));
    let updates: Vec<_> = bench.updates().into_iter().filter(|(_, to, _)| *to == to_9).collect();
    let about = |lsas: &Vec<anabranch_wire::ospf::AgedLsa>| {
        lsas.iter().filter(|aged| aged.lsa.key().advertising.0 > 70).count()
    };
    assert!(updates.iter().any(|(_, _, lsas)| about(lsas) == 2), "both in one packet: {updates:?}");
    assert!(bench.router.counters().lsas_retransmitted >= again + 2);
    // The acknowledgment ends the retransmissions.
    let headers: Vec<_> = bench.router.lsas(bench.now).map(|(_, aged)| aged.header()).collect();
    bench.acknowledge(9, &headers);
    assert_eq!(bench.neighbor(9).unacknowledged, 0);
}

#[test]
fn rfc5614_8_1_step_1_who_acknowledged_an_lsa_before_it_came_is_not_asked_for_another_acknowledgment() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    let headers: Vec<_> = bench.router.lsas(bench.now).map(|(_, aged)| aged.header()).collect();
    bench.acknowledge(9, &headers);
    let (ahead, behind) = (router_lsa(77, 3, &[1]), router_lsa(78, 3, &[1]));
    bench.acknowledge(9, &[ahead.header(), router_lsa(78, 2, &[1]).header()]);
    bench.update(8, true, &[ahead, behind]);
    // Only the one of which it acknowledged an older instance.
    assert_eq!(bench.neighbor(9).unacknowledged, 1);
}

#[test]
fn rfc2328_13_step_7a_the_same_lsa_from_a_neighbour_is_its_acknowledgment() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    let headers: Vec<_> = bench.router.lsas(bench.now).map(|(_, aged)| aged.header()).collect();
    bench.acknowledge(9, &headers);
    bench.update(8, true, &[router_lsa(77, 0, &[1])]);
    assert_eq!(bench.neighbor(9).unacknowledged, 1);
    bench.update(9, true, &[router_lsa(77, 0, &[1])]);
    assert_eq!(bench.neighbor(9).unacknowledged, 0);
}

/// A router with two MANET interfaces; 9 is a neighbour on both, 3 only on the second.
fn two_interfaces(own: u32, parent: u32) -> Bench {
    let mut bench = Bench::new(own, |_, _| {});
    let mut second = InterfaceConfig::manet(InterfaceId(2), source(own));
    set(&mut second, AdjConnectivity::Uniconnected, LsaFullness::Full);
    bench.router.add_interface(bench.now, second).unwrap();
    bench.router.handle_interface(bench.now, InterfaceId(2), InterfaceChange::Up).unwrap();
    for _ in 0..3 {
        bench.hello_on(1, 9, mdr_hears(parent, &[own, 8]));
        bench.hello_on(1, 8, hears(&[own, 9]));
        bench.hello_on(2, 9, mdr_hears(parent, &[own, 3, 4]));
        bench.hello_on(2, 3, hears(&[own, 9]));
        bench.hello_on(2, 4, hears(&[own, 9]));
        bench.pass(1.0);
    }
    bench.sent.clear();
    bench
}

#[test]
fn rfc5614_8_1_step_6_on_another_interface_the_largest_of_the_covered_floods_and_the_rest_wait() {
    // From 8 on the first interface; 9, on both, has received it and is larger than 5: it will flood on the second.
    let mut bench = two_interfaces(5, 9);
    bench.update(8, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.4);
    assert_eq!(floods_of(&mut bench, 77), 0);
    bench.pass(0.3);
    assert_eq!(floods_of(&mut bench, 77), 1, "nobody did it");
    // 100 is larger than 9, which is no MDR.
    let mut bench = two_interfaces(100, 0);
    bench.update(8, true, &[router_lsa(77, 0, &[1])]);
    bench.pass(0.1);
    assert!(floods_of(&mut bench, 77) >= 1);
}

#[test]
fn rfc2328_13_7_an_acknowledgment_of_another_instance_removes_nothing() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    let headers: Vec<_> = bench.router.lsas(bench.now).map(|(_, aged)| aged.header()).collect();
    bench.acknowledge(9, &headers);
    bench.update(8, true, &[router_lsa(77, 5, &[1])]);
    bench.acknowledge(9, &[router_lsa(77, 4, &[1]).header()]);
    assert_eq!(bench.neighbor(9).unacknowledged, 1);
    assert_eq!(bench.dropped(DropReason::QuestionableAcknowledgment), 1);
}

#[test]
fn rfc5614_8_4_acknowledgments_of_neighbours_that_are_not_adjacent_are_dropped() {
    let mut bench = mdr();
    assert_eq!(bench.state(2), NeighborState::TwoWay);
    bench.acknowledge(2, &[router_lsa(77, 0, &[1]).header()]);
    assert_eq!(bench.dropped(DropReason::NeighborState), 1);
}

#[test]
fn rfc2328_13_step_8_an_older_lsa_is_answered_unless_ours_waits_for_the_sequence_numbers_to_begin_anew() {
    let mut bench = Bench::new(1, |_, interface| eager(interface));
    let hellos = [(8, hears(&[1])), (9, hears(&[1]))];
    bench.pass_with(3, &hellos);
    bench.make_full(8);
    bench.make_full(9);
    let instance = |router: u32, sequence: LsaSequence, age: u16| {
        let aged = router_lsa(router, 0, &[9]);
        let lsa = Lsa::new(aged.lsa.key(), sequence, aged.lsa.body().clone()).unwrap();
        AgedLsa { age, lsa }
    };
    let (last, other) = (LsaSequence::MAX, LsaSequence(5));
    // 8 acknowledges nothing, so that those of the greatest age are kept.
    let ours = [(76, last, 1), (77, last, MAX_AGE), (78, other, MAX_AGE)];
    for (router, sequence, age) in ours {
        bench.update(9, true, &[instance(router, sequence, 1)]);
        bench.pass_with(2, &hellos);
        if age > 1 {
            bench.update(9, true, &[instance(router, sequence, age)]);
            bench.pass_with(2, &hellos);
        }
    }
    let answered = ours.map(|(router, ..)| {
        bench.sent.clear();
        bench.update(9, true, &[instance(router, LsaSequence(4), 1)]);
        bench.pass(0.1);
        let to_nine = |to: &Destination| matches!(to, Destination::Neighbor(at, _) if *at == RouterId(9));
        bench.updates().iter().filter(|(_, to, _)| to_nine(to)).count()
    });
    assert_eq!(answered, [1, 0, 1]);
}
