//! A subflow that says nothing although data is outstanding, and data that another subflow sends too; no section of RFC
//! 8684 asks for it.

use super::orders::{create, obedient_pair};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::scheduler::{Chunk, Decision, Outstanding, Scheduler};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The first subflow that answers carries all.
#[derive(Clone, Copy)]
struct First {
    silence: Option<f32>,
    /// What the first has sent goes on the second as well.
    shares: bool,
    train: u32,
}

impl Scheduler for First {
    fn schedule(&mut self, _: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let can_take = |s: &&SubflowView| s.usable() && !s.stale && Some(s.id) != chunk.last_sent_on;
        let first = subflows.iter().find(can_take).filter(|s| s.queued < u64::from(self.train * s.mss));
        first.map_or(Decision::Wait(None), |subflow| Decision::Send(subflow.id))
    }
    fn silence(&self) -> Option<f32> {
        self.silence
    }
    fn duplicates(&self) -> bool {
        self.shares
    }
    fn duplicate(&mut self, _: &ConnectionView, held: &Outstanding, subflows: &[SubflowView]) -> Option<SubflowId> {
        subflows.iter().find(|s| s.id != held.holder && s.usable() && s.has_room()).map(|subflow| subflow.id)
    }
    fn mapping_train(&self) -> u32 {
        self.train
    }
}

/// Two paths with this delay there, and back; the first has carried something, and dies when the cell is set.
fn two_paths(delay: Duration, scheduler: First) -> (Pair, ConnectionId, Rc<Cell<bool>>) {
    let (mut pair, [orders, _]) = obedient_pair(2);
    pair.delay = vec![delay; 2];
    let mut client = config();
    client.policies.scheduler = Arc::new(move || Box::new(scheduler));
    client.tcp.nagle = false;
    client.tcp.pacing = scheduler.train > 1;
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
    (pair, id, dead)
}

/// When the client sent data from its second address, and how many bytes.
fn on_second(pair: &Pair) -> Vec<(Instant, usize)> {
    let sent = pair.sent[0].iter().filter(|(_, packet)| packet.ip.source == address(0, 1));
    let sent = sent.map(|(at, packet)| (*at, packet.segment.payload.len()));
    sent.filter(|(_, length)| *length > 0).collect()
}

const THREE: First = First { silence: Some(3.0), shares: false, train: 1 };

#[test]
fn what_a_silent_subflow_holds_is_sent_once_on_another_after_three_smoothed_round_trips() {
    let (mut pair, id, dead) = two_paths(Duration::from_millis(25), THREE);
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
    // Neither the probe of the tail nor any timeout has it sent there again.
    pair.run(Duration::from_secs(10));
    assert_eq!(on_second(&pair).len(), moved.len());
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn a_subflow_that_is_heard_of_again_is_not_stale_and_gets_new_data() {
    let (mut pair, id, dead) = two_paths(Duration::from_millis(25), THREE);
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(300));
    let before = on_second(&pair).len();
    dead.set(false);
    // The retransmission timer asks.
    pair.run(Duration::from_secs(3));
    assert!(!pair.hosts[0].subflow_views(pair.now, id)[0].stale);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert_eq!((on_second(&pair).len(), pair.received[1].len()), (before, 20_000));
}

#[test]
fn the_delayed_acknowledgement_of_a_single_segment_is_no_silence_on_a_path_of_5_ms() {
    let (mut pair, id, _) = two_paths(Duration::from_micros(2_500), THREE);
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
    let (mut pair, id, dead) = two_paths(Duration::from_millis(25), First { silence: None, ..THREE });
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
    let (mut pair, id, dead) = two_paths(Duration::from_millis(10), First { silence: None, shares: true, train: 8 });
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(12_000).into()).unwrap();
    pair.settle();
    // Before any timeout, 200 ms at least, all has arrived on the second path.
    pair.run(Duration::from_millis(190));
    assert!(pair.received[1] == pattern(12_000), "{}", pair.received[1].len());
}

/// Waits for the first subflow, whatever the others could do.
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
    // The reader makes room; who is told of it on the first path does not hear.
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
