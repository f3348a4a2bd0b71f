//! ICMP errors that TCP reacts to: a packet was too big for a link (RFC 792 with RFC 1191, section 4; RFC 4443, section
//! 3.2), or did not reach its destination (RFC 792 with RFC 1122, section 3.2.2.1, and RFC 1812, section 5.2.7.1; RFC
//! 4443, sections 3.1 and 3.3).

use crate::checksum::Checksum;
use crate::error::ParseError;
use crate::ip::{IPV6_HEADER, IpHeader, PROTOCOL_TCP};
use crate::seq::SeqNumber;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol number of ICMP.
pub(crate) const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of ICMPv6.
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;

/// An ICMP error about a TCP segment. Anyone can send it: compare the sequence number with outstanding data (RFC 5927,
/// section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// Source of the dropped packet.
    pub source: SocketAddr,
    /// Destination of the dropped packet.
    pub destination: SocketAddr,
    /// Sequence number of its segment.
    pub seq: SeqNumber,
    /// What became of it.
    pub trouble: Trouble,
}

/// What an ICMP error says of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// "Fragmentation needed and DF set", or "packet too big".
    TooBig {
        /// MTU of the next link in bytes; 0 from routers that do not report it (RFC 1191, section 5).
        mtu: u32,
    },
    /// "Destination unreachable", or "time exceeded".
    Unreachable(Unreachable),
}

/// What could not be reached, the least specific first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unreachable {
    /// No route leads to the network.
    Network,
    /// The host does not answer its router, or a rule forbids to forward the packet, or it was in transit for too long.
    Host,
    /// The host was reached, and takes no packets to this port or of this protocol.
    Port,
}

impl Trouble {
    /// What an ICMP message says of a packet, by type, code and second word; none if TCP does not react to it.
    fn of_v4(kind: u8, code: u8, word: [u8; 4]) -> Option<Self> {
        let [_, _, b6, b7] = word;
        let unreachable = match (kind, code) {
            (3, 4) => return Some(Self::TooBig { mtu: u32::from(u16::from_be_bytes([b6, b7])) }),
            (3, 0 | 6 | 9 | 11) => Unreachable::Network,
            (3, 1 | 5 | 7 | 8 | 10 | 12..=15) | (11, 0 | 1) => Unreachable::Host,
            (3, 2 | 3) => Unreachable::Port,
            _ => return None,
        };
        Some(Self::Unreachable(unreachable))
    }

    /// The same of ICMPv6.
    fn of_v6(kind: u8, code: u8, word: [u8; 4]) -> Option<Self> {
        let unreachable = match (kind, code) {
            (2, _) => return Some(Self::TooBig { mtu: u32::from_be_bytes(word) }),
            (1, 0) => Unreachable::Network,
            (1, 1..=3 | 5 | 6) | (3, 0 | 1) => Unreachable::Host,
            (1, 4) => Unreachable::Port,
            _ => return None,
        };
        Some(Self::Unreachable(unreachable))
    }
}

impl IcmpError {
    /// Parses the payload of an IP packet with `header` and `protocol`.
    ///
    /// # Errors
    /// [`ParseError::Unsupported`] for all other messages, and for those that quote something else than TCP, a later fragment, or
    /// a packet of another host than they are sent to; [`ParseError::BadChecksum`]; [`ParseError::Truncated`] if less is quoted than
    /// ports and sequence number.
    pub fn parse(header: &IpHeader, protocol: u8, bytes: &[u8]) -> Result<Self, ParseError> {
        let [kind, code, _, _, b4, b5, b6, b7] = *bytes.first_chunk::<8>().ok_or(ParseError::Truncated)?;
        let mut checksum = Checksum::new();
        let word = [b4, b5, b6, b7];
        let trouble = match protocol {
            PROTOCOL_ICMP if header.source.is_ipv4() => Trouble::of_v4(kind, code, word),
            PROTOCOL_ICMPV6 if header.source.is_ipv6() => {
                checksum.add_pseudo_header(header, protocol, bytes.len() as u32);
                Trouble::of_v6(kind, code, word)
            }
            _ => None,
        };
        let trouble = trouble.ok_or(ParseError::Unsupported)?;
        checksum.add_bytes(bytes);
        if !checksum.is_valid() {
            return Err(ParseError::BadChecksum);
        }
        let quoted = bytes.get(8..).unwrap_or_default();
        let (source, destination, segment) =
            if protocol == PROTOCOL_ICMP { quoted_v4(quoted) } else { quoted_v6(quoted) }?;
        if source != header.destination {
            return Err(ParseError::Unsupported);
        }
        let [s0, s1, d0, d1, q0, q1, q2, q3] = *segment.first_chunk::<8>().ok_or(ParseError::Truncated)?;
        Ok(Self {
            source: SocketAddr::new(source, u16::from_be_bytes([s0, s1])),
            destination: SocketAddr::new(destination, u16::from_be_bytes([d0, d1])),
            seq: SeqNumber(u32::from_be_bytes([q0, q1, q2, q3])),
            trouble,
        })
    }
}

