//! Flow control: RFC 9293, sections 3.8.6 (windows, probes, silly windows), 3.7.4 (Nagle) and 3.10.7.4 (acceptance).

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig};
use anabranch_wire::{Packet, SeqNumber};

fn small_buffer(size: u64) -> ConnectionConfig {
    plain_with(|c| c.receive_buffer = BufferSize::Fixed(size))
}

// Section 3.10.7.4, first check, table 6.
#[test]
fn what_lies_in_the_window_is_taken_and_what_does_not_is_acknowledged() {
    let mut t = Transcript::accepted(small_buffer(5000));
    t.peer("A 6001:6101 ack 1"); // beyond
    t.expect("A 1:1 ack 1");
    t.peer("A 5001:5101 ack 1"); // just beyond
    t.expect("A 1:1 ack 1");
    t.write(100);
    t.expect("A 1:101 ack 1");
    t.peer("A 5001:5001 ack 101"); // what is said beyond the window counts for nothing
    t.expect("A 101:101 ack 1");
    assert_eq!(t.host.connection_view(t.now, t.id()).unwrap().data_una, 0);
    t.peer("A 1:1 ack 101");
    t.peer("A 5000:5001 ack 101"); // the last byte of the window
    t.expect("A 101:101 ack 1 sack 5000-5001");
    t.peer("A 1:1001 ack 101");
    t.expect("A 101:101 ack 1001 sack 5000-5001");
    t.peer("A 1:1001 ack 101"); // old; reported as such by RFC 2883
    t.expect("A 101:101 ack 1001 sack 1-1001,5000-5001");
    t.read(1000);
}

#[test]
fn a_segment_that_begins_before_the_window_is_trimmed_at_its_beginning() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:601 ack 1");
    t.peer("A 301:1301 ack 1");
    t.expect("A 1:1 ack 1301 sack 301-601");
    t.read(1300);
}

#[test]
fn a_segment_that_ends_behind_the_window_is_trimmed_at_its_end() {
    let mut t = Transcript::accepted(small_buffer(1500));
    t.peer("A 1:1001 ack 1");
    t.peer("A 1001:2001 ack 1");
    t.expect("A 1:1 ack 1501 win 0");
    t.read(1500);
    t.expect("A 1:1 ack 1501 win 1000");
    t.peer("A 1001:2001 ack 1");
    t.expect("A 1:1 ack 2001 sack 1001-1501");
    t.read(500);
    t.expect("A 1:1 ack 2001 win 1500");
}

#[test]
fn with_a_closed_window_acknowledgements_and_resets_still_count() {
    let mut t = Transcript::accepted(small_buffer(1000));
    t.peer("A 1:1001 ack 1");
    t.expect_in(40, "A 1:1 ack 1001 win 0");
    t.write(1000);
    t.expect("A 1:1001 ack 1001 win 0");
    t.peer("A 1001:1001 ack 1001");
    assert_eq!(t.host.stats(t.id()).unwrap().bytes_acked, 1000);
    t.peer("R 1001:1001");
    assert_eq!(t.closed(), Some(CloseCause::AbortedByPeer));
}

// Section 3.8.6.1, MUST-35: a probe of a closed window is answered with the current window.
#[test]
fn a_probe_of_one_byte_into_our_closed_window_is_acknowledged_and_not_taken() {
    let mut t = Transcript::accepted(small_buffer(1000));
    t.peer("A 1:1001 ack 1");
    t.expect_in(40, "A 1:1 ack 1001 win 0");
    t.peer("A 1001:1002 ack 1");
    t.expect("A 1:1 ack 1001 win 0");
    t.read(1000);
    t.expect("A 1:1 ack 1001 win 1000");
    t.peer("A 1001:1002 ack 1");
    t.read(1);
    t.expect_in(40, "A 1:1 ack 1002 win 999");
}

