//! Loss detection and repair: RACK-TLP (RFC 8985), SACK (RFC 2018, 6675), NewReno without SACK (RFC 6582), limited
//! transmit (RFC 3042), the retransmission timer (RFC 6298), and spurious retransmissions.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_policy::time::Duration;

/// Ten segments have just been sent; the round trip is 100 ms.
fn ten_out() -> Transcript {
    let mut t = Transcript::accepted(plain());
    t.write(10_000);
    t.expect_segments(1, 10, 1);
    t.wait(100);
    t
}

fn ten_out_without_sack() -> Transcript {
    let mut t = Transcript::accepted_from(plain(), "S 0:0 mss 1000");
    t.write(10_000);
    t.expect_segments(1, 10, 1);
    t.wait(100);
    t
}

// RFC 8985, section 6.2: three segments' worth beyond the hole prove the loss.
#[test]
fn a_segment_is_lost_when_three_after_it_are_selectively_acknowledged() {
    let mut t = ten_out();
    t.peer("A 1:1 ack 1 sack 1001-2001");
    t.peer("A 1:1 ack 1 sack 1001-3001");
    t.expect_nothing();
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 10001");
}

// RFC 8985, section 6.2: with fewer, a quarter of the minimum round trip passes first.
#[test]
fn a_segment_is_lost_when_a_later_one_arrived_a_quarter_round_trip_ago() {
    let mut t = Transcript::accepted(plain());
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.wait(100);
    t.peer("A 1:1 ack 1 sack 1001-2001");
    t.expect_in(25, "A 1:1001 ack 1");
    t.peer("A 1:1 ack 2001");
}

/// Two segments were sent, the second was selectively acknowledged, and the reordering window has almost elapsed.
/// Returns the congestion window before.
fn first_of_two_missing() -> (Transcript, u64) {
    let mut t = Transcript::accepted(plain());
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.wait(100);
    let before = t.cwnd();
    t.peer("A 1:1 ack 1 sack 1001-2001");
    t.silence(24);
    (t, before)
}

#[test]
fn reordering_within_the_window_costs_nothing() {
    let (mut t, before) = first_of_two_missing();
    t.peer("A 1:1 ack 2001");
    t.silence(1000);
    assert!(t.cwnd() >= before);
}

// RFC 8985, section 6.3: after a quarter of the round trip it is lost, which is congestion.
#[test]
fn what_was_not_just_reordered_is_repaired_when_the_window_for_that_is_over() {
    let (mut t, before) = first_of_two_missing();
    t.wait(2);
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 2001");
    assert!(t.cwnd() < before, "{} {before}", t.cwnd());
}

// RFC 6675, section 5: everything before the highest block is retransmitted, each hole once.
#[test]
fn several_holes_are_repaired_in_one_round_trip_and_one_episode() {
    let mut t = ten_out();
    assert_eq!(t.counted(), (0, 0, 0));
    t.peer("A 1:1 ack 1 sack 4001-5001");
    t.peer("A 1:1 ack 1 sack 4001-6001");
    t.peer("A 1:1 ack 1 sack 4001-7001");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1 sack 8001-9001,4001-7001");
    t.peer("A 1:1 ack 1 sack 8001-10001,4001-7001");
    let rest = t.take();
    t.wait(100);
    t.peer("A 1:1 ack 3001 sack 8001-10001,4001-7001");
    let rest: Vec<_> = rest.into_iter().chain(t.take()).map(|packet| packet.segment.seq.0 - t.initial).collect();
    assert_eq!(rest, [1001, 2001, 3001, 7001]);
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.counted(), (5, 0, 2), "five holes, and two acknowledgements that moved the edge");
    assert_eq!(t.cwnd(), 5, "halved once");
}

