//! Segments GSO packets as the kernel or a network card would, with code that is independent of how they were built.

use super::*;
use anabranch_wire::mptcp::DataAck;
use anabranch_wire::tcp::{SackBlock, Timestamps};
use anabranch_wire::{Ecn, IpHeader, SeqNumber, TcpOptions};
use proptest::prelude::*;

const INITIAL: u32 = 0xffff_f000;
const STREAM: u64 = 0xffff_ffff_ffff_e000;

fn packet(v6: bool, from: u32, payload: Vec<u8>) -> Packet {
    let (source, destination) = match v6 {
        false => ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
        true => ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
    };
    let mapping = Mapping {
        data_seq: DataSequence::Long(STREAM.wrapping_add(u64::from(from))),
        subflow_seq: from.wrapping_add(1),
        length: payload.len() as u16,
        checksum: None,
    };
    let options = TcpOptions {
        timestamps: Some(Timestamps { value: 7, echo: 9 }),
        dss: Some(Dss { data_ack: Some(DataAck::Short(3)), mapping: Some(mapping), data_fin: false }),
        ..TcpOptions::default()
    };
    let segment = Segment {
        source_port: 1_000,
        destination_port: 80,
        seq: SeqNumber(INITIAL.wrapping_add(1).wrapping_add(from)),
        ack: SeqNumber(5),
        flags: Flags::ACK,
        window: 500,
        urgent: 0,
        options,
        payload: Bytes::from(payload),
    };
    Packet { ip: IpHeader { source, destination, ecn: Ecn::Capable0, dscp: 0, hop_limit: 64 }, segment }
}

/// Consecutive packets of these lengths, with bytes that differ.
fn row(v6: bool, lengths: &[usize]) -> Vec<Packet> {
    let mut from = 0;
    let packet_at = |length: &usize| {
        let payload = (0..*length).map(|i| (from as usize * 31 + i * 7 + i / 251) as u8).collect();
        let packet = packet(v6, from, payload);
        from += *length as u32;
        packet
    };
    lengths.iter().map(packet_at).collect()
}

