//! Shares to the segment, worked by hand.

use super::*;
use crate::scheduler::TABLE;
use crate::scheduler::tests::{connection, new_data, reinjection_from, send, subflow};
use crate::table::Settings;
use crate::table::build;

/// The scheduler with the given weights.
fn weighted(weights: &str, when_full: WhenFull) -> Weighted {
    Weighted::new(Weights::read(weights).expect("well formed"), when_full)
}

/// Where the next segments go, the views staying as they are.
fn turns<const N: usize>(scheduler: &mut Weighted, paths: &[SubflowView]) -> [u32; N] {
    core::array::from_fn(|_| match scheduler.schedule(&connection(0), &new_data(), paths) {
        Decision::Send(id) => id.0,
        Decision::Wait(_) => u32::MAX,
    })
}

#[test]
fn three_to_one_is_interleaved_and_exact_after_every_four_segments() {
    // In segments, (c0, c1) after adding the weights (3, 1), and whose turn it is (who pays 4):
    // (3, 1) 0 -> (-1, 1);  (2, 2) 0, the lower id -> (-2, 2);  (1, 3) 1 -> (1, -1);  (4, 0) 0 -> (0, 0).
    let mut scheduler = weighted("3:1", WhenFull::Others);
    assert_eq!(turns(&mut scheduler, &[subflow(0, 10), subflow(1, 500)]), [0, 0, 1, 0, 0, 0, 1, 0]);
}

#[test]
fn the_shares_of_two_subflows_are_never_off_by_a_whole_segment() {
    let paths = [subflow(0, 10), subflow(1, 20)];
    for (a, b) in (1..=12).flat_map(|a| (1..=12).map(move |b| (a, b))) {
        let mut scheduler = weighted(&format!("{a}:{b}"), WhenFull::Others);
        let mut given = 0;
        for sent in 1..=(2 * (a + b)) {
            given += i32::from(scheduler.schedule(&connection(0), &new_data(), &paths) == send(0));
            // given / sent = a / (a + b), to less than a segment.
            assert!((given * (a + b) - sent * a).abs() < a + b, "{a}:{b} after {sent}: {given}");
        }
        assert_eq!(given, 2 * a, "{a}:{b}");
    }
}

#[test]
fn three_subflows_are_exact_after_every_sum_of_weights() {
    let mut scheduler = weighted("5:3:1", WhenFull::Others);
    let paths = [subflow(0, 10), subflow(3, 20), subflow(4, 30)];
    for _ in 0..3 {
        let round: [u32; 9] = turns(&mut scheduler, &paths);
        assert_eq!([0, 3, 4].map(|id| round.iter().filter(|turn| **turn == id).count()), [5, 3, 1]);
    }
}

#[test]
fn bytes_are_counted_and_not_segments() {
    // Segments of 1000 and of 500 bytes, one to one: each long one is followed by two short ones.
    // c0 + l0 against c1 + l1 (bytes): 1000 : 500 -> 0, then c = (-1000, 1000): 0 : 1500 -> 1, c = (-500, 500):
    // 500 : 1000 -> 1, c = (0, 0).
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    paths[1].mss = 500;
    assert_eq!(turns(&mut weighted("1:1", WhenFull::Others), &paths), [0, 1, 1, 0, 1, 1]);
}

#[test]
fn weights_by_address_hold_for_every_subflow_of_the_address_and_others_have_one() {
    // Subflows 0 and 1 are at address 1, subflow 2 at address 7, which is not named.
    let mut paths = [subflow(0, 10), subflow(1, 10), subflow(2, 10)];
    paths[1].local_address = AddressId(1);
    paths[2].local_address = AddressId(7);
    let mut scheduler = weighted("1=2", WhenFull::Others);
    let round: [u32; 5] = turns(&mut scheduler, &paths);
    assert_eq!([0, 1, 2].map(|id| round.iter().filter(|turn| **turn == id).count()), [2, 2, 1]);
}

#[test]
fn a_full_subflow_leaves_its_turns_to_the_others_and_is_owed_nothing() {
    let mut scheduler = weighted("3:1", WhenFull::Others);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    paths[0].in_flight = 10_000;
    assert_eq!(turns(&mut scheduler, &paths), [1; 20]);
    paths[0].in_flight = 0;
    assert_eq!(turns(&mut scheduler, &paths), [0, 0, 1, 0]);
}

#[test]
fn a_full_subflow_is_waited_for_at_its_turn_if_the_setting_says_so() {
    let mut scheduler = weighted("3:1", WhenFull::Wait);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    paths[1].in_flight = 10_000;
    // Its turn is the third; asking again changes nothing.
    assert_eq!(turns(&mut scheduler, &paths), [0, 0, u32::MAX, u32::MAX]);
    paths[1].in_flight = 0;
    assert_eq!(turns(&mut scheduler, &paths), [1, 0, 0, 0, 1, 0]);
}

#[test]
fn what_is_sent_again_goes_to_the_fastest_other_and_costs_no_turn() {
    let mut scheduler = weighted("3:1", WhenFull::Others);
    let paths = [subflow(0, 10), subflow(1, 500)];
    for _ in 0..5 {
        assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), send(1));
    }
    assert_eq!(turns(&mut scheduler, &paths), [0, 0, 1, 0]);
}

#[test]
fn a_subflow_that_closes_passes_its_place_in_the_order_on() {
    let mut scheduler = weighted("3:1", WhenFull::Others);
    let mut paths = [subflow(0, 10), subflow(1, 10), subflow(2, 10)];
    paths[0].state = SubflowState::Closing;
    assert_eq!(turns(&mut scheduler, &paths), [1, 1, 2, 1]);
}

#[test]
fn malformed_weights_are_refused_with_what_they_should_be() {
    for wrong in ["", "3:", "0:1", "1001", "3,1", "0=3:1", "x=1", "256=1", "1:-1", "1.5"] {
        let error = build(TABLE, "weighted", &Settings::new().with("weights", wrong)).err();
        assert!(matches!(error, Some(SettingError::BadValue { .. })), "{wrong}: {error:?}");
    }
    for right in ["1", "3:1", "0=3:1=1", "1000:1:1"] {
        assert!(build(TABLE, "weighted", &Settings::new().with("weights", right)).is_ok(), "{right}");
    }
}
