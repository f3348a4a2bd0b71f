//! What random operations (`honest_bytes`) found, each as the smallest story that shows it.

mod pair;

use anabranch_mptcp::connection::Protocol;
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event};
use anabranch_policy::time::Duration;
use pair::{Pair, config, pattern};

fn plain() -> ConnectionConfig {
    let mut config = config();
    config.multipath = false;
    config
}

#[test]
fn a_half_closed_tcp_connection_waits_longer_than_fin_wait_2_for_the_other_half() {
    let mut pair = Pair::new(1);
    let id = pair.connect(plain(), plain());
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(300));
    let data = pattern(10_000);
    assert_eq!(pair.write_all(1, server, &data, Duration::from_secs(1)), 0);
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[0], data);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)), "{:?}", pair.events[1]);
}

#[test]
fn a_client_that_closes_without_data_sends_its_keys_once_and_then_data_fin() {
    let mut pair = Pair::new(1);
    pair.burst_limit = 10;
    let id = pair.connect(config(), config());
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.hosts[1].protocol(server), Some(Protocol::Multipath));
    assert!(pair.events[1].contains(&Event::EndOfStream(server)));
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)), "{:?}", pair.events[1]);
}

#[test]
fn an_aborted_connection_is_forgotten_once_its_reset_is_sent() {
    let mut pair = Pair::new(1);
    let id = pair.connect(plain(), plain());
    pair.run(Duration::from_secs(1));
    pair.hosts[0].abort(pair.now, id).unwrap();
    pair.settle();
    assert_eq!(pair.hosts[0].connection_count(), 0);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.hosts[1].connection_count(), 0);
}

#[test]
fn a_join_that_is_under_way_when_the_stream_ends_comes_to_nothing() {
    let mut pair = Pair::new(2);
    pair.delay[1] = Duration::from_millis(25);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(30));
    let server = pair.accepted().unwrap();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    let closed = pair.events[1].iter().position(|event| *event == Event::Closed(server, CloseCause::Finished)).unwrap();
    let established = |event: &Event| matches!(event, Event::SubflowEstablished(..));
    assert!(!pair.events[1][closed..].iter().any(established), "{:?}", pair.events[1]);
    pair.run(Duration::from_secs(120));
    assert_eq!(pair.hosts.each_ref().map(|host| host.connection_count()), [0, 0]);
}
