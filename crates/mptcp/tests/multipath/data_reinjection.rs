//! Reinjection by the data level on another subflow, if configured: [`ConnectionConfig::data_reinjection`].

use super::orders::Orders;
use super::silence::{First, THREE, on_second, two_paths_with};
use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{BufferSize, CloseCause, ConnectionConfig, Event};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::PathAction;
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::Duration;
use std::cell::Cell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(25);

/// Two paths with 10 kB outstanding on the first, which is dead; the scheduler would reinject after three silent round
/// trips.
fn outstanding_on_a_dead_path(
    change: impl FnOnce(&mut ConnectionConfig),
    scheduler: First,
) -> (Pair, ConnectionId, Rc<Cell<bool>>, Orders) {
    let (mut pair, id, dead, orders) = two_paths_with(DELAY, scheduler, change);
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
    dead.set(true);
    pair.hosts[0].write(pair.now, id, pattern(10_000).into()).unwrap();
    pair.settle();
    (pair, id, dead, orders)
}

fn never(config: &mut ConnectionConfig) {
    config.data_reinjection = Some(Reinjection::Never);
}

#[test]
fn what_is_never_reinjected_waits_for_its_subflow_however_long() {
    let (mut pair, id, dead, _) = outstanding_on_a_dead_path(never, THREE);
    let before = pair.sent[0].len();
    pair.run(Duration::from_secs(30));
    assert!(on_second(&pair).is_empty() && pair.received[1].is_empty());
    // Timeouts double, so that there are few.
    assert!(pair.sent[0].len() - before < 20, "{}", pair.sent[0].len() - before);
    dead.set(false);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.received[1], pattern(10_000));
    assert!(on_second(&pair).is_empty());
    let stats = pair.hosts[0].stats(id).unwrap();
    assert_eq!((stats.bytes_reinjected, stats.bytes_duplicated), (0, 0));
}

#[test]
fn a_scheduler_may_ask_for_that_itself() {
    let scheduler = First { reinjection: Reinjection::Never, ..THREE };
    let (mut pair, ..) = outstanding_on_a_dead_path(|_| {}, scheduler);
    pair.run(Duration::from_secs(30));
    assert!(on_second(&pair).is_empty());
}

