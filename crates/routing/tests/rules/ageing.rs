//! Ageing (RFC 2328, 14).

use anabranch_routing::counters::DropReason;
use anabranch_wire::ospf::AgedLsa;
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{LsaType, RouterId};

use crate::bench::{Bench, eager, hears, mdr, router_lsa};

fn old(router: u32, age: u16) -> AgedLsa {
    AgedLsa { age, ..router_lsa(router, 0, &[1]) }
}

#[test]
fn rfc2328_14_an_lsa_that_reaches_max_age_is_flooded_so_and_removed_when_all_acknowledged() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    bench.update(8, true, &[old(77, MAX_AGE - 3)]);
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    assert_eq!(bench.lsa(LsaType::ROUTER, 77).unwrap().age, MAX_AGE - 1);
    bench.sent.clear();
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    let flooded = bench.updates().into_iter().flat_map(|(_, _, lsas)| lsas);
    assert!(flooded.into_iter().any(|aged| aged.lsa.key().advertising == RouterId(77) && aged.age == MAX_AGE));
    let gone = bench.lsa(LsaType::ROUTER, 77).unwrap();
    assert_eq!(gone.age, MAX_AGE, "9 has not acknowledged it");
    bench.acknowledge(9, &[gone.header()]);
    assert!(bench.lsa(LsaType::ROUTER, 77).is_none());
}

#[test]
fn rfc2328_13_step_4_a_max_age_lsa_that_nobody_has_is_acknowledged_and_not_kept() {
    let mut bench = mdr();
    bench.update(1, false, &[old(77, MAX_AGE)]);
    assert_eq!(bench.acknowledgments().len(), 1);
    assert_eq!(bench.dropped(DropReason::LsaMaxAge), 1);
    assert!(bench.lsa(LsaType::ROUTER, 77).is_none());
}

#[test]
fn rfc2328_13_1_of_two_instances_with_one_number_that_of_max_age_is_the_newer() {
    let mut bench = mdr();
    bench.update(1, true, &[old(77, 10)]);
    bench.pass(1.5);
    bench.sent.clear();
    bench.update(1, true, &[old(77, MAX_AGE)]);
    bench.pass(0.2);
    assert!(bench.lsa(LsaType::ROUTER, 77).is_none());
    assert!(bench.updates().iter().any(|(_, _, lsas)| lsas[0].age == MAX_AGE));
}

#[test]
fn rfc2328_14_an_lsa_does_not_leave_while_a_neighbour_reads_the_database() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.update(8, true, &[old(77, 10)]);
    bench.pass_with(1, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.give(9, false, crate::exchange::mismatch(), None);
    assert_eq!(bench.state(9), anabranch_routing::NeighborState::Exchange);
    bench.update(8, true, &[old(77, MAX_AGE)]);
    assert_eq!(bench.lsa(LsaType::ROUTER, 77).unwrap().age, MAX_AGE);
    bench.pass(0.2);
    assert_eq!(bench.lsa(LsaType::ROUTER, 77).unwrap().age, MAX_AGE);
    // The exchange ends.
    bench.hello(9, hears(&[]));
    assert!(bench.lsa(LsaType::ROUTER, 77).is_none());
}
