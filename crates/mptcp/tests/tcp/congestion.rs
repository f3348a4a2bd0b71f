//! How much is sent: the initial window (RFC 6928), slow start and avoidance (RFC 5681), idle restart, ECN (RFC 3168) and
//! pacing.

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

// RFC 7661 in spirit: a window that is not used does not grow.
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
    t.expect_segments(1, 4, 1);
    t.peer("A 1:1 ack 4001");
    t.expect_segments(4001, 4, 1);
    t.peer("A 1:1 ack 8001");
    t.expect_segments(8001, 4, 1);
    t.peer("A 1:1 ack 12001");
    t.expect_segments(12_001, 4, 1);
    t.peer("A 1:1 ack 16001");
    t.expect_segments(16_001, 4, 1);
    t.peer("A 1:1 ack 20001");
}

fn with_ecn() -> Transcript {
    Transcript::accepted_from(plain_with(|c| c.tcp.ecn = true), "SEW 0:0 mss 1000 sackok")
}

// RFC 3168, sections 6.1.2 and 6.1.3: an echo halves the window once, and the next new data says so.
#[test]
fn an_echoed_mark_halves_the_window_once_per_round_trip_and_is_confirmed_on_new_data() {
    let mut t = with_ecn();
    t.write(30_000);
    for start in (1..10_001).step_by(1000) {
        t.expect(&format!("A {start}:{} ack 1 ect", start + 1000));
    }
    t.wait(100);
    t.peer("EA 1:1 ack 2001");
    assert_eq!(t.cwnd(), 5);
    t.peer("EA 1:1 ack 4001");
    t.peer("EA 1:1 ack 5001");
    assert_eq!(t.cwnd(), 5, "the same round trip");
    t.peer("EA 1:1 ack 6001");
    t.expect("WA 10001:11001 ack 1 ect");
    t.peer("A 1:1 ack 7001");
    t.expect("A 11001:12001 ack 1 ect");
    t.peer("A 1:1 ack 10001");
    t.take();
    t.peer("EA 1:1 ack 12001"); // another mark, in the next round trip
    assert!(t.cwnd() < 5);
    t.wait(100);
    t.take();
}

// RFC 3168, sections 6.1.4 and 6.1.5.
#[test]
fn neither_acknowledgements_nor_retransmissions_nor_fins_nor_probes_are_ecn_capable() {
    let mut t = with_ecn();
    t.peer("A 1:1001 ack 1 ect");
    t.expect_in(40, "A 1:1 ack 1001 not-ect");
    t.write(1000);
    t.expect("A 1:1001 ack 1001 ect");
    t.expect_in(300, "A 1:1001 ack 1001 not-ect");
    t.peer("A 1001:1001 ack 1001");
    t.close();
    t.expect("FA 1001:1001 ack 1001 not-ect");
    t.peer("A 1001:1001 ack 1002");
}

// RFC 3168, section 6.1.2: CWR tells of every reduction, whatever its cause.
#[test]
fn after_a_fast_retransmit_the_first_new_segment_says_that_the_window_was_reduced() {
    let mut t = with_ecn();
    t.write(30_000);
    t.wait(100);
    assert_eq!(t.take().len(), 10);
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1 not-ect");
    let mut fresh = Vec::new();
    for end in [5001, 6001, 7001, 8001, 9001, 10_001] {
        t.peer(&format!("A 1:1 ack 1 sack 1001-{end}"));
        fresh.extend(t.take());
    }
    let cwr: Vec<bool> = fresh.iter().map(|p| p.segment.flags.contains(anabranch_wire::Flags::CWR)).collect();
    assert!(cwr.len() >= 2, "{cwr:?}");
    assert!(cwr[0] && !cwr[1..].contains(&true), "{cwr:?}");
    t.peer("EA 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5, "a mark on what was out already asks for nothing more");
    t.wait(100);
    t.take();
}

#[test]
fn without_ecn_an_echo_means_nothing() {
    let mut t = Transcript::accepted(plain());
    t.write(10_000);
    t.expect_segments(1, 10, 1);
    t.peer("EA 1:1 ack 5001");
    assert!(t.cwnd() >= 10);
    t.peer("A 1:1 ack 10001");
}

// Window over round trip, twice as fast in slow start: 20 segments per 100 ms.
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
