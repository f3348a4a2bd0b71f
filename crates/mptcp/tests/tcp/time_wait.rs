//! TIME-WAIT of connections that the application has left, and what ends it early: RFC 9293, section 3.10.7.4; RFC 6191.

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::{ConnectionConfig, EndpointConfig, OperationError, Ports};
use anabranch_wire::{Flags, Packet, SeqNumber};
use std::collections::BTreeSet;

fn stamped() -> ConnectionConfig {
    plain_with(|config| config.tcp.options.timestamps = true)
}

/// In TIME-WAIT at the sequence numbers 2 and 2; the peer's last timestamp was 1100.
fn waiting(forgotten: bool) -> Transcript {
    let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 sackok ts 1000/0");
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2 ts 1100/0");
    t.expect("A 2:2 ack 2");
    if forgotten {
        t.forget();
    }
    assert_eq!(t.host.connection_count(), 1);
    t
}

/// The same without timestamps.
fn waiting_without_stamps(config: ConnectionConfig, syn: &str, forgotten: bool) -> Transcript {
    let mut t = Transcript::accepted_from(config, syn);
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer("FA 1:1 ack 2");
    t.expect("A 2:2 ack 2");
    if forgotten {
        t.forget();
    }
    t
}

fn answer_to(mut t: Transcript, syn: &str) -> Packet {
    // Longer than the rate limit of answers to unacceptable segments.
    t.wait(200);
    t.peer(syn);
    let answer = t.hear();
    assert_eq!(t.host.connection_count(), 1, "{syn}");
    answer
}

fn accepts(t: Transcript, syn: &str) -> bool {
    answer_to(t, syn).segment.flags.contains(Flags::SYN | Flags::ACK)
}

// RFC 6191, section 2, where the previous connection had timestamps.
#[test]
fn a_syn_with_a_later_timestamp_opens_the_next_connection_at_once() {
    for forgotten in [false, true] {
        assert!(accepts(waiting(forgotten), "S 0:0 mss 1000 sackok ts 1101/0"));
        assert!(accepts(waiting(forgotten), "S 90000:90000 mss 1000 ts 1101/0"));
        assert!(!accepts(waiting(forgotten), "S 0:0 mss 1000 sackok ts 1099/0"));
        assert!(!accepts(waiting(forgotten), "S 90000:90000 mss 1000 ts 1099/0"), "an earlier stamp, a later number");
    }
}

#[test]
fn with_the_same_timestamp_or_none_the_sequence_number_decides() {
    for forgotten in [false, true] {
        assert!(accepts(waiting(forgotten), "S 2:2 mss 1000 ts 1100/0"));
        assert!(!accepts(waiting(forgotten), "S 1:1 mss 1000 ts 1100/0"));
        assert!(accepts(waiting(forgotten), "S 2:2 mss 1000"));
        assert!(!accepts(waiting(forgotten), "S 1:1 mss 1000"));
    }
}

// Section 2, where it had none.
#[test]
fn after_a_connection_without_timestamps_one_with_them_is_new() {
    for forgotten in [false, true] {
        let waiting = || waiting_without_stamps(stamped(), "S 0:0 mss 1000 sackok", forgotten);
        assert!(accepts(waiting(), "S 0:0 mss 1000 ts 5/0"));
        assert!(accepts(waiting(), "S 2:2 mss 1000"));
        assert!(!accepts(waiting(), "S 1:1 mss 1000"));
    }
}

// The peer may still be in LAST-ACK, where the answer to the copy would reset it.
#[test]
fn a_late_copy_of_the_syn_whose_timestamps_we_did_not_take_opens_nothing() {
    for forgotten in [false, true] {
        let waiting = || waiting_without_stamps(plain(), "S 0:0 mss 1000 sackok ts 5/0", forgotten);
        assert!(!accepts(waiting(), "S 0:0 mss 1000 sackok ts 5/0"));
        assert!(accepts(waiting(), "S 2:2 mss 1000 sackok ts 5/0"));
    }
}

