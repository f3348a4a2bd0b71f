//! TCP segments and the options of plain TCP (RFC 9293, 7323, 2018, 2883).

use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::ip::{IpHeader, PROTOCOL_TCP, patch};
use crate::reader::Reader;
use crate::seq::SeqNumber;
use bytes::Bytes;
use core::ops::Range;

mod flags;
mod options;
mod sack;
pub use flags::Flags;
pub use options::{
    MAX_WINDOW_SCALE, MAXIMUM_SEGMENT_SIZE_LEN, OPTION_SPACE, SACK_BLOCK_LEN, SACK_LEN, SACK_PERMITTED_LEN,
    TIMESTAMPS_LEN, TcpOptions, Timestamps, WINDOW_SCALE_LEN,
};
pub use sack::{SackBlock, SackBlocks};

/// Length of a TCP header without options in bytes (RFC 9293, section 3.1).
pub const FIXED_HEADER: usize = 20;

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first byte of payload, or of the SYN.
    pub seq: SeqNumber,
    /// Next sequence number expected, valid with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Urgent pointer, valid with [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload.
    pub payload: Bytes,
}

impl Segment {
    /// Length in sequence space: payload, SYN and FIN (RFC 9293, section 3.4, SEG.LEN).
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN));
        self.payload.len() as u32 + control
    }

    /// Length of the TCP header in bytes, options and padding included; at most 60 if it can be emitted.
    #[inline]
    pub fn header_len(&self) -> usize {
        FIXED_HEADER + self.options.encoded_len()
    }

    /// Length of the segment as emitted, bytes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Parses the segment in `range` of `bytes`, under the IP header `ip`; the payload shares memory with `bytes`.
    ///
    /// Ignores reserved header bits, unknown options, malformed options, and options that are not allowed on the
    /// segment: a mapping that cannot be parsed is no reason to drop the segment.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::BadLength`] (data offset),
    /// [`ParseError::BadChecksum`].
    pub fn parse(ip: &IpHeader, bytes: &Bytes, range: Range<usize>) -> Result<Self, ParseError> {
        Self::read(Some(ip), bytes, range)
    }

    /// As [`Self::parse`] without verification of the checksum: the device has verified it, or the segment never left
    /// the machine and has none yet (checksum offload).
    ///
    /// # Errors
    /// As for [`Self::parse`], without [`ParseError::BadChecksum`].
    pub fn parse_unverified(bytes: &Bytes, range: Range<usize>) -> Result<Self, ParseError> {
        Self::read(None, bytes, range)
    }

    /// Parses a segment; verifies the checksum if the IP header is passed.
    fn read(verify_under: Option<&IpHeader>, bytes: &Bytes, range: Range<usize>) -> Result<Self, ParseError> {
        let segment = bytes.get(range.clone()).ok_or(ParseError::Truncated)?;
        let Header { mut parsed, header_len } = Header::parse(segment).ok_or(ParseError::Truncated)?;
        if header_len < FIXED_HEADER {
            return Err(ParseError::BadLength);
        }
        let options = segment.get(FIXED_HEADER..header_len).ok_or(ParseError::Truncated)?;
        if let Some(ip) = verify_under {
            let mut checksum = Checksum::new();
            checksum.add_pseudo_header(ip, PROTOCOL_TCP, segment.len() as u32);
            checksum.add_bytes(segment);
            if !checksum.is_valid() {
                return Err(ParseError::BadChecksum);
            }
        }
        parsed.options = TcpOptions::parse(options, parsed.flags);
        parsed.payload = bytes.slice(range.start + header_len..range.end);
        Ok(parsed)
    }

    /// Checks that the receiver of the emitted segment parses the same.
    pub(crate) fn check(&self) -> Result<(), EmitError> {
        if self.options.encoded_len() > OPTION_SPACE {
            return Err(EmitError::OptionsTooLong);
        }
        self.options.check(self.flags)
    }

    /// Appends the segment, after [`Self::check`] and [`IpHeader::check`].
    pub(crate) fn write(&self, ip: &IpHeader, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_header(out);
        out.extend_from_slice(&self.payload);
        let segment = out.get(start..).unwrap_or(&[]);
        let mut checksum = Checksum::new();
        checksum.add_pseudo_header(ip, PROTOCOL_TCP, segment.len() as u32);
        checksum.add_bytes(segment);
        patch(out, start + 16, checksum.finish());
    }

    /// Appends the header of a segment with `payload_len` bytes of payload, with the sum of the pseudo-header in the
    /// checksum field, for a device with checksum offload.
    pub(crate) fn write_for_offload(&self, ip: &IpHeader, payload_len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_header(out);
        let mut checksum = Checksum::new();
        checksum.add_pseudo_header(ip, PROTOCOL_TCP, (self.header_len() + payload_len) as u32);
        patch(out, start + 16, !checksum.finish());
    }

    fn write_header(&self, out: &mut Vec<u8>) {
        let [s0, s1] = self.source_port.to_be_bytes();
        let [d0, d1] = self.destination_port.to_be_bytes();
        let [q0, q1, q2, q3] = self.seq.0.to_be_bytes();
        let [a0, a1, a2, a3] = self.ack.0.to_be_bytes();
        let offset = ((self.header_len() / 4) as u8) << 4;
        let [w0, w1] = self.window.to_be_bytes();
        let [u0, u1] = self.urgent.to_be_bytes();
        #[rustfmt::skip]
        out.extend_from_slice(&[
            s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, self.flags.0, w0, w1, 0, 0, u0, u1,
        ]);
        self.options.write(out);
    }
}

/// The fixed part of a TCP header.
struct Header {
    /// A segment without options and payload.
    parsed: Segment,
    /// Four times the data offset.
    header_len: usize,
}

impl Header {
    fn parse(segment: &[u8]) -> Option<Self> {
        let mut reader = Reader(segment);
        let mut parsed = Segment { source_port: reader.u16()?, destination_port: reader.u16()?, ..Segment::default() };
        parsed.seq = SeqNumber(reader.u32()?);
        parsed.ack = SeqNumber(reader.u32()?);
        let header_len = usize::from(reader.u8()? >> 4) * 4;
        parsed.flags = Flags(reader.u8()?);
        parsed.window = reader.u16()?;
        let _checksum = reader.u16()?;
        parsed.urgent = reader.u16()?;
        Some(Self { parsed, header_len })
    }
}

#[cfg(test)]
mod tests;
