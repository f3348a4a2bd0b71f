use super::super::{Measurements, PathAction, PathEvent};
use super::*;
use crate::ids::ConnectionId;
use crate::path_manager::tests::{Host, probe, resume, suspend};
use crate::time::Duration;

fn settings() -> Lm3Settings {
    Lm3Settings::default()
}

/// Our reading: a path with an unanswered timeout ranks last.
fn living() -> Lm3Settings {
    Lm3Settings { dead_paths: DeadPaths::Last, ..settings() }
}

fn host(settings: Lm3Settings, subflows: u32) -> Host<Lm3> {
    Host::new(Lm3::new(settings), subflows)
}

fn set(host: &mut Host<Lm3>, id: u32, cwnd: u64, rtt_ms: u64) {
    let view = host.view(id);
    (view.cwnd, view.smoothed_rtt) = (cwnd, Duration::from_millis(rtt_ms));
}

#[test]
fn a_full_buffer_at_the_receiver_is_no_reason_to_look_at_paths() {
    let mut host = host(living(), 2);
    host.view(1).suspended = true;
    host.measured();
    host.view(0).stale = true;
    assert_eq!(host.receiver_blocked(), []);
    assert_eq!(host.measured(), [resume(1)]);
}

/// Three rounds: path 0 ends mid-window at its worst RTT, path 1 is slow and at its own best, path 2 never changed its
/// window and is three quarters of the way to its best RTT.
fn three_paths(settings: Lm3Settings) -> Host<Lm3> {
    let mut host = host(settings, 3);
    for round in [
        [(10_000, 10), (5_000, 100), (8_000, 20)],
        [(20_000, 20), (10_000, 80), (8_000, 40)],
        [(15_000, 30), (10_000, 60), (8_000, 25)],
    ] {
        for (id, (cwnd, rtt)) in (0..).zip(round) {
            set(&mut host, id, cwnd, rtt);
        }
        assert_eq!(host.measured(), []);
        host.now_ms += 100;
    }
    host
}

fn scores(host: &Host<Lm3>) -> Vec<f64> {
    host.manager.connections[&ConnectionId(1)].memory.paths.values().map(|path| path.score).collect()
}

fn assert_scores(host: &Host<Lm3>, expected: [f64; 3]) {
    let scores = scores(host);
    assert!(scores.iter().zip(expected).all(|(is, should)| (is - should).abs() < 1e-9), "{scores:?} not {expected:?}");
}

fn blocks(host: &Host<Lm3>) -> u32 {
    host.manager.connections[&ConnectionId(1)].memory.blocks
}

#[test]
fn against_its_own_history_a_slow_path_at_its_best_scores_one() {
    // Path 0: (15-10)/(20-10) and (30-30)/(30-10); path 1: 1 and 1; path 2: max = min, 1, and (40-25)/(40-20).
    assert_scores(&three_paths(settings()), [0.25, 1.0, 0.875]);
    let weighted = Lm3Settings { cwnd_weight: 0.8, ..settings() };
    assert_scores(&three_paths(weighted), [0.4, 1.0, 0.95]);
}

#[test]
fn against_the_alternatives_the_same_slow_path_scores_least() {
    // Windows 15, 10, 8 and RTTs 30, 60, 25: path 0: 1 and 30/35; path 1: 2/7 and 0; path 2: 0 and 1.
    let alternatives = Lm3Settings { bounds: ScoreBounds::Alternatives, ..settings() };
    assert_scores(&three_paths(alternatives), [0.5 + 15.0 / 35.0, 1.0 / 7.0, 0.5]);
}

#[test]
fn a_path_that_fills_its_own_queue_scores_one_half_whatever_its_window_and_an_idle_one_at_least_that() {
    // Path 0: from 10000 bytes on each 1000 more wait 1 ms in the queue. Path 1 does the same, then falls idle in the
    // middle of its window: 1/2 * 0.4 + 1/2.
    let mut host = host(settings(), 2);
    for (cwnd, rtt) in [(10_000, 10), (20_000, 20), (13_000, 13), (17_000, 17)] {
        (0..2).for_each(|id| set(&mut host, id, cwnd, rtt));
        host.measured();
    }
    set(&mut host, 1, 14_000, 10);
    host.measured();
    let scores = scores(&host);
    assert!((scores[0] - 0.5).abs() < 1e-9 && (scores[1] - 0.7).abs() < 1e-9, "{scores:?}");
}

