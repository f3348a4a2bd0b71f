//! IPv4 and IPv6 headers, as needed by an end host (RFC 791, RFC 8200).

use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::reader::Reader;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Length of an IPv4 header without options in bytes.
pub const IPV4_HEADER: usize = 20;
/// Length of an IPv6 header in bytes.
pub const IPV6_HEADER: usize = 40;

/// The two bits of explicit congestion notification (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable, ECT(1).
    Capable1,
    /// ECN-capable, ECT(0).
    Capable0,
    /// Congestion experienced.
    Congestion,
}

impl Ecn {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congestion,
        }
    }
    const fn to_bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::Congestion => 3,
        }
    }
}

impl Checksum {
    /// Adds the pseudo-header of transport protocols over IPv4 (RFC 9293, section 3.1) or IPv6 (RFC 8200, section 8.1);
    /// `length` is that of the upper layer, header included.
    pub fn add_pseudo_header(&mut self, ip: &IpHeader, protocol: u8, length: u32) {
        for address in [ip.source, ip.destination] {
            match address {
                IpAddr::V4(address) => self.add_u32(address.to_bits()),
                IpAddr::V6(address) => self.add_ipv6(address),
            }
        }
        self.add_u16(u16::from(protocol));
        self.add_u32(length);
    }
}

/// The fields of an IP header that the engine reads or chooses; lengths and checksums are derived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family as `source`.
    pub destination: IpAddr,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

/// The parts of an IP packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The header.
    pub header: IpHeader,
    /// Protocol number of the payload, after all extension headers.
    pub protocol: u8,
    /// Range of the payload in the packet, without link-layer padding.
    pub payload: Range<usize>,
}

impl IpHeader {
    /// Length of the header as emitted in bytes: 20 or 40.
    pub const fn encoded_len(&self) -> usize {
        match self.source {
            IpAddr::V4(_) => IPV4_HEADER,
            IpAddr::V6(_) => IPV6_HEADER,
        }
    }

    /// Whether a payload of `payload_len` bytes can be sent under this header.
    pub(crate) fn check(&self, payload_len: usize) -> Result<(), EmitError> {
        let counted = match (self.source, self.destination) {
            // Total Length counts the header (RFC 791, section 3.1), Payload Length does not (RFC 8200, section 3).
            (IpAddr::V4(_), IpAddr::V4(_)) => payload_len.saturating_add(IPV4_HEADER),
            (IpAddr::V6(_), IpAddr::V6(_)) => payload_len,
            _ => return Err(EmitError::MixedFamilies),
        };
        if counted > usize::from(u16::MAX) {
            return Err(EmitError::TooLong);
        }
        if self.dscp > 0x3f {
            return Err(EmitError::BadValue);
        }
        Ok(())
    }

    /// Appends the header of a packet whose payload has protocol `protocol` and `payload_len` bytes.
    ///
    /// IPv4 packets have "don't fragment" set and identification 0, as atomic datagrams may (RFC 6864, section 4.1);
    /// IPv6 packets have flow label 0.
    ///
    /// # Errors
    /// [`EmitError::MixedFamilies`], [`EmitError::TooLong`], or [`EmitError::BadValue`] for a DSCP above 63.
    pub fn emit(&self, protocol: u8, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.check(payload_len)?;
        let traffic_class = self.dscp << 2 | self.ecn.to_bits();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let start = out.len();
                let total = ((payload_len + IPV4_HEADER) as u16).to_be_bytes();
                let [s0, s1, s2, s3] = source.octets();
                let [d0, d1, d2, d3] = destination.octets();
                let (hops, [t0, t1]) = (self.hop_limit, total);
                #[rustfmt::skip]
                out.extend_from_slice(&[
                    0x45, traffic_class, t0, t1, 0, 0, 0x40, 0, hops, protocol, 0, 0,
                    s0, s1, s2, s3, d0, d1, d2, d3,
                ]);
                let mut checksum = Checksum::new();
                checksum.add_bytes(out.get(start..).unwrap_or(&[]));
                patch(out, start + 10, checksum.finish());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let first = 6 << 28 | u32::from(traffic_class) << 20;
                out.extend_from_slice(&first.to_be_bytes());
                let [l0, l1] = (payload_len as u16).to_be_bytes();
                out.extend_from_slice(&[l0, l1, protocol, self.hop_limit]);
                out.extend_from_slice(&source.octets());
                out.extend_from_slice(&destination.octets());
            }
            _ => return Err(EmitError::MixedFamilies),
        }
        Ok(())
    }
}

