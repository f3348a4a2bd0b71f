//! What a device delivers to the engine.

use anabranch_wire::{Packet, PacketTooBig, ParseError, ip};
use bytes::Bytes;

/// What a device delivers to the engine.
#[allow(clippy::large_enum_variant, reason = "nearly all that comes is packets, and each is used at once")]
pub(crate) enum Received {
    /// A TCP segment in its packet.
    Packet(Packet),
    /// A router's word that one of ours was too big.
    TooBig(PacketTooBig),
}

impl Received {
    /// Reads an IP packet whose TCP checksum somebody may vouch for.
    pub(super) fn parse(bytes: &Bytes, vouched: bool) -> Result<Self, ParseError> {
        let packet = if vouched { Packet::parse_unverified(bytes) } else { Packet::parse(bytes) };
        match packet {
            Err(ParseError::Unsupported) => {
                let datagram = ip::parse(bytes)?;
                let message = bytes.get(datagram.payload).unwrap_or_default();
                PacketTooBig::parse(&datagram.header, datagram.protocol, message).map(Self::TooBig)
            }
            other => other.map(Self::Packet),
        }
    }
}
