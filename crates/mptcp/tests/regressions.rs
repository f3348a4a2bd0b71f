//! Failures found by random operations (`honest_bytes`), each reduced to a minimal test.

mod pair;

use anabranch_mptcp::Protocol;
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event};
use anabranch_policy::ids::AddressId;
use anabranch_policy::time::Duration;
use anabranch_wire::{Flags, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use pair::{Fate, Pair, config, pattern, policies};

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
    for delay in 10..60 {
        close_during_join(delay);
    }
}

/// Both sides close while a join over a path of `delay` milliseconds is in progress.
fn close_during_join(delay: u64) {
    let mut pair = Pair::new(2);
    pair.delay[1] = Duration::from_millis(delay);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(30));
    let server = pair.accepted().unwrap();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    for (host, id) in [id, server].into_iter().enumerate() {
        let events = &pair.events[host];
        let closed = events.iter().position(|event| *event == Event::Closed(id, CloseCause::Finished)).unwrap();
        let established = |event: &Event| matches!(event, Event::SubflowEstablished(..));
        assert!(!events[closed..].iter().any(established), "delay {delay}, host {host}: {events:?}");
    }
    pair.run(Duration::from_secs(120));
    assert_eq!(pair.hosts.each_ref().map(|host| host.connection_count()), [0, 0]);
}

#[test]
fn a_window_limit_below_one_segment_lets_one_segment_go() {
    for multipath in [false, true] {
        let mut pair = Pair::new(1);
        let mut limited = config();
        limited.multipath = multipath;
        limited.tcp.max_window = Some(1_000);
        let id = pair.connect(limited, config());
        let data = pattern(5_000);
        assert_eq!(pair.write_all(0, id, &data, Duration::from_secs(5)), 0);
        pair.hosts[0].close(pair.now, id).unwrap();
        pair.run(Duration::from_secs(5));
        assert_eq!(pair.received[1], data, "multipath {multipath}");
    }
}

/// Whether a packet carries MP_FAIL.
fn is_failure(packet: &Packet) -> bool {
    packet.segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::Fail { .. }))
}

/// The server has closed its direction when a middlebox changes the client's payload on the only path; the first `lost`
/// MP_FAILs are lost.
fn change_payload_after_the_server_closed(lost: usize) {
    let mut pair = Pair::new(1);
    let mut checked = config();
    checked.checksum = true;
    let id = pair.connect(checked.clone(), checked);
    let data = pattern(20_000);
    assert_eq!(pair.write_all(0, id, &data[..1], Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    let (mut changed, mut failures) = (false, 0);
    pair.judge = Box::new(move |from, _, packet| {
        if from == 0 && !packet.segment.payload.is_empty() && !core::mem::replace(&mut changed, true) {
            let mut other = packet.clone();
            other.segment.payload = Bytes::from(vec![0xee; packet.segment.payload.len()]);
            return Fate::Instead(Box::new(other));
        }
        failures += usize::from(is_failure(packet));
        if is_failure(packet) && failures <= lost { Fate::Drop } else { Fate::Deliver }
    });
    assert_eq!(pair.write_all(0, id, &data[1..], Duration::from_secs(30)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(100));
    assert_eq!(pair.received[1].len(), data.len(), "{:?}", pair.events);
    let tail = data.len() - 2_000;
    assert_eq!(pair.received[1][tail..], data[tail..]);
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events);
    assert!(pair.events[1].contains(&Event::Closed(server, CloseCause::Finished)), "{:?}", pair.events);
}

#[test]
fn a_fallback_after_our_end_does_not_cut_the_peers_stream() {
    change_payload_after_the_server_closed(0);
}

#[test]
fn a_lost_mp_fail_is_sent_again_as_long_as_the_peer_speaks_mptcp() {
    change_payload_after_the_server_closed(2);
}

#[test]
fn a_strangers_segment_during_the_handshake_is_no_reason_to_leave_mptcp() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_millis(15));
    let (_, mut packet) = pair.sent[0][0].clone();
    let (source_port, destination_port) = (packet.segment.source_port, packet.segment.destination_port);
    let flags = Flags::SYN | Flags::ACK;
    let seq = packet.segment.seq + 0x4000_0000;
    packet.segment = Segment { source_port, destination_port, flags, seq, ack: SeqNumber(1), ..Segment::default() };
    pair.inject(1, packet);
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.hosts[0].protocol(id), Some(Protocol::Multipath));
    assert_eq!(pair.hosts[1].protocol(server), Some(Protocol::Multipath));
}

#[test]
fn a_reset_in_last_ack_is_no_good_end_while_data_is_unacknowledged() {
    let mut pair = Pair::new(1);
    let id = pair.connect(plain(), plain());
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    // The server does not read: the client's last bytes cause a reset.
    pair.hosts[1].discard(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.write_all(0, id, b"too late", Duration::from_secs(1)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.run(Duration::from_secs(1));
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::AbortedByPeer)), "{:?}", pair.events[0]);
}