/// Addresses and segment of a quoted packet, which may be truncated; routers have changed TTL and checksum.
fn quoted_v4(bytes: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), ParseError> {
    let fixed = bytes.first_chunk::<20>().ok_or(ParseError::Truncated)?;
    let [vihl, _, _, _, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
    let later = u16::from_be_bytes([f0, f1]) & 0x1fff != 0;
    if vihl >> 4 != 4 || protocol != PROTOCOL_TCP || later {
        return Err(ParseError::Unsupported);
    }
    let segment = bytes.get(usize::from(vihl & 0xf).max(5) * 4..).ok_or(ParseError::Truncated)?;
    Ok((Ipv4Addr::new(s0, s1, s2, s3).into(), Ipv4Addr::new(d0, d1, d2, d3).into(), segment))
}

/// The same for IPv6; packets that we send have no extension headers.
fn quoted_v6(bytes: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), ParseError> {
    let (fixed, segment) = bytes.split_first_chunk::<IPV6_HEADER>().ok_or(ParseError::Truncated)?;
    let [first, _, _, _, _, _, protocol, _, addresses @ ..] = fixed;
    if first >> 4 != 6 || *protocol != PROTOCOL_TCP {
        return Err(ParseError::Unsupported);
    }
    let (source, destination) = addresses.split_first_chunk::<16>().ok_or(ParseError::Truncated)?;
    let destination = destination.first_chunk::<16>().ok_or(ParseError::Truncated)?;
    Ok((Ipv6Addr::from(*source).into(), Ipv6Addr::from(*destination).into(), segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Ecn;
    use crate::packet::Packet;
    use crate::tcp::Segment;

    fn header(source: &str, destination: &str) -> IpHeader {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 }
    }

    /// A router's "too big" about a packet of ours, with `quoted` bytes of it.
    fn message(ours: &IpHeader, quoted: usize) -> (IpHeader, u8, Vec<u8>) {
        message_of(if ours.source.is_ipv4() { [3, 4] } else { [2, 0] }, ours, quoted)
    }

    /// The same of any type and code.
    fn message_of(start: [u8; 2], ours: &IpHeader, quoted: usize) -> (IpHeader, u8, Vec<u8>) {
        let segment = Segment { source_port: 4000, destination_port: 80, seq: SeqNumber(77), ..Segment::default() };
        let mut packet = Vec::new();
        Packet { ip: *ours, segment }.emit(&mut packet).unwrap();
        let v4 = ours.source.is_ipv4();
        let router = header(if v4 { "10.9.9.9" } else { "fd00::9" }, &ours.source.to_string());
        let protocol = if v4 { PROTOCOL_ICMP } else { PROTOCOL_ICMPV6 };
        let mut bytes = [&start[..], &[0, 0, 0, 0, 0x05, 0x78], &packet[..quoted]].concat();
        let mut checksum = Checksum::new();
        if !v4 {
            checksum.add_pseudo_header(&router, protocol, bytes.len() as u32);
        }
        checksum.add_bytes(&bytes);
        bytes[2..4].copy_from_slice(&checksum.finish().to_be_bytes());
        (router, protocol, bytes)
    }

    #[test]
    fn a_router_that_drops_a_packet_tells_whose_it_was_and_what_would_have_passed() {
        for (source, destination, least) in [("10.0.0.1", "10.0.0.2", 28), ("fd00::1", "fd00::2", 48)] {
            let ours = header(source, destination);
            let expected = IcmpError {
                source: SocketAddr::new(ours.source, 4000),
                destination: SocketAddr::new(ours.destination, 80),
                seq: SeqNumber(77),
                trouble: Trouble::TooBig { mtu: 1400 },
            };
            for quoted in [least, least + 12] {
                let (router, protocol, bytes) = message(&ours, quoted);
                assert_eq!(IcmpError::parse(&router, protocol, &bytes), Ok(expected));
            }
            let (router, protocol, bytes) = message(&ours, least - 1);
            assert_eq!(IcmpError::parse(&router, protocol, &bytes), Err(ParseError::Truncated));
        }
    }

    #[test]
    fn each_code_tells_what_was_not_reached_and_unknown_ones_tell_nothing() {
        use Unreachable::{Host, Network, Port};
        let (v4, v6) = (header("10.0.0.1", "10.0.0.2"), header("fd00::1", "fd00::2"));
        let said = |ours: &IpHeader, kind: u8, code: u8| {
            let (router, protocol, bytes) = message_of([kind, code], ours, if ours.source.is_ipv4() { 28 } else { 48 });
            match IcmpError::parse(&router, protocol, &bytes) {
                Ok(IcmpError { source, destination, seq: SeqNumber(77), trouble: Trouble::Unreachable(what) }) => {
                    let ends = (ours.source, 4000, ours.destination, 80);
                    assert_eq!((source.ip(), source.port(), destination.ip(), destination.port()), ends);
                    Some(what)
                }
                Err(ParseError::Unsupported) => None,
                other => panic!("{kind}, {code}: {other:?}"),
            }
        };
        // RFC 1122, section 3.2.2.1; RFC 1812, section 5.2.7.1; code 4 is "too big".
        let codes = [
            Network, Host, Port, Port, Host, Host, Network, Host, Host, Network, Host, Network, Host, Host, Host, Host,
        ];
        for (code, what) in (0..).zip(codes).filter(|(code, _)| *code != 4) {
            assert_eq!(said(&v4, 3, code), Some(what), "code {code}");
        }
        // RFC 4443, section 3.1.
        for (code, what) in (0..).zip([Network, Host, Host, Host, Port, Host, Host]) {
            assert_eq!(said(&v6, 1, code), Some(what), "code {code}");
        }
        assert_eq!([said(&v4, 11, 0), said(&v4, 11, 1), said(&v6, 3, 0), said(&v6, 3, 1)], [Some(Host); 4]);
        assert_eq!([said(&v4, 3, 16), said(&v4, 11, 2), said(&v6, 1, 7), said(&v6, 3, 2)], [None; 4]);
        // A source quench, redirects, parameter problems; types of the other family.
        for (ours, kind) in [(&v4, 4), (&v4, 5), (&v4, 12), (&v4, 1), (&v6, 137), (&v6, 4), (&v6, 11)] {
            assert_eq!(said(ours, kind, 0), None, "type {kind}");
        }
    }

    #[test]
    fn a_message_about_the_packet_of_another_host_is_refused() {
        let (mut router, protocol, bytes) = message(&header("10.0.0.1", "10.0.0.2"), 28);
        router.destination = "10.0.0.3".parse().unwrap();
        assert_eq!(IcmpError::parse(&router, protocol, &bytes), Err(ParseError::Unsupported));
    }

    #[test]
    fn other_messages_damaged_ones_and_those_about_others_than_tcp_are_errors() {
        let ours = header("10.0.0.1", "10.0.0.2");
        let (router, protocol, bytes) = message(&ours, 28);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(IcmpError::parse(&router, protocol, &damaged).is_err(), "byte {at}");
            assert!(IcmpError::parse(&router, protocol, &bytes[..at]).is_err(), "{at} bytes");
        }
        // Complete, but about UDP, or about a later fragment.
        for (at, value) in [(8 + 9, 17), (8 + 7, 1)] {
            let mut other = bytes.clone();
            other[at] = value;
            other[2..4].fill(0);
            let mut checksum = Checksum::new();
            checksum.add_bytes(&other);
            other[2..4].copy_from_slice(&checksum.finish().to_be_bytes());
            assert_eq!(IcmpError::parse(&router, protocol, &other), Err(ParseError::Unsupported), "byte {at}");
        }
        // Of the other family, by its protocol number or by its header.
        assert_eq!(IcmpError::parse(&router, PROTOCOL_ICMPV6, &bytes), Err(ParseError::Unsupported));
        let v6 = header("fd00::9", "fd00::1");
        assert_eq!(IcmpError::parse(&v6, PROTOCOL_ICMP, &bytes), Err(ParseError::Unsupported));
    }
}
