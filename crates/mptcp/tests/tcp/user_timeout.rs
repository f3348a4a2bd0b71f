//! The user timeout (RFC 9293, sections 3.8.3 and 3.9.1.1; RFC 5482).

use super::transcript::{Transcript, plain_with};
use anabranch_mptcp::{CloseCause, ConnectionConfig};
use anabranch_policy::time::Duration;

/// Without SACK, so that there are no tail loss probes, and with a user timeout in seconds.
fn impatient(seconds: u64) -> ConnectionConfig {
    plain_with(|c| (c.user_timeout, c.tcp.options.sack) = (Some(Duration::from_secs(seconds)), false))
}

#[test]
fn data_that_is_not_acknowledged_for_the_user_timeout_aborts_the_connection() {
    let mut t = Transcript::accepted(impatient(5));
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    for wait in [300, 600, 1200, 2400] {
        t.expect_in(wait, "A 1:1001 ack 1");
    }
    // 5 s after it was written, long before the sixteenth timeout.
    t.expect_in(500, "RA 1001:1001 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::UserTimeout));
}

#[test]
fn progress_begins_the_user_timeout_anew() {
    let mut t = Transcript::accepted(impatient(5));
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.wait(4000);
    t.take();
    t.peer("A 1:1 ack 1001");
    t.wait(4999);
    assert_eq!(t.closed(), None);
    t.take();
    t.expect_in(1, "RA 2001:2001 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::UserTimeout));
}

#[test]
fn an_answer_without_progress_does_not_put_the_user_timeout_off() {
    let mut t = Transcript::accepted(impatient(5));
    t.write(1000);
    t.wait(4000);
    t.take();
    t.peer("A 1:1 ack 1");
    t.wait(999);
    t.take();
    t.expect_in(1, "RA 1001:1001 ack 1");
}

// The timer does not run while nothing is unacknowledged.
#[test]
fn an_idle_connection_has_no_user_timeout() {
    let mut t = Transcript::accepted(impatient(5));
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1001");
    t.silence(3_600_000);
    t.write(1000);
    t.expect("A 1001:2001 ack 1");
    t.wait(4999);
    assert_eq!(t.closed(), None);
    t.peer("A 1:1 ack 2001");
    t.take();
}

// As in Linux, whose probes also end with TCP_USER_TIMEOUT: an application that sets the timeout wants to know.
#[test]
fn what_waits_behind_a_closed_window_counts_for_the_user_timeout() {
    let mut t = Transcript::accepted(impatient(5));
    t.peer("A 1:1 ack 1 win 0");
    t.write(1000);
    for _ in 0..4 {
        t.wait(1200);
        for _probe in t.take() {
            t.peer("A 1:1 ack 1 win 0");
        }
    }
    t.expect_nothing();
    assert_eq!(t.closed(), None);
    t.wait(200);
    assert_eq!(t.closed(), Some(CloseCause::UserTimeout));
    t.take();
}

#[test]
fn a_fin_that_is_not_acknowledged_counts_for_the_user_timeout() {
    let mut t = Transcript::accepted(impatient(2));
    t.wait(10_000);
    t.close();
    t.expect("FA 1:1 ack 1");
    t.expect_in(300, "FA 1:1 ack 1");
    t.expect_in(600, "FA 1:1 ack 1");
    t.expect_in(1100, "RA 2:2 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::UserTimeout));
}

#[test]
fn data_written_before_the_handshake_is_over_has_a_user_timeout() {
    let mut t = Transcript::connecting(impatient(5));
    t.hear();
    t.write(1000);
    t.wait(4999);
    assert_eq!(t.closed(), None);
    t.wait(1);
    t.take();
    assert_eq!(t.closed(), Some(CloseCause::UserTimeout));
}
