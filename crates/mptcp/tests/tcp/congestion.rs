//! The initial window (RFC 6928), slow start and congestion avoidance (RFC 5681), idle restart and pacing.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_policy::time::Duration;

// RFC 6928: ten segments.
#[test]
fn ten_segments_go_before_the_first_acknowledgement() {
    let mut t = Transcript::accepted(plain());
    t.write(20_000);
    t.expect_segments(1, 10, 1);
    t.expect_nothing();
    t.peer("A 1:1 ack 1001");
    t.expect_segments(10_001, 2, 1); // slow start: one acknowledged, one more
    t.peer("A 1:1 ack 12001");
    t.take();
    t.peer("A 1:1 ack 20001");
}

// RFC 5681, section 3.1: one segment more per round trip beyond the threshold.
#[test]
fn beyond_the_threshold_the_window_grows_by_a_segment_each_round_trip() {
    let mut t = Transcript::accepted(plain());
    t.write(100_000);
    t.expect_segments(1, 10, 1);
    t.wait(100);
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5);
    let mut windows = Vec::new();
    let mut acked = 10_001;
    t.take();
    for _ in 0..4 {
        let window = t.cwnd() as u32;
        t.wait(100);
        for _ in 0..window {
            acked += 1000;
            t.peer(&format!("A 1:1 ack {acked}"));
        }
        t.take();
        windows.push(t.cwnd());
    }
    assert_eq!(windows, [6, 7, 8, 9]);
}

// Similar to RFC 7661: an unused window does not grow.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut t = Transcript::accepted(plain());
    for round in 0..20 {
        let at = 1 + round * 1000;
        t.write(1000);
        t.expect(&format!("A {at}:{} ack 1", at + 1000));
        t.wait(100);
        t.peer(&format!("A 1:1 ack {}", at + 1000));
    }
    assert_eq!(t.cwnd(), 10);
}

// RFC 5681, section 4.1.
#[test]
fn after_a_pause_longer_than_the_timeout_the_initial_window_is_the_limit_again() {
    let mut t = Transcript::accepted(plain());
    t.write(20_000);
    t.expect_segments(1, 10, 1);
    t.wait(100);
    for end in (1001..=10_001).step_by(1000) {
        t.peer(&format!("A 1:1 ack {end}"));
    }
    t.take();
    t.wait(100);
    t.peer("A 1:1 ack 20001");
    assert!(t.cwnd() >= 20);
    t.write(15_000);
    assert_eq!(t.take().len(), 15, "a short pause changes nothing");
    t.peer("A 1:1 ack 35001");
    t.silence(5_000);
    t.write(20_000);
    assert_eq!(t.take().len(), 10);
    t.peer("A 1:1 ack 55001");
    t.take();
}

#[test]
fn a_limit_of_the_window_is_obeyed() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.max_window = Some(4000)));
    t.write(20_000);
    for start in (1..20_000).step_by(4000) {
        t.expect_segments(start, 4, 1);
        t.expect_nothing();
        t.peer(&format!("A 1:1 ack {}", start + 4000));
    }
    t.expect_nothing();
}

// The window per round trip, at twice that rate in slow start: 20 segments per 100 ms.
#[test]
fn pacing_spreads_segments_over_the_round_trip() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.pacing = true));
    t.write(10_000);
    let first = t.take().len();
    assert!(first <= 2, "{first}");
    let mut times = Vec::new();
    let begin = t.now;
    for _ in 0..120 {
        t.wait(1);
        let now = t.now;
        times.extend(t.take().iter().map(|_| now.since(begin).as_millis()));
        if times.len() + first == 10 {
            break;
        }
    }
    assert_eq!(times.len() + first, 10);
    let last = *times.last().unwrap();
    assert!((40..=50).contains(&last), "{times:?}");
    assert!(times.windows(2).all(|pair| (4..=6).contains(&(pair[1] - pair[0]))), "{times:?}");
    t.peer("A 1:1 ack 10001");
    assert!(t.now.since(begin) < Duration::from_millis(100));
}
