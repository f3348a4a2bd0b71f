//! Qualities, speeds and choices of the scheduler `qoe`, computed by hand.

use super::*;
use crate::scheduler::tests::{at, connection, new_data, reinjection_from, send, subflow};

/// A connection of this priority.
fn priority(priority: u8, now_ms: u64) -> ConnectionView {
    ConnectionView { priority, ..connection(now_ms) }
}

#[test]
fn losses_timeouts_and_acknowledgements_move_the_quality_as_printed() {
    assert_eq!(Quality::default(), Quality(10_000));
    assert_eq!(Quality(10_000).after(1, 0, 0), Quality(9_900));
    assert_eq!(Quality(10_000).after(0, 1, 0), Quality(9_000));
    assert_eq!(Quality(10_000).after(0, 0, 5), Quality(10_000));
    assert_eq!(Quality(9_998).after(0, 0, 1), Quality(9_999));
    // Three losses, two timeouts, 50 acknowledgements: 10000 - 300 - 2000 + 50.
    assert_eq!(Quality(10_000).after(3, 2, 50), Quality(7_750));
}

#[test]
fn below_100_a_loss_changes_nothing_and_below_1000_a_timeout() {
    assert_eq!(Quality(100).after(1, 0, 0), Quality(0));
    assert_eq!(Quality(99).after(1, 0, 0), Quality(99));
    assert_eq!(Quality(250).after(5, 0, 0), Quality(50));
    assert_eq!(Quality(1_000).after(0, 1, 0), Quality(0));
    assert_eq!(Quality(999).after(0, 3, 0), Quality(999));
    assert_eq!(Quality(2_500).after(0, 7, 0), Quality(500));
}

#[test]
fn the_classes_end_where_the_paper_says() {
    let class = |quality| Quality(quality).class();
    assert_eq!((class(10_000), class(8_001)), (Class::Good, Class::Good));
    assert_eq!((class(8_000), class(5_001)), (Class::Moderate, Class::Moderate));
    assert_eq!((class(5_000), class(0)), (Class::Bad, Class::Bad));
}

#[test]
fn the_table_of_speeds_is_the_papers() {
    let normal = Rate::from_bytes_per_second(64_000);
    let speeds = |class| {
        [1, 2, 3, 4, 5, 6].map(|p| delivery_speed(normal, class, p).map_or(64_000, |speed| speed.bytes_per_second()))
    };
    // 64000 less a 32nd, a 16th, an 8th.
    assert_eq!(speeds(Class::Good), [64_000, 64_000, 64_000, 62_000, 60_000, 56_000]);
    // Less a 64th, a 32nd, a 16th, an 8th, a 4th.
    assert_eq!(speeds(Class::Moderate), [64_000, 63_000, 62_000, 60_000, 56_000, 48_000]);
    // A half, a quarter, an eighth.
    assert_eq!(speeds(Class::Bad), [64_000, 32_000, 16_000, 8_000, 8_000, 8_000]);
}

#[test]
fn the_lowest_round_trip_goes_first_and_on_equal_milliseconds_the_least_loss() {
    let mut paths = [subflow(0, 50), subflow(1, 20), subflow(2, 20)];
    paths[1].loss_rate = 0.02;
    paths[2].loss_rate = 0.01;
    // A hundred microseconds more are the same millisecond.
    paths[2].smoothed_rtt += Duration::from_micros(100);
    let mut scheduler = Qoe::default();
    for expected in [2, 1, 0] {
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(expected));
        paths[expected as usize].in_flight = 10_000;
    }
    assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
}

#[test]
fn a_bad_interface_delivers_half_the_normal_speed_at_priority_two_and_waits_in_between() {
    let mut scheduler = Qoe::default();
    let mut paths = [subflow(0, 100)];
    // Five timeouts: 10000 - 5000, bad. NDS 10000 B / 100 ms; half of it is a segment of 1000 bytes each 20 ms.
    paths[0].counters.timeouts = 5;
    let mut ask = |ms| scheduler.schedule(&priority(2, ms), &new_data(), &paths);
    // The bucket holds two segments: at 1000 ms it was last empty 20 ms before. After one it is at 1000, after two at 1020.
    assert_eq!([ask(1_000), ask(1_000)], [send(0), send(0)]);
    assert_eq!(ask(1_000), Decision::Wait(Some(at(1_020))));
    assert_eq!(ask(1_019), Decision::Wait(Some(at(1_020))));
    assert_eq!(ask(1_020), send(0));
    assert_eq!(ask(1_020), Decision::Wait(Some(at(1_040))));
    // In the long run: one each 20 ms.
    let sent = (1_040..2_040).filter(|ms| ask(*ms) == send(0)).count();
    assert_eq!(sent, 50);
}

