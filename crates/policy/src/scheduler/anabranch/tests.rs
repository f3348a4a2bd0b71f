//! Decisions of `anabranch`, computed by hand: segments of 1000 bytes, and windows of ten of them per round trip, so
//! that a path of 20 ms carries 500 000 bytes per second and one of 100 ms 100 000.

mod opportunities;

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

/// The subflow that duplicates a segment that the path of 50 ms has had for `waited` milliseconds, with this many
/// outstanding.
fn duplicated(waited: u64, outstanding: u64, paths: &[SubflowView]) -> Option<u32> {
    let mut view = connection(1_000);
    (view.data_nxt, view.unsent) = (outstanding * 1_000, 0);
    let held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(1_000 - waited),
        lost: false,
        unrepaired: false,
    };
    Anabranch::default().duplicate(&view, &held, Before::Nothing, paths).map(|id| id.0)
}

#[test]
fn data_that_arrives_earlier_on_another_subflow_or_is_overdue_is_duplicated() {
    let paths = [subflow(0, 50), subflow(1, 20)];
    // The other answers after 22 ms, the sender is expected to after 50.
    assert_eq!(duplicated(27, 100, &paths), Some(1));
    assert_eq!(duplicated(29, 100, &paths), None);
    // It is overdue four variations, 50 ms, after that.
    assert_eq!(duplicated(100, 100, &paths), None);
    assert_eq!(duplicated(101, 100, &paths), Some(1));
    // Not on a path that is stale or has no room.
    let mut other = paths.clone();
    other[1].stale = true;
    assert_eq!(duplicated(101, 100, &other), None);
    let mut other = paths;
    other[1].in_flight = 10_000;
    assert_eq!(duplicated(101, 100, &other), None);
}

#[test]
fn the_tail_is_duplicated_where_its_path_loses() {
    let mut paths = [subflow(0, 50), subflow(1, 100)];
    assert_eq!(duplicated(0, TAIL, &paths), None);
    paths[0].loss_rate = LOSSY * 1.01;
    // 110 ms are less than 3 x 50.
    assert_eq!(duplicated(0, TAIL, &paths), Some(1));
    assert_eq!(duplicated(0, TAIL + 1, &paths), None);
    paths[1] = subflow(1, 150); // 165 ms
    assert_eq!(duplicated(0, TAIL, &paths), None);
}

