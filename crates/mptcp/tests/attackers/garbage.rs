//! Invalid options: every MPTCP subtype with every length, and random option space, as bytes on the wire.

use crate::pair::config;
use crate::pair::luck::Luck;
use crate::peer::Peer;
use anabranch_mptcp::Protocol;
use anabranch_wire::{Checksum, Flags, Packet};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

/// The next bare segment on the peer's first flow with these bytes as option space, as parsed from the wire; `None` if
/// the parser refuses it.
fn with_options(peer: &Peer, flags: Flags, options: &[u8]) -> Option<Packet> {
    let flow = peer.flows[0];
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    let addresses: Vec<u8> = [flow.peer.ip(), flow.host.ip()]
        .iter()
        .flat_map(|address| match address {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
        })
        .collect();
    let mut tcp = Vec::new();
    tcp.extend(flow.peer.port().to_be_bytes());
    tcp.extend(flow.host.port().to_be_bytes());
    tcp.extend((flow.peer_initial + flow.nxt).0.to_be_bytes());
    tcp.extend((flow.host_initial + flow.ack).0.to_be_bytes());
    tcp.extend([(5 + options.len() as u8 / 4) << 4, flags.0, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(&options);
    let mut sum = Checksum::new();
    sum.add_bytes(&addresses);
    sum.add_bytes(&[0, 6]);
    sum.add_u16(tcp.len() as u16);
    sum.add_bytes(&tcp);
    tcp[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    let mut ip = vec![0x45, 0, 0, 20 + tcp.len() as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(&addresses);
    let mut sum = Checksum::new();
    sum.add_bytes(&ip);
    ip[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    ip.extend(&tcp);
    Packet::parse(&Bytes::from(ip)).ok()
}

fn warm() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer
}

// RFC 8684, section 3: unknown options are ignored. With a valid length three subtypes have an effect: MP_CAPABLE with
// data (0) has a mapping, perhaps with an unexpected checksum; a DSS (2) may be an infinite mapping; and MP_FAIL (6)
// ends MPTCP.
#[test]
fn every_subtype_in_every_length_leaves_a_connection_that_carries() {
    let (mut parsed, mut fallen, mut carried) = (0, 0, 0);
    for fill in [0x00, 0x01, 0x5a, 0xff] {
        for subtype in 0..16_u8 {
            for length in 2..=40_u8 {
                let mut peer = warm();
                let mut option = vec![fill; usize::from(length)];
                (option[0], option[1]) = (30, length);
                if let Some(third) = option.get_mut(2) {
                    *third = subtype << 4 | (fill & 15);
                }
                let Some(packet) = with_options(&peer, Flags::ACK, &option) else { continue };
                parsed += 1;
                peer.host.handle_packet(peer.now, packet);
                peer.settle();
                fallen += usize::from(peer.protocol() == Protocol::Tcp);
                let known = [0, 2, 6].contains(&subtype);
                assert!(known || peer.protocol() == Protocol::Multipath, "{subtype} {length} {fill}");
                peer.send_data(0, 5, b" world");
                let whole = peer.received == b"hello world";
                assert!(whole || (known && peer.received == b"hello"), "{subtype} {length} {fill}");
                carried += usize::from(whole);
            }
        }
    }
    assert!(parsed > 1_000 && carried + 20 > parsed, "{carried} of {parsed}");
    assert!((1..50).contains(&fallen), "{fallen}");
}

// The same for arbitrary bytes. A segment that the parser refuses counts as lost. An accepted one may have an effect,
// since no key protects it, but never changes a byte of the stream.
#[test]
fn ten_thousand_random_option_spaces_change_no_byte_of_the_stream() {
    let mut luck = Luck(5);
    let (mut parsed, mut carried) = (0, 0);
    for _ in 0..10_000 {
        let mut peer = warm();
        let kinds = [1, 2, 3, 4, 5, 8, 30, 30, 30, 253];
        let mut option: Vec<u8> = (0..4 * (1 + luck.below(10))).map(|_| luck.next() as u8).collect();
        option[0] = luck.pick(&kinds);
        option[1] = luck.below(option.len() as u64 + 3) as u8;
        let Some(packet) = with_options(&peer, Flags::ACK, &option) else { continue };
        parsed += 1;
        peer.host.handle_packet(peer.now, packet);
        peer.settle();
        peer.send_data(0, 5, b" world");
        assert!(b"hello world".starts_with(&peer.received[..]), "{option:?}");
        carried += usize::from(peer.received == b"hello world");
    }
    assert!(parsed > 300 && carried * 100 > parsed * 95, "{carried} of {parsed}");
}
