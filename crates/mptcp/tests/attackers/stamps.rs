//! Forged timestamps must not exclude the peer (RFC 7323, section 5; RFC 5961, section 5.2).

use crate::transcript::{Transcript, plain_with};

fn stamped() -> Transcript {
    let config = plain_with(|c| c.tcp.options.timestamps = true);
    let mut t = Transcript::accepted_from(config, "S 0:0 mss 1000 sackok ts 1000/0");
    t.peer("A 1:101 ack 1 ts 1001/0");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101");
    t
}

// Each has the right sequence number or one before it, and a timestamp 2,000,000 ms ahead that must not be stored:
// otherwise PAWS would refuse the peer's segments for 24 days.
#[test]
fn what_is_not_processed_leaves_no_timestamp_behind() {
    for forged in [
        "FA 101:101 ack 900001 ts 2001000/0",
        "A 101:101 ack 900001 ts 2001000/0",
        "A 101:201 ack 900001 ts 2001000/0",
        "A 101:101 ack -900001 ts 2001000/0",
        "A 1:101 ack 1 ts 2001000/0",      // old data, all of it here
        "A 1:101 ack 900001 ts 2001000/0", // the same with a wrong acknowledgement
        "A 51:201 ack 900001 ts 2001000/0",
        "R 102:102 ts 2001000/0",
        "RA 50:50 ack 1 ts 2001000/0",
        "S 101:101 ts 2001000/0",
        "SA 101:101 ack 1 ts 2001000/0",
        "- 101:201 ts 2001000/0",
        "F 101:101 ts 2001000/0",
        "A 60000:60000 ack 1 ts 2001000/0", // outside
        "A 1101:1201 ack 900001 ts 2001000/0",
    ] {
        let mut t = stamped();
        t.wait(100);
        t.peer(forged);
        t.take();
        t.read(0);
        t.wait(200);
        t.peer("A 101:201 ack 1 ts 1002/0");
        t.read(100);
        let answer = t.expect_in(40, "A 1:1 ack 201");
        assert_eq!(answer.segment.options.timestamps.map(|stamps| stamps.echo), Some(1002), "{forged}");
    }
}

// RFC 7323, section 4.3: the timestamp of a segment out of order is not stored yet either.
#[test]
fn what_is_processed_out_of_order_leaves_none_behind_either() {
    let mut t = stamped();
    t.peer("A 301:401 ack 1 ts 5000/0");
    t.expect("A 1:1 ack 101 sack 301-401");
    t.peer("A 101:301 ack 1 ts 1002/0");
    t.expect("A 1:1 ack 401");
    t.read(300);
}

// The same during the handshake: a wrong acknowledgement is refused, and the client connects.
#[test]
fn a_forged_third_segment_leaves_no_timestamp_behind() {
    let mut t = Transcript::new(plain_with(|c| c.tcp.options.timestamps = true));
    t.peer("S 0:0 mss 1000 sackok ts 1000/0");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1 ack 900001 ts 2001000/0");
    t.expect("R 900001:900001");
    t.peer("A 1:101 ack 1 ts 1001/0");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101");
}

// An echo of a value never sent is no round-trip sample: one of 24 days would delay every timeout.
#[test]
fn a_forged_echo_is_no_round_trip() {
    let mut t = stamped();
    t.write(900);
    t.expect("A 1:901 ack 101");
    t.wait(100);
    t.peer("A 101:101 ack 901 ts 1002/4000000000");
    t.write(900);
    t.expect("A 901:1801 ack 101");
    // At most two round trips of 100 ms and 200 ms for a delayed acknowledgement; then the tail loss probe is sent.
    t.wait(500);
    t.expect("A 901:1801 ack 101");
}
