//! Connections that fell back, and those that end.

use super::*;

/// Its first subflow is all that there is.
#[test]
fn a_connection_that_fell_back_has_the_counters_of_its_subflow_and_gets_no_commands() {
    let (script, mut steering) = scripted();
    let mut host = sample(at(0), vec![subflow(1, 40_000)]);
    host.connections[0].fallback = true;
    for (millis, acked) in [(0, 1_000), (100, 5_000)] {
        (host.at, host.connections[0].subflows[0].bytes.acked) = (at(millis), acked);
        steering.handle_sample(&host);
    }
    let known = steering.connections().next().expect("it is followed");
    assert_eq!((known.fallback, known.subflows.len()), (true, 1));
    assert_eq!(known.subflows[0].sample.map(|sample| sample.bytes.acked), Some(5_000));
    // 4,000 bytes in 0.1 s.
    assert_eq!(known.subflows[0].rate, 40_000.0);
    assert!(script.heard().is_empty() && steering.poll_command().is_none());
}

/// The kernel would refuse with ENOTCONN.
#[test]
fn a_connection_that_closes_gets_no_further_paths() {
    for closing in [false, true] {
        let (script, mut steering) = scripted();
        let (id, address) = (AddressId(1), endpoints(2, 0).local.ip());
        steering.handle_event(at(0), &Event::AddressUp { address, interface: Interface(2) });
        let mut host = sample(at(0), vec![subflow(1, 40_000)]);
        steering.handle_sample(&host);
        let connection = ConnectionId(0);
        let remote = AddressId(0);
        script.then(PathAction::CreateSubflow { connection, local: id, remote, backup: false });
        script.then(PathAction::Announce { connection, local: id });
        (host.at, host.connections[0].closing) = (at(100), closing);
        steering.handle_sample(&host);
        let commands = core::iter::from_fn(|| steering.poll_command()).count();
        assert_eq!(commands, if closing { 0 } else { 2 });
        assert_eq!(steering.counters().impossible_actions, 0);
    }
}

#[test]
fn the_demotion_of_a_path_on_which_nothing_is_acknowledged_says_for_how_long() {
    for (millis, silence) in [(300, None), (1_000, Some(Duration::from_millis(900)))] {
        let (script, mut steering) = scripted();
        let (connection, suspended) = (ConnectionId(0), SubflowId(1));
        let mut second = subflow(2, 40_001);
        for (at_millis, acked) in [(0, 1_000), (100, 2_000)] {
            second.bytes.acked = acked;
            steering.handle_sample(&sample(at(at_millis), vec![subflow(1, 40_000), second.clone()]));
        }
        script.then(PathAction::Suspend { connection, subflow: suspended });
        steering.handle_sample(&sample(at(millis), vec![subflow(1, 40_000), second]));
        // The retransmission timeout is 220 ms, and the last sample with progress that of 100 ms.
        assert_eq!(steering.decisions().last().map(|decision| decision.why.silence), Some(silence));
    }
}
