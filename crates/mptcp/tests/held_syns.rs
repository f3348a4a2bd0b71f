//! SYNs for addresses of no local host: they wait until the application has decided on them.

use anabranch_mptcp::{CloseCause, ConnectionConfig, Endpoint, EndpointConfig, Event, OperationError, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Instant;
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// The address of programs.
const PROGRAM: [u8; 4] = [198, 18, 0, 1];
const TARGET: [u8; 4] = [203, 0, 113, 7];

fn host(max_held_syns: usize) -> Endpoint {
    let manager = Combination::default().build_path_manager().expect("the default exists");
    Endpoint::new(EndpointConfig { max_held_syns, ..EndpointConfig::default() }, manager)
}

fn config() -> ConnectionConfig {
    let policies = Policies::of(&Combination::default()).expect("the default exists");
    ConnectionConfig { multipath: false, ..ConnectionConfig::new(policies) }
}

fn segment(port: u16, seq: u32, flags: Flags) -> Segment {
    Segment {
        source_port: port,
        destination_port: 443,
        seq: SeqNumber(seq),
        flags,
        window: 65_535,
        ..Segment::default()
    }
}

fn packet(segment: Segment) -> Packet {
    let (source, destination) = (IpAddr::from(PROGRAM), IpAddr::from(TARGET));
    Packet { ip: IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 }, segment }
}

fn syn(port: u16, seq: u32) -> Packet {
    packet(segment(port, seq, Flags::SYN))
}

/// Target and program, as seen from the target.
fn pair(port: u16) -> (SocketAddr, SocketAddr) {
    (SocketAddr::new(TARGET.into(), 443), SocketAddr::new(PROGRAM.into(), port))
}

fn asked(port: u16) -> Event {
    let (local, remote) = pair(port);
    Event::Asked { local, remote }
}

const NOW: Instant = Instant::ZERO;

#[test]
fn a_syn_for_anybody_waits_without_an_answer_and_the_application_is_asked_once() {
    let mut host = host(8);
    for _ in 0..3 {
        host.handle_packet(NOW, syn(4_000, 77));
    }
    assert_eq!(host.poll_transmit(NOW), None);
    assert_eq!((host.poll_event(), host.poll_event()), (Some(asked(4_000)), None));
    assert_eq!(host.counters().repeated_syns, 2);
}

#[test]
fn one_that_is_accepted_is_answered_as_by_its_target_and_carries_data_both_ways() {
    let mut host = host(8);
    host.handle_packet(NOW, syn(4_000, 77));
    let (local, remote) = pair(4_000);
    let id = host.accept_held(NOW, local, remote, config()).expect("it waits");
    let answer = host.poll_transmit(NOW).expect("SYN/ACK");
    assert_eq!((answer.ip.source, answer.ip.destination), (IpAddr::from(TARGET), IpAddr::from(PROGRAM)));
    assert_eq!((answer.segment.flags, answer.segment.ack), (Flags::SYN | Flags::ACK, SeqNumber(78)));
    let mut third = segment(4_000, 78, Flags::ACK);
    third.ack = answer.segment.seq + 1;
    third.payload = Bytes::from_static(b"hello");
    host.handle_packet(NOW, packet(third));
    assert_eq!(host.read(NOW, id, 100), Some(Bytes::from_static(b"hello")));
    assert_eq!(host.write(NOW, id, Bytes::from_static(b"world")), Ok(5));
    let sent = std::iter::from_fn(|| host.poll_transmit(NOW)).find(|packet| !packet.segment.payload.is_empty());
    assert_eq!(sent.expect("data").segment.payload, Bytes::from_static(b"world"));
    assert_eq!(host.accept_held(NOW, local, remote, config()), Err(OperationError::NoPeer), "it waits no more");
}

#[test]
fn the_application_hears_of_one_that_it_accepted_and_whose_program_was_gone_by_then() {
    let mut host = host(8);
    host.handle_packet(NOW, syn(4_000, 77));
    let (local, remote) = pair(4_000);
    let id = host.accept_held(NOW, local, remote, config()).expect("it waits");
    host.poll_transmit(NOW).expect("SYN/ACK");
    // As the kernel answers a SYN/ACK for a socket that was closed.
    host.handle_packet(NOW, packet(segment(4_000, 78, Flags::RST)));
    let events: Vec<Event> = std::iter::from_fn(|| host.poll_event()).collect();
    assert!(events.contains(&Event::Closed(id, CloseCause::Refused)), "{events:?}");
}

#[test]
fn one_that_is_refused_gets_the_reset_of_a_target_where_nobody_listens() {
    let mut host = host(8);
    host.handle_packet(NOW, syn(4_000, 77));
    let (local, remote) = pair(4_000);
    host.refuse_held(local, remote);
    let answer = host.poll_transmit(NOW).expect("a reset");
    assert_eq!((answer.segment.flags, answer.segment.ack), (Flags::RST | Flags::ACK, SeqNumber(78)));
    assert_eq!(answer.ip.source, IpAddr::from(TARGET));
}

#[test]
fn one_that_is_dropped_is_given_back_and_may_come_again() {
    let mut host = host(8);
    host.handle_packet(NOW, syn(4_000, 77));
    let (local, remote) = pair(4_000);
    assert_eq!(host.drop_held(local, remote), Some(syn(4_000, 77)));
    assert_eq!(host.poll_transmit(NOW), None);
    assert_eq!(host.poll_event(), Some(asked(4_000)));
    host.handle_packet(NOW, syn(4_000, 77));
    assert_eq!(host.poll_event(), Some(asked(4_000)));
}

#[test]
fn a_new_attempt_from_the_same_port_takes_the_place_of_the_old() {
    let mut host = host(8);
    host.handle_packet(NOW, syn(4_000, 77));
    host.handle_packet(NOW, syn(4_000, 9_000));
    let (local, remote) = pair(4_000);
    host.accept_held(NOW, local, remote, config()).expect("it waits");
    assert_eq!(host.poll_transmit(NOW).expect("SYN/ACK").segment.ack, SeqNumber(9_001));
}

#[test]
fn no_more_wait_than_the_limit_and_what_is_over_it_is_counted() {
    let mut host = host(2);
    for port in 4_000..4_005 {
        host.handle_packet(NOW, syn(port, 77));
    }
    assert_eq!(std::iter::from_fn(|| host.poll_event()).count(), 2);
    assert_eq!(host.counters().refused_by_limit, 3);
    assert_eq!(host.poll_transmit(NOW), None);
}

#[test]
fn what_is_no_new_connection_is_refused_at_once() {
    let mut host = host(8);
    let mut join = syn(4_000, 77);
    join.segment.options.mptcp.push(MptcpOption::JoinSyn { backup: false, address_id: 1, token: 7, nonce: 9 });
    for stranger in [packet(segment(4_000, 77, Flags::ACK)), join] {
        host.handle_packet(NOW, stranger);
        assert!(host.poll_transmit(NOW).expect("an answer").segment.flags.contains(Flags::RST));
        assert_eq!(host.poll_event(), None);
    }
}

#[test]
fn without_a_limit_a_host_answers_for_itself_alone() {
    let mut host = host(0);
    host.handle_packet(NOW, syn(4_000, 77));
    assert!(host.poll_transmit(NOW).expect("an answer").segment.flags.contains(Flags::RST));
    assert_eq!(host.poll_event(), None);
}
