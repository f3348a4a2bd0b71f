//! An IP packet with a TCP segment in it: the unit of the engine.

use crate::error::{EmitError, ParseError};
use crate::ip::{self, Ecn, IpHeader, PROTOCOL_TCP};
use crate::tcp::Segment;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};

/// An IP packet that carries TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The IP header.
    pub ip: IpHeader,
    /// The TCP segment.
    pub segment: Segment,
}

impl Default for Packet {
    /// A placeholder with unspecified addresses.
    fn default() -> Self {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let ip = IpHeader { source: nowhere, destination: nowhere, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 0 };
        Self { ip, segment: Segment::default() }
    }
}

impl Packet {
    /// Parses an IP packet that carries TCP; the payload shares memory with `bytes`.
    ///
    /// # Errors
    /// See [`ip::parse`] and [`Segment::parse`]; [`ParseError::Unsupported`] for other payloads.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let datagram = ip::parse(bytes)?;
        if datagram.protocol != PROTOCOL_TCP {
            return Err(ParseError::Unsupported);
        }
        let segment = Segment::parse(&datagram.header, bytes, datagram.payload)?;
        Ok(Self { ip: datagram.header, segment })
    }

    /// As [`Self::parse`] without verification of TCP's checksum, see [`Segment::parse_unverified`].
    ///
    /// # Errors
    /// As for [`Self::parse`], without [`ParseError::BadChecksum`] for TCP.
    pub fn parse_unverified(bytes: &Bytes) -> Result<Self, ParseError> {
        let datagram = ip::parse(bytes)?;
        if datagram.protocol != PROTOCOL_TCP {
            return Err(ParseError::Unsupported);
        }
        let segment = Segment::parse_unverified(bytes, datagram.payload)?;
        Ok(Self { ip: datagram.header, segment })
    }

    /// Appends the packet; parsing it results in `self`.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged on errors.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.segment.check()?;
        let length = self.segment.wire_len();
        self.ip.check(length)?;
        out.reserve(self.ip.encoded_len() + length);
        self.ip.emit(PROTOCOL_TCP, length, out)?;
        self.segment.write(&self.ip, out);
        Ok(())
    }

    /// Appends the headers of the packet as for a payload of `payload_len` bytes, with only the sum of the
    /// pseudo-header in TCP's checksum field, for a device with checksum and segmentation offload.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged on errors.
    pub fn emit_for_offload(&self, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.segment.check()?;
        let length = self.segment.header_len() + payload_len;
        self.ip.check(length)?;
        self.ip.emit(PROTOCOL_TCP, length, out)?;
        self.segment.write_for_offload(&self.ip, payload_len, out);
        Ok(())
    }

    /// Length of the IP packet as emitted in bytes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.ip.encoded_len() + self.segment.wire_len()
    }
}
