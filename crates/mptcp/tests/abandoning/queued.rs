//! Useless data queued on a subflow is not sent.

use crate::bench::{SEGMENT, at};
use crate::pair::{Fate, Pair, config, pattern, policies};
use anabranch_mptcp::{ConnectionConfig, Framing, MessageOptions};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::Duration;
use anabranch_wire::Packet;
use anabranch_wire::mptcp::DataSequence;
use bytes::Bytes;
use std::sync::Arc;

fn paced(scheduler: &'static str, policy: &'static str, settings: Settings) -> ConnectionConfig {
    let mut config =
        ConnectionConfig { framing: Framing::Messages, policies: policies("new_reno", scheduler), ..config() };
    config.tcp.pacing = true;
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, policy, &settings).expect("in the table"));
    config
}

fn path_of(packet: &Packet) -> usize {
    if let std::net::IpAddr::V4(from) = packet.ip.source { usize::from(from.octets()[2]) } else { 0 }
}

fn data_seq(packet: &Packet) -> Option<u64> {
    match packet.segment.options.dss.as_ref()?.mapping?.data_seq {
        DataSequence::Long(number) if !packet.segment.payload.is_empty() => Some(number),
        DataSequence::Long(_) | DataSequence::Short(_) => None,
    }
}

fn write(pair: &mut Pair, id: ConnectionId, length: usize, lifetime: u64) {
    let lifetime = Some(Duration::from_millis(lifetime));
    let options = MessageOptions { importance: 1, play_out: Duration::ZERO, lifetime };
    let taken = pair.hosts[0].write_message(pair.now, id, Bytes::from(pattern(length)), &options);
    assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
    pair.settle();
}

/// Connected, after a first message of 100 bytes; then a path may become slower.
fn connected(paths: usize, config: &ConnectionConfig) -> (Pair, ConnectionId) {
    let mut pair = Pair::with_path_managers(paths, ["same_subnet", "same_subnet"]);
    let id = pair.connect(config.clone(), config.clone());
    pair.run(Duration::from_millis(100));
    write(&mut pair, id, 76, 60_000);
    pair.run(Duration::from_millis(500));
    (pair, id)
}

/// Data segments on a path.
fn segments(pair: &Pair, path: usize) -> usize {
    pair.sent[0].iter().filter(|(_, packet)| path_of(packet) == path && data_seq(packet).is_some()).count()
}

#[test]
fn of_a_message_that_is_withdrawn_while_it_waits_for_its_turn_nothing_more_is_sent_but_its_end() {
    let (mut pair, id) = connected(1, &paced("lowest_rtt", "pr_mptcp", Settings::new()));
    pair.sent[0].clear();
    // Ten segments in half a round trip, one per millisecond.
    write(&mut pair, id, 9 * SEGMENT as usize - 24, 5);
    pair.run(Duration::from_millis(200));
    assert_eq!(pair.hosts[0].stats(id).unwrap().messages_withdrawn, 1);
    let sent = segments(&pair, 0);
    assert!((5..=7).contains(&sent), "{sent} of 9");
    write(&mut pair, id, 1_000, 60_000);
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.hosts[0].stats(id).unwrap().bytes_acked, at(9) + 1_024);
    assert_eq!(pair.hosts[0].subflow_views(pair.now, id)[0].in_flight, 0);
}

#[test]
fn duplicates_queued_on_another_subflow_are_not_sent_when_their_data_is_abandoned() {
    let settings = Settings::new().with("latency", 15).with("reserve", 0);
    let (mut pair, id) = connected(2, &paced("redundant", "spe", settings));
    pair.delay[1] = Duration::from_millis(100);
    for _ in 0..30 {
        write(&mut pair, id, 76, 60_000);
        pair.run(Duration::from_millis(300));
    }
    let acked = pair.hosts[0].stats(id).unwrap().bytes_acked;
    let mut first = None;
    // The third segment is lost with all its retransmissions.
    pair.judge = Box::new(move |from, _, packet| {
        let Some(number) = data_seq(packet).filter(|_| from == 0) else { return Fate::Deliver };
        let offset = number.wrapping_sub(*first.get_or_insert(number));
        if (2 * SEGMENT..3 * SEGMENT).contains(&offset) { Fate::Drop } else { Fate::Deliver }
    });
    pair.sent[0].clear();
    write(&mut pair, id, 9 * SEGMENT as usize - 24, 60_000);
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.hosts[0].stats(id).unwrap().bytes_acked, acked + 9 * SEGMENT);
    // Its window was full of duplicates, one of which is sent every 12 ms. Three had been sent when the DATA_ACK
    // skipped the hole, after 31 ms, up to the seventh segment. When the next may be sent, the eighth is acknowledged;
    // the last is sent since DATA_FIN might accompany it.
    let on_slow = pair.sent[0].iter().filter(|(_, packet)| path_of(packet) == 1);
    let numbers: Vec<u64> = on_slow.filter_map(|(_, packet)| data_seq(packet)).collect();
    let mut copies: Vec<u64> = numbers.iter().map(|number| (number - numbers[0]) / SEGMENT).collect();
    copies.dedup();
    assert_eq!(copies[..5], [0, 1, 2, 6, 8]);
    // After them the subflow's hole is retransmitted.
    assert_eq!(copies[5..], [2]);
}

#[test]
fn what_goes_again_on_another_subflow_ends_where_a_withdrawn_message_begins() {
    let (mut pair, id) = connected(2, &paced("lowest_rtt", "mo_pr", Settings::new()));
    pair.sent[0].clear();
    // The first path is dead from now on. One message is useful for a minute, the next for less than the timeout.
    pair.judge = Box::new(|from, _, packet| if from == 0 && path_of(packet) == 0 { Fate::Drop } else { Fate::Deliver });
    write(&mut pair, id, 376, 60_000);
    write(&mut pair, id, 2_976, 100);
    pair.run(Duration::from_millis(3_000));
    assert_eq!(pair.hosts[0].stats(id).unwrap().messages_withdrawn, 1);
    let range = |packet: &Packet| data_seq(packet).map(|start| (start, packet.segment.payload.len() as u64));
    let first = pair.sent[0].iter().filter_map(|(_, packet)| data_seq(packet)).min().unwrap();
    let again = pair.sent[0].iter().filter(|(_, packet)| path_of(packet) == 1);
    let mut again: Vec<_> = again.filter_map(|(_, packet)| range(packet)).collect();
    again.iter_mut().for_each(|range| range.0 -= first);
    again.dedup();
    // All of the one, and the last byte of the other.
    assert_eq!(again, [(0, 400), (400 + 2_999, 1)]);
    assert_eq!(pair.hosts[0].stats(id).unwrap().bytes_acked, 100 + 400 + 3_000);
}
