//! A restarted host has lost its connections, and resets them.

use crate::pair::{Fate, PORT, Pair, address, config, pattern};
use anabranch_mptcp::{CloseCause, Endpoint, EndpointConfig, Event};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::path_manager;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Flags, MptcpOption};

const KEEPALIVE: Duration = Duration::from_secs(20);

/// A client with an idle connection over two paths, whose server has restarted.
fn restarted() -> (Pair, ConnectionId) {
    let mut pair = Pair::new(2);
    let mut config = config();
    config.tcp.keepalive = Some(KEEPALIVE);
    let id = pair.connect(config.clone(), config.clone());
    assert_eq!(pair.write_all(0, id, &pattern(10_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    assert!(pair.hosts[0].subflow_reports(id).len() >= 2);
    let manager = table::build(path_manager::TABLE, "full_mesh", &Settings::new()).unwrap();
    pair.hosts[1] = Endpoint::new(EndpointConfig { seed: [9; 32], ..EndpointConfig::default() }, manager);
    for path in 0..2 {
        pair.hosts[1].handle_address_up(pair.now, AddressId(1 + path as u8), address(1, path));
    }
    pair.hosts[1].listen(PORT, config).unwrap();
    (pair, id)
}

/// When the client is told of the end, and how.
fn end(pair: &mut Pair, limit: Duration) -> Option<(Instant, CloseCause)> {
    let until = pair.now + limit;
    while pair.step(until) {
        let ends = pair.events[0].iter().find_map(|event| match event {
            Event::Closed(_, cause) => Some(*cause),
            _ => None,
        });
        if let Some(cause) = ends {
            return Some((pair.now, cause));
        }
    }
    None
}

#[test]
fn after_one_keepalive_a_client_knows_that_its_server_restarted() {
    let (mut pair, _) = restarted();
    let began = pair.now;
    let (at, cause) = end(&mut pair, Duration::from_secs(300)).expect("it ends");
    assert_eq!(cause, CloseCause::AbortedByPeer);
    assert!(at.since(began) <= KEEPALIVE + Duration::from_secs(1), "after {:?}", at.since(began));
}

#[test]
fn what_a_restarted_host_answers_to_a_join_says_that_it_does_not_know_the_connection() {
    let (mut pair, _) = restarted();
    end(&mut pair, Duration::from_secs(300));
    let refusals = pair.sent[1].iter().filter(|(_, packet)| {
        packet.segment.flags.contains(Flags::RST | Flags::ACK)
            && packet.segment.options.mptcp.iter().any(|o| matches!(o, MptcpOption::TcpReset { reason: 1, .. }))
    });
    assert!(refusals.count() > 0);
}

#[test]
fn a_join_that_is_refused_for_its_token_does_not_end_a_connection_that_has_a_subflow() {
    let mut pair = Pair::new(2);
    pair.judge = Box::new(|_, _, packet| {
        let mut packet = packet.clone();
        for option in &mut packet.segment.options.mptcp {
            if let MptcpOption::JoinSyn { token, .. } = option {
                *token ^= 1;
                return Fate::Instead(Box::new(packet));
            }
        }
        Fate::Deliver
    });
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, &pattern(10_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    let refused = pair.sent[1].iter().filter(|(_, packet)| packet.segment.flags.contains(Flags::RST));
    assert!(refused.count() > 0);
    assert_eq!(pair.write_all(0, id, &pattern(10_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[1].len(), 20_000);
}