// RFC 8985, section 6.2: a lost retransmission is detected by segments sent after it.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut t = ten_out();
    t.write(20_000);
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    let mut sent = Vec::new();
    for end in [5001, 6001, 7001, 8001, 9001, 10_001] {
        t.wait(1);
        t.peer(&format!("A 1:1 ack 1 sack 1001-{end}"));
        sent.extend(t.take().iter().map(|packet| packet.segment.seq.0 - t.initial));
    }
    assert!(sent.contains(&10_001), "new data was sent in recovery: {sent:?}");
    t.wait(100);
    t.peer("A 1:1 ack 1 sack 1001-11001"); // sent after the retransmission, and arrived
    t.expect("A 1:1001 ack 1");
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 0);
    t.wait(50);
    t.take();
}

// RFC 8985, section 6.2, step 2: an answer too early for the retransmission belongs to the delayed original.
#[test]
fn an_original_that_comes_late_does_not_make_others_look_lost() {
    let mut t = ten_out();
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    t.wait(10);
    t.peer("A 1:1 ack 4001");
    t.silence(10);
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.host.stats(t.id()).unwrap().bytes_retransmitted, 1000);
}

// The same where the timestamp tells that the original was answered, which took longer than the shortest round trip.
#[test]
fn an_answer_whose_timestamp_is_older_than_a_retransmission_does_not_make_others_look_lost() {
    let config = plain_with(|config| config.tcp.options.timestamps = true);
    let mut t = Transcript::accepted_from(config, "S 0:0 mss 1000 sackok ts 7/0");
    t.write(9880); // at 100 ms
    t.take();
    t.wait(100);
    t.peer("A 1:1 ack 1 ts 8/100 sack 989-3953");
    t.expect("A 1:989 ack 1 ts 200/8");
    t.wait(110);
    t.peer("A 1:1 ack 3953 ts 8/100");
    t.wait(10);
    t.peer("A 1:1 ack 4941 ts 8/100");
    t.silence(40); // 25 ms of it are the reordering window
    t.peer("A 1:1 ack 9881 ts 8/100");
    assert_eq!(t.host.stats(t.id()).unwrap().bytes_retransmitted, 988);
}

// RFC 8985, section 6.2, step 4: a reported duplicate, as a rule on an acknowledgement of nothing new, widens the window.
#[test]
fn after_a_needless_retransmission_twice_as_much_reordering_costs_nothing() {
    let (mut t, _) = first_of_two_missing();
    t.expect_in(1, "A 1:1001 ack 1");
    t.peer("A 1:1 ack 2001"); // the original was late
    t.wait(100);
    t.peer("A 1:1 ack 2001 sack 1-1001");
    t.write(2000);
    t.expect_segments(2001, 2, 1);
    t.wait(100);
    t.peer("A 1:1 ack 2001 sack 3001-4001");
    t.silence(49);
    t.peer("A 1:1 ack 4001");
    t.wait(100);
    assert_eq!(t.host.stats(t.id()).unwrap().bytes_retransmitted, 1000);
}

// RFC 2883, section 4: a duplicate that is reported was sent.
#[test]
fn a_duplicate_of_what_cannot_have_come_widens_nothing() {
    let mut t = Transcript::accepted(plain());
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.wait(100);
    for block in ["1501-501", "1001-1001", "1-2002"] {
        t.peer(&format!("A 1:1 ack 2001 sack {block}"));
    }
    t.write(2000);
    t.expect_segments(2001, 2, 1);
    t.wait(100);
    t.peer("A 1:1 ack 2001 sack 3001-4001");
    t.expect_in(25, "A 2001:3001 ack 1");
    t.peer("A 1:1 ack 4001");
}

// RFC 2018, section 8: the peer may drop selectively acknowledged data (reneging).
#[test]
fn a_peer_that_takes_back_its_selective_acknowledgement_gets_the_data_again() {
    let mut t = ten_out();
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001"); // it had nothing after all
    t.wait(2_000);
    let again = t.take();
    let of = |start: u32| again.iter().any(|p| p.segment.seq.0 - t.initial == start && !p.segment.payload.is_empty());
    assert!(of(1001), "{again:?}");
    t.peer("A 1:1 ack 10001");
    t.take();
}

