//! Connections that fell back, and what is known of them.

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
