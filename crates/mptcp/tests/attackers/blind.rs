//! Attackers that know addresses and ports, but no sequence numbers (RFC 5961).

use crate::pair::{PORT, Pair, address, config, pattern};
use crate::peer::{Peer, SYN_ACK, options};
use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::CloseCause;
use anabranch_policy::time::Duration;
use anabranch_wire::tcp::{TcpOptions, Timestamps};
use anabranch_wire::{Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use std::net::SocketAddr;

/// Never correct, far and near: before, in and after a window of 50,000 bytes.
const GUESSES: [i64; 9] = [-100_000, -1, 2, 1_000, 49_000, 60_000, 1 << 30, (1 << 31) - 1, -(1 << 31)];

/// The peer sends 100 bytes from `next`, and we send 1,000 from `ours`: the result shows that the connection is intact.
fn goes_on(t: &mut Transcript, next: u32, ours: u32, stamp: u32) {
    let end = next + 100;
    t.peer(&format!("A {next}:{end} ack {ours} ts {stamp}/0"));
    t.read(100);
    t.expect_in(40, &format!("A {ours}:{ours} ack {end}"));
    t.write(900);
    t.expect(&format!("A {ours}:{} ack {end}", ours + 900));
    t.peer(&format!("A {end}:{end} ack {} ts {stamp}/0", ours + 900));
    t.expect_nothing();
}

// RFC 5961, sections 3.2, 4.2 and 5.2, with RFC 7323: nine guesses of seven kinds. Timestamps are old, which PAWS
// refuses, or in the future, which PAWS would accept.
#[test]
fn whatever_is_forged_without_the_numbers_the_transfer_goes_on() {
    let stamped = plain_with(|c| c.tcp.options.timestamps = true);
    let mut t = Transcript::accepted_from(stamped, "S 0:0 mss 1000 sackok ts 1000/0");
    let (mut next, mut ours, mut stamp) = (1, 1, 1001);
    for forged in [5, 2_000_000_000] {
        for guess in GUESSES {
            let seq = i64::from(next) + guess;
            let lost = i64::from(ours) + 900_001;
            for kind in [
                format!("R {seq}:{seq} ts {forged}/0"),
                format!("RA {seq}:{seq} ack {lost} ts {forged}/0"),
                format!("S {seq}:{seq} mss 1000 ts {forged}/0"),
                format!("SA {seq}:{seq} ack {lost} mss 1000 ts {forged}/0"),
                format!("A {seq}:{} ack {lost} ts {forged}/0", seq + 100),
                format!("FA {seq}:{seq} ack {lost} ts {forged}/0"),
                format!("A {next}:{} ack {} ts {forged}/0", next + 100, lost + guess),
            ] {
                t.wait(100);
                t.peer(&kind);
                let answers = t.take();
                assert!(answers.len() <= 1, "{kind}: {answers:?}");
                let challenge =
                    |packet: &Packet| packet.segment.flags == Flags::ACK && packet.segment.payload.is_empty();
                assert!(answers.iter().all(challenge), "{kind}: {answers:?}");
                assert_eq!(t.closed(), None, "{kind}");
                t.read(0);
            }
            goes_on(&mut t, next, ours, stamp);
            (next, ours, stamp) = (next + 100, ours + 900, stamp + 1);
        }
    }
}

// RFC 5961, section 7: an attacker could use one answer per forgery against a third host. All kinds together get at
// most ten challenges per second.
#[test]
fn a_mixture_of_forgeries_costs_ten_challenges_a_second_too() {
    let mut t = Transcript::accepted(plain());
    let mut answers = 0;
    for forged in 0_u32..3000 {
        let line = match forged % 6 {
            0 => format!("R {}:{}", 2 + forged, 2 + forged),
            1 => format!("S {forged}:{forged}"),
            2 => "A 1:11 ack 900001".to_owned(),
            3 => "A 1:1 ack -900001".to_owned(),
            4 => format!("A {}:{} ack 1", 60_000 + forged, 60_000 + forged),
            _ => format!("SA {forged}:{forged} ack {forged}"),
        };
        t.peer(&line);
        t.wait(1);
        answers += t.take().len();
    }
    assert_eq!((answers, t.closed()), (30, None));
}

// RFC 9293, section 3.10.7.4, SYN-RECEIVED.
#[test]
fn forgeries_during_a_handshake_do_not_keep_the_client_out() {
    let mut t = Transcript::new(plain());
    t.peer("S 0:0 mss 1000");
    t.expect("SA 0:0 ack 1");
    for forged in
        ["R 5:5", "R 200000:200000", "RA 0:0 ack 1", "FA 900000:900000 ack 77", "A 1:101 ack 900000", "SA 0:0 ack 7"]
    {
        t.peer(forged);
        t.wait(100);
        // The SYN/ACK again, or a reset with the forged number, which the client ignores.
        for answer in t.take() {
            let harmless =
                answer.segment.flags.contains(Flags::SYN) || answer.segment.seq.0 != t.initial.wrapping_add(1);
            assert!(harmless, "{forged}: {answer:?}");
        }
    }
    t.peer("A 1:101 ack 1");
    t.read(100);
    t.expect_in(40, "A 1:1 ack 101");
}

/// A segment from the server of a pair to its client, with all numbers 12345; the client's port must be known.
fn from_server(pair: &Pair, flags: Flags) -> Packet {
    let syn = &pair.sent[0][0].1;
    let ip = IpHeader { source: syn.ip.destination, destination: syn.ip.source, ..syn.ip };
    let segment = Segment {
        source_port: PORT,
        destination_port: syn.segment.source_port,
        seq: SeqNumber(12_345),
        ack: SeqNumber(12_345),
        flags,
        window: 1000,
        ..Segment::default()
    };
    Packet { ip, segment }
}

// RFC 9293, section 3.10.7.3: in SYN-SENT only what acknowledges our SYN counts.
#[test]
fn forgeries_in_syn_sent_do_not_keep_the_server_out() {
    for flags in [Flags::RST, Flags::RST | Flags::ACK, SYN_ACK, Flags::ACK, Flags::FIN | Flags::ACK, Flags::NONE] {
        let mut pair = Pair::new(1);
        let id = pair.connect(config(), config());
        let forged = from_server(&pair, flags);
        pair.inject(0, forged);
        assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::from_secs(5)), 0);
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.received[1], pattern(20_000), "{flags:?}");
    }
}

