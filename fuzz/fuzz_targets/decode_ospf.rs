//! OSPF packets from anyone: no bytes make the decoder panic, and what it accepts comes out of encoder and decoder the
//! same, with checksums and with a trailer.

#![no_main]

use anabranch_wire::checksum::Checksum;
use anabranch_wire::ospf::authentication::{SecurityAssociation, Trailer};
use anabranch_wire::ospf::{ALL_SPF_ROUTERS, Compatibility, Decoded, Integrity, LsaHeader, PROTOCOL_OSPF, Packet};
use core::net::Ipv6Addr;
use libfuzzer_sys::fuzz_target;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SUMMED: Integrity = Integrity::Checksum { source: SOURCE, destination: ALL_SPF_ROUTERS };

fuzz_target!(|data: &[u8]| {
    let ways = [Compatibility::default(), Compatibility::ACCEPTING, Compatibility::ALIKE];
    for way in ways {
        check(data, SUMMED, way);
        // Without checksums the fuzzer reaches what lies behind.
        check(data, Integrity::Authenticated, way);
    }
    // Those of advertisements are always looked at.
    let mut repaired = data.to_vec();
    repair_advertisements(&mut repaired);
    check(&repaired, Integrity::Authenticated, Compatibility::default());
    repair_packet(&mut repaired);
    check(&repaired, SUMMED, Compatibility::default());
    let association = SecurityAssociation::new(1, Default::default(), b"key".to_vec());
    if let Ok(trailer) = Trailer::read(data) {
        assert!(trailer.verify(data, SOURCE, &association).is_err(), "nobody guesses a digest");
    }
});

fn check(data: &[u8], integrity: Integrity, ways: Compatibility) {
    let Ok(Decoded { packet, dropped_lsas, .. }) = Packet::decode(data, integrity, ways) else { return };
    assert!(dropped_lsas.len() * LsaHeader::LENGTH <= data.len());
    let whole = |packet| Ok(Decoded { packet, dropped_lls: None, dropped_lsas: vec![] });
    let mut again = Vec::new();
    packet.encode(SUMMED, ways, &mut again).expect("what was decoded fits");
    assert_eq!(again.len(), packet.encoded_len());
    assert_eq!(Packet::decode(&again, SUMMED, ways), whole(packet.clone()));
    let association = SecurityAssociation::new(1, Default::default(), b"key".to_vec());
    let mut authentic = Vec::new();
    if packet.encode_authenticated(SOURCE, &association, 1, ways, &mut authentic).is_ok() {
        let trailer = Trailer::read(&authentic).expect("there is one");
        assert_eq!(trailer.verify(&authentic, SOURCE, &association), Ok(()));
        assert_eq!(Packet::decode(&authentic, Integrity::Authenticated, ways), whole(packet));
    }
}

/// Makes the sums of the advertisements in an update right, as far as their lengths make sense.
fn repair_advertisements(bytes: &mut [u8]) {
    if bytes.len() < 20 || bytes[1] != 4 {
        return;
    }
    let mut at = 20;
    while at + LsaHeader::LENGTH <= bytes.len() {
        let length = usize::from(u16::from_be_bytes([bytes[at + 18], bytes[at + 19]]));
        if length < LsaHeader::LENGTH || at + length > bytes.len() {
            return;
        }
        let sum = fletcher(&mut bytes[at + 2..at + length]);
        bytes[at + 16..at + 18].copy_from_slice(&sum);
        at += length;
    }
}

/// Fletcher's checksum by its definition, for two bytes at 14.
fn fletcher(bytes: &mut [u8]) -> [u8; 2] {
    bytes[14..16].fill(0);
    let (c0, c1) = bytes.iter().fold((0i64, 0i64), |(c0, c1), byte| {
        let c0 = (c0 + i64::from(*byte)) % 255;
        (c0, (c1 + c0) % 255)
    });
    let behind = bytes.len() as i64 - 15;
    let x = (behind * c0 - c1).rem_euclid(255);
    let y = (-c0 - x).rem_euclid(255);
    [x, y].map(|byte| if byte == 0 { 255 } else { byte as u8 })
}

fn repair_packet(bytes: &mut [u8]) {
    if bytes.len() < 16 {
        return;
    }
    bytes[12..14].fill(0);
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]])).min(bytes.len());
    let mut checksum = Checksum::new();
    checksum.add_ipv6_pseudo_header(SOURCE, ALL_SPF_ROUTERS, PROTOCOL_OSPF, length as u32);
    checksum.add_bytes(&bytes[..length]);
    let sum = checksum.finish().to_be_bytes();
    bytes[12..14].copy_from_slice(&sum);
}
