//! Packets that a device delivers.

use anabranch_wire::{IcmpError, Packet, ParseError, ip};
use bytes::Bytes;

/// A packet that a device delivers.
#[allow(clippy::large_enum_variant, reason = "nearly all that comes is packets, and each is used at once")]
pub(crate) enum Received {
    /// A TCP segment in its packet.
    Packet(Packet),
    /// An ICMP error about a packet of ours.
    Error(IcmpError),
    /// Another packet, if the device passes those on.
    Foreign(Foreign),
}

/// An IP packet that is not for the engine: not TCP, or a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    pub bytes: Bytes,
    /// Its checksum is incomplete, or verified already, and must not be checked.
    pub vouched: bool,
    /// Payload size of each UDP datagram but the last, if it must be split.
    pub cut: Option<u16>,
}

impl Received {
    /// Parses an IP packet whose TCP checksum may be verified already.
    pub(super) fn parse(bytes: &Bytes, vouched: bool) -> Result<Self, ParseError> {
        let packet = if vouched { Packet::parse_unverified(bytes) } else { Packet::parse(bytes) };
        match packet {
            Err(ParseError::Unsupported) => {
                let datagram = ip::parse(bytes)?;
                let message = bytes.get(datagram.payload).unwrap_or_default();
                IcmpError::parse(&datagram.header, datagram.protocol, message).map(Self::Error)
            }
            other => other.map(Self::Packet),
        }
    }
}
