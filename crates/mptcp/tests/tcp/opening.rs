//! Opening connections: RFC 9293, sections 3.5 and 3.10.7.

use crate::transcript::{PORT, Transcript, pattern, plain, plain_with};
use anabranch_mptcp::{CloseCause, EndpointConfig, Event};
use anabranch_policy::time::Duration;
use std::net::SocketAddr;

// RFC 9293, section 3.5, figure 6.
#[test]
fn a_passive_open_answers_a_syn_and_is_established_by_the_third_segment() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1 mss 1000 sackok win 50000 not-ect");
    assert!(t.events.is_empty(), "{:?}", t.events);
    t.peer("A 1:1 ack 1");
    assert!(matches!(t.events.first(), Some(Event::Accepted { port: PORT, .. })), "{:?}", t.events);
    t.write(1000);
    t.expect("A 1:1001 ack 1");
}

#[test]
fn an_active_open_sends_a_syn_and_acknowledges_the_answer() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0 mss 1000 sackok not-ect");
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000 sackok");
    t.expect("A 1:1 ack 1");
    assert!(t.heard_of(Event::Connected(t.id())));
}

// Section 3.5, figure 7: both SYNs cross, both SYN/ACKs cross.
#[test]
fn a_simultaneous_open_is_established_by_the_peers_syn_ack() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    t.peer("SA 0:0 ack 1 mss 1000 sackok");
    assert!(t.heard_of(Event::Connected(t.id())), "{:?}", t.events);
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    t.peer("A 1:1 ack 1001");
}

#[test]
fn a_simultaneous_open_is_established_by_a_plain_acknowledgement_too() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    assert!(t.heard_of(Event::Connected(t.id())));
}

// Section 3.8.3, MUST-23: who opens a connection tries for three minutes, also if the peer's SYN crosses its own.
#[test]
fn in_a_simultaneous_open_too_a_syn_is_not_abandoned_before_three_minutes() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    for seconds in [1, 2, 4, 8, 16] {
        t.expect_in(seconds * 1000, "S 0:0");
    }
    t.wait(9_000);
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    for seconds in [32, 64] {
        t.expect_in(seconds * 1000, "SA 0:0 ack 1");
    }
    t.silence(119_999);
    assert_eq!(t.closed(), None);
    t.silence(1);
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
}

// Section 3.10.7.4: data on the SYN/ACK begins behind its SYN. As on any SYN it is not taken, and comes again.
#[test]
fn data_on_a_syn_ack_that_crosses_our_syn_is_not_taken_for_data_one_byte_before_it() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    let mut syn_ack = t.packet("SA 0:0 ack 1 mss 1000 sackok");
    syn_ack.segment.payload = pattern(0, 10);
    t.host.handle_packet(t.now, syn_ack);
    t.drain();
    assert!(t.heard_of(Event::Connected(t.id())));
    t.expect_nothing();
    t.peer("A 1:1001 ack 1");
    t.read(1000);
    t.expect_in(40, "A 1:1 ack 1001");
}

// Section 3.10.7.4, first check: the window of the SYN already applies.
#[test]
fn data_with_the_third_segment_is_delivered() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:501 ack 1");
    t.read(500);
    t.expect_in(40, "A 1:1 ack 501");
}

// The third segment is lost, but the following data has the same acknowledgement.
#[test]
fn a_lost_third_segment_is_made_good_by_data() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1001 ack 1");
    t.peer("A 1001:2001 ack 1");
    t.expect("A 1:1 ack 2001");
    t.read(2000);
}

// RFC 6298, sections 2.1 and 5.5: one second, then doubled.
#[test]
fn a_syn_is_repeated_after_1_2_4_and_so_on_seconds_and_abandoned_after_more_than_three_minutes() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    for seconds in [1, 2, 4, 8, 16, 32, 64] {
        t.expect_in(seconds * 1000, "S 0:0 mss 1000 sackok");
    }
    t.silence(119_999);
    assert_eq!(t.closed(), None);
    t.silence(1);
    assert_eq!(t.closed(), Some(CloseCause::TimedOut));
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn a_syn_ack_is_repeated_by_the_timer_and_at_once_when_the_syn_comes_again() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    t.expect_in(1000, "SA 0:0 ack 1 mss 1000 sackok");
    t.wait(500);
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    t.peer("A 1:1 ack 1");
    assert!(matches!(t.events.first(), Some(Event::Accepted { .. })));
    t.silence(10_000);
}

#[test]
fn a_half_open_connection_that_gets_no_answer_is_forgotten_without_a_word_to_the_application() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    for seconds in [1, 2, 4, 8, 16] {
        t.expect_in(seconds * 1000, "SA 0:0 ack 1");
    }
    t.silence(32_000);
    assert_eq!(t.host.connection_count(), 0);
    assert_eq!(t.events, []);
}

