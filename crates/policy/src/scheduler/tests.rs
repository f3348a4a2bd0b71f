//! Decisions of the schedulers, computed by hand, and the views for them.

use super::blocked_window::Penalise;
use super::linux::{Linux, LinuxSettings};
use super::lowest_rtt::LowestRtt;
use super::pile::Pile;
use super::round_robin::RoundRobin;
use super::*;
use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::rate::Rate;
use crate::table::{SettingError, Settings, build};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, Counters, Phase, Rates, SubflowState, SubflowView};

/// An established subflow with segments of 1000 bytes, a window of ten and nothing in flight.
pub(crate) fn subflow(id: u32, rtt_ms: u64) -> SubflowView {
    let rtt = Duration::from_millis(rtt_ms);
    SubflowView {
        id: SubflowId(id),
        local_address: AddressId(id as u8 + 1),
        remote_address: AddressId(0),
        state: SubflowState::Established,
        backup: false,
        suspended: false,
        stale: false,
        phase: Phase::CongestionAvoidance,
        mss: 1000,
        cwnd: 10_000,
        ssthresh: 10_000,
        in_flight: 0,
        queued: 0,
        smoothed_rtt: rtt,
        rtt_variation: rtt / 4,
        min_rtt: rtt,
        latest_rtt: rtt,
        rto: Duration::from_millis(200),
        rates: Rates {
            pacing: Rate::from_bytes_over(10_000, rtt),
            bandwidth: Rate::from_bytes_over(10_000, rtt),
            delivery: Rate::ZERO,
            app_limited: false,
        },
        counters: Counters::default(),
        loss_rate: 0.0,
        last_progress: Instant::ZERO,
        last_sent: Instant::ZERO,
        forward_delay: None,
        window_left: u64::MAX,
    }
}

/// A connection with much to send and a window of a megabyte, `now_ms` after the start.
pub(crate) fn connection(now_ms: u64) -> ConnectionView {
    ConnectionView {
        id: ConnectionId(1),
        now: at(now_ms),
        data_una: 0,
        data_nxt: 0,
        data_received: 0,
        unsent: 1_000_000,
        window_left: 1_000_000,
        window: 1_000_000,
        at_end: false,
        backlogged: true,
        priority: 1,
        play_out_left: None,
    }
}

pub(crate) const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// The first segment of 1000 bytes.
pub(crate) fn new_data() -> Chunk {
    Chunk { data_seq: 0, length: 1000, kind: ChunkKind::New, last_sent_on: None, time_left: None }
}

/// The same, to be reinjected: it was lost on this subflow.
pub(crate) fn reinjection_from(id: u32) -> Chunk {
    Chunk { kind: ChunkKind::Reinjection, last_sent_on: Some(SubflowId(id)), ..new_data() }
}

pub(crate) fn send(id: u32) -> Decision {
    Decision::Send(SubflowId(id))
}

fn lowest_rtt() -> LowestRtt {
    LowestRtt::new(true, Penalise::Slower)
}

fn everyone() -> Vec<Box<dyn Scheduler>> {
    TABLE.iter().map(|member| build(TABLE, member.name, &Settings::new()).unwrap()).collect()
}

#[test]
fn the_fastest_subflow_with_room_is_taken_and_a_full_one_is_passed_over() {
    let mut paths = [subflow(0, 50), subflow(1, 20), subflow(2, 30)];
    assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(1));
    // 6000 in flight and 3500 queued leave 500 of 10000: too little for a segment.
    (paths[1].in_flight, paths[1].queued) = (6_000, 3_500);
    assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(2));
    // A last chunk of 500 bytes fits.
    let tail = Chunk { length: 500, ..new_data() };
    assert_eq!(lowest_rtt().schedule(&connection(0), &tail, &paths), send(1));
}

#[test]
fn of_two_equally_fast_subflows_the_lower_id_is_taken() {
    let paths = [subflow(0, 50), subflow(1, 20), subflow(2, 20)];
    assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(1));
}

#[test]
fn a_full_regular_subflow_is_waited_for_although_a_backup_has_room() {
    let mut paths = [subflow(0, 50), subflow(1, 20)];
    paths[1].backup = true;
    paths[0].in_flight = 10_000;
    assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
}