#[test]
fn the_highest_priority_is_never_slowed_down() {
    let mut scheduler = Qoe::default();
    let mut paths = [subflow(0, 100)];
    paths[0].counters.timeouts = 10;
    for _ in 0..100 {
        assert_eq!(scheduler.schedule(&priority(1, 0), &new_data(), &paths), send(0));
    }
}

#[test]
fn while_the_bucket_of_the_fastest_is_empty_the_next_is_taken() {
    let mut scheduler = Qoe::default();
    let mut paths = [subflow(0, 10), subflow(1, 100)];
    paths[0].counters.timeouts = 5;
    // Priority 6 on a bad interface: an eighth of 10000 B / 10 ms is a segment each 8 ms; the other is good, but 7/8 of
    // 10000 B / 100 ms is one each 11.428572 ms. Both hold two.
    let mut ask = |ms| scheduler.schedule(&priority(6, ms), &new_data(), &paths);
    assert_eq!(core::array::from_fn(|_| ask(1_000)), [send(0), send(0), send(1), send(1)]);
    assert_eq!(ask(1_000), Decision::Wait(Some(at(1_008))));
}

#[test]
fn a_quality_belongs_to_the_interface_and_outlives_a_subflow() {
    let mut scheduler = Qoe::default();
    let mut paths = [subflow(0, 10), subflow(1, 20)];
    paths[1].local_address = paths[0].local_address;
    // Two timeouts on one, 30 losses on the other: 10000 - 2000, then - 3000.
    (paths[0].counters.timeouts, paths[1].counters.segments_lost) = (2, 30);
    scheduler.schedule(&connection(0), &new_data(), &paths);
    assert_eq!(scheduler.quality(&paths[0]), Quality(5_000));
    // Asking again changes nothing; 40 acknowledgements do.
    scheduler.schedule(&connection(0), &new_data(), &paths);
    paths[0].counters.acknowledgements = 40;
    scheduler.schedule(&connection(0), &new_data(), &paths);
    // Once.
    scheduler.schedule(&connection(0), &new_data(), &paths);
    assert_eq!(scheduler.quality(&paths[1]), Quality(5_040));
    scheduler.on_subflow_removed(SubflowId(0));
    scheduler.schedule(&connection(0), &new_data(), &paths[1..]);
    assert_eq!(scheduler.quality(&paths[1]), Quality(5_040));
}

#[test]
fn outstanding_data_is_spread_over_a_small_receive_window_in_proportion_to_bandwidth_delay() {
    // BDP: 10000 * 10/10, and 10000 * 25/50 = 5000, because half of its round trip is queue. Of a receive window of 9000
    // bytes the first may have 6000 outstanding and the second 3000.
    let mut paths = [subflow(0, 10), subflow(1, 50)];
    paths[1].min_rtt = Duration::from_millis(25);
    let narrow = ConnectionView { window: 9_000, ..connection(0) };
    let mut scheduler = Qoe::default();
    let mut given = [0, 0];
    for _ in 0..9 {
        let Decision::Send(id) = scheduler.schedule(&narrow, &new_data(), &paths) else { panic!("waits") };
        paths[id.0 as usize].in_flight += 1000;
        given[id.0 as usize] += 1;
    }
    assert_eq!(given, [6, 3]);
    assert_eq!(scheduler.schedule(&narrow, &new_data(), &paths), Decision::Wait(None));
    // One that has nothing outstanding gets a segment however small its share is.
    let tiny = ConnectionView { window: 1_500, ..connection(0) };
    paths[0].in_flight = 0;
    assert_eq!(scheduler.schedule(&tiny, &new_data(), &paths), send(0));
}

#[test]
fn data_reinjected_after_a_timeout_does_not_wait_for_the_bucket() {
    let mut scheduler = Qoe::default();
    let mut paths = [subflow(0, 10), subflow(1, 100)];
    paths[1].counters.timeouts = 5;
    for _ in 0..5 {
        assert_eq!(scheduler.schedule(&priority(6, 1_000), &reinjection_from(0), &paths), send(1));
    }
    // But it has paid: 1/8 of 10000 B / 100 ms is a segment each 80 ms, two are in the bucket, five were taken.
    paths[0].in_flight = 10_000;
    let decision = scheduler.schedule(&priority(6, 1_000), &new_data(), &paths);
    assert_eq!(decision, Decision::Wait(Some(at(1_000 - 80 + 5 * 80))));
}