// A SYN that ends TIME-WAIT may be forged; the peer then retransmits its FIN, which is not acceptable here.
#[test]
fn segments_that_are_not_acceptable_do_not_keep_a_half_open_connection_from_being_forgotten() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    for _ in 0..16 {
        t.peer("FA 900000:900000 ack 1");
        t.wait(4_000);
        t.take();
    }
    assert_eq!(t.host.connection_count(), 0);
}

// Section 3.10.7.3: a wrong acknowledgement in SYN-SENT is answered with a reset. The peer may have had a connection with
// these ports, so the SYN follows it; only once.
#[test]
fn an_old_syn_ack_is_reset_and_does_not_disturb_the_open() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("SA 0:0 ack 5000");
    t.expect("R 5000:5000");
    t.expect("S 0:0");
    t.peer("A 0:0 ack 0");
    t.expect("R 0:0");
    t.expect_nothing();
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("A 1:1 ack 1");
    assert!(t.heard_of(Event::Connected(t.id())));
}

#[test]
fn a_segment_without_syn_in_syn_sent_is_ignored() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("A 1:101 ack 1");
    t.peer("- 1:101");
    t.expect_nothing();
}

// Section 3.5, figure 8: an old duplicate SYN opens a connection; the peer's reset removes it, and the new SYN is
// answered.
#[test]
fn an_old_duplicate_syn_is_cleared_away_by_the_peers_reset() {
    let mut t = Transcript::new(plain());
    t.peer("S -9000:-9000 mss 1000");
    t.expect("SA 0:0 ack -8999");
    t.peer("R -8999:-8999");
    assert_eq!(t.host.connection_count(), 0);
    assert_eq!(t.events, [], "the application never had it");
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
}

// The peer lost its state before our SYN/ACK arrived, and tries again with another number.
#[test]
fn another_syn_in_syn_received_is_challenged_with_our_syn_ack() {
    let mut t = Transcript::new(plain());
    t.peer("S -90000:-90000 mss 1000");
    t.expect("SA 0:0 ack -89999");
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack -89999");
    t.peer("R -89999:-89999"); // what the peer says to an acknowledgement that is none of its own
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
}

// Section 3.5.1, figure 9: the peer forgot the connection and opens again on the same ports.
#[test]
fn a_peer_that_rebooted_learns_by_an_acknowledgement_and_resets_the_old_connection() {
    let mut t = Transcript::accepted(plain());
    t.peer("A 1:301 ack 1");
    t.expect_in(40, "A 1:1 ack 301");
    t.peer("S 400000:400000 mss 1000");
    t.expect("A 1:1 ack 301");
    t.peer("R 301:301");
    assert_eq!(t.closed(), Some(CloseCause::AbortedByPeer));
    t.peer("S 400000:400000 mss 1000");
    t.expect("SA 0:0 ack 400001");
}

// Section 3.10.7.2: other segments than SYNs in LISTEN.
#[test]
fn an_acknowledgement_to_a_listener_is_reset_and_a_reset_is_ignored() {
    let mut t = Transcript::new(plain());
    t.peer("A 1:1 ack 900");
    t.expect("R 900:900");
    t.peer("SA 0:0 ack 900");
    t.expect("R 900:900");
    t.peer("R 1:1");
    t.peer("RA 1:1 ack 1");
    t.expect_nothing();
}

// The same: what is neither is dropped, as from a scanner of ports. Linux drops a SYN with FIN, too.
#[test]
fn what_is_neither_a_syn_nor_an_acknowledgement_is_dropped_by_a_listener() {
    let mut t = Transcript::new(plain());
    for line in ["- 1:1", "- 1:11", "F 1:1", "FPU 1:1", "P 1:11", "SF 0:0"] {
        t.peer(line);
        t.expect_nothing();
    }
    assert_eq!(t.host.connection_count(), 0);
}

// Section 3.10.7.1.
#[test]
fn a_port_where_nobody_listens_refuses_with_a_reset() {
    let mut t = Transcript::new(plain());
    t.local = SocketAddr::new(t.local.ip(), 81);
    t.peer("S 0:0 mss 1000");
    t.expect("RA 0:0 ack 1");
    t.peer("- 5:105");
    t.expect("RA 0:0 ack 105");
    t.peer("A 5:105 ack 77");
    t.expect("R 77:77");
    t.peer("R 1:1");
    t.expect_nothing();
}

#[test]
fn a_reset_that_acknowledges_our_syn_refuses_the_connection() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("RA 0:0 ack 77"); // not for this SYN
    t.peer("R 0:0");
    assert_eq!(t.closed(), None);
    t.peer("RA 0:0 ack 1");
    assert_eq!(t.closed(), Some(CloseCause::Refused));
    assert_eq!(t.host.connection_count(), 0);
}

