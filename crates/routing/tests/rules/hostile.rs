//! Hostile packets: counted, with bounded memory.

use anabranch_routing::counters::DropReason;
use anabranch_routing::{NeighborState, Reception};
use anabranch_wire::ospf::lsa::LsaSequence;
use anabranch_wire::ospf::{
    AgedLsa, AreaId, Body, InstanceId, InterfaceId, Lsa, LsaBody, LsaKey, LsaType, Packet, RouterId,
};

use crate::bench::{Bench, Says, eager, hears, hello, mdr, router_lsa, source};

#[test]
fn packets_of_another_area_instance_router_id_or_source_are_dropped() {
    let mut bench = Bench::new(5, |_, _| {});
    let (body, lls) = hello(&hears(&[5]));
    let good = Packet {
        router: RouterId(9),
        area: AreaId(0),
        instance: InstanceId(0),
        body: Body::Hello(body),
        lls: Some(lls),
    };
    let how = Reception { source: source(9), multicast: true, signal: None };
    let cases = [
        (Packet { area: AreaId(1), ..good.clone() }, how, 1, DropReason::Area),
        (Packet { instance: InstanceId(1), ..good.clone() }, how, 1, DropReason::Instance),
        (Packet { router: RouterId(0), ..good.clone() }, how, 1, DropReason::RouterId),
        (Packet { router: RouterId(5), ..good.clone() }, how, 1, DropReason::DuplicateRouterId),
        (good.clone(), Reception { source: "2001:db8::1".parse().unwrap(), ..how }, 1, DropReason::Source),
        (good, how, 7, DropReason::Interface),
    ];
    for (packet, how, interface, reason) in cases {
        let before = bench.dropped(reason);
        bench.router.handle_packet(bench.now, InterfaceId(interface), &how, &packet);
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    assert_eq!(bench.router.neighbors(bench.now).count(), 0);
}

#[test]
fn neighbours_lsas_and_the_neighbours_of_neighbours_are_bounded() {
    let mut bench = Bench::new(5, |config, interface| {
        config.limits.neighbors = 10;
        config.limits.lsas = 20;
        eager(interface);
    });
    for router in 1000..2000 {
        bench.hello(router, hears(&[5]));
    }
    assert_eq!(bench.router.neighbors(bench.now).count(), 10);
    assert_eq!(bench.dropped(DropReason::NeighborLimit), 990);
    for router in 3000..4000 {
        bench.update(1000, true, &[router_lsa(router, 0, &[])]);
    }
    assert!(bench.router.lsas(bench.now).count() <= 20 + 3, "three of them are own");
    assert!(bench.dropped(DropReason::LsaLimit) >= 980);
    let many =
        Says { differential: true, lists: [vec![], vec![], vec![], vec![], (1..5000).collect()], ..Says::default() };
    bench.hello(1000, many);
    bench.pass(1.0);
}

#[test]
fn lsas_of_a_reserved_scope_or_number_are_dropped() {
    let mut bench = mdr();
    let lsa = |kind, sequence| {
        let key = LsaKey { kind: LsaType(kind), advertising: RouterId(77), ..LsaKey::default() };
        let body = LsaBody::Unknown(vec![1, 2, 3, 4].into());
        AgedLsa { age: 1, lsa: Lsa::new(key, LsaSequence(sequence), body).unwrap() }
    };
    bench.update(1, true, &[lsa(0xe123, LsaSequence::INITIAL.0), lsa(0xa123, i32::MIN)]);
    assert_eq!((bench.dropped(DropReason::LsaType), bench.dropped(DropReason::LsaHeader)), (1, 1));
    // RFC 5340, 4.5.2: an unknown type with the U bit is flooded; without it, it stays on the link.
    bench.sent.clear();
    bench.update(1, true, &[lsa(0xa123, LsaSequence::INITIAL.0)]);
    bench.pass(0.2);
    assert_eq!(bench.updates().len(), 1);
    assert!(bench.lsa(LsaType(0xa123), 77).is_some());
}

#[test]
fn a_neighbour_that_acknowledges_nothing_does_not_fill_memory() {
    let mut bench = Bench::new(5, |config, interface| {
        config.limits.retransmissions = 50;
        eager(interface);
    });
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    for router in 3000..3100 {
        bench.update(8, true, &[router_lsa(router, 0, &[])]);
        assert!(bench.neighbor(9).unacknowledged <= 50);
    }
    assert!(bench.dropped(DropReason::RetransmissionLimit) >= 1);
    assert!(bench.state(9) < NeighborState::Full);
}

#[test]
fn packets_that_are_not_for_the_neighbour_s_state_are_counted() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.update(9, true, &[router_lsa(1, 0, &[])]);
    assert_eq!(bench.dropped(DropReason::UnknownNeighbor), 1);
    bench.hello(9, hears(&[]));
    bench.give(9, false, Body::LinkStateRequest(Default::default()), None);
    bench.acknowledge(9, &[]);
    assert_eq!(bench.dropped(DropReason::NeighborState), 2);
}

#[test]
fn a_forger_who_renews_our_lsa_makes_us_answer_no_faster_than_others_accept() {
    let mut bench = mdr();
    let before = bench.router.counters().lsas_originated;
    for round in 0..100 {
        bench.update(1, true, &[router_lsa(100, 100 + 2 * round, &[66])]);
        bench.pass(0.1);
    }
    // In ten seconds, with MinLSArrival 1 s.
    assert!(bench.router.counters().lsas_originated - before <= 11);
}
