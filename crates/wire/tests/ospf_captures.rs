//! Packets of another implementation of OSPF-MDR: every one in the captures of a folder is decoded, and encoded to the
//! same bytes.
//!
//! We may not publish the captures, so `ANABRANCH_OSPF_CAPTURES` names the folder; without it the tests report that
//! they are skipped. The captures are classic pcap files of Ethernet frames.

use anabranch_wire::ospf::{Body, Compatibility, Decoded, Integrity, Lsa, LsaBody, PROTOCOL_OSPF, Packet, Tlv};
use anabranch_wire::{ParseError, ip};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// It misplaces two bits, and the system computes the checksum, with the link-local signalling included.
const ITS_WAYS: Compatibility = Compatibility::ALIKE;

/// The payload of an IPv6 packet that carries OSPF.
struct Captured {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    payload: Vec<u8>,
}

impl Captured {
    fn integrity(&self) -> Integrity {
        Integrity::Checksum { source: self.source, destination: self.destination }
    }
    fn decode(&self, compatibility: Compatibility) -> Result<Decoded, ParseError> {
        Packet::decode(&self.payload, self.integrity(), compatibility)
    }
}

/// The frames of a classic pcap file, as written on a little-endian machine.
fn frames(file: &[u8]) -> Vec<&[u8]> {
    assert_eq!(file[..4], [0xd4, 0xc3, 0xb2, 0xa1], "a little-endian pcap file");
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(word(20), 1, "of Ethernet frames");
    let (mut at, mut frames) = (24, Vec::new());
    while at < file.len() {
        let length = word(at + 8);
        frames.push(&file[at + 16..at + 16 + length]);
        at += 16 + length;
    }
    frames
}

/// All OSPF packets in the captures, by file; `None` if no folder is named.
fn captures() -> Option<Vec<Captured>> {
    let Some(folder) = std::env::var_os("ANABRANCH_OSPF_CAPTURES") else {
        eprintln!("skipped: ANABRANCH_OSPF_CAPTURES names no folder");
        return None;
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    let mut packets = Vec::new();
    for path in paths {
        for frame in frames(&std::fs::read(path).unwrap()) {
            assert_eq!(frame[12..14], [0x86, 0xdd], "IPv6 over Ethernet");
            let datagram = ip::parse(&frame[14..]).unwrap();
            assert_eq!(datagram.protocol, PROTOCOL_OSPF);
            let (IpAddr::V6(source), IpAddr::V6(destination)) = (datagram.header.source, datagram.header.destination)
            else {
                unreachable!("a header of IPv6 has such addresses")
            };
            packets.push(Captured { source, destination, payload: frame[14..][datagram.payload].to_vec() });
        }
    }
    assert!(!packets.is_empty(), "there is something to read");
    Some(packets)
}

#[test]
fn every_captured_packet_is_understood_and_comes_out_as_it_was() {
    let Some(captures) = captures() else { return };
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (i, captured) in captures.iter().enumerate() {
        let decoded = captured.decode(ITS_WAYS).unwrap_or_else(|error| panic!("packet {i}: {error}"));
        assert_eq!((decoded.dropped_lls, decoded.dropped_lsas), (None, vec![]), "packet {i}");
        let packet = decoded.packet;
        let mut again = Vec::new();
        packet.encode(captured.integrity(), ITS_WAYS, &mut again).unwrap();
        assert_eq!(again, captured.payload, "packet {i}: {packet:?}");
        assert_eq!(packet.encoded_len(), again.len(), "packet {i}");
        for tlv in packet.lls.iter().flat_map(|lls| &lls.tlvs) {
            assert!(!matches!(tlv, Tlv::Unknown { .. }), "packet {i}: {tlv:?}");
        }
        let kind = match &packet.body {
            Body::Hello(_) => "Hello",
            Body::DatabaseDescription(_) => "database description",
            Body::LinkStateRequest(_) => "request",
            Body::LinkStateUpdate(_) => "update",
            Body::LinkStateAcknowledgment(_) => "acknowledgment",
        };
        *seen.entry(kind).or_default() += 1;
        *seen.entry("differential Hello").or_default() += u32::from(is_differential(&packet));
        let Body::LinkStateUpdate(update) = &packet.body else { continue };
        for aged in &update.lsas {
            // Encodes the decoded values, not the stored bytes.
            let lsa = &aged.lsa;
            assert_eq!(Lsa::new(lsa.key(), lsa.sequence(), lsa.body().clone()).as_ref(), Ok(lsa), "packet {i}");
            let kind = match aged.lsa.body() {
                LsaBody::Router(_) => "router-LSA",
                LsaBody::Link(_) => "link-LSA",
                LsaBody::IntraAreaPrefix(_) => "intra-area-prefix-LSA",
                LsaBody::AsExternal(_) => "AS-external-LSA",
                other => panic!("packet {i}: {other:?}"),
            };
            *seen.entry(kind).or_default() += 1;
        }
    }
    eprintln!("{} packets: {seen:?}", captures.len());
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}

fn is_differential(packet: &Packet) -> bool {
    packet.lls.as_ref().and_then(|lls| lls.mdr_hello()).is_some_and(|hello| hello.differential)
}

#[test]
fn read_by_the_rfcs_alone_its_hellos_have_bad_checksums_and_its_differential_ones_seem_full() {
    let Some(captures) = captures() else { return };
    let sums_alone = Compatibility { accept_checksum_over_lls: true, ..Compatibility::default() };
    for captured in &captures {
        let its_way = captured.decode(ITS_WAYS).unwrap().packet;
        match captured.decode(Compatibility::default()) {
            Ok(decoded) => assert_eq!(decoded.packet.lls, None),
            Err(error) => assert_eq!((error, its_way.lls.is_some()), (ParseError::BadChecksum, true)),
        }
        assert!(!is_differential(&captured.decode(sums_alone).unwrap().packet));
    }
}