// RFC 9293, section 3.10.7.4: a SYN that opens nothing is challenged, as in the other states. Linux does the same.
#[test]
fn a_new_syn_to_a_port_where_nobody_listens_is_acknowledged_and_the_wait_goes_on() {
    for forgotten in [false, true] {
        for syn in ["S 90000:90000 mss 1000", "S 90000:90000 mss 1000 ts 1101/0"] {
            let mut t = Transcript::connecting(stamped());
            live(&mut t, 1_099);
            if forgotten {
                t.forget();
            }
            t.wait(200);
            t.peer(syn);
            t.expect("A 2:2 ack 2");
            assert_eq!(t.host.connection_count(), 1);
            t.wait(200);
            t.peer("FA 1:1 ack 2 ts 1100/0");
            t.expect("A 2:2 ack 2");
        }
    }
}

// RFC 9293, section 3.10.7.4, MAY-2: our initial sequence number exceeds the largest one used.
#[test]
fn our_numbers_go_on_beyond_those_of_the_last_connection() {
    for forgotten in [false, true] {
        let t = waiting(forgotten);
        let last = SeqNumber(t.initial) + 2;
        assert!(answer_to(t, "S 0:0 mss 1000 ts 1101/0").segment.seq.after(last));
        // Also if they advanced faster than the clock of initial sequence numbers.
        let mut t = Transcript::accepted_from(stamped(), "S 0:0 mss 1000 sackok ts 1000/0");
        for end in (1..=100).map(|sent| 1 + 988 * sent) {
            t.write(988);
            t.take();
            t.peer(&format!("A 1:1 ack {end} ts 1001/0"));
        }
        t.take();
        t.close();
        t.expect("FA 98801:98801 ack 1");
        t.peer("FA 1:1 ack 98802 ts 1100/0");
        t.expect("A 98802:98802 ack 2");
        if forgotten {
            t.forget();
        }
        let last = SeqNumber(t.initial) + 98_802;
        assert!(answer_to(t, "S 0:0 mss 1000 ts 1101/0").segment.seq.after(last));
    }
}

