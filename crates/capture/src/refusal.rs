//! ICMP errors of a router that does not forward a packet: ICMP (RFC 792, RFC 1191, RFC 1812) and ICMPv6 (RFC 4443).

use anabranch_datagram::{Kind, Reason, Unreachable};
use anabranch_wire::checksum::Checksum;
use anabranch_wire::ip::{self, Ecn, IpHeader};
use anabranch_wire::{EchoPacket, UdpPacket};
use bytes::Bytes;
use core::net::IpAddr;

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Types "destination unreachable" and "packet too big".
const UNREACHABLE: u8 = 3;
const UNREACHABLE_V6: u8 = 1;
const TOO_BIG_V6: u8 = 2;
/// Types "time exceeded".
const EXCEEDED: u8 = 11;
const EXCEEDED_V6: u8 = 3;

/// Quoted bytes of a packet. For IPv4 the header and eight bytes suffice (RFC 792). ICMPv6 quotes as much as fits into
/// the minimum MTU of 1280 (RFC 4443, section 3.1), but receivers read no more than this.
const QUOTED: usize = 512;

/// The ICMP error for `packet` to its sender, from the packet's destination; `None` if none may be sent (RFC 1122,
/// section 3.2.2; RFC 4443, section 2.4).
pub(crate) fn unreachable(packet: &[u8], reason: Reason) -> Option<Vec<u8>> {
    message(packet, reason, None)
}

/// The ICMP error for a program whose datagram was reported as undelivered elsewhere.
pub(crate) fn passed_on(said: &Unreachable) -> Option<Vec<u8>> {
    let &Unreachable { kind, inside, outside, by, reason, head } = said;
    let (source, destination) = (inside.ip(), outside.ip());
    let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 1 };
    let body = Bytes::copy_from_slice(&head);
    // Enough of the packet to identify the program's socket.
    let mut packet = Vec::new();
    match kind {
        Kind::Echo => EchoPacket { ip, reply: false, body }.emit(&mut packet).ok()?,
        Kind::Udp | Kind::Dns | Kind::DnsOverTcp => {
            let (source_port, destination_port) = (inside.port(), outside.port());
            UdpPacket { ip, source_port, destination_port, payload: body }.emit(&mut packet).ok()?;
        }
    }
    message(&packet, reason, Some(by).filter(|by| by.is_ipv4() == source.is_ipv4()))
}

/// The ICMP error for `packet`, from its destination or from `by`.
fn message(packet: &[u8], reason: Reason, by: Option<IpAddr>) -> Option<Vec<u8>> {
    let ip::Datagram { header, protocol, payload } = ip::parse(packet).ok()?;
    let first = packet.get(payload.start).copied();
    if is_error(protocol, first) || header.source.is_unspecified() || header.source.is_multicast() {
        return None;
    }
    let [m0, m1] = if let Reason::TooBig(mtu) = reason { mtu.to_be_bytes() } else { [0; 2] };
    let (kind, code) = match (header.source, reason) {
        (IpAddr::V4(_), Reason::Network) => (UNREACHABLE, 0),
        (IpAddr::V4(_), Reason::Host) => (UNREACHABLE, 1),
        (IpAddr::V4(_), Reason::Port) => (UNREACHABLE, 3),
        (IpAddr::V4(_), Reason::TooBig(_)) => (UNREACHABLE, 4),
        (IpAddr::V4(_), Reason::Prohibited) => (UNREACHABLE, 13),
        (IpAddr::V4(_), Reason::HopLimit) => (EXCEEDED, 0),
        (IpAddr::V6(_), Reason::Network) => (UNREACHABLE_V6, 0),
        (IpAddr::V6(_), Reason::Prohibited) => (UNREACHABLE_V6, 1),
        (IpAddr::V6(_), Reason::Host) => (UNREACHABLE_V6, 3),
        (IpAddr::V6(_), Reason::Port) => (UNREACHABLE_V6, 4),
        (IpAddr::V6(_), Reason::TooBig(_)) => (TOO_BIG_V6, 0),
        (IpAddr::V6(_), Reason::HopLimit) => (EXCEEDED_V6, 0),
    };
    let head = [kind, code, 0, 0, 0, 0, m0, m1];
    let (source, destination) = (by.unwrap_or(header.destination), header.source);
    let back = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    let quoted = packet.get(..packet.len().min(QUOTED))?;
    emit(&back, [&head[..], quoted].concat())
}

/// Whether a packet is itself an ICMP error, by its protocol and first byte.
fn is_error(protocol: u8, first: Option<u8>) -> bool {
    match (protocol, first) {
        (ICMP, kind) => !matches!(kind, Some(0 | 8)),
        (ICMPV6, kind) => kind.is_none_or(|kind| kind < 128),
        _ => false,
    }
}

