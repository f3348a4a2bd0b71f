//! ICMP errors "destination unreachable" (RFC 9293, section 3.9.2.2; RFC 5461; RFC 5927).

use crate::transcript::{Transcript, plain};
use anabranch_mptcp::CloseCause;
use anabranch_wire::{IcmpError, SeqNumber, Trouble, Unreachable};

const ALL: [Unreachable; 3] = [Unreachable::Network, Unreachable::Host, Unreachable::Port];

/// A router's message on the packet that starts at `seq`.
fn unreachable(t: &Transcript, seq: u32, what: Unreachable) -> IcmpError {
    let trouble = Trouble::Unreachable(what);
    IcmpError { source: t.local, destination: t.remote, seq: SeqNumber(t.initial) + seq, trouble }
}

/// Which ICMP errors were counted: refused ones, and those that the connection outlives.
fn counted(t: &Transcript) -> (u64, u64) {
    let counters = t.host.counters();
    (counters.refused_icmp_errors, counters.soft_icmp_errors)
}

// RFC 5461, section 4.1; Linux, tcp_v4_err.
#[test]
fn a_syn_that_does_not_reach_the_peer_ends_the_connection_at_once_and_says_what_is_unreachable() {
    let causes = [CloseCause::NetworkUnreachable, CloseCause::HostUnreachable, CloseCause::Refused];
    for (what, cause) in ALL.into_iter().zip(causes) {
        let mut t = Transcript::connecting(plain());
        t.expect("S 0:0");
        let error = unreachable(&t, 0, what);
        assert!(t.host.handle_icmp_error(t.now, &error));
        t.drain();
        assert_eq!((t.closed(), t.host.connection_count(), counted(&t)), (Some(cause), 0, (0, 0)));
        t.wait(120_000);
        t.expect_nothing();
        // The connection is gone.
        assert!(!t.host.handle_icmp_error(t.now, &error));
        assert_eq!(counted(&t), (1, 0));
    }
}

// RFC 5927, section 4.1. The SYN occupies one number.
#[test]
fn an_error_about_another_number_or_pair_of_addresses_than_the_syns_is_counted_and_ignored() {
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    let elsewhere = "10.0.0.9:4000".parse().unwrap();
    let mut wrong: Vec<IcmpError> =
        [1, 2, 1_000, 1 << 31, u32::MAX].map(|seq| unreachable(&t, seq, Unreachable::Port)).into();
    wrong.push(IcmpError { destination: elsewhere, ..unreachable(&t, 0, Unreachable::Port) });
    wrong.push(IcmpError { source: elsewhere, ..unreachable(&t, 0, Unreachable::Port) });
    for error in &wrong {
        assert!(!t.host.handle_icmp_error(t.now, error), "{error:?}");
        t.drain();
        t.expect_nothing();
    }
    assert_eq!((t.closed(), counted(&t)), (None, (wrong.len() as u64, 0)));
    t.wait(100);
    t.peer("SA 0:0 ack 1 mss 1000");
    t.expect("A 1:1 ack 1");
}

// RFC 9293, MUST-56; RFC 1122, section 4.2.3.9; RFC 5927, section 5.2: not even a hard error.
#[test]
fn a_connection_that_the_peer_has_answered_outlives_every_error() {
    let report = |t: &mut Transcript, seq: u32, soft: bool| {
        for what in ALL {
            let (before, error) = (counted(t), unreachable(t, seq, what));
            assert!(!t.host.handle_icmp_error(t.now, &error));
            t.drain();
            t.expect_nothing();
            let counted = counted(t);
            assert_eq!((counted.0 - before.0, counted.1 - before.1), if soft { (0, 1) } else { (1, 0) });
            assert_eq!((t.closed(), t.host.connection_count()), (None, 1));
        }
    };
    // SYN-RECEIVED, after a passive and a simultaneous open.
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    report(&mut t, 0, true);
    t.peer("A 1:1 ack 1");
    let mut t = Transcript::connecting(plain());
    t.expect("S 0:0");
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    report(&mut t, 0, true);
    t.peer("A 1:1 ack 1");
    // ESTABLISHED, with nothing and with something in flight; then with a FIN.
    report(&mut t, 0, false);
    report(&mut t, 1, false);
    t.write(1000);
    t.expect("A 1:1001 ack 1");
    report(&mut t, 1, true);
    report(&mut t, 1001, false);
    t.close();
    t.expect("FA 1001:1001 ack 1");
    report(&mut t, 1001, true);
    t.peer("A 1:1 ack 1002");
    report(&mut t, 1001, false);
    t.peer("FA 1:1 ack 1002");
    t.expect("A 1002:1002 ack 2");
    assert_eq!(t.closed(), Some(CloseCause::Finished));
}
