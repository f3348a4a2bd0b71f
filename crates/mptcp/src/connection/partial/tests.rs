//! Tests of abandoned data in states that they set up.

use super::side::Side;
use crate::connection::state::Connection;
use crate::connection::tests::{config, connected};
use crate::record::{Framing, MessageOptions};
use crate::{ConnectionConfig, Policies};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability;
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Segment, SeqNumber};
use bytes::Bytes;
use std::sync::Arc;

fn giving_up(framing: Framing) -> Connection {
    let too_late = || build(reliability::TABLE, "too_late", &Settings::new()).unwrap();
    let policies = Policies { reliability: Arc::new(too_late), ..config().policies };
    connected(ConnectionConfig { framing, policies, ..config() }, 1)
}

#[test]
fn a_withdrawn_range_takes_the_last_byte_of_its_message_along() {
    let withdrawn = |framing: Framing, data_seq: u64| {
        let mut connection = giving_up(framing);
        connection.partial.as_mut().unwrap().notices.peer_withdrawn.push((10, 20));
        connection.withdrawn_by_peer(data_seq)
    };
    assert_eq!(withdrawn(Framing::Messages, 10), Some(21));
    assert_eq!(withdrawn(Framing::Bytes, 19), Some(20), "there are no messages");
    assert_eq!(withdrawn(Framing::Messages, 20), None);
}

#[test]
fn the_sender_has_acted_half_a_round_trip_after_it_heard_of_the_first_duplicate() {
    let acted = |later: u32| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let rule = connection.config.tcp.rto;
        connection.subflows[handle].rtt.sample(Duration::from_millis(100), rule);
        let side = Side { told: Some(40), ..Side::new() };
        connection.partial.as_mut().unwrap().skips.sides.insert(SubflowId(0), side);
        for value in [1_000, 1_000 + later] {
            let mut segment = Segment::default();
            segment.options.timestamps = Some(Timestamps { value, echo: 41 });
            connection.record_stamps(handle, &segment);
        }
        connection.partial.as_ref().unwrap().skips.sides.get(SubflowId(0)).unwrap().acted
    };
    assert_eq!(acted(50), None);
    assert_eq!(acted(51), Some(1_051));
}

#[test]
fn withdrawn_ranges_are_forgotten_when_the_stream_has_passed_them() {
    let left = |next: u64| {
        let mut connection = giving_up(Framing::Messages);
        let notices = &mut connection.partial.as_mut().unwrap().notices;
        notices.peer_knows = true;
        notices.peer_withdrawn.push((10, 20));
        connection.receiver.buffer.insert(Instant::ZERO, 0, Bytes::from(vec![0; next as usize]));
        let data_seq = connection.identity.remote.data_seq(1_000) as u32;
        connection.handle_notice(Instant::ZERO, &Notice::Withdrawn { data_seq, length: 5 }.option());
        connection.partial.as_ref().unwrap().notices.peer_withdrawn.clone()
    };
    assert_eq!(left(19), [(10, 20), (1_000, 1_005)], "a byte of it is to come");
    assert_eq!(left(20), [(1_000, 1_005)]);
}

#[test]
fn nothing_is_abandoned_before_the_peer_has_shown_that_it_understands() {
    let may = |receiver: bool, peer_knows: bool| {
        let mut connection = giving_up(Framing::Messages);
        let partial = connection.partial.as_mut().unwrap();
        assert!(partial.abandons());
        (partial.terms.receiver, partial.notices.peer_knows) = (receiver, peer_knows);
        connection.may_abandon()
    };
    assert!(!may(false, false));
    assert!(may(false, true) && may(true, false), "the peer knows, or need not");
}

#[test]
fn only_segments_that_overlap_what_was_skipped_repeat_it() {
    let repeats = |start: u32, end: u32| {
        let mut connection = giving_up(Framing::Messages);
        let handle = connection.subflows.first_handle().unwrap();
        let skipped = [(SeqNumber(100), SeqNumber(200))].into();
        connection.partial.as_mut().unwrap().skips.sides.insert(SubflowId(0), Side { skipped, ..Side::new() });
        let payload = Bytes::from(vec![0; (end - start) as usize]);
        connection.record_late_on_subflow(handle, &Segment { seq: SeqNumber(start), payload, ..Segment::default() });
        connection.partial.as_ref().unwrap().skips.sides.get(SubflowId(0)).unwrap().repeats
    };
    assert_eq!([repeats(50, 100), repeats(200, 250)], [0, 0]);
    assert_eq!([repeats(50, 101), repeats(199, 250), repeats(120, 150)], [1, 1, 1]);
}

#[test]
fn the_scheduler_is_told_of_missing_data_if_the_peer_has_reported_some() {
    let mut connection = giving_up(Framing::Messages);
    assert!(!connection.has_reports());
    let missing = (SubflowId(0), SeqNumber(10), SeqNumber(20));
    connection.partial.as_mut().unwrap().notices.missing.push(missing);
    assert!(connection.has_reports());
    assert!(!connected(config(), 1).has_reports());
}

#[test]
fn a_message_that_is_taken_out_ends_the_stream_only_if_it_is_the_last_of_it() {
    let ends = |closed: bool, behind: bool| {
        let policy = || build(reliability::TABLE, "mo_pr", &Settings::new().with("lifetime", 200)).unwrap();
        let policies = Policies { reliability: Arc::new(policy), ..config().policies };
        let mut connection = connected(ConnectionConfig { framing: Framing::Messages, policies, ..config() }, 1);
        let handle = connection.subflows.first_handle().unwrap();
        let lasting = MessageOptions { lifetime: Some(Duration::from_secs(60)), ..MessageOptions::default() };
        for options in [Some(MessageOptions::default()), behind.then_some(lasting)].into_iter().flatten() {
            let written = connection.write_message(Instant::ZERO, Bytes::from(vec![0; 5_000]), &options);
            assert!(matches!(written, Ok(Some(_))));
        }
        if closed {
            connection.close(Instant::ZERO);
        }
        // The window of the connection is closed: none of it was assigned.
        connection.judge_written(Instant::ZERO + Duration::from_millis(250));
        assert_eq!(connection.sender.buffer.end() > 0, behind, "the first was taken out");
        connection.subflows[handle].due.data_fin
    };
    assert!(ends(true, false));
    assert!(!ends(false, false), "the application may go on");
    assert!(!ends(true, true), "there is more to send");
}