// Section 3.8.6.2.2, SHLD-14 and MUST-39: the right edge moves by a full segment or half the buffer, or not at all.
#[test]
fn a_receiver_does_not_offer_a_silly_window() {
    let mut t = Transcript::accepted(small_buffer(4000));
    for start in [1, 1001, 2001, 3001] {
        t.peer(&format!("A {start}:{} ack 1", start + 1000));
    }
    t.expect("A 1:1 ack 2001 win 2000");
    t.expect("A 1:1 ack 4001 win 0");
    let read = |t: &mut Transcript, count: usize| {
        let id = t.id();
        let mut left = count;
        while left > 0 {
            left -= t.host.read(t.now, id, left).unwrap().len();
        }
        t.drain();
    };
    read(&mut t, 999);
    t.expect_nothing();
    read(&mut t, 1);
    t.expect("A 1:1 ack 4001 win 1000");
}

// Section 3.8.6, SHLD-14: the right edge never moves left.
#[test]
fn the_right_edge_of_our_window_never_moves_left() {
    let mut t = Transcript::accepted(small_buffer(4000));
    let mut edge = 4001;
    for start in (1..4001).step_by(100) {
        t.peer(&format!("A {start}:{} ack 1", start + 100));
        for packet in t.take() {
            let ack = packet.segment.ack.0 - crate::transcript::PEER_INITIAL;
            assert!(ack + u32::from(packet.segment.window) >= edge, "{packet:?}");
            edge = ack + u32::from(packet.segment.window);
        }
    }
    t.wait(40);
    t.take();
}

// Section 3.8.6.1: SHLD-29 (after an RTO), SHLD-30 (backed off), MUST-36 (probing), MUST-37 (for ever).
#[test]
fn a_closed_window_is_probed_at_growing_intervals_for_as_long_as_the_peer_answers() {
    let mut t = Transcript::accepted(plain());
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.write(3000);
    t.wait(100);
    let before = t.take();
    assert_eq!(before.len(), 3);
    t.peer("A 1:1 ack 4001 win 0");
    t.write(2000);
    // SRTT 100 ms, RTTVAR small: RTO 300 ms.
    let mut waits = vec![];
    for _ in 0..30 {
        let from = t.now;
        while t.take_if_any().is_none() {
            let due = t.host.poll_timeout();
            t.wait_until(due);
        }
        waits.push(t.now.since(from).as_millis());
        t.peer("A 1:1 ack 4001 win 0");
    }
    assert_eq!(waits[..8], [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400]);
    assert!(waits[8..].iter().all(|wait| *wait == 60_000), "{waits:?}");
    assert_eq!(t.closed(), None);
    t.peer("A 1:1 ack 4001 win 5000");
    t.expect_segments(4001, 2, 1);
    t.peer("A 1:1 ack 6001");
}

#[test]
fn a_probe_is_one_number_below_the_window_so_that_the_peer_must_answer() {
    let mut t = Transcript::accepted(plain());
    t.window = 0;
    t.peer("A 1:1 ack 1");
    t.write(1000);
    t.expect_in(300, "A 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    t.expect_in(600, "A 0:0 ack 1");
    t.peer("A 1:1 ack 1 win 1000");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
}

// Section 3.8.3 and 3.8.6.1: the connection is kept while the peer answers, and aborted when it does not.
#[test]
fn a_peer_that_answers_no_probe_is_abandoned() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.max_timeouts = 3));
    t.peer("A 1:1 ack 1 win 0");
    t.write(1000);
    t.expect_in(300, "A 0:0 ack 1");
    t.expect_in(600, "A 0:0 ack 1");
    t.expect_in(1200, "A 0:0 ack 1");
    t.expect_in(2400, "RA 1:1 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

#[test]
fn a_window_that_reopens_without_being_asked_lets_data_go_at_once() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1 ack 1 win 0");
    t.write(3000);
    t.silence(200);
    t.peer("A 1:1 ack 1 win 2000");
    t.expect_segments(1, 2, 1);
    t.peer("A 1:1 ack 2001 win 5000");
    t.expect("A 2001:3001 ack 1");
    t.peer("A 1:1 ack 3001");
}

#[test]
fn a_window_of_zero_in_the_syn_is_probed_too() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 win 0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1 win 0");
    t.write(1000);
    t.expect_in(300, "A 0:0 ack 1");
    t.peer("A 1:1 ack 1 win 4000");
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
}

