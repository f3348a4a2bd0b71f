//! Resets, and forged segments: RFC 9293, sections 3.5.2, 3.5.3 and 3.10.7.4; RFC 5961.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::CloseCause;

/// A transcript in each synchronised state, with the next sequence numbers of the peer and of ours, and the cause
/// reported after a reset.
fn states() -> Vec<(&'static str, Transcript, u32, u32, CloseCause)> {
    let open = || Transcript::accepted(plain());
    let mut all = vec![("ESTABLISHED", open(), 1, 1, CloseCause::AbortedByPeer)];
    let mut t = open();
    t.close();
    t.expect("FA 1:1 ack 1");
    all.push(("FIN-WAIT-1", t, 1, 2, CloseCause::AbortedByPeer));
    let mut t = open();
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    all.push(("FIN-WAIT-2", t, 1, 2, CloseCause::AbortedByPeer));
    let mut t = open();
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    all.push(("CLOSE-WAIT", t, 2, 1, CloseCause::AbortedByPeer));
    let mut t = open();
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 1");
    t.expect("A 2:2 ack 2");
    all.push(("CLOSING", t, 2, 2, CloseCause::Finished));
    let mut t = open();
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    t.close();
    t.expect("FA 1:1 ack 2");
    all.push(("LAST-ACK", t, 2, 2, CloseCause::Finished));
    let mut t = open();
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    all.push(("TIME-WAIT", t, 2, 2, CloseCause::Finished));
    all
}

// RFC 9293, section 3.10.7.4, second check.
#[test]
fn a_reset_at_the_next_sequence_number_ends_the_connection_in_every_state() {
    for (state, mut t, next, _, cause) in states() {
        t.peer(&format!("R {next}:{next}"));
        assert_eq!(t.closed(), Some(cause), "{state}");
        assert_eq!(t.host.connection_count(), 0, "{state}");
    }
}

// RFC 5961, section 3.2: in the window but not exact.
#[test]
fn a_reset_within_the_window_is_challenged_in_every_state() {
    for (state, mut t, next, ours, _) in states() {
        t.wait(200);
        t.peer(&format!("R {}:{}", next + 1, next + 1));
        t.expect(&format!("A {ours}:{ours} ack {next}"));
        t.peer(&format!("RA {}:{} ack {ours}", next + 40_000, next + 40_000));
        t.expect_nothing(); // a second challenge so soon is not sent
        assert_eq!(t.host.connection_count(), 1, "{state}");
    }
}

// RFC 9293, section 3.10.7.4, first check.
#[test]
fn a_reset_outside_the_window_is_dropped_without_a_word_in_every_state() {
    for (state, mut t, next, _, _) in states() {
        t.peer(&format!("R {}:{}", next - 1, next - 1));
        t.peer(&format!("R {}:{}", next + 60_000, next + 60_000));
        t.expect_nothing();
        assert_eq!(t.host.connection_count(), 1, "{state}");
    }
}

// RFC 5961, section 4.2: whatever its sequence number. One that is new ends TIME-WAIT (RFC 6191): see `time_wait`.
#[test]
fn a_syn_is_challenged_in_every_state() {
    for ahead in [-1, 0, 100, 100_000] {
        for (state, mut t, next, ours, _) in states() {
            if state == "TIME-WAIT" && ahead >= 0 {
                continue;
            }
            t.wait(100);
            let seq = i64::from(next) + ahead;
            t.peer(&format!("S {seq}:{seq} mss 1000"));
            t.expect(&format!("A {ours}:{ours} ack {next}"));
            assert_eq!(t.host.connection_count(), 1, "{state}");
        }
    }
}

// RFC 9293, section 3.10.7.4: no processing without the ACK bit.
#[test]
fn a_segment_without_acknowledgement_is_dropped_in_every_state() {
    for (state, mut t, next, _, _) in states() {
        t.peer(&format!("- {next}:{}", next + 10));
        t.peer(&format!("F {next}:{next}"));
        t.expect_nothing();
        assert_eq!(t.host.connection_count(), 1, "{state}");
    }
}

// RFC 9293, section 3.10.7.4, fifth check: unsent data.
#[test]
fn an_acknowledgement_of_what_was_not_sent_is_answered_in_every_state() {
    for (state, mut t, next, ours, _) in states() {
        t.wait(100);
        t.peer(&format!("A {next}:{next} ack {}", ours + 1));
        t.expect(&format!("A {ours}:{ours} ack {next}"));
        assert_eq!(t.host.connection_count(), 1, "{state}");
    }
}