#[test]
fn a_backup_is_used_when_every_regular_subflow_is_stale_suspended_or_closing() {
    for spoil in [
        |view: &mut SubflowView| view.stale = true,
        |view: &mut SubflowView| view.suspended = true,
        |view: &mut SubflowView| view.state = SubflowState::Closing,
    ] {
        let mut paths = [subflow(0, 20), subflow(1, 50)];
        paths[1].backup = true;
        assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(0));
        spoil(&mut paths[0]);
        assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(1));
    }
}

#[test]
fn a_stale_subflow_gets_new_data_when_nothing_better_is_left() {
    let mut paths = [subflow(0, 20), subflow(1, 10)];
    paths[0].stale = true;
    paths[1].stale = true;
    paths[1].backup = true;
    assert_eq!(lowest_rtt().schedule(&connection(0), &new_data(), &paths), send(0));
}

#[test]
fn no_scheduler_reinjects_where_the_data_was_sent_last() {
    for mut scheduler in everyone() {
        assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &[subflow(0, 20)]), Decision::Wait(None));
        let paths = [subflow(0, 20), subflow(1, 500)];
        assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), send(1));
    }
}

#[test]
fn no_scheduler_chooses_an_opening_a_closing_or_a_suspended_subflow() {
    for mut scheduler in everyone() {
        let mut paths = [subflow(0, 1), subflow(1, 2), subflow(2, 3)];
        paths[0].state = SubflowState::Opening;
        paths[1].state = SubflowState::Closing;
        paths[2].suspended = true;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &[]), Decision::Wait(None));
    }
}

const HOLE: Hole = Hole { data_seq: 5_000, length: 1000, culprit: SubflowId(0) };

#[test]
fn a_hole_is_retransmitted_once_on_the_fastest_other_path_with_room() {
    let mut scheduler = LowestRtt::new(true, Penalise::Never);
    let mut paths = [subflow(0, 10), subflow(1, 20), subflow(2, 30)];
    paths[1].in_flight = 10_000;
    paths[2].in_flight = 10_000;
    // No room anywhere: nothing is sent, and the hole does not count as handled.
    assert_eq!(scheduler.on_window_blocked(&connection(0), &HOLE, &paths), Relief::default());
    paths[2].in_flight = 0;
    let relief = Relief { retransmit_on: Some(SubflowId(2)), penalise: None };
    assert_eq!(scheduler.on_window_blocked(&connection(1), &HOLE, &paths), relief);
    assert_eq!(scheduler.on_window_blocked(&connection(2), &HOLE, &paths), Relief::default());
    let next = Hole { data_seq: 6_000, ..HOLE };
    assert_eq!(scheduler.on_window_blocked(&connection(3), &next, &paths), relief);
}

#[test]
fn a_slow_culprit_is_penalised_at_most_once_per_its_round_trip() {
    let mut scheduler = LowestRtt::new(false, Penalise::Slower);
    let paths = [subflow(0, 100), subflow(1, 20)];
    let mut penalised = |ms| scheduler.on_window_blocked(&connection(ms), &HOLE, &paths).penalise;
    assert_eq!(penalised(1_000), Some(SubflowId(0)));
    assert_eq!(penalised(1_099), None);
    assert_eq!(penalised(1_100), Some(SubflowId(0)));
    assert_eq!(penalised(1_199), None);
    scheduler.on_subflow_removed(SubflowId(0));
    assert_eq!(scheduler.on_window_blocked(&connection(1_199), &HOLE, &paths).penalise, Some(SubflowId(0)));
}

#[test]
fn the_fastest_path_is_blamed_only_when_the_setting_says_always_and_the_only_path_never() {
    let paths = [subflow(0, 10), subflow(1, 20)];
    let relief = |penalise, paths: &[SubflowView]| {
        LowestRtt::new(true, penalise).on_window_blocked(&connection(0), &HOLE, paths)
    };
    assert_eq!(relief(Penalise::Slower, &paths).penalise, None);
    assert_eq!(relief(Penalise::Never, &paths).penalise, None);
    assert_eq!(relief(Penalise::Always, &paths).penalise, Some(SubflowId(0)));
    assert_eq!(relief(Penalise::Always, &paths[..1]), Relief::default());
}

#[test]
fn both_mechanisms_can_be_switched_off_by_name() {
    let paths = [subflow(0, 100), subflow(1, 20)];
    let settings = Settings::new().with("opportunistic_retransmission", "off").with("penalise", "never");
    let mut off = build(TABLE, "lowest_rtt", &settings).unwrap();
    assert_eq!(off.on_window_blocked(&connection(0), &HOLE, &paths), Relief::default());
    let mut on = build(TABLE, "lowest_rtt", &Settings::new()).unwrap();
    let both = Relief { retransmit_on: Some(SubflowId(1)), penalise: Some(SubflowId(0)) };
    assert_eq!(on.on_window_blocked(&connection(0), &HOLE, &paths), both);
}

