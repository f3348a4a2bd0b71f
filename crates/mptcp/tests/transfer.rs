//! Complete transfers between two endpoints: bytes arrive once, in order, unchanged, and connections end.

mod pair;

use anabranch_mptcp::Protocol;
use anabranch_mptcp::{CloseCause, Event};
use anabranch_policy::time::Duration;
use pair::{Fate, Pair, config, pattern};

#[test]
fn plain_tcp_carries_a_megabyte_and_closes() {
    let mut pair = Pair::new(1);
    let plain = || {
        let mut config = config();
        config.multipath = false;
        config
    };
    let id = pair.connect(plain(), plain());
    let data = pattern(1_000_000);
    assert_eq!(pair.write_all(0, id, &data, Duration::from_secs(20)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    assert!(pair.events[1].contains(&Event::EndOfStream(server)));
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.received[1], data);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)));
    pair.run(Duration::from_secs(120));
    assert_eq!(pair.hosts[0].connection_count(), 0);
    assert_eq!(pair.hosts[1].connection_count(), 0);
}

#[test]
fn multipath_uses_both_paths_and_closes() {
    let mut pair = Pair::new(2);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(200));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
    assert_eq!(pair.hosts[1].protocol(server), Some(Protocol::Multipath));
    let data = pattern(3_000_000);
    // Joins wait for the first DSS (RFC 8684, section 3.1).
    let (first, rest) = data.split_at(10_000);
    assert_eq!(pair.write_all(0, id, first, Duration::from_secs(60)), 0);
    pair.run(Duration::from_millis(200));
    assert!(pair.hosts[0].subflow_views(pair.now, id).len() >= 2);
    assert_eq!(pair.write_all(0, id, rest, Duration::from_secs(60)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(2));
    let views = pair.hosts[0].subflow_views(pair.now, id);
    let carried = views.iter().filter(|view| view.counters.bytes_acked > 100_000).count();
    assert!(carried >= 2, "{views:#?}");
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.received[1].len(), data.len());
    assert_eq!(pair.received[1], data);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)));
    pair.run(Duration::from_secs(200));
    assert_eq!(pair.hosts[0].connection_count(), 0);
    assert_eq!(pair.hosts[1].connection_count(), 0);
}

#[test]
fn both_ways_at_once_with_loss_and_checksums() {
    let mut pair = Pair::new(2);
    let mut count = 0;
    pair.judge = Box::new(move |_, _, _| {
        count += 1;
        if count % 37 == 0 { Fate::Drop } else { Fate::Deliver }
    });
    let mut checked = config();
    checked.checksum = true;
    let id = pair.connect(checked, config());
    pair.run(Duration::from_millis(200));
    let server = pair.accepted().unwrap();
    let (up, down) = (pattern(500_000), pattern(400_000));
    assert_eq!(pair.write_all(1, server, &down, Duration::from_secs(60)), 0);
    assert_eq!(pair.write_all(0, id, &up, Duration::from_secs(60)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.received[1], up);
    assert_eq!(pair.received[0], down);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)), "{:?}", pair.events[1]);
}
