//! Middleboxes that change packets: the right bytes arrive, or the connection ends by a reset or its timers (RFC 8684,
//! section 3.7 and appendix C; RFC 6182, section 4.2).

use crate::pair::luck::Luck;
use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{CloseCause, ConnectionConfig, Event};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use anabranch_wire::{Flags, Packet};
use bytes::BytesMut;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

const LENGTH: usize = 300_000;

/// The result of two transfers of [`LENGTH`] bytes, one in each direction, followed by the end.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    arrived: [usize; 2],
    ended: [Option<CloseCause>; 2],
}

const ALL: Outcome = Outcome { arrived: [LENGTH; 2], ended: [Some(CloseCause::Finished); 2] };

/// Transfers over two paths with a middlebox. The received bytes are a prefix of those written, and both connections
/// are gone within four hours.
fn transfer(settings: &ConnectionConfig, judge: impl FnMut(usize, Instant, &Packet) -> Fate + 'static) -> Outcome {
    let mut pair = Pair::new(2);
    pair.keep = false;
    pair.burst_limit = 5_000;
    let id = pair.connect(settings.clone(), settings.clone());
    pair.judge = Box::new(judge);
    let data = [pattern(LENGTH), pattern(LENGTH).into_iter().rev().collect::<Vec<u8>>()];
    pair.write_all(0, id, &data[0], Duration::from_secs(60));
    let end = pair.now + Duration::from_secs(300);
    while pair.accepted().is_none() && pair.step(end) {}
    if let Some(server) = pair.accepted() {
        pair.write_all(1, server, &data[1], Duration::from_secs(600));
        let _ = pair.hosts[1].close(pair.now, server);
    }
    let _ = pair.hosts[0].close(pair.now, id);
    let end = pair.now + Duration::from_secs(4 * 3600);
    while pair.hosts.iter().any(|host| host.connection_count() > 0) && pair.step(end) {}
    for host in [0, 1] {
        let got = &pair.received[host];
        assert!(data[1 - host].starts_with(got), "host {host} read {} bytes that were not written", got.len());
        assert_eq!(pair.hosts[host].connection_count(), 0, "host {host} goes on for ever after {} bytes", got.len());
    }
    let ended = |host: usize| {
        pair.events[host].iter().find_map(|event| match event {
            Event::Closed(_, cause) => Some(*cause),
            _ => None,
        })
    };
    Outcome { arrived: [pair.received[0].len(), pair.received[1].len()], ended: [ended(0), ended(1)] }
}

fn each(mut check: impl FnMut(ConnectionConfig)) {
    for checksum in [false, true] {
        check(ConnectionConfig { checksum, ..config() });
    }
    let mut bare = config();
    (bare.tcp.options.sack, bare.tcp.options.timestamps, bare.tcp.options.window_scaling) = (false, false, false);
    check(bare);
}

fn path(packet: &Packet) -> u8 {
    match packet.ip.destination {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 0,
    }
}

// RFC 8684, section 3.3.1: mappings are relative to the initial sequence number, so that a firewall may replace it.
#[test]
fn a_firewall_that_moves_all_sequence_numbers_is_not_noticed() {
    each(|settings| {
        let moved = |path: u8, from: usize| {
            0x7fff_0000_u32.wrapping_mul(1 + u32::from(path)).wrapping_add(from as u32 * 77_777)
        };
        let outcome = transfer(&settings, move |from, _, packet| {
            let mut other = packet.clone();
            let segment = &mut other.segment;
            let by = moved(path(packet), 1 - from);
            segment.seq += moved(path(packet), from);
            if segment.flags.contains(Flags::ACK) {
                segment.ack = segment.ack - by;
            }
            let mut blocks = SackBlocks::new();
            for block in segment.options.sack.as_slice() {
                blocks.push(SackBlock { start: block.start - by, end: block.end - by });
            }
            segment.options.sack = blocks;
            Fate::Instead(Box::new(other))
        });
        assert_eq!(outcome, ALL);
    });
}

/// Removes all MPTCP options from a packet.
fn bare(packet: &Packet) -> Fate {
    let mut other = packet.clone();
    (other.segment.options.mptcp, other.segment.options.dss) = (Vec::new(), None);
    Fate::Instead(Box::new(other))
}

// From the nth packet of one or both sides on. At the start the connection falls back; later it may have to be reset,
// but never delivers wrong bytes.
#[test]
fn options_that_are_taken_from_some_packet_on_cost_mptcp_or_the_connection_and_no_byte() {
    each(|settings| {
        let mut whole = 0;
        for from_whom in [0, 1, 2] {
            for first in (0..40).chain([60, 100, 200]) {
                let mut sent = [0, 0];
                let outcome = transfer(&settings, move |from, _, packet| {
                    sent[from] += 1;
                    if sent[from] > first && (from == from_whom || from_whom == 2) {
                        bare(packet)
                    } else {
                        Fate::Deliver
                    }
                });
                whole += usize::from(outcome.arrived == [LENGTH; 2]);
            }
        }
        assert!(whole >= 3, "at least what is bare from the first packet on arrives: {whole}");
    });
}

#[test]
fn options_taken_from_one_packet_of_the_handshake_cost_mptcp_and_nothing_else() {
    each(|settings| {
        for (victim, nth) in [(0, 0), (1, 0), (0, 1)] {
            let mut sent = [0, 0];
            let outcome = transfer(&settings, move |from, _, packet| {
                let at = sent[from];
                sent[from] += 1;
                if (from, at) == (victim, nth) { bare(packet) } else { Fate::Deliver }
            });
            assert_eq!(outcome, ALL, "packet {nth} of {victim}");
        }
    });
}

