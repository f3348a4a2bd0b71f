//! Decisions of `anabranch`, computed by hand: segments of 1000 bytes, and windows of ten of them per round trip, so
//! that a path of 20 ms carries 500 000 bytes per second and one of 100 ms 100 000.

mod opportunities;
mod repairs;

use super::plan::Worth;
use super::*;
use crate::rate::Rate;
use crate::scheduler::ChunkKind;
use crate::scheduler::tests::{at, connection, subflow};
use crate::time::Duration;

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

fn new_data() -> Chunk {
    Chunk { data_seq: 0, length: 1_000, kind: ChunkKind::New, last_sent_on: None, time_left: None }
}

/// A path of 20 ms with `fast` bytes in flight of 10 000, and one of 100 ms with `slow` of 40 000.
fn fast_and_slow(fast: u64, slow: u64) -> [SubflowView; 2] {
    let mut paths = [subflow(0, 20), subflow(1, 100)];
    (paths[0].in_flight, paths[1].in_flight) = (fast, slow);
    paths[1].cwnd = 40_000;
    paths
}

#[test]
fn an_answer_takes_as_long_as_what_is_ahead_and_a_round_trip_at_least() {
    let mut path = subflow(0, 50); // 200 000 bytes per second
    let idle = Forecast::of(&path, 1_000, false);
    // 50 ms and 1000 / 200 000 s.
    near(idle.answer, 0.055);
    near(idle.stay, 0.055);
    near(idle.rate, 200_000.0);
    near(Forecast::of(&path, 1_000, false).together, 0.0);
    assert!(idle.ready);
    (path.in_flight, path.cwnd) = (20_000, 30_000);
    near(Forecast::of(&path, 1_000, false).answer, 0.105); // 21 000 / 200 000
    // Its 200 segments per second lose one in a hundred, and a repair takes two round trips more.
    path.loss_rate = 0.01;
    let lossy = Forecast::of(&path, 1_000, false);
    near(lossy.losses, 2.0);
    near(lossy.repaired, 0.155);
}

#[test]
fn what_a_path_carries_that_was_never_filled_nobody_knows() {
    let mut path = subflow(0, 50);
    path.phase = Phase::SlowStart;
    (path.in_flight, path.cwnd) = (10_900, 100_000);
    // 11 900 / 200 000 s are less than 1.2 x 50 ms, 12 100 / 200 000 are not.
    near(Forecast::of(&path, 1_000, false).rate, 1_600_000.0);
    path.in_flight = 11_100;
    near(Forecast::of(&path, 1_000, false).rate, 200_000.0);
}

#[test]
fn a_path_is_ready_with_room_and_no_more_than_two_segments_ahead_of_the_pacing() {
    let mut path = subflow(0, 50);
    for (in_flight, queued, ready) in [(0, 2_000, true), (0, 2_001, false), (9_000, 0, true), (9_001, 0, false)] {
        (path.in_flight, path.queued) = (in_flight, queued);
        assert_eq!(Forecast::of(&path, 1_000, false).ready, ready, "{in_flight} {queued}");
    }
}

#[test]
fn data_goes_where_the_last_went_for_two_quanta_of_whole_packets_and_one_of_less() {
    let mut path = subflow(0, 50);
    let mut together = |megabits: u64| {
        path.rates.bandwidth = Rate::from_bits_per_second(megabits * 1_000_000);
        Forecast::of(&path, 1_000, false).together
    };
    near(together(400), 0.001);
    // 62 000 bytes at 75 000 000 a second.
    near(together(600), 2.0 * 62.0 / 75_000.0);
}

#[test]
fn where_whole_packets_are_released_no_segment_is_queued_beyond_them() {
    let mut path = subflow(0, 50);
    // 600 Mbit/s: one packet of 62 segments a millisecond; 400: 50 segments, and what is begun within them.
    for (megabits, queued, ready) in
        [(600, 61_000, true), (600, 61_001, false), (400, 50_000, true), (400, 50_001, false)]
    {
        path.rates.bandwidth = Rate::from_bits_per_second(megabits * 1_000_000);
        (path.cwnd, path.queued) = (1_000_000, queued);
        assert_eq!(Forecast::of(&path, 1_000, false).ready, ready, "{megabits} Mbit/s, {queued} queued");
    }
}

