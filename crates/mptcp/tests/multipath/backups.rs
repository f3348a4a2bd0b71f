//! Local addresses that are used only while no other works (RFC 8684, sections 3.2 and 3.3.8).

use crate::pair::{Fate, PORT, Pair, address, config, pattern};
use anabranch_mptcp::Protocol;
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;
use anabranch_wire::Flags;
use std::net::{IpAddr, SocketAddr};

const FIRST: AddressId = AddressId(1);
const SECOND: AddressId = AddressId(2);

fn server() -> SocketAddr {
    SocketAddr::new(address(1, 0), PORT)
}

/// Opens a connection from the client's preferred address, and lets it join.
fn connect(pair: &mut Pair) -> ConnectionId {
    if pair.accepted().is_none() {
        pair.hosts[1].listen(PORT, config()).unwrap();
    }
    let id = pair.hosts[0].connect_to_any(pair.now, None, &[server()], config()).unwrap();
    pair.settle();
    pair.run(Duration::from_millis(600));
    id
}

/// The source addresses of the client's SYNs without joins, in order.
fn asked(pair: &Pair) -> Vec<IpAddr> {
    let syns = pair.sent[0].iter().map(|(_, packet)| packet).filter(|packet| {
        let flags = packet.segment.flags;
        let joins =
            packet.segment.options.mptcp.iter().any(|o| matches!(o, anabranch_wire::MptcpOption::JoinSyn { .. }));
        flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !joins
    });
    syns.map(|packet| packet.ip.source).collect()
}

/// The client's subflows from an address.
fn from(pair: &Pair, id: ConnectionId, local: AddressId) -> Vec<SubflowView> {
    pair.hosts[0].subflow_views(pair.now, id).into_iter().filter(|view| view.local_address == local).collect()
}

fn sent(views: &[SubflowView]) -> u64 {
    views.iter().map(|view| view.counters.bytes_sent).sum()
}

#[test]
fn a_connection_begins_on_a_backup_only_while_no_other_address_answers() {
    let mut pair = Pair::new(2);
    pair.hosts[0].handle_address_backup(Instant::ZERO, FIRST, true);
    connect(&mut pair);
    assert_eq!(asked(&pair), [address(0, 1)]);
    let mut pair = Pair::new(2);
    pair.hosts[0].handle_address_backup(Instant::ZERO, FIRST, true);
    let dead = address(0, 1);
    pair.judge = Box::new(move |from, _, packet| {
        let client = if from == 0 { packet.ip.source } else { packet.ip.destination };
        if client == dead { Fate::Drop } else { Fate::Deliver }
    });
    let id = connect(&mut pair);
    assert_eq!(asked(&pair), [address(0, 1), address(0, 0)]);
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
    // A silent address comes last, even after a backup.
    connect(&mut pair);
    assert_eq!(asked(&pair)[2..], [address(0, 0)]);
}

#[test]
fn a_backup_address_carries_nothing_while_another_works_whichever_came_first_and_both_ends_know_it() {
    for backup in [FIRST, SECOND] {
        let other = if backup == FIRST { SECOND } else { FIRST };
        let mut pair = Pair::new(2);
        // Connections from the first address.
        pair.hosts[1].listen(PORT, config()).unwrap();
        pair.hosts[0].handle_address_backup(Instant::ZERO, backup, true);
        let id = pair.hosts[0].connect(pair.now, Some(address(0, 0)), server(), config()).unwrap();
        pair.settle();
        pair.write_all(0, id, b"hello", Duration::ZERO);
        pair.run(Duration::from_millis(600));
        let before = [sent(&from(&pair, id, backup)), sent(&from(&pair, id, other))];
        assert!(!from(&pair, id, backup).is_empty() && !from(&pair, id, other).is_empty(), "{backup:?}");
        assert!(from(&pair, id, backup).iter().all(|view| view.backup), "{backup:?}");
        assert!(from(&pair, id, other).iter().all(|view| !view.backup), "{backup:?}");
        pair.write_all(0, id, &pattern(100_000), Duration::from_secs(5));
        pair.run(Duration::from_secs(1));
        let now = [sent(&from(&pair, id, backup)), sent(&from(&pair, id, other))];
        assert_eq!([now[0] - before[0], now[1] - before[1]], [0, 100_000], "{backup:?}");
        let server = pair.accepted().unwrap();
        let known = pair.hosts[1].subflow_views(pair.now, server).iter().filter(|view| view.backup).count();
        assert_eq!(known, from(&pair, id, backup).len(), "{backup:?}");
        // Without the other address it is used.
        pair.hosts[0].handle_address_down(pair.now, other);
        pair.settle();
        let before = pair.received[1].len();
        pair.write_all(0, id, &pattern(50_000), Duration::from_secs(5));
        pair.run(Duration::from_secs(3));
        assert_eq!(pair.received[1].len() - before, 50_000, "{backup:?}");
    }
}

#[test]
fn an_address_becomes_a_backup_and_ceases_to_be_one_while_connections_are_there() {
    let mut pair = Pair::new(2);
    let id = connect(&mut pair);
    pair.write_all(0, id, b"hello", Duration::ZERO);
    pair.run(Duration::from_millis(600));
    assert!(from(&pair, id, FIRST).iter().all(|view| !view.backup));
    let server = pair.accepted().unwrap();
    for (backup, expected) in [(true, true), (true, true), (false, false)] {
        pair.hosts[0].handle_address_backup(pair.now, FIRST, backup);
        pair.settle();
        pair.run(Duration::from_millis(100));
        assert!(from(&pair, id, FIRST).iter().all(|view| view.backup == expected));
        let peers = pair.hosts[1].subflow_views(pair.now, server);
        assert_eq!(peers.iter().any(|view| view.backup), expected);
    }
}
