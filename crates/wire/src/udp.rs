//! UDP packets (RFC 768): cross traffic as it appears in captures.

use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::ip::{self, IpHeader, PROTOCOL_UDP, patch};
use crate::reader::Reader;
use bytes::Bytes;

/// Length of a UDP header, bytes.
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

/// A payload of `length` zero bytes, at most 65 507 (what fits in one IPv4 packet), without allocation.
pub fn zeros(length: usize) -> Bytes {
    static ZEROS: [u8; 65_507] = [0; 65_507];
    Bytes::from_static(ZEROS.get(..length).unwrap_or(&ZEROS))
}

impl UdpPacket {
    /// Parses an IP packet that carries UDP; the payload shares memory with `bytes`.
    ///
    /// # Errors
    /// See [`ip::parse`]; [`ParseError::Unsupported`] if it carries something else, and `Truncated`, `BadLength` and
    /// `BadChecksum` for the UDP header.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
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
        // 0 says that there is none, which only IPv4 allows (RFC 8200, section 8.1).
        let unchecked = field == 0 && ip.source.is_ipv4();
        if !unchecked && (field == 0 || !checksum.is_valid()) {
            return Err(ParseError::BadChecksum);
        }
        let payload = bytes.slice(range.start + HEADER..range.start + datagram.len());
        Ok(Self { ip, source_port, destination_port, payload })
    }

    /// Appends the packet; what is parsed from it equals `self`.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged then.
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
        // A sum of 0 is sent as its other form, all ones: 0 would say that there is no checksum.
        let field = checksum.finish();
        patch(out, start + 6, if field == 0 { 0xffff } else { field });
        Ok(())
    }

    /// Length of the IP packet as emitted, bytes.
    pub fn wire_len(&self) -> usize {
        self.ip.encoded_len() + HEADER + self.payload.len()
    }
}