/// The paths that a plan chooses, by number, and what they carry; paths are (bytes per second, milliseconds).
fn planned(window: f64, paths: &[(f64, f64)]) -> (Vec<u32>, f64) {
    let forecast = |(id, (rate, stay)): (usize, &(f64, f64))| Forecast {
        id: SubflowId(id as u32),
        rate: *rate,
        answer: stay / 1e3,
        stay: stay / 1e3,
        repaired: stay / 1e3,
        losses: 0.0,
        ready: true,
        together: 0.0,
    };
    let mut forecasts: Vec<Forecast> = paths.iter().enumerate().map(forecast).collect();
    let plan = Plan::best(window, &mut forecasts);
    ((0..paths.len() as u32).filter(|id| plan.members.contains(&SubflowId(*id))).collect(), plan.carried)
}

#[test]
fn a_window_is_spent_on_the_paths_with_which_it_carries_most() {
    let fast_and_slow = [(2e6, 20.0), (250e3, 200.0)];
    // 64 kB in 20 ms are 3.2 MB/s, more than the 2 of the fast path; with the slow one they take 200 ms: 320 kB/s.
    assert_eq!(planned(64e3, &fast_and_slow), (vec![0], 2e6));
    // 0.85 of 1 MB in 200 ms are 4.25 MB/s, more than the 2.25 of both. Beyond 1.003 x 2 it is worth it: 472 kB.
    assert_eq!(planned(1e6, &fast_and_slow), (vec![0, 1], 2.25e6));
    assert_eq!(planned(471e3, &fast_and_slow).0, [0]);
    assert_eq!(planned(473e3, &fast_and_slow).0, [0, 1]);
    // The order of the subflows does not matter.
    assert_eq!(planned(64e3, &[(250e3, 200.0), (2e6, 20.0)]), (vec![1], 2e6));
}

#[test]
fn a_path_that_adds_nothing_to_a_full_window_is_left_out() {
    // 0.85 of 44 000 bytes in 22 ms are 1.7 MB/s, which the first and the third carry without the second.
    let paths = [(1e6, 20.0), (10e3, 21.0), (1e6, 22.0)];
    let (left, carried) = planned(44e3, &paths);
    assert_eq!(left, [0, 2]);
    near(carried, 1.7e6);
    // With more window it adds half a percent.
    assert_eq!(planned(440e3, &paths).0, [0, 1, 2]);
}

#[test]
fn the_path_that_answers_first_gets_the_data() {
    let mut scheduler = Anabranch::default();
    // Idle: 22 ms against 110. With 9000 bytes in flight: 10 000 / 500 000 = 20 ms, still 22.
    for fast in [0, 9_000] {
        let decision = scheduler.schedule(&connection(0), &new_data(), &fast_and_slow(fast, 0));
        assert_eq!(decision, Decision::Send(SubflowId(0)));
    }
    // Full, and there is window for both.
    let decision = scheduler.schedule(&connection(0), &new_data(), &fast_and_slow(10_000, 0));
    assert_eq!(decision, Decision::Send(SubflowId(1)));
}

#[test]
fn a_full_fast_path_is_waited_for_where_the_end_would_be_late_on_the_slow_one() {
    // The fast path has k bytes delivered after k / 500 000 s and 22 ms, the slow one its segment after 110 ms: equal
    // at k = 44 000.
    for (unsent, decision) in [(43_900, Decision::Wait(None)), (44_100, Decision::Send(SubflowId(1)))] {
        let mut view = connection(0);
        (view.unsent, view.backlogged) = (unsent, false);
        let paths = fast_and_slow(10_000, 0);
        assert_eq!(Anabranch::default().schedule(&view, &new_data(), &paths), decision);
        // More than what is written will follow, so it does not wait.
        view.backlogged = true;
        assert_eq!(Anabranch::default().schedule(&view, &new_data(), &paths), Decision::Send(SubflowId(1)));
        view.backlogged = false;
        let mut greedy = Anabranch { wait: false, ..Anabranch::default() };
        assert_eq!(greedy.schedule(&view, &new_data(), &paths), Decision::Send(SubflowId(1)));
    }
}

#[test]
fn a_full_fast_path_is_waited_for_where_the_slow_one_would_stall_the_window() {
    let decide = |window: u64, slow: u64| {
        let view = ConnectionView { window, window_left: window, ..connection(0) };
        Anabranch::default().schedule(&view, &new_data(), &fast_and_slow(10_000, slow))
    };
    // 0.85 of 64 900 bytes in the 110 ms of the slow path are 501 500 per second, 1.003 of what the fast one does
    // alone.
    assert_eq!(decide(64_800, 0), Decision::Wait(None));
    assert_eq!(decide(65_000, 0), Decision::Send(SubflowId(1)));
    // With 20 000 bytes ahead it answers after 210 ms. Both carry 600 000 bytes per second, so that 148 235 bytes of
    // window last for 247 ms, of which 0.85 are 210.
    assert_eq!(decide(148_000, 20_000), Decision::Wait(None));
    assert_eq!(decide(149_000, 20_000), Decision::Send(SubflowId(1)));
}

