//! Operations of an application besides reading and writing: ports, policies, and hints for schedulers.

mod pair;

use anabranch_mptcp::{ConnectionConfig, Event, OperationError, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration;
use anabranch_wire::Flags;
use pair::{PORT, Pair, address, config, pattern};
use std::net::SocketAddr;

#[test]
fn a_port_is_listened_on_once_and_refuses_newcomers_when_it_is_given_up_and_nobody_else() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.hosts[1].listen(PORT, config()), Err(OperationError::PortInUse));
    pair.hosts[1].listen(PORT + 1, config()).unwrap();
    pair.hosts[1].unlisten(PORT);
    let remote = |port| SocketAddr::new(address(1, 0), port);
    let refused = pair.hosts[0].connect(pair.now, None, remote(PORT), config()).unwrap();
    let taken = pair.hosts[0].connect(pair.now, None, remote(PORT + 1), config()).unwrap();
    assert_eq!(
        (pair.hosts[0].remote(refused), pair.hosts[0].remote(taken)),
        (Some(remote(PORT)), Some(remote(PORT + 1)))
    );
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert_eq!((pair.hosts[0].remote(refused), pair.hosts[0].remote(taken)), (None, Some(remote(PORT + 1))));
    assert!(pair.events[0].iter().any(|event| matches!(event, Event::Closed(closed, _) if *closed == refused)));
    let resets = pair.sent[1].iter().filter(|(_, packet)| packet.segment.flags.contains(Flags::RST));
    assert_eq!((resets.count(), pair.hosts[1].counters().unknown, pair.hosts[0].counters().unknown), (1, 1, 0));
    // The existing connection continues.
    assert_eq!(pair.write_all(0, id, &pattern(10_000), Duration::from_secs(5)), 0);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[1], pattern(10_000));
    pair.hosts[1].listen(PORT, config()).unwrap();
}

#[test]
fn who_listens_on_port_0_takes_what_comes_to_ports_without_a_listener() {
    let mut pair = Pair::new(1);
    pair.connect(config(), config());
    pair.run(Duration::from_secs(1));
    pair.hosts[1].listen(0, config()).unwrap();
    let remote = |port| SocketAddr::new(address(1, 0), port);
    for port in [PORT, PORT + 1] {
        pair.hosts[0].connect(pair.now, None, remote(port), config()).unwrap();
    }
    pair.settle();
    pair.run(Duration::from_secs(1));
    let accepted = pair.events[1].iter().filter_map(|event| match event {
        Event::Accepted { port, .. } => Some(*port),
        _ => None,
    });
    assert_eq!(accepted.collect::<Vec<_>>(), [PORT, PORT, PORT + 1]);
    // No more of them when it is given up.
    pair.hosts[1].unlisten(0);
    let refused = pair.hosts[0].connect(pair.now, None, remote(PORT + 1), config()).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.hosts[0].remote(refused), None);
}

#[test]
fn policies_are_those_of_the_combination_or_its_error() {
    let mut combination = Combination::default();
    combination.apply("congestion=cubic scheduler=round_robin").unwrap();
    let policies = Policies::of(&combination).unwrap();
    assert_eq!(((policies.scheduler)().needs().outstanding, format!("{policies:?}")), (false, "Policies".to_owned()));
    let mut pair = Pair::new(2);
    let with_policies = ConnectionConfig::new(policies);
    let id = pair.connect(with_policies, config());
    // Subflows are opened once the peer has acknowledged data, which confirms MPTCP.
    assert_eq!(pair.write_all(0, id, &[0; 1], Duration::from_secs(5)), 0);
    pair.run(Duration::from_secs(1));
    // In turn: of 24 segments each of four subflows, from two addresses to two, carries 6.
    let sent =
        |pair: &Pair| pair.hosts[0].subflow_views(pair.now, id).iter().map(|one| one.counters.bytes_sent).collect();
    let before: Vec<u64> = sent(&pair);
    let mss = u64::from(pair.hosts[0].subflow_views(pair.now, id)[0].mss);
    assert_eq!(pair.write_all(0, id, &pattern(24 * mss as usize), Duration::from_secs(5)), 0);
    pair.run(Duration::from_secs(1));
    let carried: Vec<u64> = sent(&pair).iter().zip(before).map(|(now, before)| now - before).collect();
    assert_eq!(carried, [6 * mss; 4]);
    combination.apply("scheduler.no_such_setting=1").unwrap();
    assert!(Policies::of(&combination).is_err());
}

#[test]
fn a_priority_lies_between_1_and_6_and_policies_see_it() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    for (asked, seen) in [(3, 3), (0, 1), (200, 6)] {
        pair.hosts[0].set_priority(id, asked).unwrap();
        assert_eq!(pair.hosts[0].connection_view(pair.now, id).unwrap().priority, seen);
    }
    pair.hosts[0].abort(pair.now, id).unwrap();
    pair.settle();
    assert_eq!(pair.hosts[0].set_priority(id, 1), Err(OperationError::NoConnection));
}

#[test]
fn what_is_left_to_play_counts_down_until_it_is_told_anew() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    let left = |pair: &Pair| pair.hosts[0].connection_view(pair.now, id).unwrap().play_out_left;
    assert_eq!(left(&pair), None);
    pair.hosts[0].set_play_out_left(pair.now, id, Some(Duration::from_millis(300))).unwrap();
    assert_eq!(left(&pair), Some(Duration::from_millis(300)));
    pair.run(Duration::from_millis(100));
    assert_eq!(left(&pair), Some(Duration::from_millis(200)));
    pair.run(Duration::from_secs(1));
    assert_eq!(left(&pair), Some(Duration::ZERO));
    pair.hosts[0].set_play_out_left(pair.now, id, None).unwrap();
    assert_eq!(left(&pair), None);
}
