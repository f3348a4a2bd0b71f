//! Options: segment size (RFC 9293, section 3.7.1), timestamps and PAWS (RFC 7323), and missing options.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{ConnectionConfig, EndpointConfig};

fn stamped() -> ConnectionConfig {
    plain_with(|c| c.tcp.options.timestamps = true)
}

fn v6() -> std::net::IpAddr {
    "fd00::1".parse().unwrap()
}

// MUST-14: the MSS in the SYN follows from the MTU: 1040 minus 40, or minus 60.
#[test]
fn the_segment_size_offered_is_the_link_less_the_headers_of_the_family() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 9000");
    t.expect("SA 0:0 ack 1 mss 1000");
    let mut t = Transcript::on(plain(), EndpointConfig::default(), v6());
    t.peer("S 0:0 mss 9000");
    t.expect("SA 0:0 ack 1 mss 980");
}

// MUST-16: never more than the smaller of both.
#[test]
fn the_smaller_of_both_segment_sizes_is_used() {
    let mut t = Transcript::accepted_from(plain(), "S 0:0 mss 700");
    t.write(1400);
    t.expect("A 1:701 ack 1");
    t.expect("A 701:1401 ack 1");
    t.peer("A 1:1 ack 1401");
    let mut t = Transcript::accepted_from(plain(), "S 0:0 mss 9000");
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.peer("A 1:1 ack 2001");
}

// MUST-15.
#[test]
fn without_the_option_segments_have_536_bytes_on_ipv4_and_1220_on_ipv6() {
    for (address, size) in [([10, 0, 0, 1].into(), 536), (v6(), 1220)] {
        let config = plain_with(|c| c.tcp.mtu = 1500);
        let mut t = Transcript::on(config, EndpointConfig::default(), address);
        t.peer("S 0:0");
        t.expect("SA 0:0 ack 1");
        t.peer("A 1:1 ack 1");
        t.write(5000);
        t.expect(&format!("A 1:{} ack 1", 1 + size));
        t.take();
    }
}

// RFC 6691, section 2, and RFC 7323, appendix A: options reduce the payload.
#[test]
fn timestamps_make_segments_shorter() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 7/0");
    t.write(2000);
    let packet = t.expect("A 1:989 ack 1");
    assert_eq!(packet.wire_len(), 1040);
    t.expect("A 989:1977 ack 1");
    t.peer("A 1:1 ack 1977 ts 8/0");
    t.expect("A 1977:2001 ack 1");
    t.peer("A 1:1 ack 2001 ts 8/0");
}

// RFC 7323, section 3.2.
#[test]
fn timestamps_are_used_if_both_sides_offer_them() {
    let mut t = Transcript::new(stamped());
    t.peer("S 0:0 mss 1000 ts 4000/0");
    t.expect("SA 0:0 ack 1 ts 0/4000");
    t.wait(100);
    t.peer("A 1:1001 ack 1 ts 4100/0");
    t.expect_in(40, "A 1:1 ack 1001 ts 140/4100");
    let mut t = Transcript::new(stamped());
    t.peer("S 0:0 mss 1000");
    assert_eq!(t.expect("SA 0:0 ack 1").segment.options.timestamps, None);
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000 ts 4000/0");
    assert_eq!(t.expect("SA 0:0 ack 1").segment.options.timestamps, None);
}

#[test]
fn an_active_open_sends_a_timestamp_with_echo_zero() {
    let mut t = Transcript::connecting(stamped());
    t.expect("S 0:0 ts 0/0");
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000 ts 9/0");
    t.expect("A 1:1 ack 1 ts 100/9");
}

// RFC 7323, section 4.3: with delayed acknowledgements the earliest is echoed; after a gap, the one before the gap.
#[test]
fn the_echo_is_that_of_the_segment_the_acknowledgement_is_for() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 sackok ts 1000/0");
    t.peer("A 1:989 ack 1 ts 1001/0");
    t.peer("A 989:1977 ack 1 ts 1002/0");
    t.expect("A 1:1 ack 1977 ts 100/1001"); // the earlier of the two
    t.peer("A 2965:3953 ack 1 ts 1004/0"); // one is missing
    t.expect("A 1:1 ack 1977 ts 100/1001 sack 2965-3953");
    t.peer("A 1977:2965 ack 1 ts 1010/0");
    t.expect("A 1:1 ack 3953 ts 100/1010");
}