#[test]
fn an_abort_in_syn_sent_says_nothing() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.abort();
    t.expect_nothing();
    assert_eq!(t.closed(), Some(CloseCause::Aborted));
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("R 1:1");
}

// RFC 9293, section 3.10.4: CLOSE in SYN-SENT deletes the TCB; later segments belong to no connection.
#[test]
fn a_connection_that_is_abandoned_in_syn_sent_sends_no_more_syns() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.discard();
    t.wait(120_000);
    t.expect_nothing();
    assert_eq!((t.closed(), t.host.connection_count()), (Some(CloseCause::Aborted), 0));
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("R 1:1");
}

// Data written, and a close, before the end of the handshake follow it.
#[test]
fn data_and_close_may_be_asked_for_before_the_connection_is_established() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.write(500);
    t.close();
    t.expect_nothing();
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("A 1:501 ack 1");
    t.expect("FA 501:501 ack 1");
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.close();
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("FA 1:1 ack 1");
}

// RFC 6528 and RFC 6056: numbers and ports are not predictable from those of other hosts or connections.
#[test]
fn initial_sequence_numbers_and_ports_differ_from_seed_to_seed_and_repeat_with_the_seed() {
    let open = |seed: u8| {
        let host = EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() };
        let mut t = Transcript::on(plain(), host, [10, 0, 0, 1].into());
        t.connect(plain());
        let syn = t.hear();
        (syn.segment.seq, syn.segment.source_port)
    };
    assert_eq!(open(1), open(1));
    let all: Vec<_> = (1..20).map(open).collect();
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].iter().any(|other| other.0 == one.0), "{all:?}");
    }
    let ports: std::collections::BTreeSet<u16> = all.iter().map(|(_, port)| *port).collect();
    assert!(ports.len() > 15, "{ports:?}");
    assert!(ports.iter().all(|port| *port >= 49_152));
}

// RFC 9293, section 3.4.1, MUST-8: ISN = M + F(local, remote, secret), M counting every 4 microseconds.
#[test]
fn initial_sequence_numbers_of_the_same_pair_follow_a_clock_of_four_microseconds() {
    let open_after = |millis| {
        let mut t = Transcript::new(plain());
        t.wait(millis);
        t.peer("S 0:0 mss 1000");
        t.hear().segment.seq
    };
    let first = open_after(0);
    assert_eq!(open_after(8) - first, 2_000);
    assert_eq!(open_after(1_000) - first, 250_000);
}

#[test]
fn initial_sequence_numbers_cannot_be_computed_from_those_of_another_pair_or_host() {
    let answer = |seed: u8, port: u16| {
        let host = EndpointConfig { seed: [seed; 32], ..EndpointConfig::default() };
        let mut t = Transcript::on(plain(), host, [10, 0, 0, 1].into());
        t.remote.set_port(port);
        t.peer("S 0:0 mss 1000");
        t.hear().segment.seq
    };
    let of_first = |port| answer(1, port) - answer(1, 5000);
    assert_ne!(of_first(5001), 0);
    assert_ne!(answer(2, 5000), answer(1, 5000));
    // Nor is the difference between two pairs the same on two hosts.
    assert_ne!(answer(2, 5001) - answer(2, 5000), of_first(5001));
}

#[test]
fn no_two_connections_share_a_pair_of_addresses_and_ports() {
    let mut t = Transcript::new(plain());
    let mut ports = std::collections::BTreeSet::new();
    for _ in 0..2_000 {
        t.connect(plain());
        assert!(ports.insert(t.hear().segment.source_port));
    }
}

// RFC 4987, section 3.3: half-open connections are limited, and the oldest are evicted.
#[test]
fn more_half_open_connections_than_allowed_cost_the_oldest_their_place() {
    let host = EndpointConfig { max_half_open: 10, ..EndpointConfig::default() };
    let mut t = Transcript::on(plain(), host, [10, 0, 0, 1].into());
    let mut initials = Vec::new();
    for port in 0..11 {
        assert_eq!(t.host.counters().evicted_handshakes, 0, "ten are allowed");
        t.remote.set_port(5000 + port);
        t.peer("S 0:0 mss 1000");
        t.expect("SA 0:0 ack 1");
        initials.push(t.initial);
    }
    // A quarter of ten is two; the eleventh replaces them.
    assert_eq!(t.host.counters().evicted_handshakes, 2);
    assert_eq!(t.host.connection_count(), 9);
    t.remote.set_port(5010);
    t.peer("A 1:1 ack 1");
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    for (port, initial) in initials.into_iter().enumerate().take(10) {
        t.remote.set_port(5000 + port as u16);
        t.initial = initial;
        t.peer("A 1:1 ack 1");
        match port {
            0 | 1 => drop(t.expect("R 1:1")),
            _ => t.expect_nothing(),
        }
    }
}

