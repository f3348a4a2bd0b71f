//! ICMP echo, requests and replies (RFC 792; RFC 4443, section 4).

use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::icmp::{PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use crate::ip::{self, IpHeader, patch};
use bytes::Bytes;

/// Types of requests and replies.
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

/// Bytes before the identifier: type, code, checksum.
const HEAD: usize = 4;

/// Least length of the message: that, the identifier and the sequence number.
const LEAST: usize = 8;

/// An IP packet with an echo request or reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EchoPacket {
    /// The IP header.
    pub ip: IpHeader,
    /// A reply, not a request.
    pub reply: bool,
    /// The message from the identifier on: identifier, sequence number, data; at least four bytes.
    pub body: Bytes,
}

impl EchoPacket {
    /// Parses an IP packet that carries an echo message; the body shares memory with `bytes`. The checksum is not
    /// verified if `vouched`.
    ///
    /// # Errors
    /// See [`ip::parse`]; [`ParseError::Unsupported`] for other payloads, `Truncated` and `BadChecksum` for the
    /// message.
    pub fn parse(bytes: &Bytes, vouched: bool) -> Result<Self, ParseError> {
        let ip::Datagram { header: ip, protocol, payload } = ip::parse(bytes)?;
        let v4 = ip.source.is_ipv4();
        if protocol != if v4 { PROTOCOL_ICMP } else { PROTOCOL_ICMPV6 } {
            return Err(ParseError::Unsupported);
        }
        let message = bytes.get(payload.clone()).ok_or(ParseError::Truncated)?;
        let reply = match (v4, message.first_chunk()) {
            (_, None) => return Err(ParseError::Truncated),
            (true, Some([REQUEST, 0])) | (false, Some([REQUEST_V6, 0])) => false,
            (true, Some([REPLY, 0])) | (false, Some([REPLY_V6, 0])) => true,
            _ => return Err(ParseError::Unsupported),
        };
        if message.len() < LEAST {
            return Err(ParseError::Truncated);
        }
        if !vouched && !checksum(&ip, message).is_valid() {
            return Err(ParseError::BadChecksum);
        }
        Ok(Self { ip, reply, body: bytes.slice(payload.start + HEAD..payload.end) })
    }

    /// Appends the packet; parsing it results in `self`.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is unchanged on errors.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (protocol, kind) = match (self.ip.source.is_ipv4(), self.reply) {
            (true, false) => (PROTOCOL_ICMP, REQUEST),
            (true, true) => (PROTOCOL_ICMP, REPLY),
            (false, false) => (PROTOCOL_ICMPV6, REQUEST_V6),
            (false, true) => (PROTOCOL_ICMPV6, REPLY_V6),
        };
        self.ip.emit(protocol, HEAD + self.body.len(), out)?;
        let start = out.len();
        out.extend_from_slice(&[kind, 0, 0, 0]);
        out.extend_from_slice(&self.body);
        let field = checksum(&self.ip, out.get(start..).unwrap_or_default()).finish();
        patch(out, start + 2, field);
        Ok(())
    }
}

/// The sum over a message, and over a pseudo-header for IPv6.
fn checksum(ip: &IpHeader, message: &[u8]) -> Checksum {
    let mut checksum = Checksum::new();
    if !ip.source.is_ipv4() {
        checksum.add_pseudo_header(ip, PROTOCOL_ICMPV6, message.len() as u32);
    }
    checksum.add_bytes(message);
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn packet(source: &str, destination: &str, reply: bool) -> EchoPacket {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
        EchoPacket { ip, reply, body: Bytes::from_static(&[0x12, 0x34, 0, 1, b'a', b'b']) }
    }

    fn emitted(packet: &EchoPacket) -> Bytes {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).unwrap();
        Bytes::from(bytes)
    }

    #[test]
    fn a_request_is_the_figure_of_rfc_792() {
        // 0800 + 1234 + 0001 + 6162 = 7b97, complement 8468.
        let bytes = emitted(&packet("10.0.0.1", "10.0.0.2", false));
        assert_eq!(bytes[9], 1);
        assert_eq!(bytes[20..], [8, 0, 0x84, 0x68, 0x12, 0x34, 0, 1, b'a', b'b']);
    }

    #[test]
    fn a_message_without_data_is_parsed() {
        let shortest =
            EchoPacket { body: Bytes::from_static(&[0x12, 0x34, 0, 1]), ..packet("10.0.0.1", "10.0.0.2", false) };
        let bytes = emitted(&shortest);
        assert_eq!(EchoPacket::parse(&bytes, false), Ok(shortest));
    }

    #[test]
    fn what_is_emitted_is_parsed_and_one_flipped_bit_is_seen() {
        for (source, destination) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "2001:db8::2")] {
            for reply in [false, true] {
                let packet = packet(source, destination, reply);
                let bytes = emitted(&packet);
                assert_eq!(EchoPacket::parse(&bytes, false), Ok(packet));
                let mut damaged = bytes.to_vec();
                *damaged.last_mut().unwrap() ^= 1;
                let damaged = Bytes::from(damaged);
                assert_eq!(EchoPacket::parse(&damaged, false), Err(ParseError::BadChecksum));
                assert!(EchoPacket::parse(&damaged, true).is_ok());
            }
        }
    }

    #[test]
    fn other_messages_and_short_ones_are_errors() {
        let bytes = emitted(&packet("10.0.0.1", "10.0.0.2", false)).to_vec();
        let mut other = bytes.clone();
        other[20] = 3;
        assert_eq!(EchoPacket::parse(&Bytes::from(other), true), Err(ParseError::Unsupported));
        let mut short = bytes[..27].to_vec();
        short[3] = 27;
        short[10..12].fill(0);
        let mut sum = Checksum::new();
        sum.add_bytes(&short[..20]);
        short[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        assert_eq!(EchoPacket::parse(&Bytes::from(short), true), Err(ParseError::Truncated));
    }
}
