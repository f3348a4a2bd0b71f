//! Tests of abandoned data in states that they set up.

use super::side::Side;
use crate::connection::state::Connection;
use crate::connection::tests::{config, connected};
use crate::record::Framing;
use crate::{ConnectionConfig, Policies};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability;
use anabranch_policy::table::{Settings, build};
use anabranch_policy::time::Duration;
use anabranch_wire::Segment;
use anabranch_wire::tcp::Timestamps;
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