#[test]
fn who_has_left_is_not_asked_before_a_late_fin_is_acknowledged() {
    let mut t = waiting(true);
    t.silence(50_000);
    t.peer("FA 1:1 ack 2 ts 1100/0");
    t.expect("A 2:2 ack 2");
    t.silence(59_999);
    assert_eq!(t.host.connection_count(), 1);
    // It is checked once a second.
    t.silence(1_001);
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn a_late_fin_is_acknowledged_as_the_connection_itself_would() {
    let late = |forgotten| {
        let mut t = waiting(forgotten);
        t.wait(300);
        t.peer("FA 1:1 ack 2 ts 1100/0");
        t.hear()
    };
    assert_eq!(late(true), late(false));
}

#[test]
fn what_is_not_acceptable_is_answered_at_a_bounded_rate_and_does_not_prolong_the_wait() {
    let mut t = waiting(true);
    t.silence(50_000);
    t.peer("A 1:1 ack 2 ts 1100/0"); // old
    t.expect("A 2:2 ack 2");
    t.peer("A 1:1 ack 2 ts 1100/0");
    t.peer("R 1:1");
    t.peer("A 2:2 ack 2 ts 1100/0"); // empty
    t.expect_nothing();
    t.silence(11_000);
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn a_reset_at_the_next_number_ends_the_wait() {
    let mut t = waiting(true);
    t.peer("R 1:1");
    t.expect("A 2:2 ack 2");
    assert_eq!(t.host.connection_count(), 1);
    t.peer("R 2:2");
    assert_eq!(t.host.connection_count(), 0);
}

/// A host that assigns the ports of its connections in sequence.
fn in_turn(low: u16, high: u16) -> Transcript {
    let ports = Ports::HashBased { low, high };
    let host = EndpointConfig { seed: [7; 32], max_time_waits: 3, ports, ..EndpointConfig::default() };
    Transcript::on(stamped(), host, [10, 0, 0, 1].into())
}

/// Opens a connection and leaves it in TIME-WAIT; returns its SYN.
fn come_and_go(t: &mut Transcript) -> Packet {
    t.connect(stamped());
    let syn = live(t, 500);
    t.forget();
    syn
}

/// Opens the connection of which the SYN is next, with a peer whose clock shows `stamp`, and closes it up to TIME-WAIT; returns that SYN.
fn live(t: &mut Transcript, stamp: u32) -> Packet {
    let syn = t.hear();
    (t.initial, t.stamp) = (syn.segment.seq.0, syn.segment.options.timestamps.map(|stamps| stamps.value));
    t.peer(&format!("SA 0:0 ack 1 mss 1000 sackok ts {stamp}/0"));
    t.expect("A 1:1 ack 1");
    t.close();
    t.expect("FA 1:1 ack 1");
    t.peer(&format!("FA 1:1 ack 2 ts {}/0", stamp + 1));
    t.expect("A 2:2 ack 2");
    syn
}

#[test]
fn a_port_in_time_wait_is_taken_again_after_a_second_with_later_stamps_and_numbers() {
    let mut t = in_turn(2_000, 2_001);
    let mut first = [come_and_go(&mut t), come_and_go(&mut t)];
    let refused = t.host.connect(t.now, None, t.remote, stamped());
    assert_eq!(refused, Err(OperationError::PortInUse));
    t.wait(1_000);
    let mut again = [come_and_go(&mut t), come_and_go(&mut t)];
    for both in [&mut first, &mut again] {
        both.sort_by_key(|syn| syn.segment.source_port);
    }
    for (first, again) in first.iter().zip(&again) {
        let stamp = |syn: &Packet| syn.segment.options.timestamps.expect("it has some").value;
        assert_eq!(first.segment.source_port, again.segment.source_port);
        assert_eq!(stamp(again).wrapping_sub(stamp(first)), 1_000, "one clock for all connections");
        assert!(again.segment.seq.after(first.segment.seq + 2));
    }
}

#[test]
fn the_oldest_time_wait_goes_when_there_are_too_many() {
    let mut t = in_turn(2_000, 2_999);
    let syns: Vec<Packet> = (0..5).map(|_| come_and_go(&mut t)).collect();
    assert_eq!(t.host.connection_count(), 3);
    assert_eq!(t.host.counters().shortened_time_waits, 2);
    // Only the last three answer a late FIN; the others are unknown connections.
    for (at, syn) in syns.iter().enumerate() {
        t.local.set_port(syn.segment.source_port);
        t.initial = syn.segment.seq.0;
        t.peer("FA 1:1 ack 2 ts 501/0");
        t.expect(if at < 2 { "R 2:2" } else { "A 2:2 ack 2" });
    }
}

#[test]
fn ports_in_turn_come_again_only_after_the_range_has_been_gone_through() {
    let mut t = in_turn(1_024, u16::MAX);
    let mut ports = BTreeSet::new();
    // 64,512 ports, in steps of four at most.
    for _ in 0..16_000 {
        t.connect(plain());
        let port = t.hear().segment.source_port;
        assert!(port >= 1_024 && ports.insert(port), "{port} so soon");
        t.abort();
        t.take();
    }
    // Those of another peer are elsewhere.
    let step = |from: u16, to: u16| from.abs_diff(to);
    let here = t.local.port();
    t.remote = ([10, 0, 0, 3], 4000).into();
    t.connect(plain());
    assert!(step(here, t.hear().segment.source_port) > 4);
}

#[test]
fn a_port_that_was_taken_again_waits_for_its_own_time() {
    let mut t = in_turn(2_000, 2_000);
    come_and_go(&mut t);
    t.wait(1_500);
    come_and_go(&mut t);
    // The first would have ended 1.2 s ago.
    t.wait(59_700);
    assert_eq!(t.host.connection_count(), 1);
    t.wait(1_400);
    assert_eq!(t.host.connection_count(), 0);
}