// Section 3.8.6.2.1, MUST-38: a window of less than a segment and less than half the largest is not used at once, but
// after the override timeout.
#[test]
fn a_sender_does_not_fill_a_silly_window_until_the_override_timeout() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1 ack 1 win 300");
    t.write(5000);
    t.expect_in(300, "A 1:301 ack 1");
    t.wait(50);
    t.peer("A 1:1 ack 301 win 300");
    t.silence(250);
    t.peer("A 1:1 ack 301 win 1000"); // a full segment
    t.expect("A 301:1301 ack 1");
    t.peer("A 1:1 ack 1301 win 0");
}

#[test]
fn half_of_the_largest_window_is_used_though_it_is_less_than_a_segment() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 win 900 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.wait(100);
    t.peer("A 1:1 ack 1 win 900");
    t.write(3000);
    t.expect("A 1:901 ack 1");
    t.peer("A 1:1 ack 901 win 450");
    t.expect("A 901:1351 ack 1");
    t.peer("A 1:1 ack 1351 win 0");
}

// The last data of a stream may be sent in a small segment: nothing can be added to it.
#[test]
fn the_last_bytes_go_into_a_window_that_holds_them() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1 ack 1 win 300");
    t.write(300);
    t.expect("A 1:301 ack 1");
    t.peer("A 1:1 ack 301");
}

// Section 3.8.6, MUST-34: a peer should not shrink its window, but it is handled.
#[test]
fn a_window_that_shrinks_below_what_was_sent_stops_new_data_and_not_retransmission() {
    let mut t = Transcript::accepted(plain());
    t.write(4000);
    t.expect_segments(1, 4, 1);
    t.peer("A 1:1 ack 1001 win 1000");
    t.write(2000);
    t.wait(2_000);
    let again = t.take();
    let of = |packet: &Packet| packet.segment.seq - SeqNumber(t.initial);
    assert!(again.iter().any(|packet| of(packet) == 1001 && packet.segment.payload.len() == 1000), "{again:?}");
    assert!(again.iter().all(|packet| of(packet) < 4001));
    let mut t = Transcript::accepted(plain());
    t.write(4000);
    t.expect_segments(1, 4, 1);
    t.peer("A 1:1 ack 1001 win 1000"); // 3000 are out, 1000 are allowed
    t.write(2000);
    t.wait(50);
    t.expect_nothing();
    t.peer("A 1:1 ack 4001 win 500");
    t.silence(200);
    t.peer("A 1:1 ack 4001 win 2000");
    t.expect_segments(4001, 2, 1);
    t.peer("A 1:1 ack 6001");
}

// MUST-37 again: the window closed over data in flight, which was dropped.
#[test]
fn a_peer_that_closed_its_window_over_data_in_flight_is_kept_while_it_answers() {
    let mut t = Transcript::accepted_from(plain_with(|c| c.tcp.max_timeouts = 2), "S 0:0 mss 1000");
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1 win 0");
    for wait in [300, 599, 1199, 2399, 4799, 9599] {
        t.expect_in(wait, "A 1:1001 ack 1");
        t.wait(1);
        t.peer("A 1:1 ack 1 win 0");
    }
    assert_eq!(t.closed(), None);
    t.expect_in(19_199, "A 1:1001 ack 1");
    t.expect_in(38_400, "RA 1001:1001 ack 1"); // no answer this time
    assert!(t.closed().is_some());
}

// Section 3.10.7.4, SND.WL1 and SND.WL2: an older segment does not update the window.
#[test]
fn the_window_of_an_older_segment_does_not_count() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1001:2001 ack 1 win 5000");
    t.expect("A 1:1 ack 1 sack 1001-2001");
    t.peer("A 1:1001 ack 1 win 2000"); // sent before, came later
    t.expect("A 1:1 ack 2001");
    t.write(5000);
    t.expect_segments(1, 5, 2001);
    t.peer("A 2001:2001 ack 5001");
}

// Section 3.7.4.
#[test]
fn nagle_holds_a_small_segment_back_while_data_is_unacknowledged() {
    let mut t = Transcript::accepted(plain());
    t.write(100);
    t.expect("A 1:101 ack 1");
    t.write(100);
    t.write(100);
    t.expect_nothing();
    t.peer("A 1:1 ack 101");
    t.expect("A 101:301 ack 1");
    t.write(900);
    t.expect_nothing();
    t.write(150);
    t.expect("A 301:1301 ack 1"); // a full one goes
    t.peer("A 1:1 ack 1301");
    t.expect("A 1301:1351 ack 1");
    t.peer("A 1:1 ack 1351");
}

