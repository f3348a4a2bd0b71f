//! A subflow that is silent although data is outstanding, and duplicates of its data on another; RFC 8684 has no
//! section on it.

use super::orders::{Orders, create, obedient_pair};
use super::peer::{Peer, capable, mapping};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::scheduler::{Answer, Chunk, Decision, Needs, Reinjection, Scheduler, Work, again, unsent};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use anabranch_wire::mptcp::{CapableKeys, DataSequence, Dss};
use anabranch_wire::tcp::{SackBlock, SackBlocks, TcpOptions};
use anabranch_wire::{Flags, Packet};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The first subflow that answers carries everything.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub silence: Option<f32>,
    /// Data of the first is duplicated on the second.
    pub shares: bool,
    pub segments_per_mapping: u32,
    pub reinjection: Reinjection,
}

impl Scheduler for First {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let can_take = |s: &&SubflowView| s.usable() && !s.stale && Some(s.id) != chunk.last_sent_on;
        let first = subflows.iter().find(can_take).filter(|s| s.queued < u64::from(self.segments_per_mapping * s.mss));
        first.map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        let first = again(self, connection, work, subflows).or_else(|| unsent(self, connection, work, subflows));
        if let Some(answer) = first {
            return answer;
        }
        let mut after = None;
        while self.shares
            && work.is_shut()
            && let Some(held) = work.outstanding(after)
        {
            let other = subflows.iter().find(|s| s.id != held.sender && s.usable() && s.has_room());
            if let Some(other) = other {
                return Answer::Copy(held, other.id);
            }
            after = Some(held.data_seq);
        }
        Answer::Wait
    }
    fn needs(&self) -> Needs {
        Needs {
            outstanding: self.shares,
            silence: self.silence,
            segments_per_mapping: self.segments_per_mapping,
            reinjection: self.reinjection,
            ..Needs::default()
        }
    }
}

/// Two paths with this delay in each direction; the first has carried data, and dies when the cell is set.
fn two_paths(delay: Duration, scheduler: First) -> (Pair, ConnectionId, Rc<Cell<bool>>, Orders) {
    two_paths_with(delay, scheduler, |_| {})
}

/// The same with other settings of the client.
pub(super) fn two_paths_with(
    delay: Duration,
    scheduler: First,
    change: impl FnOnce(&mut ConnectionConfig),
) -> (Pair, ConnectionId, Rc<Cell<bool>>, Orders) {
    let (mut pair, [orders, _]) = obedient_pair(2);
    pair.delay = vec![delay; 2];
    let mut client = config();
    client.policies.scheduler = Arc::new(move || Box::new(scheduler));
    client.tcp.nagle = false;
    client.tcp.pacing = scheduler.segments_per_mapping > 1;
    change(&mut client);
    let id = pair.connect(client, config());
    pair.run(Duration::from_millis(200));
    for round in 0..20 {
        assert_eq!(pair.write_all(0, id, &pattern(4_000), Duration::from_secs(1)), 0);
        pair.run(Duration::from_millis(300));
        if round == 0 {
            orders.give(&mut pair, 0, create(id, 2, 0, false));
        }
    }
    assert!(scheduler.shares || on_second(&pair).is_empty());
    pair.received[1].clear();
    let dead = Rc::new(Cell::new(false));
    let inner = Rc::clone(&dead);
    pair.judge = Box::new(move |_, _, packet| {
        let first = [packet.ip.source, packet.ip.destination].contains(&address(0, 0));
        if inner.get() && first { Fate::Drop } else { Fate::Deliver }
    });
    (pair, id, dead, orders)
}

/// When the client sent data from its second address, and how many bytes.
pub(super) fn on_second(pair: &Pair) -> Vec<(Instant, usize)> {
    let sent = pair.sent[0].iter().filter(|(_, packet)| packet.ip.source == address(0, 1));
    let sent = sent.map(|(at, packet)| (*at, packet.segment.payload.len()));
    sent.filter(|(_, length)| *length > 0).collect()
}

pub(super) const THREE: First =
    First { silence: Some(3.0), shares: false, segments_per_mapping: 1, reinjection: Reinjection::OnSubflowTimeout };

