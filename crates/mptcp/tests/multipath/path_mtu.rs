//! A path that drops long packets, beside one that does not. RFC 8684 only requires that mappings do not change
//! (section 3.3.1).

use super::silence::{First, two_paths_with};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::Duration;
use anabranch_wire::Packet;
use anabranch_wire::mptcp::{DataSequence, Mapping};
use std::cell::Cell;
use std::rc::Rc;

/// Largest packet on the first path, once it is narrow.
const NARROW: usize = 1400;

/// Makes the first path drop packets longer than the cell's value.
fn narrow(pair: &mut Pair) -> Rc<Cell<usize>> {
    let limit = Rc::new(Cell::new(usize::MAX));
    let cell = limit.clone();
    pair.judge = Box::new(move |_, _, packet| {
        let dropped = on_first(packet) && packet.wire_len() > cell.get();
        if dropped { Fate::Drop } else { Fate::Deliver }
    });
    limit
}

fn on_first(packet: &Packet) -> bool {
    [address(0, 0), address(1, 0)].contains(&packet.ip.source)
}

/// Payload bytes that the client sent on the first path in packets that pass.
fn carried(pair: &Pair) -> usize {
    let ours = pair.sent[0].iter().map(|(_, packet)| packet);
    let passing = ours.filter(|packet| on_first(packet) && packet.wire_len() <= NARROW);
    passing.map(|packet| packet.segment.payload.len()).sum()
}

/// No byte of the first subflow is ever remapped (RFC 8684, section 3.3.1).
fn assert_mappings_stay(pair: &Pair) {
    let mut places = vec![None; 2_000_000];
    let first = |packet: &Packet| (packet.ip.source, packet.ip.destination) == (address(0, 0), address(1, 0));
    for (_, packet) in pair.sent[0].iter().filter(|(_, packet)| first(packet)) {
        let Some(dss) = packet.segment.options.dss else { continue };
        let Some(Mapping { data_seq: DataSequence::Long(number), subflow_seq, length, .. }) = dss.mapping else {
            continue;
        };
        for at in 0..u32::from(length - u16::from(dss.data_fin)) {
            let place = number.wrapping_add(u64::from(at));
            assert_eq!(*places[(subflow_seq + at) as usize].get_or_insert(place), place, "{packet:?}");
        }
    }
}

/// One megabyte, half of it written when the path becomes narrow; the path must be used again.
fn transfer(pair: &mut Pair, id: ConnectionId, before: usize) {
    let limit = narrow(pair);
    let data = pattern(1_000_000);
    let (half, rest) = data.split_at(500_000);
    assert_eq!(pair.write_all(0, id, half, Duration::from_secs(60)), 0);
    limit.set(NARROW);
    assert_eq!(pair.write_all(0, id, &rest[..250_000], Duration::from_secs(60)), 0);
    // Timeouts, and then the search.
    pair.run(Duration::from_secs(10));
    assert_mappings_stay(pair);
    pair.sent[0].clear();
    assert_eq!(pair.write_all(0, id, &rest[250_000..], Duration::from_secs(60)), 0);
    pair.run(Duration::from_secs(10));
    let received = &pair.received[1];
    assert_eq!(received.len(), before + data.len());
    assert!(received[before..] == data[..]);
    assert!(carried(pair) > 50_000, "{} bytes", carried(pair));
    // No endless timeouts: all segments of the first path pass eventually.
    assert_eq!(pair.hosts[0].subflow_views(pair.now, id)[0].in_flight, 0);
}

#[test]
fn a_path_that_swallows_long_packets_is_used_again_with_shorter_ones() {
    for checksum in [false, true] {
        let mut pair = Pair::new(2);
        let config = ConnectionConfig { checksum, ..config() };
        let id = pair.connect(config.clone(), config);
        pair.run(Duration::from_millis(500));
        transfer(&mut pair, id, 0);
        // Probes, too, have mappings.
        let data = pair.sent[0].iter().map(|(_, packet)| packet).filter(|packet| !packet.segment.payload.is_empty());
        let mapped = |packet: &Packet| packet.segment.options.dss.is_some_and(|dss| dss.mapping.is_some());
        let (with, without): (Vec<_>, Vec<_>) = data.partition(|packet| mapped(packet));
        assert!(with.iter().any(|packet| on_first(packet) && packet.wire_len() > NARROW) && without.is_empty());
    }
}

#[test]
fn segments_under_a_shared_mapping_are_cut_and_stay_under_it() {
    let sharing =
        First { silence: None, shares: false, segments_per_mapping: 8, reinjection: Reinjection::OnSubflowTimeout };
    let (mut pair, id, _, _) = two_paths_with(Duration::from_millis(20), sharing, |_| ());
    let before = pair.received[1].len();
    transfer(&mut pair, id, before);
}

/// The first data of a client has MP_CAPABLE; when it is split, its second part has a mapping.
#[test]
fn the_first_data_of_a_connection_may_be_what_is_swallowed() {
    let mut pair = Pair::new(1);
    narrow(&mut pair).set(NARROW);
    let id = pair.connect(config(), config());
    assert_eq!(pair.write_all(0, id, &pattern(20_000), Duration::from_secs(20)), 0);
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.received[1], pattern(20_000));
    assert_eq!(pair.hosts[0].protocol(id), Some(anabranch_mptcp::Protocol::Multipath));
}