// RFC 7323, section 4.3: the SYN again is not beyond Last.ACK.sent. With the echo of the first the peer would measure a
// second more than the round trip. An old one changes nothing.
#[test]
fn a_syn_again_is_answered_with_its_own_timestamp() {
    let mut t = Transcript::new(stamped());
    t.peer("S 0:0 mss 1000 ts 100/0");
    t.expect("SA 0:0 ack 1 ts 0/100");
    t.wait(300);
    t.peer("S 0:0 mss 1000 ts 1100/0");
    t.expect("SA 0:0 ack 1 ts 300/1100");
    t.peer("S 0:0 mss 1000 ts 100/0");
    t.expect("SA 0:0 ack 1 ts 300/1100");
    t.peer("A 1:1 ack 1 ts 1101/300");
}

// RFC 7323, section 5: PAWS.
// The same of a SYN/ACK that crosses our SYN: what we send next answers it.
#[test]
fn the_timestamp_of_a_syn_ack_that_crosses_our_syn_is_echoed() {
    let mut t = Transcript::connecting(stamped());
    t.expect("S 0:0 ts 0/0");
    t.peer("S 0:0 mss 1000 ts 100/0");
    t.expect("SA 0:0 ack 1 ts 0/100");
    t.wait(50);
    t.peer("SA 0:0 ack 1 mss 1000 ts 150/0");
    t.write(100);
    t.expect("A 1:101 ack 1 ts 50/150");
    t.peer("A 1:1 ack 101 ts 200/50");
}

#[test]
fn a_segment_with_an_old_timestamp_is_acknowledged_and_dropped() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 5000/0");
    t.peer("A 1:101 ack 1 ts 6000/0");
    t.expect_in(40, "A 1:1 ack 101 ts 140/6000");
    t.peer("A 101:201 ack 1 ts 5999/0");
    t.expect("A 1:1 ack 101 ts 140/6000");
    t.read(100);
    t.peer("A 101:201 ack 1 ts 6000/0"); // equal is not old
    t.read(100);
    t.expect_in(40, "A 1:1 ack 201");
}

// RFC 7323, section 5.2: resets are exempt.
#[test]
fn a_reset_with_an_old_timestamp_or_none_counts() {
    for reset in ["R 1:1 ts 1/0", "R 1:1"] {
        let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 5000/0");
        t.peer(reset);
        assert_eq!(t.host.connection_count(), 0);
    }
}

// RFC 7323, section 5.5: after 24 days of silence an old timestamp may be new.
#[test]
fn a_timestamp_is_forgotten_after_24_days() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 5000/0");
    t.silence(25 * 24 * 3600 * 1000);
    t.peer("A 1:101 ack 1 ts 4000/0");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101");
}

// RFC 7323, section 5.2: the peer's clock wraps too.
#[test]
fn timestamps_wrap() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 4294967290/0");
    t.peer("A 1:101 ack 1 ts 5/0");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101 ts 140/5");
}

// RFC 7323, section 3.2, requires a drop; Linux accepts it, and so do we. TS.Recent does not change.
#[test]
fn a_segment_without_its_timestamp_is_taken() {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 ts 5000/0");
    t.peer("A 1:101 ack 1");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101 ts 140/5000");
    t.peer("A 101:201 ack 1 ts 4999/0");
    t.expect("A 1:1 ack 101");
}

// RFC 7323, section 5.4: the clock does not reveal the host's uptime.
#[test]
fn the_timestamps_of_connections_begin_at_different_points() {
    let mut t = Transcript::new(plain());
    let mut first = Vec::new();
    for _ in 0..4 {
        t.connect(stamped());
        first.push(t.hear().segment.options.timestamps.unwrap().value);
    }
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 4);
}

// RFC 9293, section 3.8.5; RFC 6093, sections 5 and 6: the pointer is ignored, and the urgent byte stays in the stream:
// in the middle of a segment, at its end, beyond it, after a hole, and for a pointer without the bit.
#[test]
fn urgent_data_stays_in_line() {
    let mut t = Transcript::accepted(plain());
    t.peer("UA 1:101 ack 1 urg 50");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101 urg 0");
    t.peer("UA 101:102 ack 1 urg 1");
    t.peer("UA 102:202 ack 1 urg 60000");
    t.read(101);
    t.expect_in(40, "A 1:1 ack 202 urg 0");
    t.peer("UA 302:402 ack 1 urg 100");
    t.expect("A 1:1 ack 202 sack 302-402");
    t.peer("UPA 202:302 ack 1 urg 0");
    t.expect("A 1:1 ack 402");
    t.peer("A 402:502 ack 1 urg 7");
    t.read(300);
    t.expect_in(40, "A 1:1 ack 502");
    // A pointer to future data, without data: no answer is needed.
    t.peer("UA 502:502 ack 1 urg 500");
    t.silence(100);
    t.write(1000);
    t.expect("A 1:1001 ack 502 urg 0");
    t.peer("UFA 502:502 ack 1001 urg 1");
    t.expect("A 1001:1001 ack 503");
}