#[test]
fn what_a_silent_subflow_holds_is_sent_once_on_another_after_three_smoothed_round_trips() {
    let (mut pair, id, dead, _) = two_paths(Duration::from_millis(25), THREE);
    dead.set(true);
    let smoothed = pair.hosts[0].subflow_views(pair.now, id)[0].smoothed_rtt;
    let start = pair.now;
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(smoothed * 3 - Duration::from_nanos(1));
    assert!(on_second(&pair).is_empty() && !pair.hosts[0].subflow_views(pair.now, id)[0].stale);
    pair.run(Duration::from_nanos(1));
    assert!(pair.hosts[0].subflow_views(pair.now, id)[0].stale);
    let moved = on_second(&pair);
    assert!(moved.iter().all(|(at, _)| *at == start + smoothed * 3), "{moved:?}");
    assert_eq!(moved.iter().map(|(_, length)| length).sum::<usize>(), 10_000);
    // Neither the tail loss probe nor a timeout reinjects it there again.
    pair.run(Duration::from_secs(10));
    assert_eq!(on_second(&pair).len(), moved.len());
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn a_subflow_that_is_heard_of_again_is_not_stale_and_gets_new_data() {
    let (mut pair, id, dead, _) = two_paths(Duration::from_millis(25), THREE);
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(300));
    let before = on_second(&pair).len();
    dead.set(false);
    // The retransmission timer probes.
    pair.run(Duration::from_secs(3));
    assert!(!pair.hosts[0].subflow_views(pair.now, id)[0].stale);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert_eq!((on_second(&pair).len(), pair.received[1].len()), (before, 20_000));
}

#[test]
fn the_delayed_acknowledgement_of_a_single_segment_is_no_silence_on_a_path_of_5_ms() {
    let (mut pair, id, ..) = two_paths(Duration::from_micros(2_500), THREE);
    for _ in 0..50 {
        // One segment is acknowledged after 40 ms and 5: nine round trips.
        pair.hosts[0].write(pair.now, id, pattern(1_000).into()).unwrap();
        pair.settle();
        pair.run(Duration::from_millis(200));
    }
    assert!(on_second(&pair).is_empty());
    assert_eq!(pair.received[1].len(), 50_000);
}

#[test]
fn who_does_not_ask_for_it_waits_for_the_timeout() {
    let (mut pair, id, dead, _) = two_paths(Duration::from_millis(25), First { silence: None, ..THREE });
    dead.set(true);
    let rto = pair.hosts[0].subflow_views(pair.now, id)[0].rto;
    assert!(rto >= Duration::from_millis(200));
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(rto - Duration::from_millis(1));
    assert!(on_second(&pair).is_empty());
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn a_segment_without_a_mapping_is_shared_whole_though_it_is_longer_than_one_with() {
    let (mut pair, id, dead, _) =
        two_paths(Duration::from_millis(10), First { silence: None, shares: true, segments_per_mapping: 8, ..THREE });
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(12_000).into()).unwrap();
    pair.settle();
    // Before any timeout, which is at least 200 ms, everything has arrived on the second path.
    pair.run(Duration::from_millis(190));
    assert!(pair.received[1] == pattern(12_000), "{}", pair.received[1].len());
}

#[test]
fn the_probe_of_a_dead_subflow_takes_no_new_data_with_it() {
    let (mut pair, id, dead, orders) = two_paths(Duration::from_millis(25), THREE);
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(300));
    assert!(pair.hosts[0].subflow_views(pair.now, id)[0].stale);
    for round in 1..=10 {
        orders.give(&mut pair, 0, PathAction::Probe { connection: id, subflow: SubflowId(0) });
        pair.hosts[0].write(pair.now, id, pattern(1_000).into()).unwrap();
        pair.settle();
        pair.run(Duration::from_millis(26));
        assert_eq!(pair.received[1].len(), 10_000 + round * 1_000);
        pair.run(Duration::from_millis(74));
    }
}

#[test]
fn however_often_a_dead_subflow_is_probed_no_more_than_a_segment_is_in_flight_there() {
    let (mut pair, id, dead, orders) = two_paths(Duration::from_millis(25), THREE);
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(1));
    for _ in 0..12 {
        orders.give(&mut pair, 0, PathAction::Probe { connection: id, subflow: SubflowId(0) });
        // The other always has data in flight: probes find data to duplicate.
        pair.hosts[0].write(pair.now, id, pattern(1_000).into()).unwrap();
        pair.settle();
        pair.run(Duration::from_millis(20));
        let first = &pair.hosts[0].subflow_views(pair.now, id)[0];
        assert!(first.stale && first.in_flight <= u64::from(first.mss), "{first:?}");
    }
}