#[test]
fn a_closed_window_is_relieved_as_the_authors_of_each_scheduler_do_it_and_every_setting_can_change_that() {
    let paths = [subflow(0, 100), subflow(1, 20)];
    let relief = |name, settings: &Settings| {
        let relief = build(TABLE, name, settings).unwrap().on_window_blocked(&connection(0), &HOLE, &paths);
        (relief.retransmit_on.is_some(), relief.penalise.is_some())
    };
    let both = Settings::new().with("opportunistic_retransmission", "on").with("penalise", "always");
    let neither = Settings::new().with("opportunistic_retransmission", "off").with("penalise", "never");
    for (name, by_default) in [
        ("lowest_rtt", (true, true)),
        ("blest", (true, true)),
        ("ecf", (true, true)),
        ("daps", (true, false)),
        ("sttf", (true, false)),
        ("otias", (false, false)),
    ] {
        assert_eq!(relief(name, &Settings::new()), by_default, "{name}");
        assert_eq!(relief(name, &both), (true, true), "{name}");
        assert_eq!(relief(name, &neither), (false, false), "{name}");
    }
}

#[test]
fn segments_go_in_turn_and_a_full_subflow_is_skipped() {
    let mut scheduler = RoundRobin::default();
    let mut paths = [subflow(0, 10), subflow(1, 500), subflow(4, 20)];
    let turns: Vec<_> = (0..4).map(|_| scheduler.schedule(&connection(0), &new_data(), &paths)).collect();
    assert_eq!(turns, [send(0), send(1), send(4), send(0)]);
    paths[1].queued = 9_500;
    let turns: Vec<_> = (0..3).map(|_| scheduler.schedule(&connection(0), &new_data(), &paths)).collect();
    assert_eq!(turns, [send(4), send(0), send(4)]);
}

#[test]
fn redundant_asks_for_duplicates_and_assigns_the_first_to_the_fastest() {
    let mut scheduler = build(TABLE, "redundant", &Settings::new()).unwrap();
    assert!(scheduler.needs().whole_stream && !everyone()[0].needs().whole_stream);
    let mut paths = [subflow(0, 50), subflow(1, 20)];
    let mut next = |behind: &[u32], paths: &[SubflowView]| {
        let behind = behind.iter().map(|id| SubflowId(*id)).collect();
        scheduler.next(&connection(0), &mut Pile { unsent: Some(new_data()), behind, ..Pile::default() }, paths)
    };
    assert_eq!(next(&[], &paths), Answer::New(SubflowId(1)));
    assert_eq!(next(&[0, 1], &paths), Answer::CatchUp(SubflowId(0)));
    // A full subflow cannot catch up.
    paths[0].in_flight = paths[0].cwnd;
    assert_eq!(next(&[0, 1], &paths), Answer::CatchUp(SubflowId(1)));
    assert_eq!(next(&[0], &paths), Answer::New(SubflowId(1)));
}

#[test]
fn linux_takes_the_least_queue_per_pacing_rate_and_not_the_least_round_trip() {
    let mut scheduler = linux(2.0);
    let mut paths = [subflow(0, 10), subflow(1, 100)];
    paths[0].rates.pacing = Rate::from_bytes_per_second(1_000_000);
    paths[1].rates.pacing = Rate::from_bytes_per_second(500_000);
    // 8000 B / 1 MB/s = 8 ms against 3000 B / 0.5 MB/s = 6 ms.
    (paths[0].in_flight, paths[1].queued) = (8_000, 3_000);
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(1));
}

#[test]
fn linux_sends_a_burst_of_64_kib_to_the_same_subflow_before_it_chooses_again() {
    let mut scheduler = linux(10.0);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    let mut shares = [0; 2];
    // 65536 bytes are 66 segments of 1000, the last of which exceeds the burst; then the other one's queue is shorter.
    for round in 0..132 {
        let Decision::Send(id) = scheduler.schedule(&connection(0), &new_data(), &paths) else { panic!("waits") };
        assert_eq!(id.0, round / 66, "segment {round}");
        paths[id.0 as usize].queued += 1000;
        shares[id.0 as usize] += 1;
    }
    assert_eq!(shares, [66, 66]);
}