// RFC 8985, section 7: after two round trips without a further segment, plus the time of a delayed acknowledgement.
#[test]
fn a_lost_tail_is_probed_for_with_its_last_segment() {
    let mut t = Transcript::accepted(plain());
    t.write(3000);
    t.expect_segments(1, 3, 1);
    t.expect_in(200, "A 2001:3001 ack 1"); // PTO = 2 * SRTT
    t.wait(100);
    t.peer("A 1:1 ack 3001");
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 0);
}

#[test]
fn a_lost_tail_waits_for_the_timeout_where_it_is_not_probed_for() {
    let mut t = Transcript::accepted(plain_with(|config| config.tcp.tail_loss_probe = false));
    t.write(3000);
    t.expect_segments(1, 3, 1);
    t.silence(299);
    t.expect_in(1, "A 1:1001 ack 1"); // RTO = 100 + max(200, 4 * 50)
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 1);
}

#[test]
fn a_probe_that_finds_a_hole_starts_the_repair() {
    let mut t = Transcript::accepted(plain());
    t.write(3000);
    t.expect_segments(1, 3, 1);
    t.expect_in(200, "A 2001:3001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1001 sack 2001-3001");
    t.expect("A 1001:2001 ack 1");
    t.peer("A 1:1 ack 3001");
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 0);
    assert_eq!(t.cwnd(), 5);
}

// RFC 8985, section 7.3: a probe carries new data if there is any.
#[test]
fn a_probe_sends_new_data_beyond_the_congestion_window() {
    let mut t = Transcript::accepted(plain());
    t.write(12_000);
    t.expect_segments(1, 10, 1);
    t.expect_in(200, "A 10001:11001 ack 1");
    t.peer("A 1:1 ack 11001");
    t.expect("A 11001:12001 ack 1");
    t.peer("A 1:1 ack 12001");
}

/// Three segments went out 200 ms ago, and the last again as a tail loss probe.
fn probed(syn: &str) -> Transcript {
    let mut t = Transcript::accepted_from(plain(), syn);
    t.write(3000);
    t.expect_segments(1, 3, 1);
    t.expect_in(200, "A 2001:3001 ack 1");
    t.wait(100);
    t
}

// RFC 8985, section 7.4.2: a probe that repaired a loss counts as one; an unnecessary one does not. An acknowledgement
// of no more than the probe may be for the original, and the next tells.
#[test]
fn a_loss_repaired_by_a_probe_halves_the_window_and_a_needless_probe_does_not() {
    let after = |answers: &[&str]| {
        let mut t = probed("S 0:0 mss 1000 sackok");
        for answer in answers {
            t.peer(answer);
        }
        let before = t.cwnd();
        t.write(1000);
        t.expect("A 3001:4001 ack 1");
        t.wait(100);
        t.peer("A 1:1 ack 4001");
        (before, t.cwnd())
    };
    assert_eq!(after(&["A 1:1 ack 3001"]), (10, 5));
    assert_eq!(after(&["A 1:1 ack 3001 sack 2001-3001"]), (10, 10));
    assert_eq!(after(&["A 1:1 ack 3001", "A 1:1 ack 3001 sack 2001-3001"]), (10, 10), "the original was late");
    assert_eq!(after(&["A 1:1 ack 3001", "A 1:1 ack 3001 sack 1001-2001"]), (10, 5), "that is another");
    assert_eq!(after(&["A 1:1 ack 3001", "A 1:1 ack 3001"]), (10, 10), "a peer without such reports");
    assert_eq!(after(&["A 1:1 ack 3001", "A 1:1 ack 3001 win 60000"]), (10, 5), "a window, nothing that came again");
}

// Section 7.3: a second probe waits until the first is resolved; the timeout does not.
#[test]
fn while_it_is_not_known_whether_a_probe_repaired_a_loss_there_is_no_other() {
    let mut t = probed("S 0:0 mss 1000 sackok");
    t.peer("A 1:1 ack 3001");
    t.write(1000);
    t.expect("A 3001:4001 ack 1");
    t.expect_in(300, "A 3001:4001 ack 1");
    t.peer("A 1:1 ack 4001");
    t.write(2000);
    t.take();
    t.expect_in(200, "A 5001:6001 ack 1");
}

