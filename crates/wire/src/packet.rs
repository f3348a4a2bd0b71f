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
    /// From nowhere to nowhere: a place for a packet.
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
    /// See [`ip::parse`] and [`Segment::parse`]; [`ParseError::Unsupported`] if it carries something else.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let datagram = ip::parse(bytes)?;
        if datagram.protocol != PROTOCOL_TCP {
            return Err(ParseError::Unsupported);
        }
        let segment = Segment::parse(&datagram.header, bytes, datagram.payload)?;
        Ok(Self { ip: datagram.header, segment })
    }

    /// As [`Self::parse`], but the checksum of TCP is not looked at, see [`Segment::parse_unverified`].
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

    /// Appends the packet; what is parsed from it equals `self`.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged then.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.segment.check()?;
        let length = self.segment.wire_len();
        self.ip.check(length)?;
        out.reserve(self.ip.encoded_len() + length);
        self.ip.emit(PROTOCOL_TCP, length, out)?;
        self.segment.write(&self.ip, out);
        Ok(())
    }

    /// Appends the headers of the packet as if its payload were `payload_len` bytes long, with nothing but the sum of the
    /// pseudo-header in the place of TCP's checksum: what a device takes that finishes checksums and cuts long segments itself.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged then.
    pub fn emit_for_offload(&self, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.segment.check()?;
        let length = self.segment.header_len() + payload_len;
        self.ip.check(length)?;
        self.ip.emit(PROTOCOL_TCP, length, out)?;
        self.segment.write_for_offload(&self.ip, payload_len, out);
        Ok(())
    }

    /// Length of the IP packet as emitted, bytes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.ip.encoded_len() + self.segment.wire_len()
    }
}