/// `linux` with send buffers of this many windows.
fn linux(send_buffer: f64) -> Linux {
    Linux::new(LinuxSettings { send_buffer, ..LinuxSettings::default() })
}

#[test]
fn linux_sends_nothing_anywhere_while_what_a_slow_subflow_owes_fills_the_connections_send_buffer() {
    let mut scheduler = linux(2.0);
    // Two buffers of two windows of 10000 bytes, 40000 in all, are filled in two pages of 32 KiB; the first bytes are
    // missing.
    let paths = [subflow(0, 10), subflow(1, 100)];
    let mut chunk_at = |una: u64, data_seq: u64| {
        let view = ConnectionView { data_una: una, data_nxt: data_seq, ..connection(0) };
        matches!(scheduler.schedule(&view, &Chunk { data_seq, ..new_data() }, &paths), Decision::Send(_))
    };
    assert!(chunk_at(0, 0) && chunk_at(0, 65_535));
    assert!(!chunk_at(0, 65_536));
    // The program wakes when at most two thirds of 40000 are left, 26666 bytes: not yet, and now. It writes a page.
    assert!(!chunk_at(38_869, 65_536));
    assert!(chunk_at(38_870, 65_536) && chunk_at(38_870, 98_303) && !chunk_at(38_870, 98_304));
}

#[test]
fn the_send_buffer_of_linux_grows_with_the_window_where_that_is_not_filled_and_never_shrinks() {
    let mut scheduler = linux(2.0);
    let mut paths = [subflow(0, 10)];
    let mut takes = |cwnd: u64, held: u64| {
        (paths[0].cwnd, paths[0].in_flight) = (cwnd, held);
        matches!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Send(_))
    };
    assert!(takes(10_000, 19_000) && !takes(10_000, 20_000));
    // A larger window that is full does not make it larger; one that is not does, for ever.
    assert!(!takes(20_000, 20_000));
    assert!(takes(20_000, 19_000) && takes(20_000, 39_000) && takes(10_000, 39_000) && !takes(10_000, 40_000));
}

#[test]
fn linux_shortens_the_burst_to_what_is_left_of_the_window() {
    let mut scheduler = linux(10.0);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    let nearly_closed = ConnectionView { window_left: 2_000, ..connection(0) };
    let mut ids = Vec::new();
    for _ in 0..3 {
        let Decision::Send(id) = scheduler.schedule(&nearly_closed, &new_data(), &paths) else { panic!("waits") };
        paths[id.0 as usize].queued += 1000;
        ids.push(id.0);
    }
    assert_eq!(ids, [0, 0, 1]);
}

#[test]
fn linux_queues_beyond_the_window_up_to_the_send_buffer_and_then_waits_although_another_has_space() {
    let mut scheduler = linux(2.0);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    paths[0].rates.pacing = Rate::from_bytes_per_second(100_000_000);
    paths[1].rates.pacing = Rate::from_bytes_per_second(100_000);
    // Two windows of 10000; 19999 B / 100 MB/s is still less than 1000 B / 100 kB/s.
    (paths[0].in_flight, paths[0].queued, paths[1].in_flight) = (10_000, 9_999, 1_000);
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(0));
    paths[0].queued = 10_000;
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
}

#[test]
fn linux_uses_a_backup_when_the_regular_subflow_timed_out_four_times_in_a_row_and_forgives_progress() {
    let mut scheduler = linux(2.0);
    let mut paths = [subflow(0, 10), subflow(1, 10)];
    paths[1].backup = true;
    // The backup is idle, and still the last choice.
    paths[0].queued = 9_000;
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(0));
    paths[0].stale = true;
    for (timeouts, expected) in [(1, 0), (3, 0), (4, 1), (5, 1)] {
        paths[0].counters.timeouts = timeouts;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(expected), "{timeouts} timeouts");
    }
    (paths[0].stale, paths[0].last_progress) = (false, at(9_000));
    // What is left of the backup's burst: 64 of 66 segments.
    for _ in 0..64 {
        assert_eq!(scheduler.schedule(&connection(9_000), &new_data(), &paths), send(1));
    }
    assert_eq!(scheduler.schedule(&connection(9_000), &new_data(), &paths), send(0));
}

#[test]
fn linux_counts_timeouts_from_the_last_progress_or_the_last_answer() {
    for answer in [
        |view: &mut SubflowView| view.stale = false,
        |view: &mut SubflowView| (view.last_progress, view.counters.timeouts) = (at(9_000), 6),
    ] {
        let mut scheduler = linux(2.0);
        let mut paths = [subflow(0, 10)];
        scheduler.schedule(&connection(0), &new_data(), &paths);
        (paths[0].stale, paths[0].counters.timeouts) = (true, 5);
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
        answer(&mut paths[0]);
        assert_eq!(scheduler.schedule(&connection(9_000), &new_data(), &paths), send(0));
    }
}