#[test]
fn an_acknowledgement_that_was_lost_with_the_path_does_not_make_the_round_trip_longer() {
    let (mut pair, id, dead, _) = two_paths(Duration::from_millis(25), THREE);
    let before = pair.hosts[0].subflow_views(pair.now, id)[0].smoothed_rtt;
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    // The data arrives; its acknowledgement does not.
    pair.run(Duration::from_millis(25) - Duration::from_nanos(1));
    dead.set(true);
    pair.run(Duration::from_secs(3));
    dead.set(false);
    pair.run(Duration::from_secs(10));
    let first = &pair.hosts[0].subflow_views(pair.now, id)[0];
    assert_eq!((first.stale, first.in_flight), (false, 0));
    assert!(first.smoothed_rtt < before + Duration::from_millis(10), "{:?}, {before:?}", first.smoothed_rtt);
}

#[test]
fn what_the_peer_says_by_itself_when_the_path_is_back_does_not_make_the_round_trip_longer() {
    let (mut pair, id, dead, orders) = two_paths(Duration::from_millis(25), THREE);
    let before = pair.hosts[0].subflow_views(pair.now, id)[0].smoothed_rtt;
    pair.hosts[0].write(pair.now, id, pattern(1_000).into()).unwrap();
    pair.settle();
    // It arrives; its acknowledgement does not, nor anything sent later.
    pair.run(Duration::from_millis(25) - Duration::from_nanos(1));
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(5_000).into()).unwrap();
    for _ in 0..16 {
        orders.give(&mut pair, 0, PathAction::Probe { connection: id, subflow: SubflowId(0) });
        pair.hosts[0].write(pair.now, id, pattern(1_000).into()).unwrap();
        pair.settle();
        pair.run(Duration::from_millis(250));
    }
    dead.set(false);
    pair.hosts[1].write(pair.now, ConnectionId(0), pattern(1_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(600));
    let first = &pair.hosts[0].subflow_views(pair.now, id)[0];
    assert_eq!((first.stale, first.in_flight), (false, 0));
    assert!(first.smoothed_rtt < before + Duration::from_millis(10), "{:?}, {before:?}", first.smoothed_rtt);
}

#[test]
fn what_lies_behind_a_hole_of_a_dead_subflow_is_reinjected_all_at_once() {
    for (silence, reinjection) in [
        (None, Reinjection::OnSubflowTimeout),
        (Some(3.0), Reinjection::OnSubflowTimeout),
        (None, Reinjection::OnConnectionTimeout),
    ] {
        let scheduler = First { silence, reinjection, ..THREE };
        let mut config = config();
        config.policies.scheduler = Arc::new(move || Box::new(scheduler));
        let mut peer = Peer::new(config);
        peer.stamps = Some(TcpOptions { sack_permitted: true, ..TcpOptions::default() });
        peer.open(vec![capable(CapableKeys::None)]);
        peer.acknowledge_keys();
        peer.join(1);
        peer.acknowledge(0, 0);
        peer.acknowledge(1, 0);
        peer.take();
        peer.write(&pattern(10_000));
        let [hole, .., last] = data_from(&mut peer, 0)[..] else { panic!("all goes on the first subflow") };
        // Like Linux, the peer passes a subflow's data to the data level only in order.
        let initial = peer.flows[0].host_initial;
        peer.flows[0].ack = 1;
        let mut sack = SackBlocks::new();
        sack.push(SackBlock { start: initial + 1 + hole.1, end: initial + 1 + last.1 });
        let dss = Dss { data_ack: Some(peer.data_ack(0)), ..Dss::default() };
        peer.send(0, Flags::ACK, TcpOptions { dss: Some(dss), sack, ..TcpOptions::default() }, &[]);
        // From here on the first path loses everything.
        let mut arrived = [false; 10_000];
        let in_order = |arrived: &[bool]| arrived.iter().take_while(|byte| **byte).count();
        for _ in 0..200 {
            peer.run(Duration::from_millis(10));
            peer.flows[0].ack = 1;
            for (start, end) in data_from(&mut peer, 1) {
                arrived[start as usize..end as usize].fill(true);
            }
            peer.acknowledge(1, in_order(&arrived) as u64);
        }
        assert_eq!(in_order(&arrived), 10_000, "{silence:?}, {reinjection:?}");
    }
}

/// The first subflow that is not silent, or else the first.
struct Anywhere;

impl Scheduler for Anywhere {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let able = subflows.iter().filter(|s| s.usable() && s.has_room() && Some(s.id) != chunk.last_sent_on);
        able.min_by_key(|s| s.stale).map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
    fn needs(&self) -> Needs {
        Needs { silence: Some(3.0), ..Needs::default() }
    }
}

