//! Messages are abandoned whole, for each reason.

use crate::bench::{LARGE, latency, message, message_bench, put};
use crate::pair::pattern;
use anabranch_mptcp::{BufferSize, MessageOptions, Record};
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MessageHeader;
use bytes::Bytes;

#[test]
fn a_message_of_which_a_segment_is_missing_is_abandoned_whole_at_its_time() {
    let mut bench = message_bench(latency(300), LARGE);
    // The first message was sent at 50 ms and arrived at 60: the base.
    bench.lost.borrow_mut().push(100 + 2_000);
    message(&mut bench, 4_000, 9, 60);
    message(&mut bench, 500, 9, 100);
    bench.run(2_000);
    let gap = (100, 4_024, Some(Reason::Expired));
    assert_eq!(bench.read(), [gap, (4_124, 524, None)]);
    // 60 + 60 + 300 ms.
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(420));
    assert_eq!(bench.stats().abandoned.expired.bytes, 4_024);
}

#[test]
fn a_later_message_whose_time_comes_first_overtakes_the_missing_one() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().push(100 + 2_000);
    message(&mut bench, 4_000, 9, 100);
    message(&mut bench, 500, 9, 60);
    bench.run(2_000);
    assert_eq!(bench.read()[0], (100, 4_024, Some(Reason::Overtaken)));
    let abandoned = bench.stats().abandoned;
    assert_eq!((abandoned.overtaken.gaps, abandoned.overtaken.bytes, abandoned.total().gaps), (1, 4_024, 1));
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(420));
}

#[test]
fn a_message_whose_header_is_lost_is_a_gap_up_to_the_next_header() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().push(100);
    message(&mut bench, 4_000, 9, 60);
    message(&mut bench, 500, 9, 70);
    message(&mut bench, 5_000, 9, 80);
    bench.run(2_000);
    let read = bench.read();
    assert_eq!(read.iter().filter(|(_, _, reason)| reason.is_some()).map(|(_, length, _)| length).sum::<u64>(), 4_024);
    assert_eq!(read.last(), Some(&(4_124, 524 + 5_024, None)));
}

#[test]
fn what_looks_like_a_header_within_an_abandoned_message_is_none() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().push(100 + 2_000);
    let mut payload = pattern(4_000);
    let inner = MessageHeader { number: 9, importance: 0, length: 10, play_out: 0 }.encode().unwrap();
    payload[3_000..3_000 + inner.len()].copy_from_slice(&inner);
    let options = MessageOptions { importance: 9, play_out: Duration::from_millis(60), lifetime: None };
    bench.pair.hosts[0].write_message(bench.now(), bench.id, Bytes::from(payload), &options).unwrap();
    message(&mut bench, 500, 9, 100);
    bench.run(2_000);
    assert_eq!(bench.read(), [(100, 4_024, Some(Reason::Expired)), (4_124, 524, None)]);
}

#[test]
fn while_1024_messages_wait_to_be_read_nothing_is_abandoned() {
    let mut bench = message_bench(latency(300), LARGE);
    for _ in 0..1_100 {
        put(&mut bench, 0, 9, 60);
    }
    bench.pair.settle();
    bench.pair.run(Duration::from_millis(200));
    let start = 100 + 1_100 * 24;
    bench.lost.borrow_mut().push(start + 2_000);
    message(&mut bench, 4_000, 9, 60);
    message(&mut bench, 500, 9, 100);
    bench.pair.run(Duration::from_secs(2));
    assert_eq!(bench.stats().abandoned.total().gaps, 0);
    bench.run(1);
    let gap = (start, 4_024, Some(Reason::Overtaken));
    assert_eq!(bench.read(), [(100, start - 100, None), gap, (start + 4_024, 524, None)]);
}

#[test]
fn a_hole_behind_a_message_whose_header_is_lost_has_a_time_of_its_own() {
    let mut bench = message_bench(latency(150), LARGE);
    // The rest of the first arrives at 160, so that the receiver waits for its start until 310.
    bench.lost.borrow_mut().extend([100, 12_124]);
    message(&mut bench, 12_000, 9, 60);
    bench.run(140);
    // Of the second, the start is lost too, and the rest arrives at 300: there is time until 450.
    message(&mut bench, 6_000, 9, 350);
    bench.run(25);
    bench.lost.borrow_mut().clear();
    bench.run(2_000);
    // A header might start in the last 23 received bytes of the first.
    let gap = Some(Reason::Expired);
    assert_eq!(bench.read(), [(100, 12_001, gap), (12_101, 23, gap), (12_124, 6_024, None)]);
    let times: Vec<_> = bench.records.iter().map(|(at, _)| at.since(Instant::ZERO).as_millis()).collect();
    assert!(times[0] == 310 && (330..450).contains(times.last().unwrap()), "{times:?}");
}

#[test]
fn a_hole_over_the_end_of_one_message_and_the_header_of_the_next_takes_both_and_the_third_is_read() {
    let mut bench = message_bench(latency(300), LARGE);
    // Segments of 1,420 from 100 on: the second is 1,520..2,940, and the first message ends at 2,124.
    bench.lost.borrow_mut().push(2_000);
    for millis in [60, 70, 80] {
        put(&mut bench, 2_000, 9, millis);
    }
    bench.pair.settle();
    bench.run(2_000);
    let read = bench.read();
    let gaps: Vec<_> = read.iter().filter(|(_, _, reason)| reason.is_some()).collect();
    assert_eq!(gaps.iter().map(|(_, length, _)| length).sum::<u64>(), 2 * 2_024);
    assert_eq!(read.last(), Some(&(100 + 2 * 2_024, 2_024, None)));
}