#[test]
fn without_nagle_every_write_goes_at_once() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.nagle = false));
    t.write(100);
    t.write(100);
    t.expect("A 1:101 ack 1");
    t.expect("A 101:201 ack 1");
    t.peer("A 1:1 ack 201");
}

#[test]
fn nagle_can_be_switched_off_while_the_connection_runs_and_what_waits_goes() {
    let mut t = Transcript::accepted(plain());
    t.write(100);
    t.expect("A 1:101 ack 1");
    t.write(100);
    t.expect_nothing();
    t.set_nagle(false);
    t.expect("A 101:201 ack 1");
    t.set_nagle(true);
    t.write(100);
    t.expect_nothing();
    t.peer("A 1:1 ack 201");
    t.expect("A 201:301 ack 1");
    t.peer("A 1:1 ack 301");
}

// RFC 7323, section 2.
#[test]
fn windows_are_scaled_after_the_handshake_and_not_in_it() {
    let mut config = plain_with(|c| c.receive_buffer = BufferSize::Fixed(400_000));
    config.tcp.options.window_scaling = true;
    let mut t = Transcript::new(config);
    t.peer("S 0:0 win 2000 mss 1000 scale 2");
    t.expect("SA 0:0 ack 1 win 65535 scale 3"); // 400,000 / 2^3 = 50,000
    t.wait(100);
    t.peer("A 1:1 ack 1 win 500"); // 2000 bytes
    t.write(5000);
    t.expect("A 1:1001 ack 1 win 50000");
    t.expect("A 1001:2001 ack 1 win 50000");
    t.peer("A 1:1 ack 2001 win 750");
    t.expect_segments(2001, 3, 1);
    t.peer("A 1:1 ack 5001");
}

#[test]
fn the_window_of_a_syn_ack_is_not_scaled() {
    let mut config = plain();
    config.tcp.options.window_scaling = true;
    let mut t = Transcript::connecting(config);
    t.expect("S 0:0");
    t.write(5000);
    t.wait(100);
    t.peer("SA 0:0 ack 1 win 2000 mss 1000 scale 2");
    t.expect_segments(1, 2, 1);
    t.expect_nothing();
    t.peer("A 1:1 ack 2001 win 500"); // 2000 bytes
    t.expect_segments(2001, 2, 1);
    t.expect_nothing();
}

// The same in a simultaneous open, where the scale is known when it comes.
#[test]
fn the_window_of_a_syn_ack_that_crosses_our_syn_is_not_scaled() {
    let mut t = Transcript::connecting(plain_with(|c| c.tcp.options.window_scaling = true));
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000 sackok scale 7 win 3000");
    t.expect("SA 0:0 ack 1");
    t.peer("SA 0:0 ack 1 mss 1000 sackok scale 7 win 3000");
    t.write(10_000);
    t.expect_segments(1, 3, 1);
    t.expect_nothing();
    t.peer("A 1:1 ack 3001 win 32"); // 4,096 bytes
    t.expect_segments(3001, 4, 1);
    t.peer("A 1:1 ack 7001 win 0");
}

#[test]
fn without_the_peers_scale_option_windows_are_not_scaled() {
    let mut config = plain_with(|c| c.receive_buffer = BufferSize::Fixed(400_000));
    config.tcp.options.window_scaling = true;
    let mut t = Transcript::new(config);
    t.peer("S 0:0 win 2000 mss 1000");
    let answer = t.expect("SA 0:0 ack 1 win 65535");
    assert_eq!(answer.segment.options.window_scale, None);
    t.wait(100);
    t.peer("A 1:1001 ack 1 win 2000");
    t.expect_in(40, "A 1:1 ack 1001 win 65535");
    t.write(3000);
    t.expect_segments(1, 2, 1001);
    t.peer("A 1001:1001 ack 2001");
    t.expect("A 2001:3001 ack 1001");
    t.peer("A 1001:1001 ack 3001");
}