#[test]
fn what_two_silent_subflows_hold_does_not_go_from_one_to_the_other_without_end() {
    let (mut pair, id, ..) = two_paths_with(Duration::from_millis(25), THREE, |client| {
        client.policies.scheduler = Arc::new(|| Box::new(Anywhere));
    });
    pair.judge = Box::new(|_, _, _| Fate::Drop);
    let before = pair.sent[0].len();
    pair.hosts[0].write(pair.now, id, pattern(1).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(800));
    // Each is silent after 150 ms, the second from 300 ms on. The first, silent for 300 ms, gets the byte again after
    // that time, and the second, at 600 ms, for another 450 ms. It is sent four times, plus at most a tail loss probe
    // and the timeouts of 250 and 500 ms on each.
    let sent = pair.sent[0][before..].iter().filter(|(_, packet)| !packet.segment.payload.is_empty()).count();
    assert!((4..=10).contains(&sent), "{sent}");
}

/// Queues all new data on the first subflow, and reinjects on the second.
struct Heap;

impl Scheduler for Heap {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, _: &[SubflowView]) -> Decision {
        Decision::Send(SubflowId(u32::from(chunk.last_sent_on.is_some())))
    }
    fn needs(&self) -> Needs {
        Needs { reinjection: Reinjection::OnConnectionTimeout, ..Needs::default() }
    }
}

#[test]
fn unsent_data_of_a_dead_subflow_is_reinjected_with_what_was_sent() {
    let mut config = config();
    config.policies.scheduler = Arc::new(|| Box::new(Heap));
    let mut peer = Peer::new(config);
    peer.open(vec![capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer.join(1);
    peer.acknowledge(0, 0);
    peer.acknowledge(1, 0);
    peer.take();
    peer.write(&pattern(60_000));
    let sent: u32 = data_from(&mut peer, 0).iter().map(|(start, end)| end - start).sum();
    assert!(sent < 20_000, "{sent} bytes in the first window");
    let mut arrived = [false; 60_000];
    let in_order = |arrived: &[bool]| arrived.iter().take_while(|byte| **byte).count();
    for _ in 0..200 {
        peer.run(Duration::from_millis(10));
        peer.flows[0].ack = 1;
        for (start, end) in data_from(&mut peer, 1) {
            arrived[start as usize..end as usize].fill(true);
        }
        peer.acknowledge(1, in_order(&arrived) as u64);
    }
    assert_eq!(in_order(&arrived), 60_000);
}

/// The ranges of the stream that the endpoint sent on a path since the last call.
fn data_from(peer: &mut Peer, path: usize) -> Vec<(u32, u32)> {
    let first = peer.remote.initial_data_seq.wrapping_add(1) as u32;
    let sent = peer.take().into_iter().filter(|packet| packet.ip.source == address(1, path));
    let range = |packet: Packet| {
        let start = match mapping(&packet)?.data_seq {
            DataSequence::Long(number) => number as u32,
            DataSequence::Short(number) => number,
        };
        let start = start.wrapping_sub(first);
        Some((start, start + packet.segment.payload.len() as u32))
    };
    sent.filter_map(range).collect()
}

/// Waits for the first subflow, whatever others could carry.
struct Loyal;

impl Scheduler for Loyal {
    fn schedule(&mut self, _: &ConnectionView, _: &Chunk, subflows: &[SubflowView]) -> Decision {
        let first = subflows.first().filter(|subflow| subflow.has_room());
        first.map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
}

#[test]
fn an_idle_subflow_that_did_not_hear_of_the_open_window_is_asked() {
    let mut pair = Pair::new(2);
    pair.reading[1] = false;
    let mut client = config();
    client.policies.scheduler = Arc::new(|| Box::new(Loyal));
    let server = ConnectionConfig { receive_buffer: BufferSize::Fixed(6_000), buffers_per_subflow: false, ..config() };
    let id = pair.connect(client, server);
    pair.run(Duration::from_millis(200));
    let data = pattern(20_000);
    assert_eq!(pair.write_all(0, id, &data, Duration::ZERO), 0);
    pair.run(Duration::from_millis(300));
    // The reader makes room; the first path loses the window update.
    let deaf = Rc::new(Cell::new(true));
    let hears = Rc::clone(&deaf);
    pair.judge = Box::new(move |from, _, packet| {
        let first = packet.ip.destination == address(0, 0);
        if from == 1 && first && hears.get() { Fate::Drop } else { Fate::Deliver }
    });
    pair.reading[1] = true;
    let server = pair.accepted().unwrap();
    pair.read(1, server);
    pair.settle();
    pair.run(Duration::from_millis(30));
    deaf.set(false);
    pair.run(Duration::from_secs(20));
    assert!(pair.received[1] == data, "{} bytes", pair.received[1].len());
}
