//! The user timeout of a connection, on which RFC 8684 has no section.

use crate::pair::{Fate, PORT, Pair, address, config, pattern};
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Duration;
use anabranch_wire::MptcpOption;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

/// A client with a user timeout of 3 s on two paths, each of which is dead when its cell is set.
fn two_paths() -> (Pair, ConnectionId, [Rc<Cell<bool>>; 2]) {
    two_paths_with(hasty())
}

/// A user timeout of 3 s.
fn hasty() -> ConnectionConfig {
    ConnectionConfig { user_timeout: Some(Duration::from_secs(3)), ..config() }
}

/// A client with these settings on two paths, each of which is dead when its cell is set.
fn two_paths_with(client: ConnectionConfig) -> (Pair, ConnectionId, [Rc<Cell<bool>>; 2]) {
    let mut pair = Pair::new(2);
    let dead = [Rc::new(Cell::new(false)), Rc::new(Cell::new(false))];
    let cells = dead.clone();
    pair.judge = Box::new(move |_, _, packet| {
        let on = |path| [address(0, path), address(1, path)].contains(&packet.ip.source);
        if (0..2).any(|path| on(path) && cells[path].get()) { Fate::Drop } else { Fate::Deliver }
    });
    let id = pair.connect(client, config());
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.write_all(0, id, &pattern(100_000), Duration::from_secs(5)), 0);
    pair.run(Duration::from_secs(1));
    (pair, id, dead)
}

fn closed(pair: &Pair, host: usize) -> Option<CloseCause> {
    pair.events[host].iter().find_map(|event| match event {
        Event::Closed(_, cause) => Some(*cause),
        _ => None,
    })
}

#[test]
fn a_subflow_that_fails_does_not_end_a_connection_that_goes_on_on_another() {
    let (mut pair, id, dead) = two_paths();
    dead[0].set(true);
    // Data is always outstanding: the round trip is longer than the pauses.
    for _ in 0..400 {
        assert_eq!(pair.write_all(0, id, &pattern(1_000), Duration::from_secs(5)), 0);
        pair.run(Duration::from_millis(15));
    }
    pair.run(Duration::from_secs(1));
    assert_eq!((closed(&pair, 0), pair.received[1].len()), (None, 500_000));
}

#[test]
fn when_no_path_brings_data_across_the_connection_is_aborted_on_all_of_them() {
    let (mut pair, id, dead) = two_paths();
    set(&dead, true);
    assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::ZERO), 0);
    pair.run(Duration::from_millis(2_999));
    assert_eq!(closed(&pair, 0), None);
    set(&dead, false);
    pair.sent[0].clear();
    pair.run(Duration::from_millis(1));
    assert_eq!(closed(&pair, 0), Some(CloseCause::UserTimeout));
    let ends = |path| {
        let fast = |option: &MptcpOption| matches!(option, MptcpOption::FastClose { .. });
        let on_path = pair.sent[0].iter().filter(|(_, packet)| packet.ip.source == address(0, path));
        on_path.filter(|(_, packet)| packet.segment.options.mptcp.iter().any(fast)).count()
    };
    assert!(ends(0) > 0 && ends(1) > 0);
    pair.run(Duration::from_secs(1));
    assert_eq!(closed(&pair, 1), Some(CloseCause::AbortedByPeer));
}

/// A peer whose application does not read answers each probe, and our application is still told.
#[test]
fn a_peer_that_does_not_read_is_not_waited_for_longer_than_the_user_timeout() {
    let (mut pair, _) = a_peer_that_does_not_read(hasty());
    pair.run(Duration::from_millis(2_900));
    assert_eq!(closed(&pair, 0), None);
    pair.run(Duration::from_millis(1_000));
    assert_eq!(closed(&pair, 0), Some(CloseCause::UserTimeout));
}

/// A client with a peer timeout of 10 s.
fn patient() -> ConnectionConfig {
    ConnectionConfig { peer_timeout: Some(Duration::from_secs(10)), ..config() }
}

fn set(dead: &[Rc<Cell<bool>>; 2], whether: bool) {
    dead.iter().for_each(|path| path.set(whether));
}

/// A client with these settings, and a peer that does not read, on a path that is dead while the cell is set; data is
/// queued.
fn a_peer_that_does_not_read(client: ConnectionConfig) -> (Pair, Rc<Cell<bool>>) {
    let mut pair = Pair::new(1);
    let dead = Rc::new(Cell::new(false));
    let cell = Rc::clone(&dead);
    pair.judge = Box::new(move |_, _, _| if cell.get() { Fate::Drop } else { Fate::Deliver });
    pair.reading[1] = false;
    pair.hosts[1].listen(PORT, config()).unwrap();
    let id = pair.hosts[0].connect(pair.now, None, SocketAddr::new(address(1, 0), PORT), client).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.write_all(0, id, &pattern(1_000_000), Duration::ZERO), 0);
    (pair, dead)
}

#[test]
fn data_that_nobody_answers_on_any_path_ends_the_connection_after_the_peer_timeout() {
    let (mut pair, id, dead) = two_paths_with(patient());
    set(&dead, true);
    assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::ZERO), 0);
    // It starts at the first retransmission timeout, at least 200 ms.
    pair.run(Duration::from_millis(10_199));
    assert_eq!(closed(&pair, 0), None);
    pair.run(Duration::from_millis(1_000));
    assert_eq!(closed(&pair, 0), Some(CloseCause::TimedOut));
}

#[test]
fn a_peer_that_is_heard_of_again_within_the_peer_timeout_has_all_of_it_anew() {
    let (mut pair, id, dead) = two_paths_with(patient());
    for _ in 0..4 {
        set(&dead, true);
        assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::ZERO), 0);
        pair.run(Duration::from_secs(5));
        set(&dead, false);
        // The second silence includes the expiry of the first one's timer.
        pair.run(Duration::from_secs(3));
    }
    assert_eq!((closed(&pair, 0), pair.received[1].len()), (None, 180_000));
}

#[test]
fn a_peer_that_does_not_read_but_answers_outlives_the_peer_timeout() {
    let (mut pair, _) = a_peer_that_does_not_read(patient());
    pair.run(Duration::from_secs(300));
    assert_eq!(closed(&pair, 0), None);
}

#[test]
fn a_peer_that_neither_reads_nor_answers_is_given_up_after_the_peer_timeout() {
    let (mut pair, dead) = a_peer_that_does_not_read(patient());
    pair.run(Duration::from_secs(100));
    dead.set(true);
    // By now window probes are a minute apart.
    pair.run(Duration::from_secs(71));
    assert_eq!(closed(&pair, 0), Some(CloseCause::TimedOut));
}

/// After a suspension all timers are due at once, and packets received meanwhile are read after them.
#[test]
fn a_host_that_was_suspended_asks_once_more() {
    let (mut pair, id, dead) = two_paths_with(patient());
    set(&dead, true);
    assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::ZERO), 0);
    pair.run(Duration::from_secs(2));
    pair.now += Duration::from_secs(3_600);
    set(&dead, false);
    pair.run(Duration::from_secs(120));
    assert_eq!((closed(&pair, 0), pair.received[1].len()), (None, 120_000));
}
