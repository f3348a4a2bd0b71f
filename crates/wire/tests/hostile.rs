//! Arbitrary bytes: parsing does not panic, and everything accepted can be emitted again.

#[allow(dead_code)]
mod strategies;

use anabranch_wire::checksum::Checksum;
use anabranch_wire::ip::{self, PROTOCOL_TCP};
use anabranch_wire::tcp::{Flags, OPTION_SPACE, TcpOptions};
use anabranch_wire::{IcmpError, Packet, ParseError, UdpPacket};
use bytes::Bytes;
use proptest::prelude::*;

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
    if segment.len() < 20 {
        return;
    }
    segment[16..18].fill(0);
    let mut checksum = Checksum::new();
    checksum.add_pseudo_header(&datagram.header, PROTOCOL_TCP, segment.len() as u32);
    checksum.add_bytes(segment);
    segment[16..18].copy_from_slice(&checksum.finish().to_be_bytes());
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
    fn random_options_are_read_or_refused_and_can_be_emitted_if_read(
        bytes in proptest::collection::vec(
            prop_oneof![4 => 0..9u8, 2 => Just(30), 2 => (0..10u8).prop_map(|subtype| subtype << 4), 2 => any::<u8>()],
            0..=OPTION_SPACE,
        ),
        flags: u8,
    ) {
        if let Ok(options) = TcpOptions::parse(&bytes, Flags(flags)) {
            prop_assert!(options.encoded_len() <= OPTION_SPACE);
        }
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