#[test]
fn a_suspended_subflow_hands_over_what_it_has_though_nothing_else_would() {
    let (mut pair, id, _, orders) = outstanding_on_a_dead_path(never, THREE);
    pair.run(Duration::from_secs(1));
    assert!(pair.received[1].is_empty());
    orders.give(&mut pair, 0, PathAction::Suspend { connection: id, subflow: SubflowId(0) });
    pair.run(Duration::from_millis(200));
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn what_was_handed_over_by_a_suspended_subflow_is_not_lost_with_the_second_one() {
    let (mut pair, id, dead, orders) = outstanding_on_a_dead_path(never, THREE);
    let second = Rc::new(Cell::new(true));
    let (first, other) = (Rc::clone(&dead), Rc::clone(&second));
    pair.judge = Box::new(move |_, _, packet| {
        let on_first = [packet.ip.source, packet.ip.destination].contains(&crate::pair::address(0, 0));
        if (on_first && first.get()) || (!on_first && other.get()) { Fate::Drop } else { Fate::Deliver }
    });
    orders.give(&mut pair, 0, PathAction::Suspend { connection: id, subflow: SubflowId(0) });
    pair.run(Duration::from_secs(2));
    assert!(pair.received[1].is_empty());
    // The first is back, and used again; the second, which has the data now, is suspended.
    dead.set(false);
    orders.give(&mut pair, 0, PathAction::Resume { connection: id, subflow: SubflowId(0) });
    orders.give(&mut pair, 0, PathAction::Suspend { connection: id, subflow: SubflowId(1) });
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn outstanding_data_of_an_abandoned_subflow_is_reinjected() {
    let change = |config: &mut ConnectionConfig| {
        never(config);
        config.tcp.max_timeouts = 2;
    };
    let (mut pair, ..) = outstanding_on_a_dead_path(change, THREE);
    // At least 200 ms, twice, and four times that: it is abandoned when the timer expires for the third time.
    pair.run(Duration::from_millis(1_000));
    assert!(pair.received[1].is_empty());
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn the_end_of_the_stream_is_told_and_confirmed() {
    let (mut pair, id, dead, _) = outstanding_on_a_dead_path(never, THREE);
    pair.hosts[0].close(pair.now, id).unwrap();
    let server = pair.accepted().unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(5));
    dead.set(false);
    pair.run(Duration::from_secs(200));
    assert_eq!(pair.received[1], pattern(10_000));
    for events in &pair.events {
        assert!(events.iter().any(|event| matches!(event, Event::Closed(_, CloseCause::Finished))), "{events:?}");
    }
}

#[test]
fn at_the_connections_timeout_means_neither_at_a_subflows_nor_at_silence() {
    let change = |config: &mut ConnectionConfig| {
        config.data_reinjection = Some(Reinjection::OnConnectionTimeout);
        // So that the timeout occurs at its nominal time.
        config.tcp.tail_loss_probe = false;
    };
    let (mut pair, id, ..) = outstanding_on_a_dead_path(change, THREE);
    let start = pair.now;
    let rto = pair.hosts[0].subflow_views(pair.now, id)[0].rto;
    pair.run(rto + Duration::from_millis(50));
    assert!(pair.hosts[0].stats(id).unwrap().timeouts > 0 && on_second(&pair).is_empty());
    pair.run(Duration::from_secs(5));
    let (at, _) = on_second(&pair)[0];
    // The connection's timer is twice the longest of the subflows'.
    assert!(at >= start + rto + rto && at < start + rto * 3, "{at:?} after {start:?}, {rto:?}");
    assert_eq!(pair.received[1], pattern(10_000));
}

#[test]
fn at_a_subflows_timeout_wins_over_a_scheduler_that_would_wait() {
    let change = |config: &mut ConnectionConfig| config.data_reinjection = Some(Reinjection::OnSubflowTimeout);
    let scheduler = First { silence: None, reinjection: Reinjection::OnConnectionTimeout, ..THREE };
    let (mut pair, id, ..) = outstanding_on_a_dead_path(change, scheduler);
    let start = pair.now;
    let rto = pair.hosts[0].subflow_views(pair.now, id)[0].rto;
    pair.run(Duration::from_secs(5));
    let (at, _) = on_second(&pair)[0];
    assert!(at < start + rto + rto, "{at:?} after {start:?}, {rto:?}");
}

/// Bytes reinjected over another path, in a transfer whose slow path loses one packet in ten.
fn sent_again(data_reinjection: Option<Reinjection>) -> u64 {
    let mut pair = Pair::new(2);
    pair.delay = vec![Duration::from_millis(5), Duration::from_millis(40)];
    let mut client = ConnectionConfig { data_reinjection, ..config() };
    // Otherwise the first path would carry everything.
    client.tcp.max_window = Some(10_000);
    let server = ConnectionConfig { receive_buffer: BufferSize::Fixed(30_000), buffers_per_subflow: false, ..config() };
    let id = pair.connect(client, server);
    pair.run(Duration::from_millis(500));
    let mut count = 0;
    pair.judge = Box::new(move |from, _, packet| {
        let counts = from == 0 && packet.ip.source == crate::pair::address(0, 1) && !packet.segment.payload.is_empty();
        count += u32::from(counts);
        if counts && count % 10 == 5 { Fate::Drop } else { Fate::Deliver }
    });
    assert_eq!(pair.write_all(0, id, &pattern(600_000), Duration::from_secs(60)), 0);
    pair.run(Duration::from_secs(10));
    assert!(pair.received[1] == pattern(600_000), "{}", pair.received[1].len());
    let stats = pair.hosts[0].stats(id).unwrap();
    stats.bytes_reinjected + stats.bytes_duplicated
}

#[test]
fn a_hole_that_shuts_the_window_is_left_to_its_subflow_too() {
    assert!(sent_again(None) > 0, "nothing to leave out");
    assert_eq!(sent_again(Some(Reinjection::OnConnectionTimeout)), 0);
    assert_eq!(sent_again(Some(Reinjection::Never)), 0);
}
