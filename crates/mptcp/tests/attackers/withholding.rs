//! Silent peers, and peers that never send a DATA_ACK (RFC 8684, section 3.3.6; RFC 9293, section 3.8.3).

use crate::pair::{Fate, Pair, config, pattern, policies};
use crate::peer::{Peer, capable};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::{CloseCause, Event};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::CapableKeys;
use anabranch_wire::tcp::TcpOptions;
use anabranch_wire::{Flags, Packet};

// Neither retries of the path manager nor unsent data keep a connection whose peer is gone: it ends 60 seconds after
// its last subflow was abandoned.
#[test]
fn a_peer_that_vanishes_ends_the_connection_though_the_path_manager_goes_on_trying() {
    for manager in ["full_mesh", "same_subnet", "anabranch"] {
        let mut pair = Pair::with_path_managers(2, [manager, manager]);
        let id = pair.connect(config(), config());
        assert_eq!(pair.write_all(0, id, &pattern(50_000), Duration::from_secs(1)), 0);
        pair.run(Duration::from_secs(1));
        pair.keep = false;
        pair.judge = Box::new(|_, _, _| Fate::Drop);
        let _ = pair.write_all(0, id, &pattern(50_000), Duration::ZERO);
        let mut abandoned = None;
        let end = pair.now + Duration::from_secs(3600);
        while pair.now < end && pair.hosts[0].connection_count() > 0 {
            pair.run(Duration::from_secs(1));
            let established = pair.hosts[0].subflow_views(pair.now, id).iter().any(|view| view.cwnd > 0);
            if !established {
                abandoned.get_or_insert(pair.now);
            }
        }
        assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::TimedOut)), "{manager}");
        let waited = pair.now.since(abandoned.expect("all subflows were abandoned")).as_secs_f64();
        assert!((59.0..=62.0).contains(&waited), "{manager}: {waited} s");
        assert_eq!(pair.hosts[0].connection_count(), 0);
    }
}

// The same with any outstanding data and scheduler: fifteen timeouts that double from 200 ms to 120 s, and the
// reinjections requested by the path manager, four per second for 10 s and then one per second.
#[test]
fn one_segment_to_a_peer_that_vanished_is_not_repeated_for_ever() {
    for scheduler in ["anabranch", "lowest_rtt", "linux", "redundant"] {
        for (length, paths) in [(100, 1), (100, 2), (5_000, 1), (5_000, 2)] {
            let mut pair = Pair::with_path_managers(paths, ["anabranch", "anabranch"]);
            let mut ours = config();
            ours.policies = policies("new_reno", scheduler);
            let id = pair.connect(ours, config());
            assert_eq!(pair.write_all(0, id, &pattern(1_000), Duration::from_secs(1)), 0);
            pair.run(Duration::from_secs(5));
            pair.sent[0].clear();
            pair.judge = Box::new(|_, _, _| Fate::Drop);
            let vanished = pair.now;
            assert_eq!(pair.write_all(0, id, &pattern(length), Duration::ZERO), 0);
            pair.run(Duration::from_secs(3600));
            assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::TimedOut)), "{scheduler} {length} {paths}");
            let sent = pair.sent[0].len();
            let span = pair.sent[0].last().expect("it was sent").0.since(vanished).as_secs_f64();
            // A full mesh of subflows, with timeouts and duplicates of other subflows' data.
            let most = (1.2 * span + 200.0) * (paths * paths) as f64;
            assert!((sent as f64) < most, "{scheduler} {length} {paths}: {sent} in {span} s");
        }
    }
}

// A peer that sends MPTCP options after we have fallen back, and then nothing: our FIN waits one minute for a
// confirmation, and is then sent.
#[test]
fn a_fin_does_not_wait_for_ever_for_a_peer_that_has_not_heard_of_the_fallback() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    peer.send(0, Flags::ACK, TcpOptions::default(), b"hello"); // plain, by what the peer says
    assert_eq!(peer.protocol(), Protocol::Tcp);
    let dss = Some(peer.map(5, 6, b"!", false));
    peer.send(0, Flags::ACK | Flags::FIN, TcpOptions { dss, ..TcpOptions::default() }, b"!");
    peer.take();
    let id = peer.id();
    peer.host.discard(peer.now, id).unwrap();
    peer.settle();
    peer.run(Duration::from_secs(59));
    let fin = |packet: &Packet| packet.segment.flags.contains(Flags::FIN);
    assert!(!peer.take().iter().any(fin));
    peer.run(Duration::from_secs(2));
    assert!(peer.take().iter().any(fin));
    peer.run(Duration::from_secs(3600));
    assert_eq!(peer.host.connection_count(), 0);
}

