//! How connections close: RFC 9293, sections 3.6 and 3.10.7.4, from either side, from both, and half.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{CloseCause, Event};
use anabranch_policy::time::Duration;

fn ended(t: &Transcript) -> bool {
    t.heard_of(Event::EndOfStream(t.id()))
}

// Section 3.6, figure 12, side A: FIN-WAIT-1, FIN-WAIT-2, TIME-WAIT, CLOSED.
#[test]
fn the_side_that_closes_first_waits_twice_the_segment_lifetime() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    assert_eq!(t.closed(), None);
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    assert!(ended(&t));
    assert_eq!(t.closed(), Some(CloseCause::Finished));
    assert_eq!(t.host.connection_count(), 1);
    t.silence(59_999);
    assert_eq!(t.host.connection_count(), 1);
    t.silence(1);
    assert_eq!(t.host.connection_count(), 0);
}

// Figure 12, side B: CLOSE-WAIT, LAST-ACK, CLOSED.
#[test]
fn the_side_that_closes_second_is_done_with_the_last_acknowledgement() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    assert!(ended(&t));
    t.close();
    t.expect("FA 1:1 ack 2");
    assert_eq!(t.closed(), None);
    t.peer("A 2:2 ack 2");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
    assert_eq!(t.host.connection_count(), 0);
}

// Figure 13: both FINs cross; CLOSING.
#[test]
fn both_sides_may_close_at_once() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 1");
    t.expect("A 2:2 ack 2");
    assert_eq!(t.closed(), None, "our FIN is not acknowledged");
    t.peer("A 2:2 ack 2");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
    assert_eq!(t.host.connection_count(), 1, "TIME-WAIT");
    t.silence(60_000);
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn in_closing_the_fin_is_repeated_until_it_is_acknowledged() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.options.sack = false));
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 1");
    t.expect("A 2:2 ack 2");
    t.expect_in(300, "FA 1:1 ack 2");
    t.peer("A 2:2 ack 2");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
}

#[test]
fn in_last_ack_the_fin_is_repeated_until_it_is_acknowledged() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.options.sack = false));
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    t.close();
    t.expect("FA 1:1 ack 2");
    t.expect_in(300, "FA 1:1 ack 2");
    t.expect_in(600, "FA 1:1 ack 2");
    t.peer("A 2:2 ack 2");
    assert_eq!(t.host.connection_count(), 0);
}

// One segment may acknowledge our FIN and bring the peer's: FIN-WAIT-1 to TIME-WAIT.
#[test]
fn a_fin_that_acknowledges_ours_leads_to_time_wait_at_once() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
    t.silence(60_000);
    assert_eq!(t.host.connection_count(), 0);
}

// Section 3.10.7.4, TIME-WAIT: a repeated FIN means that our last acknowledgement was lost.
#[test]
fn in_time_wait_a_late_fin_is_acknowledged_and_the_wait_begins_anew() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    t.silence(50_000);
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    t.silence(59_999);
    assert_eq!(t.host.connection_count(), 1);
    t.silence(1);
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn in_time_wait_other_segments_do_not_prolong_the_wait() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    t.silence(50_000);
    t.peer("A 1:1 ack 2"); // old
    t.expect("A 2:2 ack 2");
    t.peer("A 2:2 ack 2"); // empty
    t.silence(10_000);
    assert_eq!(t.host.connection_count(), 0);
}

// Section 3.6, case 1: the peer may send without time limit; the application continues to read.
#[test]
fn half_closed_by_us_the_peer_goes_on_sending_for_longer_than_any_timer() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    for round in 0..10 {
        t.silence(30_000);
        let at = 1 + round * 2000;
        t.peer(&format!("A {at}:{} ack 2", at + 1000));
        t.peer(&format!("A {}:{} ack 2", at + 1000, at + 2000));
        t.expect(&format!("A 2:2 ack {}", at + 2000));
        t.read(2000);
    }
    t.silence(200_000);
    t.peer("FA 20001:20001 ack 2");
    t.expect("A 2:2 ack 20002");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
}

