//! A sender whose subflows are idle because of the peer's windows, while others wait for missing data (RFC 8684,
//! section 3.3.5).

use super::peer::{Peer, capable};
use crate::pair::{address, config, pattern};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::scheduler::{Chunk, ChunkKind, Decision, Scheduler};
use anabranch_policy::time::Duration;
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::Packet;
use anabranch_wire::mptcp::CapableKeys;
use std::sync::Arc;

fn is_on(packet: &Packet, path: usize) -> bool {
    packet.ip.source == address(1, path)
}

/// Whether a packet is a probe: an empty segment one below the next number of its flow.
fn asks(peer: &Peer, packet: &Packet, flow: usize) -> bool {
    let next = peer.flows[flow].host_initial + peer.flows[flow].ack;
    is_on(packet, flow) && packet.segment.payload.is_empty() && packet.segment.seq == next - 1
}

/// Two flows, the second with this window from its SYN on; 200 kB wait.
fn with_second_window(window: u16) -> Peer {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.window = window;
    peer.join(1);
    peer.acknowledge(0, 0);
    peer.acknowledge(1, 0);
    peer.write(&pattern(200_000));
    peer
}

#[test]
fn a_subflow_that_only_its_own_window_keeps_idle_is_asked_for_it_while_another_carries() {
    let mut peer = with_second_window(500);
    let mut arrived = 0;
    let mut asked = false;
    for _ in 0..40 {
        peer.run(Duration::from_millis(10));
        let said = peer.take();
        asked |= said.iter().any(|packet| asks(&peer, packet, 1));
        assert!(!said.iter().any(|packet| is_on(packet, 1) && !packet.segment.payload.is_empty()));
        // One segment at a time: the first flow is never idle.
        arrived = (arrived + 1_000).min(u64::from(peer.flows[0].ack) - 1);
        let all = std::mem::replace(&mut peer.flows[0].ack, 1 + arrived as u32);
        peer.acknowledge(0, arrived);
        peer.flows[0].ack = all;
    }
    assert!(asked);
    peer.flows[1].window = 65_535;
    peer.acknowledge(1, arrived);
    assert!(peer.take().iter().any(|packet| is_on(packet, 1) && !packet.segment.payload.is_empty()));
}

#[test]
fn a_subflow_whose_window_holds_a_segment_is_not_asked() {
    let mut peer = with_second_window(65_535);
    for _ in 0..5 {
        peer.run(Duration::from_millis(10));
        let said = peer.take();
        assert!(!said.iter().any(|packet| asks(&peer, packet, 1)));
    }
}

#[test]
fn a_closed_window_is_asked_for_though_another_subflow_has_something_outstanding_that_it_does_not_answer() {
    let mut peer = with_second_window(65_535);
    // The first path is dead from here on; the second carries all that the window allows, and then the window is
    // closed.
    peer.flows[0].window = 0;
    peer.flows[1].window = 0;
    let mut arrived = 0_u64;
    let mut asked = 0;
    let first = peer.remote.initial_data_seq.wrapping_add(1);
    let mut held = vec![false; 200_000];
    for _ in 0..500 {
        peer.run(Duration::from_millis(10));
        peer.flows[0].ack = 1;
        let said = peer.take();
        asked += said.iter().filter(|packet| asks(&peer, packet, 1)).count();
        for packet in said.iter().filter(|packet| is_on(packet, 1)) {
            let Some(mapping) = super::peer::mapping(packet) else { continue };
            let anabranch_wire::mptcp::DataSequence::Long(number) = mapping.data_seq else { continue };
            let start = number.wrapping_sub(first) as usize;
            held[start..start + packet.segment.payload.len()].fill(true);
        }
        arrived = held.iter().take_while(|byte| **byte).count() as u64;
        if said.iter().any(|packet| is_on(packet, 1)) {
            peer.acknowledge(1, arrived);
        }
    }
    assert_eq!(arrived, 65_535, "all that the first window let go");
    assert!(asked >= 2, "{asked}");
}

#[test]
fn a_window_that_shuts_anew_is_asked_for_anew_after_one_timeout() {
    let mut peer = Peer::new(config());
    peer.window = 1_000;
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.acknowledge(0, 0);
    peer.write(&pattern(200_000));
    // Everything within the window has arrived, and it is closed.
    let shut = |peer: &mut Peer| {
        let arrived = u64::from(peer.flows[0].ack) - 1;
        peer.flows[0].window = 0;
        peer.acknowledge(0, arrived);
        peer.take();
        arrived
    };
    // Each probe is answered; they become rare.
    for _ in 0..200 {
        shut(&mut peer);
        peer.run(Duration::from_secs(1));
    }
    let arrived = shut(&mut peer);
    peer.flows[0].window = 1_000;
    peer.acknowledge(0, arrived);
    peer.run(Duration::from_millis(300));
    assert!(shut(&mut peer) > arrived);
    peer.run(Duration::from_secs(2));
    // A probe, or data that still fits into the window (RFC 9293, section 3.8.6.2.1).
    assert!(!peer.take().is_empty(), "the next question is far away");
}

/// New data goes to each in turn. The third's last data is never reinjected; that of others is reinjected on the third.
struct Picky(usize);

impl Scheduler for Picky {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.0 += 1;
        match (chunk.kind, chunk.last_sent_on) {
            (ChunkKind::New, _) => Decision::Send(subflows[self.0 % subflows.len()].id),
            (ChunkKind::Reinjection, Some(SubflowId(2))) => Decision::Wait(None),
            (ChunkKind::Reinjection, _) => Decision::Send(SubflowId(2)),
        }
    }
}

#[test]
fn data_that_no_subflow_takes_does_not_hold_back_reinjections() {
    let mut config = config();
    config.policies.scheduler = Arc::new(|| Box::new(Picky(0)));
    let mut peer = Peer::new(config);
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.join(1);
    peer.join(2);
    for flow in 0..3 {
        peer.acknowledge(flow, 0);
    }
    peer.write(&pattern(9_000));
    let connection = peer.id();
    let orders = peer.orders.clone();
    for action in [
        PathAction::Suspend { connection, subflow: SubflowId(2) },
        PathAction::Resume { connection, subflow: SubflowId(2) },
    ] {
        orders.give_to(&mut peer.host, peer.now, action);
        peer.settle();
    }
    // The third's data is acknowledged there; the first and the second are silent.
    peer.acknowledge(2, 0);
    peer.take();
    for _ in 0..60 {
        peer.run(Duration::from_millis(10));
        peer.flows[0].ack = 1;
        peer.flows[1].ack = 1;
        peer.acknowledge(2, 0);
    }
    let again = peer.take();
    let length: usize = again.iter().filter(|p| is_on(p, 2)).map(|p| p.segment.payload.len()).sum();
    assert!(length >= 5_000, "{length} bytes of what the first two carried");
}