#[test]
fn the_first_scores_are_all_one() {
    let mut host = host(settings(), 3);
    set(&mut host, 1, 1_000, 400);
    host.measured();
    assert_scores(&host, [1.0, 1.0, 1.0]);
}

#[test]
fn of_three_paths_rounding_down_keeps_the_best_and_rounding_up_the_best_two() {
    let mut down = three_paths(settings());
    assert_eq!(down.blocked(), [suspend(2), suspend(0)]);
    assert_eq!(down.active(), [1]);
    let mut up = three_paths(Lm3Settings { rounding: Rounding::Up, ..settings() });
    assert_eq!(up.blocked(), [suspend(0)]);
    assert_eq!(up.active(), [1, 2]);
    let mut apart = three_paths(Lm3Settings { bounds: ScoreBounds::Alternatives, ..settings() });
    assert_eq!(apart.blocked(), [suspend(2), suspend(1)]);
}

#[test]
fn halving_ends_at_one_path_and_never_at_none() {
    for (rounding, expected) in [(Rounding::Down, [4, 2, 1, 1]), (Rounding::Up, [5, 3, 1, 1])] {
        let mut host = host(Lm3Settings { rounding, ..settings() }, 9);
        let mut left = Vec::new();
        for _ in 0..4 {
            host.now_ms += 20;
            host.blocked();
            left.push(host.active().len());
        }
        assert_eq!(left, expected, "{rounding:?}");
    }
}

#[test]
fn the_third_event_leaves_one_path_and_resets_the_counter() {
    let mut host = host(Lm3Settings { rounding: Rounding::Up, ..settings() }, 8);
    let mut seen = Vec::new();
    for _ in 0..3 {
        host.now_ms += 20;
        host.blocked();
        seen.push((blocks(&host), host.active().len()));
    }
    assert_eq!(seen, [(1, 4), (2, 2), (0, 1)]);
}

#[test]
fn without_the_reset_of_equation_8_no_event_after_the_third_removes_anything() {
    for (reset_at_three, expected) in [(true, 2), (false, 4)] {
        let mut host = host(Lm3Settings { reset_at_three, ..settings() }, 4);
        for _ in 0..3 {
            host.now_ms += 20;
            host.blocked();
        }
        for view in &mut host.views {
            view.suspended = false;
        }
        host.now_ms += 20;
        host.blocked();
        assert_eq!(host.active().len(), expected);
    }
}

#[test]
fn the_counter_falls_back_after_eight_of_the_longest_round_trips_without_an_event() {
    for (pause, quiet, expected) in [(400, 8.0, 2), (401, 8.0, 1), (10_000, 0.0, 2)] {
        let mut host = host(Lm3Settings { quiet, rounding: Rounding::Up, ..settings() }, 8);
        for id in 0..8 {
            set(&mut host, id, 10_000, 50);
        }
        host.blocked();
        host.now_ms += pause;
        host.blocked();
        assert_eq!(blocks(&host), expected, "after {pause} ms");
    }
}

/// One active path at 0.6 and two suspended at `first` and `second` of their windows, all measured; only windows count.
fn one_active_two_suspended(first: u64, second: u64) -> Vec<PathAction> {
    let mut host = host(Lm3Settings { cwnd_weight: 1.0, ..settings() }, 3);
    for cwnd in [0, 100_000] {
        (0..3).for_each(|id| set(&mut host, id, cwnd, 20));
        host.measured();
    }
    // All at 1: the lowest id stays.
    assert_eq!(host.blocked(), [suspend(1), suspend(2)]);
    host.now_ms = 200;
    assert_eq!(host.measured(), [probe(1), probe(2)]);
    host.now_ms = 220;
    (1..3).for_each(|id| host.answered(id));
    for (id, share) in [(0, 60), (1, first), (2, second)] {
        set(&mut host, id, share * 1_000, 20);
    }
    host.measured()
}