// RFC 6298: SRTT 100, RTTVAR 50 after the handshake: 100 + max(200, 4 * 50) = 300, doubled each time.
#[test]
fn the_retransmission_timeout_doubles_and_sends_the_first_segment_only() {
    let mut t = ten_out_without_sack();
    t.silence(199);
    for wait in [1, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 120_000, 120_000] {
        t.expect_in(wait, "A 1:1001 ack 1");
        t.expect_nothing();
    }
    assert_eq!(t.cwnd(), 1);
    assert_eq!(t.counted(), (0, 11, 0), "what a timeout sends again was not found lost");
}

// RFC 6298, section 3 (Karn) and 5.7: an acknowledgement of a retransmission is no round-trip sample, and the
// backed-off timeout stays until new data is acknowledged.
#[test]
fn the_back_off_lasts_until_something_sent_once_is_acknowledged() {
    let mut t = Transcript::accepted_from(plain(), "S 0:0 mss 1000");
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.expect_in(300, "A 1:1001 ack 1");
    t.expect_in(600, "A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
    t.write(1000);
    t.expect("A 1001:2001 ack 1");
    t.expect_in(1200, "A 1001:2001 ack 1");
    t.peer("A 1:1 ack 2001");
    t.write(1000);
    t.expect("A 2001:3001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 3001"); // a sample: SRTT 100, RTTVAR 37.5
    t.write(1000);
    t.expect("A 3001:4001 ack 1");
    t.expect_in(300, "A 3001:4001 ack 1");
    t.peer("A 1:1 ack 4001");
}

// RFC 6298, section 5.3: the timer restarts with each acknowledgement of new data.
#[test]
fn an_acknowledgement_of_new_data_restarts_the_timer() {
    let mut t = ten_out_without_sack();
    t.peer("A 1:1 ack 1001");
    // SRTT 100, RTTVAR 37.5: 300.
    t.silence(299);
    t.expect_in(1, "A 1001:2001 ack 1");
    t.peer("A 1:1 ack 10001");
}

// RFC 5681, section 3.2, and RFC 3042: two duplicates release new data, the third retransmits the first segment.
#[test]
fn without_sack_three_duplicates_start_a_fast_retransmit_after_limited_transmit() {
    let mut t = ten_out_without_sack();
    t.write(10_000);
    t.peer("A 1:1 ack 1");
    t.expect("A 10001:11001 ack 1");
    t.peer("A 1:1 ack 1");
    t.expect("A 11001:12001 ack 1");
    t.peer("A 1:1 ack 1");
    t.expect("A 1:1001 ack 1");
    t.expect_nothing();
    t.peer("A 1:1 ack 12001");
    assert_eq!(t.cwnd(), 5);
    t.take();
}

// RFC 6582, section 3.2: partial acknowledgements retransmit one hole per round trip, within one episode.
#[test]
fn without_sack_a_partial_acknowledgement_repeats_the_next_hole_at_once() {
    let mut t = ten_out_without_sack();
    for _ in 0..3 {
        t.peer("A 1:1 ack 1");
    }
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 3001");
    t.expect("A 3001:4001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 6001");
    t.expect("A 6001:7001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5, "halved once");
    assert_eq!(t.counted(), (3, 0, 3));
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 0);
}

// RFC 6582, section 3.2, step 3: the first partial acknowledgement restarts the timer, the others do not. With many holes a
// timeout repairs them sooner than one in each round trip.
#[test]
fn without_sack_many_holes_are_repaired_by_a_timeout() {
    let mut t = ten_out_without_sack();
    for _ in 0..3 {
        t.peer("A 1:1 ack 1");
    }
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1001"); // no sample; SRTT 100, RTTVAR 50: 300 from here
    t.expect("A 1001:2001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 2001");
    t.expect("A 2001:3001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 3001");
    t.expect("A 3001:4001 ack 1");
    t.silence(99);
    t.expect_in(1, "A 3001:4001 ack 1");
    assert_eq!(t.host.stats(t.id()).unwrap().timeouts, 1);
    t.peer("A 1:1 ack 4001");
    t.expect("A 4001:5001 ack 1");
    t.expect("A 5001:6001 ack 1");
    t.peer("A 1:1 ack 10001");
}

// RFC 5681, section 2: the definition of duplicates.
#[test]
fn without_sack_window_updates_and_data_are_no_duplicates() {
    let mut t = ten_out_without_sack();
    for window in [60_000, 59_000, 58_000, 57_000] {
        t.peer(&format!("A 1:1 ack 1 win {window}"));
    }
    for start in [1, 1001, 2001, 3001] {
        t.peer(&format!("A {start}:{} ack 1 win 57000", start + 1000));
    }
    assert!(t.take().iter().all(|packet| packet.segment.payload.is_empty()));
    t.peer("A 4001:4001 ack 10001");
}

// RFC 6582, section 4: duplicates of segments from before a timeout do not start a recovery.
#[test]
fn without_sack_duplicates_after_a_timeout_start_no_second_repair() {
    let mut t = ten_out_without_sack();
    t.expect_in(200, "A 1:1001 ack 1");
    for _ in 0..5 {
        t.peer("A 1:1 ack 1");
    }
    assert_eq!(t.take().len(), 0);
    assert_eq!(t.cwnd(), 1);
    t.peer("A 1:1 ack 10001");
}

// RFC 3522 (Eifel): the echoed timestamp is that of the first segment, not of the retransmission.
#[test]
fn a_needless_timeout_is_recognised_by_its_timestamp_and_undone() {
    let mut t = Transcript::accepted_from(plain_with(|c| c.tcp.options.timestamps = true), "S 0:0 mss 1000 ts 7/0");
    t.write(4000);
    let sent = t.take();
    assert_eq!(sent.len(), 4, "988 bytes each");
    let before = t.cwnd();
    t.expect_in(300, "A 1:989 ack 1 ts 400/7");
    assert_eq!(t.cwnd(), 0, "one segment of 988 bytes");
    t.peer("A 1:1 ack 989 ts 8/100"); // sent at 100, not at 400
    assert!(t.cwnd() >= before, "{}", t.cwnd());
    t.silence(100);
    t.peer("A 1:1 ack 3953 ts 8/100");
    t.take();
}

// RFC 3708: every retransmission is reported as a duplicate.
#[test]
fn a_needless_repair_is_recognised_by_duplicate_reports_and_undone() {
    let mut t = ten_out();
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    assert!(t.cwnd() <= 8);
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5);
    t.wait(100);
    t.peer("A 1:1 ack 10001 sack 1-1001");
    assert!(t.cwnd() >= 10, "{}", t.cwnd());
}