#[test]
fn a_blocked_buffer_abandons_what_is_unimportant_and_keeps_what_must_come() {
    for (importance, abandoned) in [(255, true), (0, false)] {
        let mut bench = message_bench(latency(60_000), BufferSize::Fixed(30_000));
        bench.lost.borrow_mut().push(100 + 2_000);
        message(&mut bench, 4_000, importance, 0);
        for _ in 0..40 {
            message(&mut bench, 1_000, 0, 10);
        }
        bench.run(2_000);
        let blocked = bench.stats().abandoned.blocked;
        assert_eq!((blocked.gaps, blocked.bytes), if abandoned { (1, 4_024) } else { (0, 0) });
        // Loss on its subflow keeps that slow; the data that finally arrives is dropped, or was waited for.
        bench.lost.borrow_mut().clear();
        bench.run(20_000);
        assert_eq!(bench.stats().bytes_delivered, 100 + 40 * 1_024 + if abandoned { 0 } else { 4_024 });
    }
}

#[test]
fn when_several_messages_are_torn_each_is_abandoned_for_itself() {
    let mut bench = message_bench(latency(300), LARGE);
    bench.lost.borrow_mut().extend([100 + 2_000, 100 + 2 * 4_024 + 3_000]);
    for number in 0..4 {
        message(&mut bench, 4_000, 9, 30 * number);
    }
    bench.run(3_000);
    let gap = |number: u64| (100 + number * 4_024, 4_024, Some(Reason::Expired));
    let whole = |number: u64| (100 + number * 4_024, 4_024, None);
    assert_eq!(bench.read(), [gap(0), whole(1), gap(2), whole(3)]);
    assert_eq!(bench.stats().abandoned.expired.gaps, 2);
    // 60 + 0 + 300 and 60 + 60 + 300 ms.
    let times = [0, 2].map(|at| bench.records[at].0.since(Instant::ZERO).as_millis());
    assert_eq!(times, [360, 420]);
}

#[test]
fn a_message_that_comes_ahead_of_a_hole_sets_the_base_when_it_comes() {
    let mut bench = message_bench(latency(300), LARGE);
    // The first message, to be played at 0, arrived at 60. These are written at 150: the last arrives at 160, and is to
    // be played at 150, so that the base is 10 despite a hole before it.
    bench.lost.borrow_mut().push(100 + 2_000);
    message(&mut bench, 4_000, 9, 100);
    message(&mut bench, 500, 9, 150);
    bench.run(2_000);
    assert_eq!(bench.read()[0], (100, 4_024, Some(Reason::Expired)));
    // 10 + 100 + 300 ms.
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(410));
}

#[test]
fn a_header_that_two_segments_share_ahead_of_a_hole_says_its_time_all_the_same() {
    let mut bench = message_bench(latency(300), LARGE);
    // Segments end at 2,940 and 4,360; the second message begins at 4,350.
    bench.lost.borrow_mut().push(2_000);
    put(&mut bench, 4_226, 9, 100);
    put(&mut bench, 500, 9, 60);
    bench.pair.settle();
    bench.run(2_000);
    assert_eq!(bench.read()[0], (100, 4_250, Some(Reason::Overtaken)));
    assert_eq!(bench.records[0].0, Instant::ZERO + Duration::from_millis(420));
}

#[test]
fn a_message_says_when_its_first_byte_came_whatever_was_missing_before_and_within_it() {
    let mut bench = message_bench(latency(60_000), LARGE);
    // A later segment of the first is delayed, and the last of the second.
    bench.lost.borrow_mut().extend([100 + 2_000, 100 + 4_024 + 4_000]);
    for _ in 0..3 {
        message(&mut bench, 4_000, 9, 60);
    }
    bench.run(200);
    bench.lost.borrow_mut().remove(0);
    bench.run(2_000);
    bench.lost.borrow_mut().clear();
    bench.run(4_000);
    let arrived = |record: &Record| match record {
        Record::Message { arrived, .. } => arrived.since(Instant::ZERO).as_millis(),
        _ => panic!("{record:?}"),
    };
    assert_eq!(bench.records.iter().map(|(_, record)| arrived(record)).collect::<Vec<_>>(), [160, 160, 160]);
    let read: Vec<_> = bench.records.iter().map(|(at, _)| at.since(Instant::ZERO).as_millis()).collect();
    assert!(read[0] > 350 && read[1] > read[0] + 1_000 && read[2] == read[1], "{read:?}");
}

#[test]
fn what_is_here_of_the_message_that_has_the_hole_counts_as_waiting_behind_it() {
    let mut bench = message_bench(latency(60_000), BufferSize::Fixed(30_000));
    // 19,000 bytes of it are received, and 5,000 after it: four fifths of the buffer.
    bench.lost.borrow_mut().push(100 + 19_500);
    message(&mut bench, 21_000, 255, 0);
    for _ in 0..4 {
        message(&mut bench, 1_000, 0, 10);
    }
    bench.run(2_000);
    let blocked = bench.stats().abandoned.blocked;
    assert_eq!((blocked.gaps, blocked.bytes), (1, 21_024));
}