/// A packet with an ICMP message; sets the message's checksum.
fn emit(header: &IpHeader, mut message: Vec<u8>) -> Option<Vec<u8>> {
    let mut checksum = Checksum::new();
    let protocol = if header.source.is_ipv4() { ICMP } else { ICMPV6 };
    if protocol == ICMPV6 {
        checksum.add_pseudo_header(header, protocol, u32::try_from(message.len()).ok()?);
    }
    checksum.add_bytes(&message);
    message.get_mut(2..4)?.copy_from_slice(&checksum.finish().to_be_bytes());
    let mut packet = Vec::new();
    header.emit(protocol, message.len(), &mut packet).ok()?;
    packet.extend_from_slice(&message);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet from a program.
    fn packet(source: &str, destination: &str) -> Vec<u8> {
        let (source, destination) = (source.parse().expect("an address"), destination.parse().expect("an address"));
        let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
        let udp = UdpPacket { ip, source_port: 4_000, destination_port: 443, payload: Bytes::from(vec![7; 900]) };
        let mut out = Vec::new();
        udp.emit(&mut out).expect("it is short");
        out
    }

    #[test]
    fn a_message_comes_from_the_destination_and_quotes_the_packet() {
        let cases = [
            ("198.18.0.1", "203.0.113.7", Reason::Network, [3, 0]),
            ("198.18.0.1", "203.0.113.7", Reason::Host, [3, 1]),
            ("198.18.0.1", "203.0.113.7", Reason::Prohibited, [3, 13]),
            ("fd61::1", "2001:db8::7", Reason::Network, [1, 0]),
            ("fd61::1", "2001:db8::7", Reason::Host, [1, 3]),
            ("fd61::1", "2001:db8::7", Reason::Prohibited, [1, 1]),
        ];
        for (source, destination, reason, kind) in cases {
            let about = packet(source, destination);
            let message = unreachable(&about, reason).expect("there is something to say");
            let parsed = ip::parse(&message).expect("an IP packet");
            assert_eq!(
                (parsed.header.source.to_string().as_str(), parsed.header.destination.to_string().as_str()),
                (destination, source)
            );
            let body = &message[parsed.payload.clone()];
            assert_eq!((&body[..2], &body[8..]), (&kind[..], &about[..QUOTED]), "{reason:?}");
            let mut checksum = Checksum::new();
            if source.contains(':') {
                checksum.add_pseudo_header(&parsed.header, ICMPV6, body.len() as u32);
            }
            checksum.add_bytes(body);
            assert!(checksum.is_valid(), "{reason:?}");
        }
    }

    #[test]
    fn a_packet_that_is_too_big_is_told_what_would_have_passed() {
        for (source, destination, kind) in [("198.18.0.1", "203.0.113.7", [3, 4]), ("fd61::1", "2001:db8::7", [2, 0])] {
            let message =
                unreachable(&packet(source, destination), Reason::TooBig(1_300)).expect("there is something to say");
            let start = ip::parse(&message).expect("an IP packet").payload.start;
            assert_eq!(message[start..start + 2], kind);
            assert_eq!(message[start + 6..start + 8], 1_300_u16.to_be_bytes());
        }
    }

    #[test]
    fn what_was_said_elsewhere_comes_from_who_said_it_and_quotes_ports_or_identifier() {
        for (inside, outside, by, reason, kind) in [
            ("198.18.0.1:4000", "203.0.113.7:443", "203.0.113.7", Reason::Port, [3, 3]),
            ("198.18.0.1:4000", "203.0.113.7:443", "192.0.2.1", Reason::HopLimit, [11, 0]),
            ("[fd61::1]:4000", "[2001:db8::7]:443", "2001:db8::1", Reason::Port, [1, 4]),
            ("[fd61::1]:4000", "[2001:db8::7]:443", "2001:db8::1", Reason::HopLimit, [3, 0]),
        ] {
            let address = |text: &str| text.parse().expect("an address");
            let by: IpAddr = by.parse().expect("an address");
            let head = [1, 2, 0, 5];
            let said =
                Unreachable { kind: Kind::Udp, inside: address(inside), outside: address(outside), by, reason, head };
            for (said, quoted) in [(said, [0x0f, 0xa0, 0x01, 0xbb]), (Unreachable { kind: Kind::Echo, ..said }, head)] {
                let message = passed_on(&said).expect("there is something to say");
                let parsed = ip::parse(&message).expect("an IP packet");
                assert_eq!((parsed.header.source, parsed.header.destination), (by, said.inside.ip()));
                let body = &message[parsed.payload];
                assert_eq!(body[..2], kind);
                let behind = if by.is_ipv4() { 8 + 20 } else { 8 + 40 };
                let behind = if said.kind == Kind::Echo { behind + 4 } else { behind };
                assert_eq!(body[behind..behind + 4], quoted);
            }
        }
    }

    #[test]
    fn errors_are_not_answered_nor_is_nobody() {
        let message = unreachable(&packet("198.18.0.1", "203.0.113.7"), Reason::Host).expect("one");
        assert_eq!(unreachable(&message, Reason::Host), None);
        assert_eq!(unreachable(&packet("0.0.0.0", "203.0.113.7"), Reason::Host), None);
        assert_eq!(unreachable(b"no packet", Reason::Host), None);
    }
}
