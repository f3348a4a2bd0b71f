//! Explicit congestion notification (RFC 3168): negotiation, marks, and the response.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{ConnectionConfig, EcnMode};
use bytes::Bytes;

fn with(mode: EcnMode) -> ConnectionConfig {
    plain_with(|c| c.tcp.ecn = mode)
}

fn with_ecn() -> Transcript {
    Transcript::accepted_from(plain(), "SEW 0:0 mss 1000 sackok")
}

// RFC 3168, section 6.1.1: a server accepts ECN unless configured otherwise; a client requests it only if configured.
#[test]
fn ecn_is_used_if_both_sides_set_up_for_it() {
    for (mode, syn, answer) in [
        (EcnMode::Accept, "SEW", "SEA"),
        (EcnMode::Request, "SEW", "SEA"),
        (EcnMode::Off, "SEW", "SA"),
        (EcnMode::Request, "S", "SA"),
        (EcnMode::Request, "SE", "SA"),
        (EcnMode::Request, "SW", "SA"),
    ] {
        let mut t = Transcript::new(with(mode));
        t.peer(&format!("{syn} 0:0 mss 1000"));
        t.expect(&format!("{answer} 0:0 ack 1 not-ect"));
    }
    // A client that receives its own bits back is echoed by a peer without ECN.
    for (answer, codepoint) in [("SEA", "ect"), ("SEWA", "not-ect"), ("SWA", "not-ect"), ("SA", "not-ect")] {
        let mut t = Transcript::connecting(with(EcnMode::Request));
        t.expect("SEW 0:0 not-ect");
        t.wait(100);
        t.peer(&format!("{answer} 0:0 ack 1 mss 1000"));
        t.expect("A 1:1 ack 1 not-ect");
        assert_eq!(t.cwnd(), 10, "what sets ECN up is no echo");
        t.write(1000);
        t.expect(&format!("A 1:1001 ack 1 {codepoint}"));
        t.peer("A 1:1 ack 1001");
    }
    for mode in [EcnMode::Off, EcnMode::Accept] {
        let mut t = Transcript::connecting(with(mode));
        t.expect("S 0:0 not-ect");
        t.peer("SEA 0:0 ack 1 mss 1000"); // nobody asked
        t.expect("A 1:1 ack 1 not-ect");
        t.write(1000);
        t.expect("A 1:1001 ack 1 not-ect");
        t.peer("A 1:1 ack 1001");
    }
}

// RFC 3168, sections 6.1.1 and 6.1.1.1: after a SYN without ECN none of our packets is ECN-capable, but the first SYN
// promised to echo marks.
#[test]
fn a_syn_that_is_sent_again_does_not_ask_and_a_late_answer_to_the_first_binds_us_to_echo_only() {
    let open = || {
        let mut t = Transcript::connecting(with(EcnMode::Request));
        t.expect("SEW 0:0");
        t.expect_in(1000, "S 0:0");
        t.expect_in(2000, "S 0:0");
        t
    };
    let mut t = open();
    t.peer("SEA 0:0 ack 1 mss 1000 sackok");
    t.expect("A 1:1 ack 1");
    t.peer("A 1:1001 ack 1 ce");
    t.expect("EA 1:1 ack 1001");
    t.write(1000);
    t.expect("EA 1:1001 ack 1001 not-ect");
    t.peer("A 1001:1001 ack 1001");
    let before = t.cwnd();
    t.write(1000);
    t.expect("EA 1001:2001 ack 1001 not-ect");
    t.peer("EA 1001:1001 ack 2001");
    assert!(t.cwnd() >= before, "what cannot be marked has no echo");
    let mut t = open();
    t.peer("SA 0:0 ack 1 mss 1000 sackok");
    t.expect("A 1:1 ack 1");
    t.peer("A 1:1001 ack 1 ce");
    t.expect_in(40, "A 1:1 ack 1001");
}

