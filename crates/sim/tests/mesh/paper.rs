//! Short runs of the paper's experiments.

use anabranch_policy::time::Duration;
use anabranch_sim::mesh::paper::combination::{Combination, Subflows};
use anabranch_sim::mesh::paper::{Case, Rates, Transfer, run};
use anabranch_sim::mesh::results::Captured;

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
    // Lane 0 may take any route; M2 and M5, M3 and M6, M4 and M7 carry at least one lane each.
    assert!(seen.forwarded[1..7].iter().all(|count| *count > 20), "{:?}", seen.forwarded);
}

#[test]
fn appendix_c_taken_literally_leads_lane_3_over_m6() {
    let mut spread = case("MPxM", Rates::HOMOGENEOUS);
    spread.combination = Combination::with_subflows("MPxM", Subflows::SameSubnet).unwrap();
    let literal = Case { combination: spread.combination.clone().literal_lanes(), ..spread.clone() };
    let [spread, literal] = [spread, literal].map(|case| run(&case).unwrap());
    // Acknowledgements pass M7 in both cases: M8 has three next hops, and lane 3 takes the third.
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

#[test]
fn captures_of_neighbouring_columns_agree_where_nothing_is_lost_between_them() {
    let mut case = case("MPxM", Rates::HOMOGENEOUS);
    case.transfer = Transfer::Bytes(400_000);
    let seen = run(&case).unwrap();
    assert!(seen.single_delays.is_empty() && seen.captured.iter().all(|radios| radios.len() == 4));
    // Frames of M1 on a channel were received by M2 to M4 on it or lost there, and vice versa.
    for radio in 0..4 {
        let of = |nodes: core::ops::Range<usize>, count: fn(&Captured) -> u64| -> u64 {
            seen.captured[nodes].iter().map(|radios| count(&radios[radio])).sum()
        };
        let (sent, received) = (|one: &Captured| one.sent, |one: &Captured| one.received);
        assert!(of(0..1, sent) > 20);
        // Everything sent by a column is received by its neighbours; the difference are dropped frames, and those under
        // way.
        assert!(of(0..8, sent) >= of(0..8, received));
        assert!(of(0..8, sent) - of(0..8, received) <= of(0..8, sent) / 10, "{:?}", seen.captured);
        assert!(of(0..1, sent) + of(0..1, received) >= of(7..8, received));
    }
}

#[test]
fn keeping_single_delays_changes_nothing_and_they_are_those_of_the_interfaces() {
    let mut case = case("MFxM", Rates::HETEROGENEOUS);
    case.transfer = Transfer::Bytes(300_000);
    let plain = run(&case).unwrap();
    case.single_delays = true;
    let seen = run(&case).unwrap();
    assert_eq!(seen.trace_hash, plain.trace_hash);
    for (lane, measured) in seen.lanes.iter().enumerate() {
        let of_lane = || seen.single_delays.iter().filter(move |one| one.lane == lane);
        let mean = of_lane().map(|one| one.delay.as_secs_f64()).sum::<f64>() / of_lane().count().max(1) as f64;
        assert!((mean - measured.answer.mean().unwrap_or(0.0)).abs() < 1e-9, "{lane}: {mean} {measured:?}");
        assert!(of_lane().count() as u64 <= measured.sent);
    }
    assert!(seen.single_delays.len() > 200);
}
