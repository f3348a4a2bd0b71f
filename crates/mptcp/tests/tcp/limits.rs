//! Silent and hostile peers: keepalive (RFC 9293, section 3.8.4), and bounded memory.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{BufferSize, CloseCause, Event};
use anabranch_policy::time::Duration;

// MUST-25 (off by default).
#[test]
fn without_keepalive_an_idle_connection_is_left_alone() {
    let mut t = Transcript::accepted(plain());
    t.silence(30 * 24 * 3600 * 1000);
    assert_eq!(t.closed(), None);
}

// MUST-26 (only when idle), MUST-29 (one unanswered probe means nothing).
#[test]
fn keepalive_probes_after_the_idle_time_and_every_75_seconds_and_aborts_after_nine() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.keepalive = Some(Duration::from_secs(7200))));
    t.silence(7_199_999);
    t.expect_in(1, "A 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    t.expect_in(7_200_000, "A 0:0 ack 1");
    for _ in 0..8 {
        t.expect_in(75_000, "A 0:0 ack 1");
    }
    assert_eq!(t.closed(), None);
    t.expect_in(75_000, "RA 1:1 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

/// Probes after five seconds and every two seconds, and aborts after two.
fn eager() -> Transcript {
    Transcript::accepted(plain_with(|c| {
        c.tcp.keepalive = Some(Duration::from_secs(5));
        (c.tcp.keepalive_interval, c.tcp.keepalive_probes) = (Duration::from_secs(2), 2);
    }))
}

// MUST-26: it is for idle connections. Whether data is answered is told by its retransmissions (MUST-20, SHLD-11).
#[test]
fn keepalive_does_not_end_a_connection_whose_data_waits_for_an_answer() {
    let mut t = eager();
    t.write(1000);
    t.wait(100_000);
    assert_eq!(t.closed(), None);
    let said = t.take();
    assert!(said.iter().all(|packet| packet.segment.payload.len() == 1000), "no probe, no reset");
    t.peer("A 1:1 ack 1001");
    t.expect_in(5_000, "A 1000:1000 ack 1");
}

// MUST-29, on a host that was stopped for an hour.
#[test]
fn who_could_not_ask_for_a_long_time_asks_before_it_gives_the_peer_up() {
    let mut t = eager();
    t.stop(3_600_000);
    t.expect("A 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    t.expect_in(5_000, "A 0:0 ack 1");
    t.stop(3_600_000);
    t.expect("A 0:0 ack 1");
    t.expect_in(2_000, "RA 1:1 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

#[test]
fn how_often_keepalive_asks_can_be_chosen() {
    let mut t = eager();
    t.expect_in(5_000, "A 0:0 ack 1");
    t.expect_in(2_000, "A 0:0 ack 1");
    t.expect_in(2_000, "RA 1:1 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

#[test]
fn what_the_peer_sends_puts_keepalive_off() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.keepalive = Some(Duration::from_secs(100))));
    t.silence(60_000);
    t.peer("A 1:101 ack 1");
    t.expect_in(40, "A 1:1 ack 101");
    t.silence(99_959);
    t.expect_in(1, "A 0:0 ack 101");
    t.peer("A 101:101 ack 1");
}

#[test]
fn the_peers_keepalive_is_answered() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:101 ack 1");
    t.expect_in(40, "A 1:1 ack 101");
    t.peer("A 100:100 ack 1");
    t.expect("A 1:1 ack 101");
    t.wait(1000);
    t.peer("A 100:101 ack 1"); // with a byte of garbage
    t.expect("A 1:1 ack 101 sack 100-101");
}

// Unread data is not accepted without limit: the buffer bounds memory.
#[test]
fn a_peer_that_ignores_the_window_fills_no_more_than_the_buffer() {
    let mut t = Transcript::accepted(plain_with(|c| c.receive_buffer = BufferSize::Fixed(10_000)));
    for start in (1..100_001).step_by(1000) {
        t.peer(&format!("A {start}:{} ack 1", start + 1000));
    }
    t.take();
    t.read(10_000);
    t.take();
}

#[test]
fn a_peer_that_sends_single_bytes_with_gaps_is_held_to_a_bounded_number_of_ranges() {
    let mut t = Transcript::accepted(plain());
    for start in (3..20_003).step_by(2) {
        t.peer(&format!("A {start}:{} ack 1", start + 1));
    }
    t.take();
    let state = t.host.receive_state(t.id()).unwrap();
    // Each costs 256 bytes of a receive buffer, up to twice the buffer.
    assert!(state.out_of_order <= 2 * state.buffer / 256, "{state:?}");
    assert_eq!(state.next, 0);
    t.peer("A 1:3 ack 1"); // what is next in order is always taken
    t.read(3);
    t.take();
}

// A selective acknowledgement of unsent data is harmless.
#[test]
fn selective_acknowledgements_of_what_was_not_sent_are_ignored() {
    let mut t = Transcript::accepted(plain());
    t.write(3000);
    t.expect_segments(1, 3, 1);
    t.wait(50);
    t.peer("A 1:1 ack 1 sack 100000-200000");
    t.peer("A 1:1 ack 1 sack 3001-2001,500-400,1-1");
    t.peer("A 1:1 ack 1 sack 4294962296-4294963296");
    assert_eq!(t.host.subflow_views(t.now, t.id())[0].in_flight, 3000);
    t.peer("A 1:1 ack 3001");
    assert_eq!(t.host.stats(t.id()).unwrap().bytes_acked, 3000);
    assert_eq!(t.closed(), None);
    t.silence(2_000);
}

// The application is told of arrivals once, and again after it has read.
#[test]
fn the_application_is_told_once_that_there_is_something_to_read() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:101 ack 1");
    t.peer("A 101:201 ack 1");
    let readable = |t: &Transcript| t.events.iter().filter(|event| matches!(event, Event::Readable(_))).count();
    assert_eq!(readable(&t), 1);
    t.read(200);
    t.peer("A 201:301 ack 1");
    assert_eq!(readable(&t), 2);
    t.wait(40);
    t.take();
}