// RFC 8684, section 3.7: a subflow that breaks during operation is reset. Accepting the bytes as plain TCP would
// deliver duplicates, since the unaware peer retransmits at data level.
#[test]
fn options_lost_in_mid_connection_reset_the_subflow_and_no_byte_is_duplicated() {
    let mut pair = Pair::new(1);
    let id = pair.connect(config(), config());
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    assert_eq!(pair.write_all(0, id, b"hello", Duration::from_secs(1)), 0);
    let data = pattern(200_000);
    assert_eq!(pair.write_all(1, server, &data[..1_000], Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    // From here on a middlebox removes all MPTCP options in both directions.
    pair.judge = Box::new(|_, _, packet| {
        let mut other = packet.clone();
        other.segment.options.dss = None;
        other.segment.options.mptcp.clear();
        Fate::Instead(Box::new(other))
    });
    let _ = pair.write_all(1, server, &data[1_000..], Duration::from_secs(10));
    let _ = pair.hosts[1].close(pair.now, server);
    pair.settle();
    pair.run(Duration::from_secs(2_000));
    assert!(data.starts_with(&pair.received[0]), "{} bytes that were not written", pair.received[0].len());
    let failed = |host: usize| {
        let errors = [CloseCause::TimedOut, CloseCause::AbortedByPeer, CloseCause::ProtocolError];
        pair.events[host].iter().any(|event| matches!(event, Event::Closed(_, cause) if errors.contains(cause)))
    };
    assert!(failed(0) && failed(1), "{:?}", pair.events);
}

#[test]
fn first_data_sent_again_at_data_level_has_a_mapping_of_its_own() {
    let mut pair = Pair::new(1);
    let mut impatient = config();
    impatient.tcp.max_timeouts = 2;
    let id = pair.connect(impatient, config());
    let mut dropped = false;
    // The acknowledgement of the first data has no DATA_ACK, as with an IPv6 ADD_ADDR.
    pair.judge = Box::new(move |from, _, packet| {
        let acknowledges = from == 1 && !packet.segment.flags.contains(Flags::SYN);
        if !acknowledges || core::mem::replace(&mut dropped, true) {
            return Fate::Deliver;
        }
        let mut other = packet.clone();
        other.segment.options.dss = None;
        other.segment.options.mptcp = vec![MptcpOption::Priority { backup: false }];
        Fate::Instead(Box::new(other))
    });
    assert_eq!(pair.write_all(0, id, b"hello", Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(10));
    let server = pair.accepted().unwrap();
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.settle();
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.received[1], b"hello");
    assert!(pair.events[0].contains(&Event::Closed(id, CloseCause::Finished)), "{:?}", pair.events);
}

#[test]
fn a_slow_reader_of_a_whole_stream_does_not_spin_when_no_path_is_found() {
    let mut pair = Pair::new(1);
    let mut hasty = config();
    hasty.survive_without_subflows = Duration::ZERO;
    let id = pair.connect(hasty, config());
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    pair.reading[0] = false;
    assert_eq!(pair.write_all(1, server, b"unread", Duration::from_secs(1)), 0);
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(1));
    pair.hosts[0].handle_address_down(pair.now, AddressId(1));
    let due = (0..20).filter(|_| pair.step(pair.now)).count();
    assert!(due < 20, "timers are due again and again");
    pair.read(0, id);
    assert_eq!(pair.received[0], b"unread");
    pair.settle();
    assert_eq!(pair.hosts[0].connection_count(), 0);
}

#[test]
fn an_option_that_closes_other_subflows_leaves_the_rest_of_its_segment_where_it_belongs() {
    let mut pair = Pair::new(3);
    let id = pair.connect(config(), config());
    // Joins to the server's first address get no answer: they stay pending before those to the others.
    pair.judge = Box::new(|_, _, packet| {
        let joins = packet.segment.flags.contains(Flags::SYN) && packet.ip.destination == pair::address(1, 0);
        if joins { Fate::Drop } else { Fate::Deliver }
    });
    assert_eq!(pair.write_all(0, id, b"x", Duration::from_secs(1)), 0);
    pair.run(Duration::from_millis(500));
    let server = pair.accepted().unwrap();
    assert!(pair.hosts[0].subflow_views(pair.now, id).len() > 3);
    // REMOVE_ADDR closes them at once.
    pair.hosts[1].handle_address_down(pair.now, AddressId(1));
    pair.settle();
    pair.run(Duration::from_secs(30));
    let data = pattern(300_000);
    assert_eq!(pair.write_all(0, id, &data, Duration::from_secs(30)), 0);
    pair.hosts[0].close(pair.now, id).unwrap();
    pair.hosts[1].close(pair.now, server).unwrap();
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.received[1][1..], data[..]);
    pair.run(Duration::from_secs(100));
    assert_eq!([pair.hosts[0].connection_count(), pair.hosts[1].connection_count()], [0, 0]);
}

// Found by the fuzz target `drive_pair`: 500 timers at one instant, each reinjecting the same byte on the other silent
// subflow.
#[test]
fn subflows_that_are_all_silent_do_not_pass_the_same_data_to_each_other_without_end() {
    let mut pair = Pair::new(2);
    let mut client = config();
    client.policies = policies("new_reno", "anabranch");
    let id = pair.connect(client, config());
    assert_eq!(pair.write_all(0, id, &pattern(500), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(1));
    pair.judge = Box::new(|_, _, _| Fate::Drop);
    pair.burst_limit = 50;
    assert_eq!(pair.write_all(0, id, b"x", Duration::ZERO), 0);
    let end = pair.now + Duration::from_secs(30);
    let (mut now, mut fired) = (pair.now, 0);
    while pair.step(end) {
        fired = if pair.now > now { 1 } else { fired + 1 };
        now = pair.now;
        assert!(fired < 50, "{fired} timers at {now:?}");
    }
}
