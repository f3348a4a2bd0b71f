//! Tests of abandoned data in states that they set up.

use super::side::Side;
use crate::connection::state::Connection;
use crate::connection::tests::{config, connected};
use crate::record::Framing;
use crate::{ConnectionConfig, Policies};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability;
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::Segment;
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::tcp::Timestamps;
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