#[test]
fn a_suspended_path_returns_when_it_is_at_least_the_mean_of_the_active_ones() {
    assert_eq!(one_active_two_suspended(60, 59), [resume(1)]);
    assert_eq!(one_active_two_suspended(59, 60), [resume(2)]);
    assert_eq!(one_active_two_suspended(60, 60), [resume(1), resume(2)]);
    assert_eq!(one_active_two_suspended(59, 59), []);
}

#[test]
fn equal_paths_return_whatever_the_rounding_of_their_sum() {
    // Six times 0.33 added up is more than 0.33 times six, in binary fractions.
    let mut host = host(Lm3Settings { cwnd_weight: 1.0, ..settings() }, 12);
    for cwnd in [0, 100_000, 33_000] {
        (0..12).for_each(|id| set(&mut host, id, cwnd, 20));
        host.measured();
    }
    assert_eq!(host.blocked().len(), 6);
    host.now_ms = 200;
    host.measured();
    host.now_ms = 220;
    (6..12).for_each(|id| host.answered(id));
    assert_eq!(host.measured(), [6, 7, 8, 9, 10, 11].map(resume));
}

#[test]
fn the_mean_takes_in_the_path_that_has_just_returned() {
    // 0.8 >= 0.6 returns; then the mean is 0.7, which 0.65 does not reach and 0.7 does.
    assert_eq!(one_active_two_suspended(65, 80), [resume(2)]);
    assert_eq!(one_active_two_suspended(70, 80), [resume(2), resume(1)]);
}

#[test]
fn a_suspended_path_is_probed_once_per_its_timeout_and_not_while_a_probe_is_queued() {
    let mut host = host(settings(), 2);
    set(&mut host, 0, 10_000, 20);
    host.measured();
    assert_eq!(host.blocked(), [suspend(1)]);
    host.view(1).stale = true;
    let mut probes = Vec::new();
    for ms in (0..=1_000).step_by(50) {
        host.now_ms = ms;
        host.view(1).queued = if (400..600).contains(&ms) { 1000 } else { 0 };
        probes.extend(host.measured().iter().map(|action| (ms, *action)));
    }
    assert_eq!(probes, [200, 600, 800, 1_000].map(|ms| (ms, probe(1))));
}

#[test]
fn a_path_that_scores_one_does_not_return_before_it_was_measured_nor_while_a_timeout_is_unanswered() {
    let mut host = host(settings(), 2);
    assert_eq!(host.blocked(), [suspend(1)]);
    host.now_ms = 100;
    host.answered(1);
    assert_eq!(host.measured(), [], "what is acknowledged now was sent before the removal");
    host.now_ms = 200;
    assert_eq!(host.measured(), [probe(1)]);
    host.now_ms = 210;
    assert_eq!(host.measured(), [], "the probe is not answered yet");
    host.answered(1);
    host.view(1).stale = true;
    assert_eq!(host.measured(), []);
    host.view(1).stale = false;
    assert_eq!(host.measured(), [resume(1)]);
}

#[test]
fn a_dead_path_with_the_better_score_is_kept_only_when_the_score_alone_decides() {
    for (dead_paths, expected) in [(DeadPaths::Last, suspend(0)), (DeadPaths::ByScore, suspend(1))] {
        let mut host = three_paths(Lm3Settings { dead_paths, ..settings() });
        host.closed(2);
        // Path 0 dies at its best RTT, with the window it had; path 1 lives, at its worst.
        set(&mut host, 0, 20_000, 10);
        set(&mut host, 1, 5_000, 100);
        host.view(0).stale = true;
        assert_eq!(host.blocked(), [expected]);
    }
}

#[test]
fn when_the_only_active_path_times_out_a_living_suspended_one_takes_over() {
    let mut host = three_paths(living());
    host.blocked();
    assert_eq!(host.active(), [1]);
    assert_eq!(host.timeout(1), [resume(2)], "0.875 ranks before 0.25");
    let mut letter = three_paths(settings());
    letter.blocked();
    assert_eq!(letter.timeout(1), []);
}

