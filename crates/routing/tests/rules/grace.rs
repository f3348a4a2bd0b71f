//! Helping a neighbour that restarts (RFC 5187; RFC 3623, 3).

use anabranch_policy::Duration;
use anabranch_routing::{Event, NeighborState, Restart};
use anabranch_wire::ospf::lsa::{LsaSequence, MAX_AGE};
use anabranch_wire::ospf::{AgedLsa, LinkStateId, Lsa, LsaBody, LsaKey, LsaType, RouterId};

use crate::bench::{Bench, eager, hears, router_lsa};

/// A Grace-LSA of a neighbour for 20 s.
fn grace(router: u32, sequence: i32, age: u16) -> AgedLsa {
    let key = LsaKey { kind: LsaType(0x000b), advertising: RouterId(router), id: LinkStateId(1) };
    let body = LsaBody::Unknown(vec![0, 1, 0, 4, 0, 0, 0, 20, 0, 2, 0, 1, 1, 0, 0, 0].into());
    AgedLsa { age, lsa: Lsa::new(key, LsaSequence(LsaSequence::INITIAL.0 + sequence), body).unwrap() }
}

/// Router 5 with the Full neighbours 8 and 9, which have all its LSAs, and 9 asks for help.
fn helping() -> Bench {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    let hellos = [(9, hears(&[5])), (8, hears(&[5]))];
    bench.pass_with(3, &hellos);
    bench.make_full(9);
    bench.make_full(8);
    bench.pass_with(8, &hellos);
    let own: Vec<AgedLsa> = bench.router.lsas(bench.now).map(|(_, aged)| aged).collect();
    for neighbour in [9, 8] {
        bench.acknowledge(neighbour, &own.iter().map(AgedLsa::header).collect::<Vec<_>>());
    }
    assert_eq!(links(&bench), [8, 9]);
    while bench.router.poll_event().is_some() {}
    bench.update(9, true, &[grace(9, 0, 0)]);
    bench
}

fn links(bench: &Bench) -> Vec<u32> {
    match bench.lsa(LsaType::ROUTER, 5).expect("a Router-LSA").lsa.body() {
        LsaBody::Router(lsa) => lsa.links.iter().map(|link| link.neighbor.0).collect(),
        _ => unreachable!(),
    }
}

fn told(bench: &mut Bench) -> Vec<Restart> {
    let events = std::iter::from_fn(|| bench.router.poll_event());
    events.filter_map(|event| if let Event::Restart { restart, .. } = event { Some(restart) } else { None }).collect()
}

const BEGUN: Restart = Restart::Begun(Duration::from_secs(20));

#[test]
fn rfc3623_3_a_neighbour_that_restarts_counts_as_full_until_its_grace_period_ends() {
    let mut bench = helping();
    // RouterDeadInterval is 3 s.
    bench.pass_with(18, &[(8, hears(&[5]))]);
    assert_eq!((links(&bench), bench.state(9)), (vec![8, 9], NeighborState::Full));
    bench.pass_with(10, &[(8, hears(&[5]))]);
    assert_eq!(links(&bench), [8]);
    assert_eq!(told(&mut bench), [BEGUN, Restart::Expired]);
    assert_eq!(bench.router.counters().restarts_helped, 1);
}

#[test]
fn rfc3623_3_2_a_neighbour_that_has_restarted_exchanges_databases_while_it_counts_and_then_flushes_its_lsa() {
    let mut bench = helping();
    let eight = (8, hears(&[5]));
    bench.pass_with(5, std::slice::from_ref(&eight));
    // It knows nobody yet.
    bench.pass_with(2, &[eight.clone(), (9, hears(&[]))]);
    assert_eq!(links(&bench), [8, 9]);
    // The first description finds a neighbour that is Full and begins the exchange anew.
    bench.describe(9);
    assert_eq!((links(&bench), bench.state(9)), (vec![8, 9], NeighborState::ExStart));
    bench.make_full(9);
    bench.pass_with(2, &[eight.clone(), (9, hears(&[5]))]);
    bench.update(9, true, &[grace(9, 0, MAX_AGE)]);
    bench.pass_with(30, &[eight, (9, hears(&[5]))]);
    assert_eq!((links(&bench), bench.state(9)), (vec![8, 9], NeighborState::Full));
    assert_eq!(told(&mut bench), [BEGUN, Restart::Over]);
}

#[test]
fn rfc3623_3_2_a_change_of_the_network_ends_the_help() {
    let mut bench = helping();
    bench.pass_with(5, &[(8, hears(&[5]))]);
    bench.update(8, true, &[router_lsa(8, 1, &[5, 7])]);
    bench.pass_with(6, &[(8, hears(&[5]))]);
    assert_eq!(links(&bench), [8]);
    assert_eq!(told(&mut bench), [BEGUN, Restart::Changed]);
}

#[test]
fn rfc3623_3_1_who_lacks_an_lsa_is_not_helped_and_strangers_change_nothing() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(3, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.pass_with(1, &[(9, hears(&[5]))]);
    while bench.router.poll_event().is_some() {}
    // It has not acknowledged the Router-LSA with itself.
    bench.update(9, true, &[grace(9, 0, 0)]);
    bench.update(9, true, &[grace(77, 0, 0)]);
    assert_eq!(told(&mut bench), [Restart::Refused]);
    assert_eq!(bench.router.counters().restarts_helped, 0);
}

#[test]
fn rfc3623_3_2_who_has_restarted_before_its_database_was_read_counts_until_it_was() {
    let mut bench = helping();
    let eight = (8, hears(&[5]));
    bench.pass_with(2, &[eight.clone(), (9, hears(&[]))]);
    bench.describe(9);
    bench.update(9, true, &[grace(9, 0, MAX_AGE)]);
    assert_eq!(told(&mut bench), [BEGUN, Restart::Over]);
    bench.pass_with(1, &[eight.clone(), (9, hears(&[5]))]);
    assert_eq!((links(&bench), bench.state(9)), (vec![8, 9], NeighborState::ExStart));
    bench.make_full(9);
    bench.pass_with(20, &[eight, (9, hears(&[5]))]);
    assert_eq!((links(&bench), bench.state(9), told(&mut bench)), (vec![8, 9], NeighborState::Full, vec![]));
}
