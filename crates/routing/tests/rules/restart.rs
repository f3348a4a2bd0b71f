//! Neighbours that begin anew before they are missed, and this router's own beginning (RFC 2328, 10.3, 13 and 13.4).

use anabranch_policy::Duration;
use anabranch_routing::counters::DropReason;
use anabranch_routing::{Destination, InterfaceKind, NeighborState};
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, Body, DatabaseDescription, DescriptionFlags, LsaHeader, LsaType, RouterId};

use crate::bench::{Bench, OPTIONS, Says, eager, hears, mdr, router_lsa, source};

/// The exchange with a neighbour of a larger router ID that describes one LSA, which it has and this router lacks.
fn fetch(bench: &mut Bench, from: u32, lsa: &AgedLsa) {
    let describe = |bench: &mut Bench, [init, more]: [bool; 2], sequence, headers: Vec<LsaHeader>| {
        let flags = DescriptionFlags { init, more, master: true, ipv6_mtu_differs: false };
        let description = DatabaseDescription { options: OPTIONS, interface_mtu: 1500, flags, sequence, headers };
        bench.give(from, false, Body::DatabaseDescription(description), None);
    };
    describe(bench, [true, true], 500, Vec::new());
    describe(bench, [false, false], 501, vec![lsa.header()]);
    assert_eq!(bench.state(from), NeighborState::Loading);
    bench.update(from, false, std::slice::from_ref(lsa));
    assert_eq!(bench.state(from), NeighborState::Full);
}

fn flushed(aged: AgedLsa) -> AgedLsa {
    AgedLsa { age: MAX_AGE, ..aged }
}

#[test]
fn an_instance_comes_not_too_soon_after_two_that_were_requested() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    fetch(&mut bench, 9, &router_lsa(77, 0, &[9]));
    fetch(&mut bench, 8, &router_lsa(77, 1, &[8]));
    bench.update(8, true, &[router_lsa(77, 2, &[8, 9])]);
    assert_eq!(bench.dropped(DropReason::LsaTooSoon), 0);
    // From here on the pace of flooding counts.
    bench.update(8, true, &[router_lsa(77, 3, &[8])]);
    assert_eq!(bench.dropped(DropReason::LsaTooSoon), 1);
}

#[test]
fn a_flush_is_no_instance_after_which_the_next_comes_too_soon() {
    let mut bench = mdr();
    bench.update(1, true, &[router_lsa(77, 0, &[1])]);
    bench.update(1, true, &[flushed(router_lsa(77, 0, &[1]))]);
    bench.update(1, true, &[router_lsa(77, 1, &[1])]);
    assert_eq!(bench.dropped(DropReason::LsaTooSoon), 0);
    // A flush that comes too soon itself is dropped, and so is what follows.
    bench.update(1, true, &[flushed(router_lsa(77, 1, &[1]))]);
    bench.update(1, true, &[router_lsa(77, 2, &[1])]);
    assert_eq!(bench.dropped(DropReason::LsaTooSoon), 2);
}

#[test]
fn a_neighbour_that_begins_anew_gets_its_flushed_lsas_in_the_exchange_and_not_after_rxmt_interval() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    let all = [(9, hears(&[5])), (8, hears(&[5])), (7, hears(&[5]))];
    bench.pass_with(2, &all);
    [7, 8, 9].into_iter().for_each(|router| bench.make_full(router));
    bench.update(9, true, &[flushed(router_lsa(9, 4, &[5]))]);
    assert!(bench.lsa(LsaType::ROUTER, 9).is_none(), "nobody had it");
    bench.update(9, true, &[router_lsa(9, 4, &[5])]);
    bench.update(9, true, &[flushed(router_lsa(9, 4, &[5]))]);
    assert!(bench.lsa(LsaType::ROUTER, 9).is_some(), "7 and 8 did not acknowledge it");
    bench.hello(9, hears(&[]));
    bench.hello(9, hears(&[5]));
    bench.sent.clear();
    bench.describe(9);
    bench.pass(0.1);
    let to_9 = Destination::Neighbor(RouterId(9), source(9));
    let sent = bench.updates().into_iter().filter(|(_, to, _)| *to == to_9).flat_map(|(_, _, lsas)| lsas);
    let ages: Vec<u16> = sent.filter(|one| one.lsa.key().advertising == RouterId(9)).map(|one| one.age).collect();
    assert_eq!(ages, [MAX_AGE]);
}

#[test]
fn rfc2328_13_4_the_first_instance_overtakes_one_that_was_flushed_before_it() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    bench.make_full(9);
    // Before the first Router-LSA, which waits for more adjacencies.
    assert!(bench.lsa(LsaType::ROUTER, 5).is_none());
    bench.update(9, false, &[flushed(router_lsa(5, 50, &[7, 8]))]);
    bench.pass(0.1);
    assert!(bench.lsa(LsaType::ROUTER, 5).is_none_or(|own| own.age == MAX_AGE), "it still waits");
    bench.pass(0.15);
    let own = bench.lsa(LsaType::ROUTER, 5).expect("it is originated");
    assert_eq!(own.lsa.sequence(), LsaSequence(LsaSequence::INITIAL.0 + 51));
}

#[test]
fn a_neighbour_that_begins_anew_before_it_is_missed_is_not_full_any_more_and_gets_a_full_hello() {
    let mut bench = Bench::new(5, |_, interface| {
        eager(interface);
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            (manet.two_hop_refresh, manet.prompt) = (100, true);
        }
    });
    bench.pass_with(9, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.hello(9, hears(&[5]));
    assert_eq!(bench.state(9), NeighborState::Full);
    bench.pass(0.3);
    bench.sent.clear();
    // Its first Hello, which lists this router already.
    bench.hello_numbered(1, 9, Says { sequence: 0, ..hears(&[5]) });
    assert_eq!(bench.state(9), NeighborState::ExStart);
    let before = bench.now;
    bench.pass(0.15);
    let hellos = bench.hellos();
    assert!(hellos.iter().any(|(at, _, mdr)| at.since(before) < Duration::from_millis(150) && !mdr.differential));
}
