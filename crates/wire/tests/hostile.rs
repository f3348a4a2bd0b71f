//! Arbitrary bytes: parsing does not panic, and everything accepted can be emitted again.

#[allow(dead_code)]
mod strategies;

use anabranch_wire::checksum::Checksum;
use anabranch_wire::ip::{self, Ecn, IpHeader, PROTOCOL_TCP, PROTOCOL_UDP};
use anabranch_wire::tcp::{Flags, OPTION_SPACE, TcpOptions};
use anabranch_wire::{IcmpError, Packet, ParseError, UdpPacket};
use bytes::Bytes;
use proptest::prelude::*;

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Parses the bytes in every way; accepted packets are emitted and parsed again.
fn swallow(bytes: Vec<u8>) -> bool {
    let bytes = Bytes::from(bytes);
    if let Ok(datagram) = ip::parse(&bytes) {
        let _ = IcmpError::parse(&datagram.header, datagram.protocol, &bytes[datagram.payload]);
    }
    let _ = UdpPacket::parse(&bytes);
    let Ok(packet) = Packet::parse(&bytes) else { return false };
    let mut again = Vec::new();
    packet.emit(&mut again).expect("what was parsed fits in the option space");
    assert_eq!(Packet::parse(&Bytes::from(again)), Ok(packet));
    true
}

/// Corrects both checksums, as an attacker would, so that the mutation is parsed and not just discarded.
fn repair_checksums(bytes: &mut [u8]) {
    if bytes.first().is_some_and(|first| first >> 4 == 4) {
        let header_len = usize::from(bytes[0] & 0xf) * 4;
        if header_len < 20 || bytes.len() < header_len {
            return;
        }
        bytes[10..12].fill(0);
        let mut checksum = Checksum::new();
        checksum.add_bytes(&bytes[..header_len]);
        bytes[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
    }
    let Ok(datagram) = ip::parse(bytes) else { return };
    let segment = &mut bytes[datagram.payload];
    let field = match datagram.protocol {
        PROTOCOL_TCP => 16..18,
        PROTOCOL_UDP => 6..8,
        _ => 2..4,
    };
    if segment.len() < field.end + 2 {
        return;
    }
    segment[field.clone()].fill(0);
    let mut checksum = Checksum::new();
    if datagram.protocol != ICMP {
        checksum.add_pseudo_header(&datagram.header, datagram.protocol, segment.len() as u32);
    }
    checksum.add_bytes(segment);
    segment[field].copy_from_slice(&checksum.finish().to_be_bytes());
}

fn emitted(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).expect("the strategy makes packets that can be emitted");
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0..3u8) {
        if let (Some(first), 1..) = (bytes.first_mut(), version) {
            *first = if version == 1 { 0x45 } else { 0x60 };
        }
        swallow(bytes.clone());
        repair_checksums(&mut bytes);
        swallow(bytes);
    }

    #[test]
    fn random_options_are_read_and_can_be_emitted(
        bytes in proptest::collection::vec(
            prop_oneof![4 => 0..9u8, 2 => Just(30), 2 => (0..10u8).prop_map(|subtype| subtype << 4), 2 => any::<u8>()],
            0..=OPTION_SPACE,
        ),
        flags: u8,
    ) {
        let options = TcpOptions::parse(&bytes, Flags(flags));
        prop_assert!(options.encoded_len() <= OPTION_SPACE);
    }

    #[test]
    fn changed_packets_with_right_checksums_do_no_harm(
        packet in strategies::packet(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = emitted(&packet);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        swallow(bytes.clone());
        repair_checksums(&mut bytes);
        swallow(bytes);
    }

    #[test]
    fn an_icmp_error_is_about_the_packet_that_it_quotes_or_refused(
        packet in strategies::packet(),
        kind in 0..13_u8,
        code in 0..17_u8,
        quoted: prop::sample::Index,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let ours = packet.ip;
        let mut sent = emitted(&packet);
        sent.truncate(quoted.index(sent.len() + 1));
        let untouched = changes.is_empty();
        let mut message = [&[kind, code, 0, 0, 0, 0, 5, 0], sent.as_slice()].concat();
        for (place, value) in changes {
            let place = place.index(message.len());
            message[place] = value;
        }
        let protocol = if ours.source.is_ipv4() { ICMP } else { ICMPV6 };
        let back = IpHeader { source: ours.destination, destination: ours.source, ecn: Ecn::NotCapable, ..ours };
        let mut bytes = Vec::new();
        back.emit(protocol, message.len(), &mut bytes).expect("it is short");
        bytes.extend_from_slice(&message);
        swallow(bytes.clone());
        repair_checksums(&mut bytes);
        let bytes = Bytes::from(bytes);
        let datagram = ip::parse(&bytes).expect("its header is right");
        let parsed = IcmpError::parse(&datagram.header, datagram.protocol, &bytes[datagram.payload]);
        let known = if ours.source.is_ipv4() { matches!(kind, 3 | 11) } else { (1..=3).contains(&kind) };
        if let (Ok(error), true) = (parsed, untouched) {
            prop_assert_eq!((error.source.ip(), error.destination.ip()), (ours.source, ours.destination));
            let ports = (packet.segment.source_port, packet.segment.destination_port);
            prop_assert_eq!(((error.source.port(), error.destination.port()), error.seq), (ports, packet.segment.seq));
            prop_assert!(known && sent.len() >= ours.encoded_len() + 8);
        }
        if untouched && known && code < 2 && sent.len() >= ours.encoded_len() + 8 {
            prop_assert!(parsed.is_ok(), "{:?}", parsed);
        }
    }

    #[test]
    fn a_packet_cut_anywhere_is_truncated(packet in strategies::packet()) {
        let bytes = emitted(&packet);
        for end in 0..bytes.len() {
            prop_assert_eq!(Packet::parse(&Bytes::copy_from_slice(&bytes[..end])), Err(ParseError::Truncated));
        }
    }

    #[test]
    fn a_segment_that_ends_early_under_a_right_ip_header_is_refused_or_shorter(packet in strategies::packet()) {
        let whole = emitted(&packet);
        let header_len = packet.ip.encoded_len();
        for end in header_len..whole.len() {
            let mut bytes = Vec::new();
            packet.ip.emit(PROTOCOL_TCP, end - header_len, &mut bytes).expect("shorter than before");
            bytes.extend_from_slice(&whole[header_len..end]);
            repair_checksums(&mut bytes);
            let accepted = swallow(bytes);
            prop_assert_eq!(accepted, end >= header_len + packet.segment.header_len());
        }
    }

    #[test]
    fn every_flipped_bit_of_a_segment_is_seen(packet in strategies::packet(), bit: prop::sample::Index) {
        let mut bytes = emitted(&packet);
        let first = packet.ip.encoded_len() * 8;
        let bit = first + bit.index(bytes.len() * 8 - first);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        let parsed = Packet::parse(&Bytes::from(bytes));
        prop_assert!(matches!(parsed, Err(ParseError::BadChecksum | ParseError::BadLength | ParseError::Truncated)));
    }
}