/// The packets merged into as few GSO packets as possible, as bytes.
fn written(packets: Vec<Packet>) -> Vec<Vec<u8>> {
    let mut made: Vec<GsoPacket> = Vec::new();
    for mut packet in packets {
        let follows = made.last_mut().is_some_and(|gso| gso.push(&mut packet));
        made.extend((!follows).then(|| GsoPacket::new(packet)));
    }
    let bytes = |gso: &GsoPacket| {
        let whole = |pieces: &[IoSlice<'_>]| pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        gso.emit(&mut Vec::new(), whole).expect("what fits one by one has headers that fit")
    };
    made.iter().map(bytes).collect()
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn ones_complement(bytes: impl IntoIterator<Item = u8>) -> u16 {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    let mut sum: u64 =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Applies the header before a packet, and returns the packets sent on the network.
fn cut(written: &[u8]) -> Vec<Vec<u8>> {
    let ne16 = |at: usize| usize::from(u16::from_ne_bytes([written[at], written[at + 1]]));
    let (flags, kind) = (written[0], written[1]);
    let (headers, segment, start, offset) = (ne16(2), ne16(4), ne16(6), ne16(8));
    let packet = &written[10..];
    assert_eq!(flags, 1, "the checksum is to be finished");
    let v6 = packet[0] >> 4 == 6;
    assert_eq!(headers, start + usize::from(packet[start + 12] >> 4) * 4);
    let announced = if v6 { usize::from(be16(packet, 4)) + 40 } else { usize::from(be16(packet, 2)) };
    assert_eq!(announced, packet.len());
    let payload = &packet[headers..];
    let size = match kind {
        0 => payload.len().max(1),
        _ => {
            assert_eq!(kind, if v6 { 4 } else { 1 });
            assert!(segment > 0 && payload.len() > segment);
            segment
        }
    };
    let pieces: Vec<&[u8]> = if payload.is_empty() { vec![&[]] } else { payload.chunks(size).collect() };
    let last = pieces.len() - 1;
    let cut_one = |(at, piece): (usize, &&[u8])| {
        let mut bytes = [&packet[..headers], piece].concat();
        let old_length = packet.len() - start;
        let new_length = bytes.len() - start;
        let seq = u32::from_be_bytes(bytes[start + 4..start + 8].try_into().unwrap()).wrapping_add((at * size) as u32);
        bytes[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
        if at < last {
            bytes[start + 13] &= !(Flags::PSH.0 | Flags::FIN.0);
        }
        if v6 {
            let length = bytes.len() as u16 - 40;
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
        } else {
            let length = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            bytes[10..12].fill(0);
            let sum = !ones_complement(bytes[..20].to_vec());
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        // The pseudo-header's sum in the checksum's place counts the length of the whole: correct it (RFC 1624).
        let seeded = u64::from(be16(&bytes, start + offset)) + u64::from(!(old_length as u16)) + new_length as u64;
        let seeded = ones_complement(seeded.to_be_bytes());
        bytes[start + offset..start + offset + 2].copy_from_slice(&seeded.to_be_bytes());
        let sum = !ones_complement(bytes[start..].to_vec());
        bytes[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    };
    pieces.iter().enumerate().map(cut_one).collect()
}

/// Where in the stream the payload lies, and whether the stream ends behind it.
fn place(packet: &Packet) -> (u64, usize, bool) {
    let dss = packet.segment.options.dss.unwrap();
    let mapping = dss.mapping.unwrap();
    let DataSequence::Long(from) = mapping.data_seq else { panic!("long ones went in") };
    let skipped = (packet.segment.seq - SeqNumber(INITIAL)).wrapping_sub(mapping.subflow_seq);
    let end = skipped + packet.segment.payload.len() as u32 + u32::from(dss.data_fin);
    assert!(end <= u32::from(mapping.length), "the mapping covers its segment");
    let ends = dss.data_fin && end == u32::from(mapping.length);
    (from.wrapping_add(u64::from(skipped)), packet.segment.payload.len(), ends)
}

/// Asserts that the packets after merging and segmenting are those before, except for mappings merged to larger ones
/// and a PSH that moves to the end.
fn assert_same(before: &[Packet], after: &[Packet]) {
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        assert_eq!(place(before), place(after));
        let mut plain = after.clone();
        plain.segment.options.dss = before.segment.options.dss;
        plain.segment.flags = before.segment.flags;
        assert_eq!(&plain, before);
        assert_eq!(without_push(after.segment.flags), without_push(before.segment.flags));
    }
}

fn parsed(bytes: Vec<u8>) -> Packet {
    Packet::parse(&Bytes::from(bytes)).expect("every checksum is right")
}

#[test]
fn full_segments_and_a_shorter_last_one_are_one_gso_packet_and_nothing_follows_it() {
    let written = written(row(false, &[1_400, 1_400, 1_400, 900, 1_400]));
    assert_eq!(written.len(), 2);
    assert_eq!(cut(&written[0]).len(), 4);
    let whole = Packet::parse_unverified(&Bytes::copy_from_slice(&written[0][10..])).unwrap();
    assert_eq!(whole.segment.options.dss.unwrap().mapping.unwrap().length, 5_100);
}

#[test]
fn no_gso_packet_is_longer_than_an_ip_packet() {
    // Headers of 20 + 20 and options of 12 + 24: 65,459 bytes are left, 45 times 1,448 and a rest. IPv6: 65,439.
    for v6 in [false, true] {
        let written = written(row(v6, &[1_448; 100]));
        assert!(written.iter().all(|bytes| bytes.len() <= 65_535 + 10));
        assert_eq!(cut(&written[0]).len(), 45);
    }
    // 65,455 bytes in 5 parts fit exactly with IPv4 only.
    assert_eq!(written(row(false, &[13_091; 5])).len(), 1);
    assert_eq!(written(row(true, &[13_091; 5])).len(), 2);
}

#[test]
fn segments_that_differ_in_more_than_their_place_travel_alone() {
    let differ = |change: fn(&mut Packet)| {
        let mut packets = row(false, &[100, 100]);
        change(&mut packets[1]);
        written(packets).len()
    };
    assert_eq!(differ(|_| {}), 1);
    assert_eq!(differ(|p| p.segment.flags |= Flags::PSH), 1);
    assert_eq!(differ(|p| p.segment.flags |= Flags::FIN), 2);
    assert_eq!(differ(|p| p.segment.flags |= Flags::CWR), 2);
    assert_eq!(differ(|p| p.segment.seq += 1), 2);
    assert_eq!(differ(|p| p.segment.ack += 1), 2);
    assert_eq!(differ(|p| p.segment.window += 1), 2);
    assert_eq!(differ(|p| p.ip.ecn = Ecn::NotCapable), 2);
    assert_eq!(differ(|p| p.segment.options.timestamps = None), 2);
    assert_eq!(differ(|p| p.segment.options.dss = None), 2);
    assert_eq!(differ(|p| p.segment.payload = Bytes::new()), 2);
    assert_eq!(differ(|p| mapping(p).subflow_seq += 1), 2);
    assert_eq!(differ(|p| mapping(p).data_seq = DataSequence::Long(STREAM + 101)), 2);
    assert_eq!(differ(|p| mapping(p).data_seq = DataSequence::Short(100)), 2);
    assert_eq!(differ(|p| mapping(p).checksum = Some(0)), 2);
    assert_eq!(differ(|p| mapping(p).length += 1), 2);
    assert_eq!(differ(|p| p.segment.options.dss.as_mut().unwrap().data_ack = None), 2);
    let block = SackBlock { start: SeqNumber(9), end: SeqNumber(10) };
    let sack = |p: &mut Packet| _ = p.segment.options.sack.push(block);
    let mut packets = row(false, &[100, 100]);
    packets.iter_mut().for_each(|p| p.segment.options.dss = None);
    assert_eq!(written(packets.clone()).len(), 1);
    packets.iter_mut().for_each(sack);
    assert_eq!(written(packets).len(), 2);
}

fn mapping(packet: &mut Packet) -> &mut Mapping {
    packet.segment.options.dss.as_mut().unwrap().mapping.as_mut().unwrap()
}

#[test]
fn a_bare_acknowledgement_and_a_fin_get_their_checksums() {
    let mut fin = packet(true, 0, Vec::new());
    fin.segment.flags = Flags::ACK | Flags::FIN;
    fin.segment.options.dss = None;
    let written = written(vec![fin.clone()]);
    assert_eq!(cut(&written[0]).into_iter().map(parsed).collect::<Vec<_>>(), [fin]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_gso_packet_segmented_again_is_the_packets_that_went_in(
        v6: bool,
        size in 1_usize..2_000,
        runs in prop::collection::vec((0_usize..70, 0_usize..2_000), 1..4),
        pushes in prop::collection::vec(any::<bool>(), 16),
        holes in prop::collection::vec(0_usize..100, 0..3),
        ends: bool,
    ) {
        let mut lengths = Vec::new();
        for (full, rest) in runs {
            lengths.extend(std::iter::repeat_n(size, full));
            lengths.extend((rest > 0).then_some(rest));
        }
        let mut packets = row(v6, &lengths);
        for (packet, push) in packets.iter_mut().zip(pushes.iter().cycle()) {
            if *push {
                packet.segment.flags |= Flags::PSH;
            }
        }
        if let Some(last) = packets.last_mut().filter(|_| ends) {
            mapping(last).length += 1;
            last.segment.options.dss.as_mut().unwrap().data_fin = true;
        }
        for hole in holes {
            if hole + 1 < packets.len() {
                packets.remove(hole);
            }
        }
        let written = written(packets.clone());
        prop_assert!(written.len() <= packets.len());
        let after: Vec<Packet> = written.iter().flat_map(|bytes| cut(bytes)).map(parsed).collect();
        assert_same(&packets, &after);
    }
}