#[test]
fn a_path_whose_repairs_outlast_the_window_is_not_worth_a_little_more() {
    let fast = Forecast {
        id: SubflowId(0),
        rate: 1e6,
        answer: 0.01,
        stay: 0.01,
        repaired: 0.03,
        losses: 0.0,
        ready: true,
        together: 0.0,
    };
    let tiny = Forecast {
        id: SubflowId(1),
        rate: 10e3,
        answer: 0.02,
        stay: 0.02,
        repaired: 0.2,
        losses: 0.0,
        ready: true,
        together: 0.0,
    };
    assert_eq!(Plan::best(100e3, &mut [fast, tiny]).members, [SubflowId(0), SubflowId(1)]);
    // 100 000 bytes last for 99 ms; it loses a segment every two seconds, whose repair takes 101 ms longer than that:
    // in 5 % of the windows all stands still for as long again.
    assert_eq!(Plan::best(100e3, &mut [fast, Forecast { losses: 0.5, ..tiny }]).members, [SubflowId(0)]);
}

/// The most that a set of these paths carries, of all sets.
fn most_of_all_sets(window: f64, paths: &[Forecast]) -> f64 {
    let sets = 1..1_usize << paths.len();
    let carried = sets.map(|set| {
        let members = paths.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, path)| *path);
        Worth::of(window, &members.collect::<Vec<_>>()).carried
    });
    carried.fold(0.0, f64::max)
}

#[test]
fn of_many_paths_the_plan_carries_as_much_as_the_best_of_all_sets() {
    // Numbers from a generator of Knuth's, so that each run has the same 2,000 cases.
    let mut state = 1_u64;
    let mut draw = |low: f64, high: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low * libm::pow(high / low, (state >> 11) as f64 / (1_u64 << 53) as f64)
    };
    let (mut sum, mut least) = (0.0, f64::MAX);
    for case in 0..2_000_u32 {
        let count = 1 + case % 8;
        let path = |id| {
            let stay = draw(0.005, 1.0);
            let losses = if id % 2 == 0 { 0.0 } else { draw(0.001, 100.0) };
            let rate = draw(1e4, 1e7);
            Forecast {
                id: SubflowId(id),
                rate,
                answer: stay,
                stay,
                repaired: stay * 3.0,
                losses,
                ready: true,
                together: 0.0,
            }
        };
        let mut paths: Vec<Forecast> = (0..count).map(path).collect();
        let window = draw(1e4, 1e7);
        let most = most_of_all_sets(window, &paths);
        let share = Plan::best(window, &mut paths).carried / most;
        (sum, least) = (sum + share, f64::min(least, share));
    }
    assert!(sum / 2_000.0 > 0.995 && least > 0.7, "mean {}, least {least}", sum / 2_000.0);
}

#[test]
fn any_number_of_paths_is_planned_for() {
    // A hundred paths of 125 kB/s, and one of 2.5 MB/s that is the last.
    let mut paths: Vec<(f64, f64)> = vec![(125e3, 50.0); 100];
    paths.push((2.5e6, 50.0));
    let (left, carried) = planned(10e6, &paths);
    assert_eq!(left.len(), 101);
    near(carried, 15e6);
    // One path that repeats slowly is worth it alone where the window is small: 100 kB in 50 ms are 2 MB/s.
    assert_eq!(planned(100e3, &paths), (vec![100], 2e6));
}