// A bare SYN is a simultaneous open (RFC 9293, section 3.5); a forged one cannot be distinguished from the peer's. An
// attacker that knows the port during the handshake can make this attempt fail, but no more: the server refuses the
// SYN/ACK to the forged SYN, or the client aborts.
#[test]
fn a_forged_syn_in_syn_sent_costs_the_attempt_and_brings_no_byte() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    let forged = from_server(&pair, Flags::SYN);
    pair.inject(0, forged);
    pair.run(Duration::from_secs(600));
    assert_eq!(pair.received, [Vec::new(), Vec::new()]);
    let ended = pair.events[0].iter().any(|event| {
        matches!(event, anabranch_mptcp::Event::Closed(closed, CloseCause::Refused | CloseCause::TimedOut) if *closed == id)
    });
    assert!(ended, "{:?}", pair.events);
    // Another attempt is unaffected.
    let remote = SocketAddr::new(address(1, 0), PORT);
    let again = pair.hosts[0].connect(pair.now, None, remote, config()).unwrap();
    assert_eq!(pair.write_all(0, again, b"hello", Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[1], b"hello");
}

/// A warm MPTCP connection.
fn warm() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.run(Duration::from_millis(200));
    peer.take();
    peer
}

// RFC 8684, section 3.5: the key is useless without the sequence number, and the number without the key.
#[test]
fn a_fast_close_needs_both_the_right_place_and_the_right_key() {
    for (ahead, key, flags) in [
        (1, 0, Flags::RST),
        (60_000, 0, Flags::RST),
        (1_000_000, 0, Flags::RST),
        (1_000_000, 0, Flags::ACK),
        (0, 1, Flags::ACK),
    ] {
        let mut peer = warm();
        let key = peer.keys.remote.0 ^ key;
        let seq = peer.flows[0].nxt + ahead;
        peer.send_at(0, seq, flags, options(vec![MptcpOption::FastClose { key }]), &[]);
        assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1, "{ahead} {key} {flags:?}");
        peer.send_data(0, 5, b" world");
        assert_eq!(peer.received, b"hello world", "{ahead} {key} {flags:?}");
    }
}

// RFC 5961 applies to each subflow, as to the first.
#[test]
fn a_joined_subflow_is_no_easier_prey() {
    let mut peer = warm();
    let joined = peer.join(1);
    peer.run(Duration::from_millis(200));
    peer.take();
    for (ahead, flags) in [(1, Flags::RST), (1, Flags::SYN), (200, Flags::RST | Flags::ACK), (1 << 30, Flags::SYN)] {
        let seq = peer.flows[joined].nxt + ahead;
        peer.send_at(joined, seq, flags, TcpOptions::default(), &[]);
        peer.run(Duration::from_millis(200));
    }
    assert_eq!(peer.take().len(), 4, "a challenge each");
    peer.send_data(joined, 5, b" world");
    assert_eq!(peer.received, b"hello world");
    // Timestamps were not negotiated, so that one is ignored.
    let stamps = Some(Timestamps { value: 1, echo: 1 });
    peer.send(joined, Flags::ACK, TcpOptions { timestamps: stamps, ..TcpOptions::default() }, &[]);
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 2);
}