#[test]
fn linux_reinjects_only_onto_an_idle_subflow_and_onto_a_backup_only_when_the_regulars_stall() {
    let mut scheduler = linux(2.0);
    assert_eq!(scheduler.needs().reinjection, Reinjection::OnConnectionTimeout);
    let mut paths = [subflow(0, 10), subflow(1, 10), subflow(2, 10)];
    paths[2].backup = true;
    paths[1].in_flight = 1;
    assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), Decision::Wait(None));
    (paths[0].stale, paths[1].stale) = (true, true);
    assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), send(2));
    (paths[1].in_flight, paths[1].stale) = (0, false);
    assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), send(1));
    // Idle, but with an unanswered timeout: not used.
    paths[1].stale = true;
    assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths[..2]), Decision::Wait(None));
}

#[test]
fn settings_outside_their_range_are_refused_by_name() {
    for (member, name, value) in [
        ("lowest_rtt", "penalise", "sometimes"),
        ("lowest_rtt", "opportunistic_retransmission", "yes"),
        ("linux", "send_buffer", "0.5"),
        ("linux", "stale_loss_cnt", "NaN"),
        ("blest", "lambda", "1.4"),
        ("ecf", "beta", "-1"),
        ("daps", "replan", "11"),
        ("otias", "rounds", "half"),
        ("sttf", "round_trip", "least"),
    ] {
        let error = build(TABLE, member, &Settings::new().with(name, value)).err();
        assert!(
            matches!(&error, Some(SettingError::BadValue { name: n, .. }) if n == name),
            "{member} {name}: {error:?}"
        );
    }
    assert!(matches!(
        build(TABLE, "round_robin", &Settings::new().with("weight", 1)).err(),
        Some(SettingError::UnknownParameter { .. })
    ));
}

#[test]
fn every_default_in_the_table_is_a_value_that_its_parameter_takes() {
    for member in TABLE {
        let settings = member.parameters().iter().fold(Settings::new(), |s, p| s.with(p.name, &p.default));
        assert!(build(TABLE, member.name, &settings).is_ok(), "{}", member.name);
    }
}

/// Always answers with the same subflow.
struct Stubborn(u32);

impl Scheduler for Stubborn {
    fn schedule(&mut self, _: &ConnectionView, _: &Chunk, _: &[SubflowView]) -> Decision {
        send(self.0)
    }
}

#[test]
fn an_answer_that_names_a_subflow_that_cannot_be_used_is_none() {
    let mut paths = [subflow(0, 20), subflow(1, 50)];
    paths[1].suspended = true;
    let answer = |id: u32, chunk: Chunk| {
        let mut pile = Pile::default();
        match chunk.kind {
            ChunkKind::New => pile.unsent = Some(chunk),
            _ => pile.again.push_back(chunk),
        }
        Stubborn(id).next(&connection(0), &mut pile, &paths)
    };
    assert_eq!([0, 1, 7].map(|id| answer(id, new_data())), [Answer::New(SubflowId(0)), Answer::Wait, Answer::Wait]);
    // Nor the one that sent it last.
    let again = [0, 1, 7].map(|id| answer(id, reinjection_from(1)));
    assert_eq!(again, [Answer::Again(SubflowId(0)), Answer::Wait, Answer::Wait]);
    assert_eq!(answer(0, reinjection_from(0)), Answer::Wait);
}

#[test]
fn when_a_subflow_is_removed_it_is_forgotten_that_its_window_was_halved() {
    let hole = Hole { data_seq: 0, length: 1_000, culprit: SubflowId(1) };
    let paths = [subflow(0, 10), subflow(1, 100)];
    for name in ["blest", "daps", "deadline_reinjection", "ecf", "lowest_rtt", "otias"] {
        let mut scheduler = build(TABLE, name, &Settings::new().with("penalise", "always")).unwrap();
        let mut penalises = |removed| {
            if removed {
                scheduler.on_subflow_removed(SubflowId(1));
            }
            scheduler.on_window_blocked(&connection(0), &hole, &paths).penalise.is_some()
        };
        // Once per round trip.
        assert_eq!([false, false, true].map(&mut penalises), [true, false, true], "{name}");
    }
}
