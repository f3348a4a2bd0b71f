//! Acknowledgements: delayed (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2), selective (RFC 2018), and of
//! duplicates (RFC 2883).

use crate::transcript::{PEER_INITIAL, Transcript, plain, plain_with};
use anabranch_policy::time::Duration;

#[test]
fn one_segment_is_acknowledged_after_40_ms() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1001 ack 1");
    t.expect_in(40, "A 1:1 ack 1001");
    t.silence(1000);
}

// SHLD-19.
#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut t = Transcript::accepted(plain());
    for start in [1, 2001, 4001] {
        t.peer(&format!("A {start}:{} ack 1", start + 1000));
        t.expect_nothing();
        t.peer(&format!("A {}:{} ack 1", start + 1000, start + 2000));
        t.expect(&format!("A 1:1 ack {}", start + 2000));
    }
}

// RFC 5681, section 4.2: a full segment is what we offered, here less than the 536 bytes of a host that offers nothing.
#[test]
fn on_a_link_with_short_packets_every_second_full_segment_is_acknowledged_at_once_too() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.mtu = 340));
    t.peer("A 1:301 ack 1");
    t.expect_nothing();
    t.peer("A 301:601 ack 1");
    t.expect("A 1:1 ack 601");
    t.read(600);
}

#[test]
fn the_delay_runs_from_the_first_unacknowledged_segment() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:101 ack 1");
    t.silence(30);
    t.peer("A 101:201 ack 1");
    t.expect_in(10, "A 1:1 ack 201");
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut t = Transcript::accepted(plain_with(|c| c.tcp.delayed_ack = Duration::ZERO));
    t.peer("A 1:101 ack 1");
    t.expect("A 1:1 ack 101");
}

#[test]
fn data_of_ours_takes_the_acknowledgement_along() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1001 ack 1");
    t.write(100);
    t.expect("A 1:101 ack 1001");
    t.silence(100);
    t.peer("A 1001:1001 ack 101");
}

// RFC 5681, section 4.2: at once for data out of order, data that fills a gap, and duplicates.
#[test]
fn out_of_order_segments_and_filled_gaps_are_acknowledged_at_once() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 101:201 ack 1");
    t.expect("A 1:1 ack 1 sack 101-201");
    t.peer("A 301:401 ack 1");
    t.expect("A 1:1 ack 1 sack 301-401,101-201");
    t.peer("A 1:51 ack 1"); // part of the gap
    t.expect("A 1:1 ack 51 sack 301-401,101-201");
    t.peer("A 51:101 ack 1");
    t.expect("A 1:1 ack 201 sack 301-401");
    t.peer("A 201:301 ack 1");
    t.expect("A 1:1 ack 401");
    t.read(400);
}

// RFC 2018, section 4: the first block contains the most recent segment; then the others, most recent first.
#[test]
fn sack_blocks_come_in_order_of_news_at_most_four() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 101:201 ack 1");
    t.peer("A 301:401 ack 1");
    t.peer("A 501:601 ack 1");
    t.peer("A 701:801 ack 1");
    t.take();
    t.peer("A 901:1001 ack 1");
    t.expect("A 1:1 ack 1 sack 901-1001,701-801,501-601,301-401");
    t.peer("A 201:301 ack 1"); // joins two
    t.expect("A 1:1 ack 1 sack 101-401,901-1001,701-801,501-601");
}

#[test]
fn with_timestamps_three_sack_blocks_fit() {
    let mut t =
        Transcript::accepted_from(plain_with(|c| c.tcp.options.timestamps = true), "S 0:0 mss 1000 sackok ts 500/0");
    for start in [101, 301, 501] {
        t.peer(&format!("A {start}:{} ack 1 ts 600/0", start + 100));
    }
    t.take();
    t.peer("A 701:801 ack 1 ts 600/0");
    t.expect("A 1:1 ack 1 sack 701-801,501-601,301-401");
}

#[test]
fn without_sack_permitted_no_block_is_sent() {
    let mut t = Transcript::accepted_from(plain(), "S 0:0 mss 1000");
    t.peer("A 101:201 ack 1");
    t.expect("A 1:1 ack 1");
}

#[test]
fn data_segments_carry_sack_blocks_only_as_far_as_their_packet_has_room() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1001:2001 ack 1");
    t.peer("A 3001:4001 ack 1");
    t.take();
    t.write(1000);
    let full = t.expect("A 1:1001 ack 1");
    assert_eq!(full.wire_len(), 1040);
    t.peer("A 1:1 ack 1001");
    t.write(985); // room for 15 bytes: one block takes 12
    let short = t.expect("A 1001:1986 ack 1 sack 3001-4001");
    assert!(short.wire_len() <= 1040);
    t.peer("A 1:1 ack 1986");
}

// RFC 2883, section 4.1.1.
#[test]
fn a_duplicate_segment_is_reported_once() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1001 ack 1");
    t.peer("A 1001:2001 ack 1");
    t.expect("A 1:1 ack 2001");
    t.peer("A 1001:2001 ack 1");
    t.expect("A 1:1 ack 2001 sack 1001-2001");
    t.peer("A 2001:3001 ack 1");
    t.expect_in(40, "A 1:1 ack 3001");
}