// RFC 8684, appendix D, M_FIN-WAIT-2: a peer that acknowledges our DATA_FIN and never sends its own keeps a connection
// that the application has abandoned for 60 s, as in plain TCP.
#[test]
fn a_peer_that_never_ends_its_stream_holds_an_abandoned_connection_for_60_seconds() {
    for discard_first in [true, false] {
        let mut peer = Peer::connected(config());
        peer.send_data(0, 0, b"hello");
        peer.join(1);
        let id = peer.id();
        if discard_first {
            peer.host.discard(peer.now, id).unwrap();
            peer.settle();
            peer.acknowledge(0, 1);
        } else {
            peer.close();
            peer.acknowledge(0, 1);
            peer.run(Duration::from_secs(3600)); // who may still read waits
            peer.host.discard(peer.now, id).unwrap();
            peer.settle();
        }
        peer.take();
        for _ in 0..59 {
            peer.run(Duration::from_secs(1));
            peer.acknowledge(1, 1);
        }
        assert_eq!((peer.host.connection_count(), peer.take().len()), (1, 0));
        peer.run(Duration::from_secs(2));
        assert_eq!(peer.host.connection_count(), 0);
        let resets = peer.take();
        assert_eq!(resets.iter().filter(|packet| packet.segment.flags.contains(Flags::RST)).count(), 2);
        assert!(peer.events.contains(&Event::Closed(id, CloseCause::TimedOut)));
    }
}

/// A peer that acknowledges on subflows, but never at data level, for `span`. Returns when the connection ended, and
/// the most segments in any minute after the first two. A length of 0 is only the end of the stream.
fn never_acknowledged_at_data_level(length: usize, span: Duration) -> (Option<Instant>, usize) {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    let id = peer.id();
    let taken = peer.host.write(peer.now, id, pattern(length).into()).unwrap();
    assert_eq!(taken as u64, (length as u64).min(config().send_buffer));
    peer.settle();
    if length == 0 {
        peer.close();
    }
    let end = peer.now + span;
    let (mut minute, mut most) = (0, 0);
    let mut next_minute = peer.now + Duration::from_secs(60);
    while peer.now < end && peer.host.connection_count() > 0 {
        let said = peer.take();
        minute += said.len();
        for packet in said {
            if !packet.segment.payload.is_empty() || packet.segment.flags.contains(Flags::FIN) {
                peer.acknowledge(0, 0);
            }
        }
        peer.run(Duration::from_millis(100));
        if peer.now >= next_minute {
            // The first timeouts are short.
            most = if peer.now.as_nanos() > 120_000_000_000 { most.max(minute) } else { 0 };
            minute = 0;
            next_minute = peer.now + Duration::from_secs(60);
        }
        // No written data is lost, and no more is accepted.
        if let Some(room) = peer.host.room(id) {
            assert_eq!(room, config().send_buffer - taken as u64);
        }
    }
    let ended = peer.events.iter().any(|event| matches!(event, Event::Closed(_, CloseCause::TimedOut)));
    (ended.then_some(peer.now), most)
}

// This has no end, as with a peer that keeps its window closed: both are alive. The cost is the peer's window of 65,535
// bytes in 130 segments of 508, after 2, 4, 8 up to 128 timeouts of 200 ms: every 25.6 s.
#[test]
fn data_that_is_never_acknowledged_at_data_level_costs_a_window_in_26_seconds_and_no_memory() {
    let (ended, most) = never_acknowledged_at_data_level(8_000_000, Duration::from_secs(3600));
    assert_eq!(ended, None);
    // Three times in a minute that starts with one of them.
    assert!((260..=3 * 131).contains(&most), "{most} segments in a minute");
}

#[test]
fn an_end_that_is_never_acknowledged_at_data_level_is_abandoned() {
    let (ended, _) = never_acknowledged_at_data_level(0, Duration::from_secs(4 * 3600));
    assert!(ended.is_some(), "it goes on for ever");
}