// RFC 3708: what the network duplicates later says nothing of the retransmission, which was not reported.
#[test]
fn a_duplicate_of_something_else_does_not_undo_a_repair() {
    let mut t = ten_out();
    t.peer("A 1:1 ack 1 sack 1001-4001");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5);
    t.write(1000);
    t.expect("A 10001:11001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 11001");
    t.peer("A 1:1 ack 11001 sack 10001-11001");
    assert_eq!(t.cwnd(), 5);
    t.peer("A 1:1 ack 11001 sack 9001-10001");
    assert_eq!(t.cwnd(), 5, "nor that of a segment sent once in the same window");
    t.peer("A 1:1 ack 11001 sack 1-1001");
    assert!(t.cwnd() >= 10, "{}", t.cwnd());
}

// RFC 2018, section 2: without SACK-permitted on its SYN the option means nothing, nor does a duplicate reported in it.
#[test]
fn a_duplicate_reported_without_permission_undoes_no_repair() {
    let mut t = ten_out_without_sack();
    for _ in 0..3 {
        t.peer("A 1:1 ack 1");
    }
    t.expect("A 1:1001 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 10001");
    assert_eq!(t.cwnd(), 5);
    t.peer("A 1:1 ack 10001 sack 1-1001");
    assert_eq!(t.cwnd(), 5);
}