#[test]
fn what_a_shut_window_lets_go_is_gathered_where_a_queue_stands() {
    // 10 MB/s: 20 000 bytes in 2 ms, of which 16 segments.
    let mut path = subflow(0, 20);
    path.rates.bandwidth = Rate::from_bytes_per_second(10_000_000);
    (path.cwnd, path.in_flight, path.smoothed_rtt) = (1 << 20, 200_000, Duration::from_millis(25));
    let view = |window_left| ConnectionView { window_left, ..connection(0) };
    let mut scheduler = Anabranch::default();
    assert_eq!(scheduler.schedule(&view(15_999), &new_data(), &[path.clone()]), Decision::Wait(None));
    assert_eq!(scheduler.schedule(&view(16_000), &new_data(), &[path.clone()]), Decision::Send(SubflowId(0)));
    path.queued = 1_000; // the first of them was assigned
    assert_eq!(scheduler.schedule(&view(15_000), &new_data(), &[path.clone()]), Decision::Send(SubflowId(0)));
    (path.queued, path.smoothed_rtt) = (0, Duration::from_millis(20)); // the link has room
    assert_eq!(scheduler.schedule(&view(15_999), &new_data(), &[path]), Decision::Send(SubflowId(0)));
}

/// The end of a stream, a path that releases many segments at once and was used last, and another whose answer is
/// slightly earlier: both can send.
#[test]
fn nobody_waits_for_a_path_that_can_send() {
    let path = |id: u32, answer: f64, together: f64| Forecast {
        id: SubflowId(id),
        rate: 4e6,
        answer,
        stay: answer,
        repaired: answer,
        losses: 0.0,
        ready: true,
        together,
    };
    let mut scheduler =
        Anabranch { plan: Plan { carried: 8e6, longest: 0.0022, ..Plan::NONE }, ..Anabranch::default() };
    let mut paths = [path(0, 0.0022, 0.001), path(1, 0.002, 0.0)];
    let end = ConnectionView { unsent: 400, window: 262_144, backlogged: false, ..connection(0) };
    // 400 bytes are gone in 0.05 ms, so that on path 1 they are answered earlier.
    for (last, chosen) in [(None, 1), (Some(SubflowId(0)), 0), (Some(SubflowId(1)), 1)] {
        scheduler.last = last;
        assert_eq!(scheduler.choose(&end, None, paths.iter()), Some(SubflowId(chosen)), "{last:?}");
    }
    // If path 1 cannot send, waiting pays; not if path 0 is as early.
    paths[1].ready = false;
    assert_eq!(scheduler.choose(&end, None, paths.iter()), None);
    paths[0].answer = 0.00204;
    assert_eq!(scheduler.choose(&end, None, paths.iter()), Some(SubflowId(0)));
}

#[test]
fn nobody_waits_for_a_silent_path() {
    let mut paths = fast_and_slow(10_000, 0);
    paths[0].stale = true;
    let mut view = connection(0);
    (view.unsent, view.backlogged) = (10_000, false);
    assert_eq!(Anabranch::default().schedule(&view, &new_data(), &paths), Decision::Send(SubflowId(1)));
    // Nor is a subflow chosen if the data can go elsewhere, room or not.
    paths[0].in_flight = 1_000;
    assert_eq!(Anabranch::default().schedule(&view, &new_data(), &paths), Decision::Send(SubflowId(1)));
}

/// A scheduler at a moment at which the stream went on.
fn fresh(view: &ConnectionView) -> Anabranch {
    Anabranch { head: (view.data_una, view.now), ..Anabranch::default() }
}

#[test]
fn a_path_with_a_long_queue_is_suspect_by_the_clock_of_the_fastest() {
    let mut paths = [subflow(0, 3_000), subflow(1, 60)];
    paths[0].rtt_variation = Duration::from_millis(20);
    (paths[0].in_flight, paths[0].last_progress) = (300_000, at(9_891));
    let view = ConnectionView { data_nxt: 6_000_000, unsent: 50_000, backlogged: true, ..connection(10_000) };
    // It has acknowledged nothing for 109 ms: 60 and 50 ms are not over.
    assert!(!fresh(&view).duplicates_first(&view, &paths));
    paths[0].last_progress = at(9_889);
    assert!(fresh(&view).duplicates_first(&view, &paths));
    // Data that it has had for longer than three seconds, 60 ms and 50 is overdue.
    for (sent_at, copied) in [(6_891, None), (6_889, Some(SubflowId(1)))] {
        let held = Outstanding {
            data_seq: 9,
            length: 1_000,
            sender: SubflowId(0),
            sent_at: at(sent_at),
            lost: false,
            unrepaired: false,
        };
        assert_eq!(fresh(&view).duplicate(&view, &held, Before::NewData, &paths), copied, "{sent_at}");
    }
}

