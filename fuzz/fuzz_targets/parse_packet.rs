//! Packets, messages and notices from anyone: no bytes make the parser panic, and what it accepts comes out of emit and parse the same.

#![no_main]

use anabranch_wire::checksum::Checksum;
use anabranch_wire::ip::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use anabranch_wire::mptcp::notice::Notice;
use anabranch_wire::{IcmpError, Packet, UdpPacket, message};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

fuzz_target!(|data: &[u8]| {
    check(data);
    // Few inputs have right checksums by chance; with them made right the fuzzer reaches what lies behind.
    let mut repaired = data.to_vec();
    repair_checksums(&mut repaired);
    check(&repaired);
});

fn check(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Some((at, header)) = message::find(data) {
        assert_eq!(header.encode().expect("what was decoded fits"), data[at..at + message::HEADER]);
    }
    if let Ok(packet) = Packet::parse(&bytes) {
        for notice in packet.segment.options.mptcp.iter().filter_map(Notice::of) {
            assert_eq!(Notice::of(&notice.option()), Some(notice));
        }
        let mut again = Vec::new();
        packet.emit(&mut again).expect("what was parsed fits in the option space");
        assert_eq!(again.len(), packet.wire_len());
        assert_eq!(Packet::parse(&Bytes::from(again)).as_ref(), Ok(&packet));
    }
    if let Ok(datagram) = ip::parse(&bytes)
        && let Ok(error) = IcmpError::parse(&datagram.header, datagram.protocol, &bytes[datagram.payload])
    {
        assert_eq!(error.source.ip(), datagram.header.destination);
    }
    if let Ok(packet) = UdpPacket::parse(&bytes) {
        let mut again = Vec::new();
        packet.emit(&mut again).expect("what was parsed has a length");
        assert_eq!(UdpPacket::parse(&Bytes::from(again)).as_ref(), Ok(&packet));
    }
}

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
    let field = match datagram.protocol {
        PROTOCOL_TCP => 16..18,
        PROTOCOL_UDP => 6..8,
        ICMP | ICMPV6 => 2..4,
        _ => return,
    };
    let payload = &mut bytes[datagram.payload];
    if payload.len() < field.end {
        return;
    }
    payload[field.clone()].fill(0);
    let mut checksum = Checksum::new();
    if datagram.protocol != ICMP {
        checksum.add_pseudo_header(&datagram.header, datagram.protocol, payload.len() as u32);
    }
    checksum.add_bytes(payload);
    payload[field].copy_from_slice(&checksum.finish().to_be_bytes());
}
