//! Explicit congestion notification (RFC 3168): what the handshake agrees on, what is marked, and who slows down.

use crate::transcript::{Transcript, plain, plain_with};

fn with_ecn() -> Transcript {
    Transcript::accepted_from(plain_with(|c| c.tcp.ecn = true), "SEW 0:0 mss 1000 sackok")
}

// RFC 3168, section 6.1.1.
#[test]
fn ecn_is_used_if_both_sides_set_up_for_it() {
    let ecn = || plain_with(|c| c.tcp.ecn = true);
    let mut t = Transcript::new(ecn());
    t.peer("SEW 0:0 mss 1000");
    t.expect("SEA 0:0 ack 1 not-ect");
    let mut t = Transcript::new(ecn());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    let mut t = Transcript::new(plain());
    t.peer("SEW 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    // A client that gets its own bits back speaks to an echo, not to ECN.
    for (answer, codepoint) in [("SEA", "ect"), ("SEWA", "not-ect"), ("SA", "not-ect")] {
        let mut t = Transcript::connecting(ecn());
        t.expect("SEW 0:0 not-ect");
        t.wait(100);
        t.peer(&format!("{answer} 0:0 ack 1 mss 1000"));
        t.expect("A 1:1 ack 1 not-ect");
        t.write(1000);
        t.expect(&format!("A 1:1001 ack 1 {codepoint}"));
        t.peer("A 1:1 ack 1001");
    }
}

// RFC 3168, section 6.1.3.
#[test]
fn a_congestion_mark_is_echoed_until_the_peer_says_that_it_slowed_down() {
    let mut t = Transcript::accepted_from(plain_with(|c| c.tcp.ecn = true), "SEW 0:0 mss 1000 sackok");
    t.peer("A 1:1001 ack 1 ect");
    t.peer("A 1001:2001 ack 1 ect");
    t.expect("A 1:1 ack 2001");
    t.peer("A 2001:3001 ack 1 ce");
    t.expect("EA 1:1 ack 3001");
    t.peer("A 3001:4001 ack 1 ect");
    t.peer("A 4001:5001 ack 1 ect");
    t.expect("EA 1:1 ack 5001");
    t.peer("WA 5001:6001 ack 1 ect");
    t.peer("A 6001:7001 ack 1 ect");
    t.expect("A 1:1 ack 7001");
    t.peer("WA 7001:8001 ack 1 ce"); // slowed down, and marked again
    t.expect("EA 1:1 ack 8001");
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