#[test]
fn when_the_last_active_path_closes_the_best_suspended_one_resumes_at_once() {
    let mut host = three_paths(settings());
    host.blocked();
    assert_eq!(host.closed(1), [resume(2)]);
    assert_eq!(host.closed(2), [resume(0)]);
    assert_eq!(host.closed(0), []);
}

#[test]
fn the_one_that_resumes_is_a_living_one_even_if_a_dead_one_scores_better() {
    let mut host = three_paths(living());
    host.blocked();
    host.view(2).stale = true;
    host.measured();
    assert_eq!(host.closed(1), [resume(0)], "0.25 and alive before 0.875 and dead");
}

#[test]
fn a_dead_active_path_does_not_count_in_the_mean() {
    for (dead_paths, expected) in [(DeadPaths::Last, vec![resume(2)]), (DeadPaths::ByScore, vec![])] {
        let mut host = host(Lm3Settings { cwnd_weight: 1.0, rounding: Rounding::Up, dead_paths, ..settings() }, 3);
        for cwnd in [0, 100_000] {
            (0..3).for_each(|id| set(&mut host, id, cwnd, 20));
            host.measured();
        }
        assert_eq!(host.blocked(), [suspend(2)]);
        host.now_ms = 200;
        assert_eq!(host.measured(), [probe(2)]);
        host.now_ms = 220;
        host.answered(2);
        // 1.0 (dead) and 0.6 are active; 0.7 is below the mean of both and above that of the living.
        (1..3).zip([60_000, 70_000]).for_each(|(id, cwnd)| set(&mut host, id, cwnd, 20));
        host.view(0).stale = true;
        assert_eq!(host.measured(), expected);
    }
}

#[test]
fn backups_are_neither_counted_nor_suspended() {
    let mut host = host(settings(), 3);
    host.view(0).backup = true;
    assert_eq!(host.blocked(), [suspend(2)]);
    host.now_ms = 20;
    assert_eq!(host.blocked(), []);
    assert_eq!(host.active(), [0, 1]);
}

#[test]
fn an_action_that_the_engine_dropped_is_noticed() {
    let mut host = three_paths(settings());
    host.blocked();
    host.view(0).suspended = false;
    host.measured();
    assert_eq!(host.active(), [0, 1]);
    host.now_ms += 20;
    assert_eq!(host.blocked(), [suspend(0)]);
}

#[test]
fn a_story_the_third_path_fails_is_removed_and_comes_back_when_its_probe_is_answered() {
    let mut host = host(Lm3Settings { rounding: Rounding::Up, bounds: ScoreBounds::Alternatives, ..living() }, 3);
    for (id, cwnd, rtt) in [(0, 20_000, 80), (1, 18_000, 82), (2, 6_000, 90)] {
        set(&mut host, id, cwnd, rtt);
    }
    assert_eq!(host.measured(), []);
    // 10 s: path 2 goes down; its data is missing, and the receive buffer fills.
    host.now_ms = 10_300;
    assert_eq!(host.timeout(2), []);
    set(&mut host, 2, 1_000, 90);
    assert_eq!(host.blocked(), [suspend(2)]);
    for ms in (10_400..30_000).step_by(100) {
        host.now_ms = ms;
        assert!(host.measured().iter().all(|action| *action == probe(2)));
    }
    // 30 s: it is back, and better than it was: R(2) = 1/2 (20-18)/2 + 1/2 = 1 against 1/2 (0.8 + 1) / 2 or so.
    host.now_ms = 30_050;
    host.answered(2);
    set(&mut host, 2, 20_000, 60);
    assert_eq!(host.measured().first(), Some(&resume(2)));
    assert_eq!(host.active(), [0, 1, 2]);
    // 50 s: down for good; the engine closes it in the end, and no state is left.
    host.now_ms = 50_300;
    host.timeout(2);
    assert_eq!(host.blocked(), [suspend(2)]);
    host.now_ms = 80_000;
    assert_eq!(host.closed(2), []);
    assert_eq!(scores(&host).len(), 2);
    let closed = PathEvent::ConnectionClosed { connection: ConnectionId(1) };
    assert_eq!(host.tell(&closed), []);
    assert!(host.manager.connections.is_empty());
    assert_eq!(host.manager.measurements(), Measurements::EveryRoundTrip);
}