#[test]
fn a_pause_is_no_silence() {
    let mut paths = fast_and_slow(0, 0);
    let view = ConnectionView { data_nxt: 6_000_000, unsent: 50_000, ..connection(10_000) };
    paths.iter_mut().for_each(|path| path.last_progress = at(9_000));
    let mut scheduler = fresh(&view);
    assert!(!scheduler.duplicates_first(&view, &paths), "nothing is outstanding");
    paths[0].in_flight = 8_000;
    assert!(!scheduler.duplicates_first(&view, &paths), "it was sent just now");
    let later = ConnectionView { now: at(10_200), data_una: 1_000, ..view };
    scheduler.head = (later.data_una, later.now);
    assert!(scheduler.duplicates_first(&later, &paths), "nothing of it was acknowledged for 200 ms");
    scheduler.on_subflow_removed(SubflowId(0));
    scheduler.on_subflow_removed(SubflowId(1));
    assert_eq!(scheduler.idle.len(), 0);
}

#[test]
fn a_path_without_a_queue_of_ours_is_not_judged_by_the_round_trips_that_it_had_with_one() {
    let mut path = subflow(0, 50);
    (path.smoothed_rtt, path.loss_rate) = (Duration::from_secs(3), 0.01);
    // 55 ms and two round trips like that; 105 ms with 20 000 bytes there.
    near(Forecast::of(&path, 1_000, false).repaired, 0.165);
    (path.in_flight, path.cwnd) = (20_000, 30_000);
    near(Forecast::of(&path, 1_000, false).repaired, 0.265);
}

#[test]
fn a_path_that_got_little_is_tried_with_an_initial_window_and_a_live_stream_goes_on_until_a_queue_shows() {
    // 2000 bytes per second were seen of it, since it got no more.
    let mut path = subflow(0, 100);
    (path.phase, path.rates.bandwidth, path.cwnd) = (Phase::SlowStart, Rate::from_bits_per_second(16_000), 20_000);
    path.in_flight = 4_000;
    let forecasts = |path: &SubflowView| [false, true].map(|live| Forecast::of(path, 1_000, live));
    // Ten segments in 100 ms: 110 ms.
    for forecast in forecasts(&path) {
        near(forecast.answer, 0.11);
        near(forecast.stay, 0.11);
        near(forecast.rate, 100_000.0);
    }
    // More than that is evidence: 10 001 + 1000 / 2000 s.
    path.in_flight = 10_000;
    let [bulk, live] = forecasts(&path);
    near(bulk.answer, 5.5);
    near(live.answer, 0.11);
    path.in_flight = 4_000;
    path.latest_rtt = Duration::from_millis(161);
    forecasts(&path).iter().for_each(|forecast| near(forecast.answer, 2.5));
}

#[test]
fn a_path_whose_single_segments_are_acknowledged_late_is_tried_nevertheless() {
    // 30 ms, and 40 ms of delayed acknowledgement: what a segment a second shows is 14 kB/s.
    let mut slow = subflow(1, 30);
    (slow.phase, slow.latest_rtt) = (Phase::SlowStart, Duration::from_millis(70));
    slow.rates.bandwidth = Rate::from_bytes_over(1_000, slow.latest_rtt);
    let mut fast = subflow(0, 10);
    (fast.rates.bandwidth, fast.cwnd) = (Rate::from_bits_per_second(300_000_000), 500_000);
    fast.in_flight = fast.cwnd;
    let view = ConnectionView { window: 10_000_000, backlogged: true, ..connection(1_000) };
    assert_eq!(fresh(&view).schedule(&view, &new_data(), &[fast.clone(), slow.clone()]), Decision::Send(slow.id));
    // Later than any acknowledgement is delayed: there is a queue.
    slow.latest_rtt = Duration::from_millis(84);
    assert_eq!(fresh(&view).schedule(&view, &new_data(), &[fast, slow]), Decision::Wait(None));
}

#[test]
fn how_long_a_path_may_be_silent_is_what_was_set() {
    for (settings, patience) in [(Settings::new(), 3.0), (Settings::new().with("silence", 5), 5.0)] {
        assert_eq!(settings.read(Anabranch::build).expect("it is a setting").needs().silence, Some(patience));
    }
}

#[test]
fn it_looks_at_what_is_outstanding_if_it_may_duplicate_and_lets_sixteen_segments_share_a_mapping() {
    let needs = |duplicate: &str| Settings::new().with("duplicate", duplicate).read(Anabranch::read).unwrap().needs();
    let expected = Needs { outstanding: true, silence: Some(3.0), segments_per_mapping: 16, ..Needs::default() };
    assert_eq!(needs("on"), expected);
    assert_eq!(needs("off"), Needs { outstanding: false, ..expected });
}
