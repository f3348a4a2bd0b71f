//! Scores and choices of MAPS, computed by hand.

use super::*;
use crate::scheduler::TABLE;
use crate::scheduler::tests::{connection, new_data, reinjection_from, send, subflow};
use crate::table::Settings;
use crate::table::build;
use crate::time::Duration;

fn maps(loss: Loss, maxima: Maxima) -> Maps {
    Maps::new(loss, maxima)
}

fn published() -> Maps {
    maps(Loss::Mathis, Maxima::Paths)
}

/// A path with this window and these round trips now and at least.
fn path(id: u32, cwnd: u64, rtt_ms: u64, min_rtt_ms: u64) -> SubflowView {
    SubflowView { cwnd, min_rtt: Duration::from_millis(min_rtt_ms), ..subflow(id, rtt_ms) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs()
}

#[test]
fn the_loss_is_mathis_solved_for_it_with_vegas_for_the_bandwidth() {
    // AB = 18300 B / 0.05 s = 366000 B/s; C = 1.22 * 1500 = 1830 B; PLR = (1830 / (0.1 s * 366000 B/s))^2 = 0.05^2.
    assert!(close(Quality::of(&path(0, 18_300, 100, 50), Loss::Mathis).loss, 0.0025));
    // No queue: (1830 / 18300)^2.
    assert!(close(Quality::of(&path(0, 18_300, 50, 50), Loss::Mathis).loss, 0.01));
}

#[test]
fn the_score_is_half_of_each_share_and_the_smaller_is_better() {
    // Path 0: 40 ms, w 18300, no queue: PLR 0.01. Path 1: 100 ms, w 36600, no queue: PLR 0.0025.
    // MP0 = 1/2 40/100 + 1/2 1 = 0.7; MP1 = 1/2 + 1/2 0.0025/0.01 = 0.625.
    let mut paths = [path(0, 18_300, 40, 40), path(1, 36_600, 100, 100)];
    let [zero, one] = paths.each_ref().map(|path| Quality::of(path, Loss::Mathis));
    let most = zero.max(one);
    assert!(close(zero.relative_to(most), 0.7) && close(one.relative_to(most), 0.625));
    assert_eq!(published().schedule(&connection(0), &new_data(), &paths), send(1));
    // At 20 ms MP0 is 0.1 + 0.5 = 0.6.
    paths[0] = path(0, 18_300, 20, 20);
    assert_eq!(published().schedule(&connection(0), &new_data(), &paths), send(0));
}

#[test]
fn the_next_best_carries_what_the_best_has_no_room_for() {
    let mut paths = [path(0, 18_300, 40, 40), path(1, 36_600, 100, 100), path(2, 18_300, 400, 400)];
    // Now over 400 ms: MP0 = 0.05 + 0.5 = 0.55; MP1 = 0.125 + 0.125 = 0.25; MP2 = 1.
    let mut scheduler = published();
    for expected in [1, 0, 2] {
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(expected));
        paths[expected as usize].in_flight = paths[expected as usize].cwnd;
    }
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
}

#[test]
fn measured_loss_switches_where_the_printed_one_does_not() {
    // Alike but for 2 % of loss on the faster: MP0 = 1/2 45/50 + 1/2 = 0.95 against 1/2 + 1/2 0.5/2 = 0.625.
    let mut paths = [path(0, 18_300, 45, 45), path(1, 18_300, 50, 50)];
    (paths[0].loss_rate, paths[1].loss_rate) = (0.02, 0.005);
    assert_eq!(published().schedule(&connection(0), &new_data(), &paths), send(0));
    let mut measured = maps(Loss::Measured, Maxima::Paths);
    assert_eq!(measured.schedule(&connection(0), &new_data(), &paths), send(1));
    // Nothing lost anywhere: only the round trip counts.
    (paths[0].loss_rate, paths[1].loss_rate) = (0.0, 0.0);
    assert_eq!(measured.schedule(&connection(0), &new_data(), &paths), send(0));
}

#[test]
fn against_its_own_past_a_slow_path_at_its_best_beats_a_fast_one_at_its_worst() {
    let mut scheduler = maps(Loss::Measured, Maxima::OwnHistory);
    let fast = |rtt| path(0, 18_300, rtt, 20);
    let slow = |rtt| path(1, 18_300, rtt, 200);
    // Each at its own largest: both 1/2 (no loss); the lower id.
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &[fast(20), slow(400)]), send(0));
    // Fast: 40 of 40 ms, 0.5. Slow: 200 of 400 ms, 0.25.
    assert_eq!(scheduler.schedule(&connection(1), &new_data(), &[fast(40), slow(200)]), send(1));
    // Over the paths the same moment ranks them by speed.
    let mut over_paths = maps(Loss::Measured, Maxima::Paths);
    assert_eq!(over_paths.schedule(&connection(1), &new_data(), &[fast(40), slow(200)]), send(0));
    // A subflow that ends is forgotten: then 200 ms is its largest again.
    scheduler.on_subflow_removed(SubflowId(1));
    assert_eq!(scheduler.schedule(&connection(2), &new_data(), &[fast(40), slow(200)]), send(0));
}

#[test]
fn what_is_sent_again_goes_to_the_best_of_the_others() {
    let paths = [path(0, 18_300, 40, 40), path(1, 36_600, 100, 100), path(2, 18_300, 400, 400)];
    assert_eq!(published().schedule(&connection(0), &reinjection_from(1), &paths), send(0));
}

#[test]
fn a_path_without_a_sample_or_a_window_has_a_score() {
    let mut fresh = path(0, 0, 0, 0);
    (fresh.smoothed_rtt, fresh.min_rtt) = (Duration::ZERO, Duration::ZERO);
    let quality = Quality::of(&fresh, Loss::Mathis);
    assert_eq!(quality.relative_to(quality).total_cmp(&0.0), core::cmp::Ordering::Equal);
}

#[test]
fn both_variants_are_to_be_had_by_name() {
    for (loss, maxima) in [("mathis", "paths"), ("measured", "own_history")] {
        let settings = Settings::new().with("loss", loss).with("maxima", maxima);
        assert!(build(TABLE, "maps", &settings).is_ok());
    }
    assert!(build(TABLE, "maps", &Settings::new().with("loss", "none")).is_err());
}