// As offloading hardware does: each part has all options (RFC 8684, section 3.3.1: a mapping may be repeated).
#[test]
fn segments_cut_in_two_are_whole_again() {
    each(|settings| {
        let outcome = transfer(&settings, |_, _, packet| {
            let (mut first, mut second) = (packet.clone(), packet.clone());
            let length = packet.segment.payload.len();
            if length < 2 || packet.segment.flags.intersects(Flags::SYN | Flags::RST) {
                return Fate::Deliver;
            }
            let at = length / 3 + 1;
            second.segment.payload = first.segment.payload.split_off(at);
            second.segment.seq += at as u32;
            first.segment.flags = Flags(first.segment.flags.0 & !Flags::FIN.0);
            Fate::Both(Box::new([first, second]))
        });
        assert_eq!(outcome, ALL);
    });
}

// A proxy that coalesces segments and keeps the options of one: the mapping of the second is lost, and retransmitted
// (RFC 8684, section 3.3.1).
#[test]
fn segments_put_together_lose_a_mapping_and_no_byte() {
    each(|settings| {
        // Two of five consecutive ones are coalesced: with more, the path would be abandoned.
        let held: Rc<RefCell<BTreeMap<(usize, u8), Packet>>> = Rc::default();
        let mut count = 0;
        let outcome = transfer(&settings, move |from, _, packet| {
            let (key, mut held) = ((from, path(packet)), held.borrow_mut());
            if let Some(mut first) = held.remove(&key) {
                let (a, b) = (&first.segment, &packet.segment);
                let follows = a.seq + a.payload.len() as u32 == b.seq && a.source_port == b.source_port;
                if !follows || b.payload.is_empty() || b.flags.contains(Flags::FIN) {
                    return Fate::Both(Box::new([first, packet.clone()]));
                }
                let mut payload = BytesMut::from(&a.payload[..]);
                payload.extend_from_slice(&b.payload);
                first.segment.payload = payload.freeze();
                return Fate::Instead(Box::new(first));
            }
            count += 1;
            let data = !packet.segment.payload.is_empty() && !packet.segment.flags.intersects(Flags::FIN | Flags::SYN);
            if data && count % 20 == 0 {
                held.insert(key, packet.clone());
                return Fate::Drop;
            }
            Fate::Deliver
        });
        assert_eq!(outcome.arrived, [LENGTH; 2], "{outcome:?}");
    });
}

// RFC 7323, section 5, and sequence numbers: replays are recognised after any time.
#[test]
fn what_is_replayed_at_any_time_changes_nothing() {
    each(|settings| {
        for seed in 0..20 {
            let old: Rc<RefCell<Vec<[Vec<Packet>; 2]>>> = Rc::new(RefCell::new(vec![Default::default()]));
            let mut luck = Luck(seed);
            let outcome = transfer(&settings, move |from, _, packet| {
                let mut old = old.borrow_mut();
                let seen = &mut old[0][from];
                seen.push(packet.clone());
                if luck.one_in(3) {
                    let again = seen[luck.below(seen.len() as u64) as usize].clone();
                    return Fate::Both(Box::new([packet.clone(), again]));
                }
                Fate::Deliver
            });
            assert_eq!(outcome.arrived, [LENGTH; 2], "seed {seed}: {outcome:?}");
        }
    });
}

#[test]
fn without_any_fin_all_data_arrives_and_the_connections_end_by_their_timers() {
    each(|settings| {
        let outcome =
            transfer(
                &settings,
                |_, _, packet| {
                    if packet.segment.flags.contains(Flags::FIN) { Fate::Drop } else { Fate::Deliver }
                },
            );
        // The exchange of DATA_FINs ends the stream; FINs only close subflows.
        assert_eq!(outcome, ALL);
    });
    let plain = ConnectionConfig { multipath: false, ..config() };
    let outcome = transfer(
        &plain,
        |_, _, packet| {
            if packet.segment.flags.contains(Flags::FIN) { Fate::Drop } else { Fate::Deliver }
        },
    );
    assert_eq!(outcome.arrived, [LENGTH; 2]);
}

#[test]
fn duplicates_of_every_syn_open_each_subflow_once() {
    each(|settings| {
        let outcome =
            transfer(
                &settings,
                |_, _, packet| {
                    if packet.segment.flags.contains(Flags::SYN) { Fate::Twice } else { Fate::Deliver }
                },
            );
        assert_eq!(outcome, ALL);
        let outcome = transfer(&settings, |_, _, packet| match packet.segment.flags.contains(Flags::SYN) {
            true => Fate::Both(Box::new([packet.clone(), packet.clone()])),
            false => Fate::Deliver,
        });
        assert_eq!(outcome, ALL);
    });
}

// Everything at random: some of each hundred packets are stripped, split, duplicated, delayed or lost. Also without
// checksums, since no payload changes.
#[test]
fn a_random_middlebox_delivers_the_right_bytes_or_an_end() {
    let mut whole = 0;
    each(|settings| {
        for seed in 0..60 {
            let mut luck = Luck(1_000 + seed);
            let strips = luck.one_in(2);
            let outcome = transfer(&settings, move |_, _, packet| match luck.below(100) {
                0 if strips => bare(packet),
                1..=3 => Fate::Drop,
                4..=6 => Fate::Twice,
                7..=9 => Fate::Late(Duration::from_millis(luck.below(2_000))),
                10 => {
                    let mut other = packet.clone();
                    other.segment.options.timestamps = None;
                    other.segment.options.sack = SackBlocks::new();
                    Fate::Instead(Box::new(other))
                }
                _ => Fate::Deliver,
            });
            whole += usize::from(outcome.arrived == [LENGTH; 2]);
        }
    });
    assert!(whole >= 90, "those of which nothing is stripped, at least: {whole}");
}
