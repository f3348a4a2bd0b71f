//! The paper's experiments, short.

use anabranch_policy::time::Duration;
use anabranch_sim::mesh::paper::combination::{Combination, Subflows};
use anabranch_sim::mesh::paper::{Case, Rates, Transfer, run};

fn case(name: &str, rates: Rates) -> Case {
    let mut case = Case::new(Combination::named(name).unwrap(), rates, 1);
    case.transfer = Transfer::For(Duration::from_secs(30));
    case
}

/// The mean of three seeds.
fn goodput(name: &str, rates: Rates) -> f64 {
    (1..=3).map(|seed| run(&Case { seed, ..case(name, rates) }).unwrap().goodput).sum::<f64>() / 3.0
}

#[test]
fn four_radios_carry_at_least_2_2_times_what_one_does_twice_if_unlike_and_four_addresses_on_one_radio_do_not() {
    for (rates, least) in [(Rates::HOMOGENEOUS, 2.2), (Rates::HETEROGENEOUS, 2.0)] {
        let one = goodput("TM", rates);
        assert!(goodput("MFxM", rates) > least * one);
        assert!(goodput("MPxM", rates) > least * one);
        let virtual_interfaces = goodput("MFm", rates) / one;
        assert!((0.7..1.1).contains(&virtual_interfaces), "{virtual_interfaces}");
    }
}

#[test]
fn on_part_path_each_lane_has_the_nodes_of_table_3() {
    let mut case = case("MPxM", Rates::HOMOGENEOUS);
    case.transfer = Transfer::Bytes(400_000);
    let seen = run(&case).unwrap();
    assert_eq!(seen.bytes, 400_000);
    assert!(seen.duration.is_some());
    assert_eq!(seen.lanes.iter().filter(|lane| lane.received > 20).count(), 4);
    // Lane 0 may go any way; M2 and M5, M3 and M6, M4 and M7 carry one lane each at least.
    assert!(seen.forwarded[1..7].iter().all(|count| *count > 20), "{:?}", seen.forwarded);
}

#[test]
fn appendix_c_taken_literally_leads_lane_3_over_m6() {
    let mut spread = case("MPxM", Rates::HOMOGENEOUS);
    spread.combination = Combination::with_subflows("MPxM", Subflows::SameSubnet).unwrap();
    let literal = Case { combination: spread.combination.clone().literal_lanes(), ..spread.clone() };
    let [spread, literal] = [spread, literal].map(|case| run(&case).unwrap());
    // Acknowledgements come by M7 in both: M8 has three next hops, and lane 3 takes the third.
    let [m6, m7] = [5, 6].map(|node: usize| (spread.forwarded[node], literal.forwarded[node]));
    assert!(m7.0 > m7.1 + literal.lanes[3].received / 2, "{m7:?}");
    assert!(m6.1 > m6.0 + literal.lanes[3].received / 2, "{m6:?}");
}

#[test]
fn bytes_on_the_wire_change_nothing() {
    let mut case = case("MFxM", Rates::HETEROGENEOUS);
    case.transfer = Transfer::For(Duration::from_secs(5));
    let plain = run(&case).unwrap();
    case.wire = true;
    assert_eq!(run(&case).unwrap(), plain);
}

#[test]
fn a_segment_is_sent_and_received_for_the_first_time_once() {
    let mut case = case("TM", Rates::HOMOGENEOUS);
    case.transfer = Transfer::Bytes(1_800_000);
    let seen = run(&case).unwrap();
    let lane = &seen.lanes[0];
    // 1,800,000 bytes in segments of 1448 are 1244; a few are shorter where writes end.
    assert!((1244..1300).contains(&lane.sent), "{}", lane.sent);
    assert!((lane.received.abs_diff(lane.sent)) <= 3, "{} {}", lane.received, lane.sent);
    assert_eq!(lane.delay.count(), lane.received);
    assert!(lane.sent_again >= lane.received_again);
}