// RFC 9937: while more than the threshold is in flight, one segment is sent for every two that arrive.
#[test]
fn in_recovery_segments_go_in_proportion_to_those_that_arrive() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.initial_window = 20));
    t.write(60_000);
    t.expect_segments(1, 20, 1);
    t.wait(100);
    let mut sent = Vec::new();
    for end in (2001..=20_001).step_by(1000) {
        t.peer(&format!("A 1:1 ack 1 sack 1001-{end}"));
        sent.push(t.take().len());
    }
    // The first two are limited transmit, the third detects the loss; threshold 10 of 22 segments in flight.
    assert_eq!(sent[..3], [1, 1, 1]);
    let total: usize = sent[2..].iter().sum();
    assert!((8..=10).contains(&total), "{sent:?}");
    assert!(sent[3..].iter().all(|count| *count <= 1), "no bursts: {sent:?}");
    t.wait(100);
    t.take();
}

// RFC 9293, section 3.8.3, R2; the config sets the number.
#[test]
fn progress_starts_the_count_of_timeouts_anew() {
    let mut t = Transcript::accepted_from(plain_with(|c| c.tcp.max_timeouts = 2), "S 0:0 mss 1000");
    for round in 0..4 {
        let at = 1 + round * 1000;
        t.write(1000);
        t.expect(&format!("A {at}:{} ack 1", at + 1000));
        // One timeout or two.
        let before = t.counted();
        while t.counted() == before {
            t.wait(100);
        }
        t.take();
        t.peer(&format!("A 1:1 ack {}", at + 1000));
        assert_eq!(t.closed(), None);
    }
    t.write(1000);
    t.expect("A 4001:5001 ack 1");
    t.wait(100_000);
    t.take();
    assert!(t.closed().is_some());
    assert!(t.now.since(anabranch_policy::time::Instant::ZERO) > Duration::from_secs(100));
}

// RFC 5681, section 4.3, with RFC 6298, section 5.4: after a timeout everything outstanding is retransmitted in slow
// start.
#[test]
fn after_a_timeout_the_rest_is_sent_again_in_slow_start() {
    let mut t = ten_out_without_sack();
    t.expect_in(200, "A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
    t.expect_segments(1001, 2, 1);
    t.peer("A 1:1 ack 2001");
    t.expect_segments(3001, 2, 1);
    t.peer("A 1:1 ack 3001");
    t.expect_segments(5001, 2, 1);
    t.peer("A 1:1 ack 10001");
}

#[test]
fn once_reordering_was_seen_three_selective_acknowledgements_are_not_enough() {
    let mut t = Transcript::accepted(plain());
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.wait(100);
    t.peer("A 1:1 ack 1 sack 1001-2001");
    t.wait(10);
    t.peer("A 1:1 ack 2001"); // the first came late, and not again
    t.write(5000);
    t.expect_segments(2001, 5, 1);
    t.wait(100);
    t.peer("A 1:1 ack 2001 sack 3001-7001");
    t.expect_nothing();
    t.expect_in(25, "A 2001:3001 ack 1"); // a quarter of the least round trip
}

#[test]
fn round_trips_are_smoothed_by_an_eighth_and_their_variation_by_a_quarter() {
    let mut t = Transcript::accepted(plain()); // 100 ms
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.wait(200);
    t.peer("A 1:1 ack 1001");
    let view = &t.host.subflow_views(t.now, t.id())[0];
    let micros = Duration::from_micros;
    // 7/8 of 100 and 1/8 of 200; 3/4 of 50 and 1/4 of 100; the first plus four times the variation.
    let expected = (micros(112_500), micros(62_500), micros(362_500));
    assert_eq!((view.smoothed_rtt, view.rtt_variation, view.rto), expected);
}