// RFC 2883, section 4.1.2: below the acknowledgement with a gap above; section 4.2.2: within a block.
#[test]
fn duplicates_are_reported_before_the_block_that_holds_them() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:1001 ack 1");
    t.peer("A 2001:3001 ack 1");
    t.expect("A 1:1 ack 1001 sack 2001-3001");
    t.peer("A 1:1001 ack 1");
    t.expect("A 1:1 ack 1001 sack 1-1001,2001-3001");
    t.peer("A 2501:2601 ack 1");
    t.expect("A 1:1 ack 1001 sack 2501-2601,2001-3001");
    t.peer("A 4001:5001 ack 1");
    t.expect("A 1:1 ack 1001 sack 4001-5001,2001-3001");
    t.peer("A 2501:2601 ack 1");
    t.expect("A 1:1 ack 1001 sack 2501-2601,2001-3001,4001-5001");
}

// RFC 2883, sections 4.2.1 and 4.2.3: of a segment that came in parts before, the first part.
#[test]
fn the_first_part_of_a_segment_that_came_before_is_reported() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1501:2001 ack 1");
    t.expect("A 1:1 ack 1 sack 1501-2001");
    t.peer("A 2501:3001 ack 1");
    t.expect("A 1:1 ack 1 sack 2501-3001,1501-2001");
    t.peer("A 1501:3001 ack 1");
    t.expect("A 1:1 ack 1 sack 1501-2001,1501-3001");
    t.peer("A 4001:5001 ack 1");
    t.expect("A 1:1 ack 1 sack 4001-5001,1501-3001");
    t.peer("A 3001:4501 ack 1");
    t.expect("A 1:1 ack 1 sack 4001-4501,1501-5001");
    // In order, and below the acknowledgement.
    t.peer("A 1:2001 ack 1");
    t.expect("A 1:1 ack 5001 sack 1501-2001");
    t.peer("A 5001:6001 ack 1");
    t.read(6000);
    t.expect_in(40, "A 1:1 ack 6001");
}

// RFC 9293, section 3.4: numbers wrap.
#[test]
fn sequence_numbers_of_both_sides_wrap_in_the_middle_of_a_transfer() {
    // The clock of RFC 6528 advances by one every 4 microseconds: wait until our number is 2,500 below the wrap.
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000 sackok");
    let now = t.hear().segment.seq.0;
    t.peer("R 1:1");
    let ahead = now.wrapping_neg().wrapping_sub(2_500);
    t.wait_until(t.now + Duration::from_micros(4 * u64::from(ahead)));
    // The peer's is 1,500 below its own: relative numbers are shifted by as much.
    let shift = PEER_INITIAL.wrapping_neg().wrapping_sub(1_500);
    let at = |number: u32| shift.wrapping_add(number);
    t.peer(&format!("S {}:{} mss 1000 sackok", at(0), at(0)));
    let answer = t.expect(&format!("SA 0:0 ack {}", at(1)));
    assert_eq!(answer.segment.seq.0, 2_500_u32.wrapping_neg());
    t.wait(100);
    t.peer(&format!("A {}:{} ack 1", at(1), at(1)));
    t.write(5000);
    for start in [1, 1001, 2001, 3001, 4001] {
        t.expect(&format!("A {start}:{} ack {}", start + 1000, at(1)));
    }
    t.peer(&format!("A {}:{} ack 1 sack 2001-5001", at(1), at(1)));
    t.expect(&format!("A 1:1001 ack {}", at(1)));
    t.expect(&format!("A 1001:2001 ack {}", at(1)));
    t.peer(&format!("A {}:{} ack 5001", at(1), at(1)));
    t.peer(&format!("A {}:{} ack 5001", at(1001), at(2001)));
    t.expect(&format!("A 5001:5001 ack {} sack {}-{}", at(1), at(1001), at(2001)));
    t.peer(&format!("A {}:{} ack 5001", at(1), at(1001)));
    t.expect(&format!("A 5001:5001 ack {}", at(2001)));
    assert_eq!(t.host.receive_state(t.id()).unwrap().readable, 2000);
    t.close();
    t.expect(&format!("FA 5001:5001 ack {}", at(2001)));
    t.peer(&format!("FA {}:{} ack 5002", at(2001), at(2001)));
    t.expect(&format!("A 5002:5002 ack {}", at(2002)));
}

// RFC 9293, section 3.10.7.4: data in both directions at once.
#[test]
fn data_crosses() {
    let mut t = Transcript::accepted(plain());
    t.write(2000);
    t.expect_segments(1, 2, 1);
    t.peer("A 1:1001 ack 1");
    t.peer("A 1001:2001 ack 1001");
    t.expect("A 2001:2001 ack 2001");
    t.write(1000);
    t.expect("A 2001:3001 ack 2001");
    t.peer("A 2001:2001 ack 3001");
    t.peer("A 2001:2501 ack 1001"); // it left before that
    t.peer("A 2501:3001 ack 3001");
    t.expect_in(40, "A 3001:3001 ack 3001");
    t.read(3000);
}
