//! What a device delivers: to the engine, and what is not for it.

use anabranch_wire::{Packet, PacketTooBig, ParseError, ip};
use bytes::Bytes;

/// What a device delivers to the engine.
#[allow(clippy::large_enum_variant, reason = "nearly all that comes is packets, and each is used at once")]
pub(crate) enum Received {
    /// A TCP segment in its packet.
    Packet(Packet),
    /// A router's word that one of ours was too big.
    TooBig(PacketTooBig),
    /// Something else, from a device where it is of interest.
    Foreign(Foreign),
}

/// An IP packet that is not the engine's: no TCP, or a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// The packet.
    pub bytes: Bytes,
    /// Its checksum is not finished, or somebody has verified it: it is not to be looked at.
    pub vouched: bool,
    /// It is to be cut: bytes of payload of each UDP datagram but the last.
    pub cut: Option<u16>,
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
