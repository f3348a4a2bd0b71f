//! UDP packets (RFC 768): cross traffic as it appears in captures.

use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::ip::{self, IpHeader, PROTOCOL_UDP, patch};
use crate::reader::Reader;
use bytes::Bytes;

/// Length of a UDP header in bytes.
pub const HEADER: usize = 8;

/// An IP packet that carries UDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpPacket {
    /// The IP header.
    pub ip: IpHeader,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Payload; [`zeros`] where only its length matters.
    pub payload: Bytes,
}

/// A payload of `length` zero bytes, at most 65 507 (the maximum of an IPv4 packet), without allocation.
pub fn zeros(length: usize) -> Bytes {
    static ZEROS: [u8; 65_507] = [0; 65_507];
    Bytes::from_static(ZEROS.get(..length).unwrap_or(&ZEROS))
}

impl UdpPacket {
    /// Parses an IP packet that carries UDP; the payload shares memory with `bytes`.
    ///
    /// # Errors
    /// See [`ip::parse`]; [`ParseError::Unsupported`] for other payloads, and `Truncated`, `BadLength` and
    /// `BadChecksum` for the UDP header.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        Self::parse_as(bytes, false)
    }

    /// As [`Self::parse`] without verification of the checksum, which was verified by a device, or will be completed by
    /// one.
    ///
    /// # Errors
    /// As for [`Self::parse`], without `BadChecksum` for the UDP header.
    pub fn parse_unverified(bytes: &Bytes) -> Result<Self, ParseError> {
        Self::parse_as(bytes, true)
    }

    fn parse_as(bytes: &Bytes, vouched: bool) -> Result<Self, ParseError> {
        let ip::Datagram { header: ip, protocol, payload: range } = ip::parse(bytes)?;
        if protocol != PROTOCOL_UDP {
            return Err(ParseError::Unsupported);
        }
        let carried = bytes.get(range.clone()).ok_or(ParseError::Truncated)?;
        let mut reader = Reader(carried);
        let (source_port, destination_port) = (reader.u16(), reader.u16());
        let (Some(source_port), Some(destination_port), Some(length), Some(field)) =
            (source_port, destination_port, reader.u16(), reader.u16())
        else {
            return Err(ParseError::Truncated);
        };
        let datagram = carried.get(..usize::from(length)).ok_or(ParseError::BadLength)?;
        if datagram.len() < HEADER {
            return Err(ParseError::BadLength);
        }
        let mut checksum = Checksum::new();
        checksum.add_pseudo_header(&ip, PROTOCOL_UDP, u32::from(length));
        checksum.add_bytes(datagram);
        // 0 means no checksum, which only IPv4 allows (RFC 8200, section 8.1).
        let unchecked = field == 0 && ip.source.is_ipv4();
        if !vouched && !unchecked && (field == 0 || !checksum.is_valid()) {
            return Err(ParseError::BadChecksum);
        }
        let payload = bytes.slice(range.start + HEADER..range.start + datagram.len());
        Ok(Self { ip, source_port, destination_port, payload })
    }

    /// Appends the packet; parsing it results in `self`.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged on errors.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let length = HEADER + self.payload.len();
        self.ip.emit(PROTOCOL_UDP, length, out)?;
        out.reserve(length);
        let start = out.len();
        let [s0, s1] = self.source_port.to_be_bytes();
        let [d0, d1] = self.destination_port.to_be_bytes();
        let [l0, l1] = (length as u16).to_be_bytes();
        out.extend_from_slice(&[s0, s1, d0, d1, l0, l1, 0, 0]);
        out.extend_from_slice(&self.payload);
        let mut checksum = Checksum::new();
        checksum.add_pseudo_header(&self.ip, PROTOCOL_UDP, length as u32);
        checksum.add_bytes(out.get(start..).unwrap_or(&[]));
        // A sum of 0 is sent as all ones: 0 would mean no checksum.
        let field = checksum.finish();
        patch(out, start + 6, if field == 0 { 0xffff } else { field });
        Ok(())
    }

    /// Length of the IP packet as emitted in bytes.
    pub fn wire_len(&self) -> usize {
        self.ip.encoded_len() + HEADER + self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn packet(destination_port: u16, payload: &'static [u8]) -> UdpPacket {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 1 };
        UdpPacket { ip, source_port: 0x1234, destination_port, payload: Bytes::from_static(payload) }
    }

    fn emitted(packet: &UdpPacket) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_datagram_is_the_figure_of_rfc_768() {
        // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000b = 141f; 1234 + 0050 + 000b = 128f; "abc" = 6162 + 6300 = c462.
        // Sum eb10, complement 14ef.
        let bytes = emitted(&packet(80, b"abc"));
        assert_eq!(bytes[20..], [0x12, 0x34, 0, 80, 0, 11, 0x14, 0xef, b'a', b'b', b'c']);
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // Without payload: 1400 + 3 + 0011 + 0008 + 1234 + 0008 = 2658, so port d9a7 makes the sum ffff.
        let packet = packet(0xd9a7, b"");
        let bytes = emitted(&packet);
        assert_eq!(bytes[26..28], [0xff, 0xff]);
        assert_eq!(UdpPacket::parse(&Bytes::from(bytes)), Ok(packet));
    }

    #[test]
    fn over_ipv4_a_datagram_may_have_no_checksum_but_not_a_wrong_one() {
        let packet = packet(80, b"abc");
        let mut bytes = emitted(&packet);
        bytes[26..28].fill(0);
        assert_eq!(UdpPacket::parse(&Bytes::copy_from_slice(&bytes)), Ok(packet));
        bytes[27] = 1;
        assert_eq!(UdpPacket::parse(&Bytes::from(bytes)), Err(ParseError::BadChecksum));
    }

    #[test]
    fn over_ipv6_a_datagram_must_have_a_checksum() {
        let mut packet = packet(80, b"abc");
        packet.ip.source = "2001:db8::1".parse().unwrap();
        packet.ip.destination = "2001:db8::2".parse().unwrap();
        let mut bytes = emitted(&packet);
        assert_eq!(UdpPacket::parse(&Bytes::copy_from_slice(&bytes)), Ok(packet));
        bytes[46..48].fill(0);
        assert_eq!(UdpPacket::parse(&Bytes::from(bytes)), Err(ParseError::BadChecksum));
    }

    #[test]
    fn a_length_outside_the_packet_is_an_error() {
        let mut bytes = emitted(&packet(80, b"abc"));
        for length in [7, 12] {
            bytes[25] = length;
            assert_eq!(UdpPacket::parse(&Bytes::copy_from_slice(&bytes)), Err(ParseError::BadLength));
        }
    }

    #[test]
    fn zeros_are_as_many_as_asked_for_up_to_a_full_packet() {
        assert_eq!(zeros(1_400).len(), 1_400);
        assert_eq!(zeros(100_000).len(), 65_507);
    }
}