// RFC 3168, section 6.1.1.1, the example with four steps.
#[test]
fn a_peer_that_tries_again_without_ecn_is_answered_without_it() {
    let mut t = Transcript::new(plain());
    t.peer("SEW 0:0 mss 1000 sackok");
    t.expect("SEA 0:0 ack 1");
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    t.write(1000);
    t.expect("A 1:1001 ack 1 not-ect");
    t.peer("A 1:1001 ack 1001 ce");
    t.expect_in(40, "A 1001:1001 ack 1001");
}

// RFC 3168, section 6.1.1: both send a SYN and a SYN/ACK.
#[test]
fn in_a_simultaneous_open_all_four_must_agree() {
    for (mode, syn, ours, theirs, codepoint) in [
        (EcnMode::Request, "SEW", "SEA", "SEA", "ect"),
        (EcnMode::Request, "SEW", "SEA", "SA", "not-ect"),
        (EcnMode::Request, "S", "SA", "SA", "not-ect"),
        (EcnMode::Accept, "SEW", "SA", "SEA", "not-ect"),
    ] {
        let mut t = Transcript::connecting(with(mode));
        t.hear();
        t.peer(&format!("{syn} 0:0 mss 1000 sackok"));
        t.expect(&format!("{ours} 0:0 ack 1"));
        t.peer(&format!("{theirs} 0:0 ack 1 mss 1000 sackok"));
        t.take();
        t.write(1000);
        t.expect(&format!("A 1:1001 ack 1 {codepoint}"));
        t.peer("A 1:1 ack 1001");
    }
}

// RFC 3168, sections 6.1.3 to 6.1.5: only data in the window counts.
#[test]
fn marks_on_acknowledgements_and_outside_the_window_are_not_echoed() {
    let mut t = with_ecn();
    t.write(1000);
    t.expect("A 1:1001 ack 1 ect");
    t.peer("A 1:1 ack 1001 ce");
    t.peer("A 1:1001 ack 1001 ect");
    t.expect_in(40, "A 1001:1001 ack 1001");
    t.peer("A 1:1001 ack 1001 ce"); // once more
    t.expect("A 1001:1001 ack 1001 sack 1-1001");
    t.peer("A 90001:91001 ack 1001 ce");
    t.expect("A 1001:1001 ack 1001");
    t.peer("A 1001:2001 ack 1001 ce");
    t.expect("EA 1001:1001 ack 2001");
}

// RFC 3168, section 6.1.3.
#[test]
fn a_congestion_mark_is_echoed_until_the_peer_says_that_it_slowed_down() {
    let mut t = with_ecn();
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

// RFC 3168, section 6.1.2: CWR reports every reduction, whatever its cause.
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

// RFC 9293, section 3.4: sequence numbers are compared within half their space. The last answered mark is further back
// after 2 GiB without a mark.
#[test]
fn an_echo_counts_after_more_than_half_the_sequence_space_without_one() {
    let config = plain_with(|c| {
        c.tcp.mtu = u16::MAX;
        c.tcp.options.window_scaling = true;
    });
    let mut t = Transcript::accepted_from(config, "SEW 0:0 mss 65000 sackok scale 7");
    let data = Bytes::from(vec![0; 1 << 20]);
    let mut sent: u64 = 1;
    while sent < (1 << 31) + (1 << 22) {
        t.host.write(t.now, t.id(), data.clone()).unwrap();
        t.drain();
        sent += t.take().iter().map(|packet| packet.segment.payload.len() as u64).sum::<u64>();
        t.peer(&format!("A 1:1 ack {}", sent as u32));
    }
    let before = t.cwnd();
    t.host.write(t.now, t.id(), data).unwrap();
    t.drain();
    let unread = t.take();
    sent += unread.iter().map(|packet| packet.segment.payload.len() as u64).sum::<u64>();
    t.peer(&format!("EA 1:1 ack {}", sent as u32));
    assert!(t.cwnd() < before, "{} of {before}", t.cwnd());
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
