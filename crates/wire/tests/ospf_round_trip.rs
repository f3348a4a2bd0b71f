//! Encoding and decoding results in the same value, and no bytes make the decoder panic.

#[allow(dead_code)]
mod ospf_strategies;

use anabranch_wire::ParseError;
use anabranch_wire::ospf::authentication::{Algorithm, AuthenticationError, SecurityAssociation, Trailer};
use anabranch_wire::ospf::{ALL_SPF_ROUTERS, Body, Compatibility, Decoded, Integrity, Lsa, Packet};
use core::net::Ipv6Addr;
use ospf_strategies::{aged_lsa, compatibility, packet};
use proptest::prelude::*;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SUMMED: Integrity = Integrity::Checksum { source: SOURCE, destination: ALL_SPF_ROUTERS };

fn encoded(packet: &Packet, compatibility: Compatibility) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(SUMMED, compatibility, &mut bytes).expect("the strategy makes packets that can be encoded");
    bytes
}

fn whole(packet: Packet) -> Decoded {
    Decoded { packet, dropped_lls: None, dropped_lsas: vec![] }
}

fn association() -> impl Strategy<Value = SecurityAssociation> {
    let algorithm = prop_oneof![Just(Algorithm::HmacSha256), Just(Algorithm::HmacSha384), Just(Algorithm::HmacSha512)];
    (any::<u16>(), algorithm, proptest::collection::vec(any::<u8>(), 0..100))
        .prop_map(|(id, algorithm, key)| SecurityAssociation::new(id, algorithm, key))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_packet_survives_the_wire(packet in packet(), ways in compatibility(), before in 0..5usize) {
        let mut bytes = vec![7; before];
        packet.encode(SUMMED, ways, &mut bytes).expect("the strategy makes packets that can be encoded");
        prop_assert_eq!(bytes.len(), before + packet.encoded_len());
        prop_assert_eq!(Packet::decode(&bytes[before..], SUMMED, ways), Ok(whole(packet)));
    }

    #[test]
    fn either_way_of_sending_is_accepted_by_who_accepts_both(packet in packet(), ways in compatibility()) {
        let bytes = encoded(&packet, ways);
        prop_assert_eq!(Packet::decode(&bytes, SUMMED, Compatibility::ACCEPTING), Ok(whole(packet)));
    }

    #[test]
    fn an_advertisement_is_what_its_bytes_say(aged in aged_lsa()) {
        let mut bytes = aged.lsa.bytes().to_vec();
        bytes[..2].copy_from_slice(&aged.age.to_be_bytes());
        prop_assert_eq!(bytes.len(), aged.lsa.encoded_len());
        prop_assert_eq!(Lsa::decode(&bytes), Ok(aged));
    }

    #[test]
    fn a_flipped_bit_in_packet_or_lls_is_seen(packet in packet(), place: prop::sample::Index, bit in 0..8u8) {
        let mut bytes = encoded(&packet, Compatibility::default());
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        match Packet::decode(&bytes, SUMMED, Compatibility::default()) {
            Err(_) => {}
            Ok(decoded) => {
                prop_assert!(place >= packet.encoded_len() - packet.lls.as_ref().map_or(0, |lls| lls.encoded_len()));
                prop_assert!(decoded.dropped_lls.is_some());
                prop_assert_eq!(decoded.packet.body, packet.body);
            }
        }
    }

    #[test]
    fn a_shorter_packet_is_refused_or_loses_its_lls(packet in packet(), place: prop::sample::Index) {
        let bytes = encoded(&packet, Compatibility::default());
        let cut = place.index(bytes.len());
        let lls = packet.lls.as_ref().map_or(0, |lls| lls.encoded_len());
        match Packet::decode(&bytes[..cut], SUMMED, Compatibility::default()) {
            Err(error) => prop_assert_eq!(error, ParseError::Truncated),
            Ok(decoded) => {
                prop_assert!(cut >= bytes.len() - lls);
                prop_assert_eq!(decoded.dropped_lls, Some(ParseError::Truncated));
            }
        }
    }

    #[test]
    fn an_authentic_packet_survives_the_wire_and_no_bit_can_be_changed(
        packet in packet(), association in association(), sequence: u64, place: prop::sample::Index, bit in 0..8u8,
    ) {
        let mut bytes = Vec::new();
        let ways = Compatibility::default();
        packet.encode_authenticated(SOURCE, &association, sequence, ways, &mut bytes).expect("small enough");
        prop_assert_eq!(bytes.len(), packet.encoded_len() + association.algorithm.trailer_len());
        let trailer = Trailer::read(&bytes).expect("there is a trailer");
        prop_assert_eq!((trailer.association, trailer.sequence), (association.id, sequence));
        prop_assert_eq!(trailer.verify(&bytes, SOURCE, &association), Ok(()));
        prop_assert_eq!(Packet::decode(&bytes, Integrity::Authenticated, ways), Ok(whole(packet)));

        let another = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
        prop_assert_eq!(trailer.verify(&bytes, another, &association), Err(AuthenticationError::WrongDigest));
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let believed = Trailer::read(&bytes).and_then(|trailer| trailer.verify(&bytes, SOURCE, &association));
        prop_assert!(believed.is_err());
    }

    #[test]
    fn bytes_from_anyone_are_refused_or_understood_in_full(
        kind in 1..=5u8, body in proptest::collection::vec(any::<u8>(), 0..400), lls in any::<bool>(),
    ) {
        let mut bytes = vec![3, kind];
        bytes.extend(((16 + body.len()) as u16).to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(&body);
        if lls {
            bytes.extend(&body);
        }
        if let Ok(decoded) = Packet::decode(&bytes, Integrity::Authenticated, Compatibility::default()) {
            let again = encoded(&decoded.packet, Compatibility::default());
            prop_assert_eq!(Packet::decode(&again, SUMMED, Compatibility::default()), Ok(whole(decoded.packet)));
        }
    }
}

#[test]
fn an_update_of_the_longest_packet_holds_no_more_than_its_bytes() {
    // 65 535 bytes that claim four billion advertisements, each a bare header of an unknown type.
    let mut bytes = vec![3, 4, 0xff, 0xff];
    bytes.resize(16, 0);
    bytes.extend([0xff; 4]);
    let mut count = 0;
    while bytes.len() + 20 <= 0xffff {
        bytes.extend([0, 0, 0x80, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]);
        count += 1;
    }
    bytes.resize(0xffff, 0);
    assert_eq!(count, 3_275);
    let decoded = Packet::decode(&bytes, Integrity::Authenticated, Compatibility::default());
    assert_eq!(decoded, Err(ParseError::BadLength));
    // With the right count and length all of them are parsed, and none has a valid checksum.
    bytes.truncate(20 + 20 * count);
    bytes[2..4].copy_from_slice(&((20 + 20 * count) as u16).to_be_bytes());
    bytes[16..20].copy_from_slice(&(count as u32).to_be_bytes());
    let decoded = Packet::decode(&bytes, Integrity::Authenticated, Compatibility::default()).unwrap();
    assert_eq!(decoded.dropped_lsas.len(), count);
    let Body::LinkStateUpdate(update) = decoded.packet.body else { panic!("an update") };
    assert_eq!(update.lsas, vec![]);
}