#[test]
fn what_is_overdue_comes_before_new_data_after_a_round_trip_of_the_quickest_and_a_late_acknowledgement() {
    let mut paths = [subflow(0, 50), subflow(1, 20)];
    (paths[0].rtt_variation, paths[1].rtt_variation) = (Duration::from_millis(10), Duration::from_millis(5));
    // Nothing has been acknowledged for long, and nothing new was sent: that is what the connection waits for.
    let view = connection(1_000);
    // 20 and 50 ms.
    for (progress, in_flight, first) in [(930, 2_000, false), (929, 2_000, true), (929, 1_000, false)] {
        (paths[0].last_progress, paths[0].in_flight) = (at(progress), in_flight);
        assert_eq!(fresh(&view).duplicates_first(&view, &paths), first, "{progress} {in_flight}");
    }
    // Its round trips vary by more than that.
    (paths[0].in_flight, paths[0].rtt_variation) = (2_000, Duration::from_millis(18));
    assert!(!fresh(&view).duplicates_first(&view, &paths));
    // Data of a stale path was already reinjected.
    (paths[0].last_progress, paths[0].stale) = (at(1), true);
    assert!(!fresh(&view).duplicates_first(&view, &paths));
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
fn a_byte_that_all_waits_for_is_repaired_where_that_takes_half_of_the_time_even_if_the_application_is_ahead() {
    let mut paths = [subflow(0, 3_000), subflow(1, 60)];
    (paths[0].in_flight, paths[0].last_progress) = (300_000, at(9_999));
    let view = ConnectionView { data_nxt: 6_000_000, unsent: 50_000, backlogged: true, ..connection(10_000) };
    let held = |millis: u64, data_seq, lost| Outstanding {
        data_seq,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(10_000 - millis),
        lost,
        unrepaired: false,
    };
    let stuck_for = |millis: u64| Anabranch { head: (0, at(10_000 - millis)), ..Anabranch::default() };
    assert!(!stuck_for(50).duplicates_first(&view, &paths) && stuck_for(51).duplicates_first(&view, &paths));
    let copies = |held| stuck_for(51).duplicate(&view, &held, Before::NewData, &paths).is_some();
    // The other answers after 60 and 6 ms: twice that before the three seconds are over.
    assert_eq!([2_867, 2_869].map(|millis| copies(held(millis, 0, false))), [true, false]);
    // So is all lost data, but nothing else.
    assert!(copies(held(9, 5_000, true)) && !copies(held(9, 5_000, false)));
    assert_eq!(stuck_for(50).duplicate(&view, &held(9, 0, true), Before::NewData, &paths), None);
    // What waits for the sender's window has its whole round trip before it.
    let waits = Outstanding { unrepaired: true, ..held(2_990, 5_000, true) };
    assert!(copies(waits) && !copies(Outstanding { unrepaired: false, ..waits }));
    // Behind a queue of two seconds: not in half the time, but a second earlier.
    paths[1] = subflow(1, 2_000);
    for (millis, copied) in [(540, Some(SubflowId(1))), (560, None)] {
        let held = held(millis, 0, true);
        assert_eq!(stuck_for(51).duplicate(&view, &held, Before::NewData, &paths), copied, "{millis} ms");
    }
    // Like paths repair their own losses.
    paths = [subflow(0, 100), subflow(1, 60)];
    assert_eq!(stuck_for(51).duplicate(&view, &held(0, 0, true), Before::NewData, &paths), None);
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
fn what_a_slower_path_lost_goes_before_new_data_unless_the_application_is_ahead() {
    let mut paths = [subflow(0, 200), subflow(1, 50)];
    let mut view = ConnectionView { backlogged: false, ..connection(1_000) };
    let mut scheduler = fresh(&view);
    assert!(!scheduler.duplicates_first(&view, &paths));
    paths[0].phase = Phase::FastRecovery;
    assert!(scheduler.duplicates_first(&view, &paths));
    // Just retransmitted, it would be answered there after 200 ms, here after 55.
    (view.data_nxt, view.unsent) = (100_000, 50_000);
    let held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(0),
        sent_at: at(1_000),
        lost: true,
        unrepaired: false,
    };
    let mut copied = |held: &Outstanding| scheduler.duplicate(&view, held, Before::NewData, &paths);
    assert_eq!(copied(&held), Some(SubflowId(1)));
    // Data that is not lost waits until nothing new can be sent, and the faster path repairs its own losses.
    let only_sent = Outstanding { lost: false, ..held };
    assert_eq!(copied(&only_sent), None);
    assert_eq!(copied(&Outstanding { sender: SubflowId(1), ..held }), None);
    view.backlogged = true;
    assert!(!scheduler.duplicates_first(&view, &paths));
}

#[test]
fn reported_losses_are_reinjected_at_once_unless_the_application_is_ahead_of_the_buffer() {
    let mut scheduler = Anabranch::default();
    let [live, ahead] = [false, true].map(|backlogged| ConnectionView { backlogged, ..connection(0) });
    assert!(scheduler.repairs_elsewhere(&live) && !scheduler.repairs_elsewhere(&ahead));
    assert!(!Anabranch { duplicate: false, ..Anabranch::default() }.repairs_elsewhere(&live));
}

#[test]
fn what_could_be_sent_again_in_time_goes_where_it_arrives_first_and_not_where_it_is_answered_first() {
    // The answers of 22 and 110 ms are 11 and 55 on their way back: equal at k / 500 000 = 44 ms, k = 22 000. Without
    // the deadline it is 44 000.
    for (left_ms, unsent, sent) in
        [(110, 21_900, false), (110, 22_100, true), (109, 43_900, false), (109, 44_100, true)]
    {
        let mut view = connection(0);
        (view.unsent, view.backlogged) = (unsent, false);
        let chunk = Chunk { time_left: Some(Duration::from_millis(left_ms)), ..new_data() };
        let decision = if sent { Decision::Send(SubflowId(1)) } else { Decision::Wait(None) };
        let paths = fast_and_slow(10_000, 0);
        assert_eq!(Anabranch::default().schedule(&view, &chunk, &paths), decision, "{left_ms} {unsent}");
    }
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
    path.latest_rtt = Duration::from_millis(111);
    forecasts(&path).iter().for_each(|forecast| near(forecast.answer, 2.5));
}

/// Whether a lossy path of 200 ms duplicates a segment that it has just sent and that has this much time left.
fn is_duplicated_with(
    time_left: u64,
    paths: &[SubflowView],
    change: impl Fn(&mut ConnectionView, &mut Outstanding),
) -> bool {
    let mut view = ConnectionView { backlogged: false, ..connection(1_000) };
    let mut held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(1),
        sent_at: at(1_000),
        lost: false,
        unrepaired: false,
    };
    change(&mut view, &mut held);
    Anabranch::default().duplicates_recent(&view, &held, Duration::from_millis(time_left), paths)
}

#[test]
fn what_could_not_be_repaired_in_time_is_duplicated() {
    let as_it_is = |_: &mut ConnectionView, _: &mut Outstanding| ();
    let mut paths = [subflow(0, 50), subflow(1, 200)];
    paths[1].loss_rate = LOSSY * 1.01;
    // The loss is known after 250 ms, and the quick path brings it in the time that the deadline has in it.
    assert_eq!([249, 250].map(|left| is_duplicated_with(left, &paths, as_it_is)), [true, false]);
    // If that is stale the slow one takes 75 ms more.
    paths[0].stale = true;
    assert_eq!([324, 325].map(|left| is_duplicated_with(left, &paths, as_it_is)), [true, false]);
    // It was sent a while ago, is already retransmitted, or the application is ahead of the buffer.
    assert!(is_duplicated_with(9, &paths, |_, held| held.sent_at = at(901)));
    assert!(!is_duplicated_with(9, &paths, |_, held| held.sent_at = at(900)));
    assert!(!is_duplicated_with(9, &paths, |_, held| held.lost = true));
    assert!(!is_duplicated_with(9, &paths, |view, _| view.backlogged = true));
    // Half of the window stays free.
    for (in_flight, duplicates_recent) in [(4_000, true), (4_001, false)] {
        paths[1].in_flight = in_flight;
        assert_eq!(is_duplicated_with(9, &paths, as_it_is), duplicates_recent, "{in_flight}");
    }
    paths[1].in_flight = 0;
    let but = |change: fn(&mut SubflowView)| {
        let mut paths = paths.clone();
        change(&mut paths[1]);
        is_duplicated_with(9, &paths, as_it_is)
    };
    assert!(
        !but(|path| path.loss_rate = LOSSY) && !but(|path| path.stale = true) && !but(|path| path.suspended = true)
    );
    let mut off = Anabranch { duplicate: false, ..Anabranch::default() };
    let held = Outstanding {
        data_seq: 0,
        length: 1_000,
        sender: SubflowId(1),
        sent_at: at(1_000),
        lost: false,
        unrepaired: false,
    };
    let view = ConnectionView { backlogged: false, ..connection(1_000) };
    assert!(!off.duplicates_recent(&view, &held, Duration::from_millis(9), &paths));
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