// Section 3.6, case 2.
#[test]
fn half_closed_by_the_peer_we_go_on_sending() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    t.silence(100_000);
    t.write(2000);
    t.expect_segments(1, 2, 2);
    t.peer("A 2:2 ack 2001");
    t.write(500);
    t.expect("A 2001:2501 ack 2");
    t.close();
    t.expect("FA 2501:2501 ack 2");
    t.peer("A 2:2 ack 2502");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
    assert_eq!(t.host.connection_count(), 0);
}

// Everything written is sent before the FIN (section 3.6: CLOSE is flushed).
#[test]
fn a_fin_follows_the_last_byte_and_is_not_held_back_by_nagle() {
    let mut t = Transcript::accepted(plain());
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.write(300);
    t.expect_nothing(); // Nagle
    t.close();
    t.expect("A 1001:1301 ack 1");
    t.expect("FA 1301:1301 ack 1");
    t.peer("A 1:1 ack 1302");
}

// Section 3.8.6: a FIN has a sequence number, which a closed window does not hold. Sent nevertheless it would be dropped,
// and come again only by a backed-off timer, up to two minutes after the window has opened.
#[test]
fn a_fin_waits_for_a_window_that_holds_it_and_goes_as_soon_as_there_is_one() {
    let mut t = Transcript::accepted(plain());
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1001 win 0");
    t.close();
    t.expect_nothing();
    for wait in [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000] {
        t.expect_in(wait, "A 1000:1000 ack 1");
        t.peer("A 1:1 ack 1001 win 0");
    }
    t.wait(1000);
    t.peer("A 1:1 ack 1001 win 1");
    t.expect("FA 1001:1001 ack 1");
    t.peer("A 1:1 ack 1002");
}

// The last bytes fill the window: the FIN follows when it moves.
#[test]
fn a_fin_behind_the_last_byte_of_a_window_waits_for_the_next() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1 ack 1 win 1000");
    t.write(1000);
    t.close();
    t.expect("A 1:1001 ack 1");
    t.expect_nothing();
    t.peer("A 1:1 ack 1001 win 1000");
    t.expect("FA 1001:1001 ack 1");
    t.peer("A 1:1 ack 1002 win 999");
}

#[test]
fn a_fin_with_data_is_taken_after_the_data() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:501 ack 1");
    t.expect("A 1:1 ack 502");
    assert!(!ended(&t), "the end comes after the last byte read");
    t.read(500);
    assert!(ended(&t));
}

#[test]
fn a_fin_out_of_order_counts_when_the_gap_is_filled() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1001:1001 ack 1");
    t.expect("A 1:1 ack 1");
    t.read(0);
    assert!(!ended(&t));
    t.peer("A 1:1001 ack 1");
    t.expect("A 1:1 ack 1002");
    t.read(1000);
    assert!(ended(&t));
}

#[test]
fn a_fin_with_data_out_of_order_counts_when_the_gap_is_filled() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1001:1501 ack 1");
    t.expect("A 1:1 ack 1 sack 1001-1501");
    t.peer("A 1:1001 ack 1");
    t.expect("A 1:1 ack 1502");
    t.read(1500);
    assert!(ended(&t));
}

#[test]
fn a_fin_again_is_acknowledged_again() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    assert_eq!(t.events.iter().filter(|event| matches!(event, Event::EndOfStream(_))).count(), 1);
}

// Section 3.10.7.4, seventh: data after the peer's FIN should not occur and is ignored.
#[test]
fn data_after_the_peers_fin_is_not_delivered() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:1 ack 1");
    t.expect("A 1:1 ack 2");
    t.peer("A 2:102 ack 1");
    t.expect("A 1:1 ack 2");
    t.read(0);
}

#[test]
fn unread_data_keeps_the_connection_until_it_is_read() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 1:101 ack 1");
    t.expect("A 1:1 ack 102");
    t.close();
    t.expect("FA 1:1 ack 102");
    t.peer("A 102:102 ack 2");
    assert_eq!(t.closed(), None);
    t.read(100);
    assert!(ended(&t));
    assert_eq!(t.closed(), Some(CloseCause::Finished));
}