/// Writes a checksum into the header it was computed over.
pub(crate) fn patch(out: &mut [u8], offset: usize, checksum: u16) {
    let field = out.get_mut(offset..).and_then(|tail| tail.first_chunk_mut::<2>());
    *field.expect("the header around the field was written just before") = checksum.to_be_bytes();
}

/// Parses the header of an IP packet and finds its payload.
///
/// IPv4 options and IPv6 extension headers are skipped without effect. Fragments are refused: senders here discover the
/// path's MTU, and reassembly would let anyone use memory.
///
/// # Errors
/// [`ParseError::Truncated`], [`ParseError::BadLength`], [`ParseError::BadChecksum`] (IPv4 header),
/// [`ParseError::BadValue`] (a hop-by-hop header that is not the first), and [`ParseError::Unsupported`] for other
/// versions, fragments and extension headers that need more than skipping.
pub fn parse(bytes: &[u8]) -> Result<Datagram, ParseError> {
    match bytes.first().ok_or(ParseError::Truncated)? >> 4 {
        4 => parse_v4(bytes),
        6 => parse_v6(bytes),
        _ => Err(ParseError::Unsupported),
    }
}

fn parse_v4(bytes: &[u8]) -> Result<Datagram, ParseError> {
    let fixed = bytes.first_chunk::<IPV4_HEADER>().ok_or(ParseError::Truncated)?;
    let [vihl, class, t0, t1, _, _, f0, f1, hop_limit, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
    let header_len = usize::from(vihl & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([t0, t1]));
    if header_len < IPV4_HEADER || total < header_len {
        return Err(ParseError::BadLength);
    }
    if bytes.len() < total {
        return Err(ParseError::Truncated);
    }
    let mut checksum = Checksum::new();
    checksum.add_bytes(bytes.get(..header_len).ok_or(ParseError::Truncated)?);
    if !checksum.is_valid() {
        return Err(ParseError::BadChecksum);
    }
    // More-fragments, or a fragment offset other than 0.
    if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
        return Err(ParseError::Unsupported);
    }
    let header = IpHeader {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
        ecn: Ecn::from_bits(class),
        dscp: class >> 2,
        hop_limit,
    };
    Ok(Datagram { header, protocol, payload: header_len..total })
}

fn parse_v6(bytes: &[u8]) -> Result<Datagram, ParseError> {
    let fixed = bytes.first_chunk::<IPV6_HEADER>().ok_or(ParseError::Truncated)?;
    let mut reader = Reader(fixed);
    let (word, length, next, hop_limit) = (reader.u32(), reader.u16(), reader.u8(), reader.u8());
    let (source, destination) = (reader.array::<16>(), reader.array::<16>());
    let (Some(word), Some(length), Some(next), Some(hop_limit), Some(source), Some(destination)) =
        (word, length, next, hop_limit, source, destination)
    else {
        return Err(ParseError::Truncated);
    };
    let end = IPV6_HEADER + usize::from(length);
    let packet = bytes.get(..end).ok_or(ParseError::Truncated)?;
    let class = (word >> 20) as u8;
    let header = IpHeader {
        source: Ipv6Addr::from(source).into(),
        destination: Ipv6Addr::from(destination).into(),
        ecn: Ecn::from_bits(class),
        dscp: class >> 2,
        hop_limit,
    };
    let (protocol, start) = skip_extensions(packet, next)?;
    Ok(Datagram { header, protocol, payload: start..end })
}

/// Skips the extension headers (RFC 8200, section 4); returns the protocol and the offset after them.
fn skip_extensions(packet: &[u8], first: u8) -> Result<(u8, usize), ParseError> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    let (mut next, mut offset) = (first, IPV6_HEADER);
    loop {
        if !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            return Ok((next, offset));
        }
        let extension = packet.get(offset..).and_then(|rest| rest.first_chunk::<8>());
        // The payload length ends the packet here, so the missing bytes were never sent.
        let [following, units, b2, b3, ..] = *extension.ok_or(ParseError::BadLength)?;
        let length = match next {
            // Allowed only directly after the IPv6 header (section 4.1).
            HOP_BY_HOP if offset != IPV6_HEADER => return Err(ParseError::BadValue),
            // At the final destination no segment is left; otherwise the packet is not for us (section 4.4).
            ROUTING if b3 != 0 => return Err(ParseError::Unsupported),
            // Whole packets with a fragment header are atomic and parsed as if they had none (RFC 6946).
            FRAGMENT if u16::from_be_bytes([b2, b3]) & 0xfff9 != 0 => return Err(ParseError::Unsupported),
            FRAGMENT => 8,
            _ => 8 + usize::from(units) * 8,
        };
        offset += length;
        if offset > packet.len() {
            return Err(ParseError::BadLength);
        }
        next = following;
    }
}

#[cfg(test)]
mod tests;