// RFC 9293, section 3.10.7.4, SYN-RECEIVED: a reset returns to LISTEN; the application was never told of the
// connection.
#[test]
fn a_reset_in_syn_received_returns_to_listen() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("R 2:2"); // not exact: the challenge is the SYN/ACK again
    t.expect("SA 0:0 ack 1");
    t.peer("R 1:1");
    assert_eq!((t.host.connection_count(), t.events.len()), (0, 0));
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
}

#[test]
fn a_reset_in_syn_received_after_an_active_open_is_a_refusal() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("R 1:1");
    assert_eq!(t.closed(), Some(CloseCause::Refused));
}

// RFC 9293, section 3.10.7.4, fifth check, SYN-RECEIVED.
#[test]
fn a_wrong_acknowledgement_in_syn_received_is_reset() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1 ack 2");
    t.expect("R 2:2");
    t.peer("A 1:1 ack 0");
    t.expect("R 0:0");
    t.peer("A 1:1 ack 1");
    assert!(t.id.is_some());
}

// RFC 5961, section 5.2: data with an acknowledgement that the peer cannot have sent is forged.
#[test]
fn blindly_injected_data_is_refused_by_its_acknowledgement() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:11 ack -70000"); // more than the largest window (65,535) behind
    t.expect("A 1:1 ack 1");
    t.wait(100);
    t.peer("A 1:11 ack 100000");
    t.expect("A 1:1 ack 1");
    t.read(0);
    t.wait(100);
    t.peer("A 1:11 ack 0"); // within the largest window, and acknowledges nothing that was ever sent
    t.expect("A 1:1 ack 1");
    t.read(0);
    t.write(1000);
    t.expect("PA 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
    t.peer("A 1:11 ack 1"); // may be an old duplicate: its data counts
    t.read(10);
    t.expect_in(40, "A 1001:1001 ack 11");
    // Once more than the largest window was acknowledged, that is the bound.
    for sent in 1..80 {
        t.write(1000);
        t.take();
        t.peer(&format!("A 11:11 ack {}", 1001 + 1000 * sent));
    }
    t.peer("A 11:21 ack 20000"); // 60,001 below 80,001
    t.read(10);
    t.expect_in(40, "A 80001:80001 ack 21");
    t.wait(100);
    t.peer("A 21:31 ack 14000");
    t.expect("A 80001:80001 ack 21");
    t.read(0);
}

// RFC 5961, section 5.2: its timestamp is ignored too, since otherwise PAWS would refuse the peer for 24 days.
#[test]
fn a_blind_segment_with_a_timestamp_of_the_future_does_not_shut_the_peer_out() {
    let stamped = plain_with(|c| c.tcp.options.timestamps = true);
    let mut t = Transcript::accepted_from(stamped, "S 0:0 mss 1000 ts 1000/0");
    t.peer("A 1:1 ack 900001 ts 2000000/0");
    t.expect("A 1:1 ack 1");
    t.peer("A 1:101 ack 1 ts 1001/0");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101");
}

// RFC 5961, section 7: the rate of challenges is limited.
#[test]
fn a_thousand_forged_segments_in_a_second_cost_ten_challenges() {
    let mut t = Transcript::accepted(plain());
    let mut answers = 0;
    for forged in 0..1000 {
        t.peer(if forged % 2 == 0 { "R 100:100" } else { "S 700:700" });
        while t.host.poll_transmit(t.now).is_some() {}
        answers += t.take().len();
        t.wait(1);
    }
    answers += t.take().len();
    assert_eq!(answers, 10);
    assert_eq!(t.closed(), None);
}

// Two ends that each consider the other's numbers wrong must not answer each other for ever.
#[test]
fn empty_segments_out_of_the_window_are_answered_at_a_bounded_rate_too() {
    let mut t = Transcript::accepted(plain());
    t.peer("A -5:-5 ack 1");
    t.expect("A 1:1 ack 1");
    t.peer("A -5:-5 ack 1");
    t.expect_nothing();
    t.wait(100);
    t.peer("A 200000:200000 ack 1");
    t.expect("A 1:1 ack 1");
}

// RFC 9293, section 3.10.5: ABORT sends a reset in the synchronised states.
#[test]
fn an_abort_sends_a_reset() {
    let mut t = Transcript::accepted(plain());
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.abort();
    t.expect("RA 1001:1001 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::Aborted));
    assert_eq!(t.host.connection_count(), 0);
    t.peer("A 1:1 ack 1001");
    t.expect("R 1001:1001"); // nobody knows the connection any more
}

// RFC 9293, section 3.5.3 and figure 9: half-open, with data.
#[test]
fn data_for_a_connection_that_is_gone_is_reset() {
    let mut t = Transcript::accepted(plain());
    t.peer("R 1:1");
    t.peer("A 1:101 ack 1");
    t.expect("R 1:1");
}