// RFC 1122, section 4.2.2.13: an application that has closed reads no more.
#[test]
fn after_both_directions_are_closed_new_data_is_answered_with_a_reset() {
    let mut t = Transcript::accepted(plain());
    t.discard();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    t.peer("A 1:101 ack 2");
    t.expect("RA 2:2 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::Aborted));
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn closing_with_data_unread_resets_at_once() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:101 ack 1");
    t.discard();
    t.expect("RA 1:1 ack 101");
    assert_eq!(t.closed(), Some(CloseCause::Aborted));
}

#[test]
fn closing_both_directions_waits_for_the_peers_fin_for_a_limited_time_only() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.fin_wait_2 = Duration::from_secs(20)));
    t.discard();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    t.silence(19_999);
    assert_eq!(t.closed(), None);
    t.silence(1);
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
    assert_eq!(t.host.connection_count(), 0);
    t.peer("FA 1:1 ack 2");
    t.expect("R 2:2");
}

#[test]
fn closing_the_rest_after_a_half_close_begins_the_limited_wait() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("A 1:1 ack 2");
    t.silence(1_000_000);
    t.discard();
    t.silence(60_000);
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

// Section 3.10.4 and 3.10.2: a second CLOSE, and SEND after CLOSE.
#[test]
fn after_close_nothing_can_be_written_and_closing_again_does_nothing() {
    let mut t = Transcript::accepted(plain());
    t.close();
    t.expect("FA 1:1 ack 1");
    assert!(t.host.write(t.now, t.id(), "x".into()).is_err());
    t.close();
    t.expect_nothing();
}

// The FIN counts in recovery like data.
#[test]
fn a_lost_fin_is_sent_again_by_the_tail_loss_probe() {
    let mut t = Transcript::accepted(plain());
    t.write(1000);
    t.close();
    t.expect("A 1:1001 ack 1");
    t.expect("FA 1001:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1001");
    // PTO: 2 * 100 ms + 200 ms for a delayed acknowledgement, but the timeout is earlier: SRTT 100, RTTVAR 50 * 3/4 =
    // 37.5: 100 + max(200, 150).
    t.expect_in(300, "FA 1001:1001 ack 1");
    t.peer("A 1:1 ack 1002");
}

#[test]
fn a_connection_whose_peer_is_unresponsive_is_abandoned_and_reset() {
    let mut t = Transcript::accepted(plain_with(|c| (c.tcp.max_timeouts, c.tcp.options.sack) = (3, false)));
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    for wait in [300, 600, 1200] {
        t.expect_in(wait, "A 1:1001 ack 1");
    }
    t.expect_in(2400, "RA 1001:1001 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

// Section 3.10.7.4, seventh: what follows a FIN should not occur and is ignored, as by Linux; what precedes it counts.
#[test]
fn what_lies_behind_a_fin_is_dropped_and_what_lies_before_it_is_read() {
    let fin = "FA 11:11 ack 1";
    for [behind, before] in
        [["A 12:22 ack 1", "A 1:11 ack 1"], ["A 11:21 ack 1", "A 1:11 ack 1"], ["A 5:21 ack 1", "A 1:5 ack 1"]]
    {
        for order in [[fin, behind], [behind, fin]] {
            let mut t = Transcript::accepted(plain());
            order.iter().for_each(|segment| t.peer(segment));
            t.take();
            t.peer(before);
            t.expect("A 1:1 ack 12");
            t.read(10);
            assert!(ended(&t), "{order:?}");
            t.close();
            t.expect("FA 1:1 ack 12");
            t.peer("A 12:12 ack 2");
            assert_eq!(t.closed(), Some(CloseCause::Finished), "{order:?}");
        }
    }
}

#[test]
fn of_a_segment_over_a_fin_the_part_before_it_is_read() {
    let mut t = Transcript::accepted(plain());
    t.peer("FA 11:11 ack 1");
    t.peer("A 1:21 ack 1");
    t.take();
    t.read(10);
    assert!(ended(&t));
}