#[test]
fn established_connections_do_not_count_as_half_open() {
    let host = EndpointConfig { max_half_open: 2, ..EndpointConfig::default() };
    let mut t = Transcript::on(plain(), host, [10, 0, 0, 1].into());
    for port in 0..8 {
        t.remote.set_port(5000 + port);
        t.peer("S 0:0 mss 1000");
        t.expect("SA 0:0 ack 1");
        t.peer("A 1:1 ack 1");
    }
    assert_eq!(t.host.counters().evicted_handshakes, 0);
}

// RFC 6298, section 5.7, and RFC 5681, section 3.1: after a lost SYN the first flight is small and its timer long.
#[test]
fn after_a_lost_syn_one_segment_goes_first_and_its_timeout_is_three_seconds() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.expect_in(1000, "S 0:0");
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000 sackok");
    t.expect("A 1:1 ack 1");
    t.write(5000);
    t.expect("A 1:1001 ack 1");
    t.expect_in(3000, "A 1:1001 ack 1");
}

// The same for a SYN/ACK: the peer's SYN comes again before our timer expires. Measured from the second, the round trip
// of 1.5 s would be 0.6 s, and the timeout shorter than the round trip.
#[test]
fn after_a_syn_that_came_again_one_segment_goes_first_and_its_timeout_is_three_seconds() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.wait(900);
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    t.wait(600);
    t.peer("A 1:1 ack 1");
    t.write(5000);
    t.expect("A 1:1001 ack 1");
    t.expect_in(3000, "A 1:1001 ack 1");
}

#[test]
fn a_syn_that_the_network_duplicates_is_no_sign_of_a_loss() {
    let mut t = Transcript::new(plain());
    for _ in 0..2 {
        t.peer("S 0:0 mss 1000");
        t.expect("SA 0:0 ack 1");
        t.wait(50);
    }
    t.peer("A 1:1 ack 1");
    t.write(11_000);
    t.expect_segments(1, 10, 1);
    t.expect_in(1000, "A 1:1001 ack 1");
}

// RFC 6298, section 3: our SYN went twice, the second time as a SYN/ACK. The peer's may be for either.
#[test]
fn a_simultaneous_open_measures_no_round_trip() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.wait(99);
    t.peer("S 0:0 mss 1000 sackok");
    t.expect("SA 0:0 ack 1");
    t.wait(1);
    t.peer("SA 0:0 ack 1 mss 1000 sackok");
    t.write(11_000);
    t.expect_segments(1, 10, 1);
    t.expect_in(1000, "A 1:1001 ack 1");
}

#[test]
fn after_a_syn_that_was_answered_at_once_the_timeout_follows_the_measured_round_trip() {
    let mut t = Transcript::connected(plain_with(|c| c.tcp.options.sack = false));
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    // SRTT 100 ms, RTTVAR 50 ms: 100 + max(200, 4 * 50).
    t.expect_in(300, "A 1:1001 ack 1");
    assert!(t.now.since(anabranch_policy::time::Instant::ZERO) > Duration::from_millis(400));
}

// A SYN without options is legal (RFC 9293, section 3.1).
#[test]
fn a_syn_without_options_opens_a_connection_without_options() {
    let mut config = plain();
    (config.tcp.options.timestamps, config.tcp.options.window_scaling) = (true, true);
    let mut t = Transcript::new(config);
    t.peer("S 0:0");
    let answer = t.expect("SA 0:0 ack 1");
    let options = answer.segment.options;
    assert_eq!((options.window_scale, options.sack_permitted, options.timestamps), (None, false, None));
    t.peer("A 1:1 ack 1");
    t.write(2000);
    t.expect("A 1:537 ack 1"); // 536 bytes: section 3.7.1, MUST-15
    t.expect("A 537:1073 ack 1");
    t.expect("A 1073:1609 ack 1");
}

// RFC 9293, section 3.9.2.3, MUST-46, MUST-57 and MUST-63.
#[test]
fn nobody_connects_to_or_from_an_address_that_is_not_one_host() {
    for address in ["224.0.0.5", "255.255.255.255", "0.0.0.0"] {
        let address: std::net::IpAddr = address.parse().unwrap();
        let mut t = Transcript::new(plain());
        t.remote.set_ip(address);
        t.peer("S 0:0 mss 1000");
        t.expect_nothing();
        assert!(t.host.connect(t.now, None, t.remote, plain()).is_err());
        let mut t = Transcript::new(plain());
        t.local.set_ip(address);
        t.peer("S 0:0 mss 1000");
        t.peer("A 1:1 ack 1");
        t.expect_nothing();
        assert_eq!(t.host.connection_count(), 0);
    }
}
