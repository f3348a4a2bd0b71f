//! Packets, and the reasons in MP_TCPRST (RFC 8684, section 3.6).

use anabranch_wire::{Ecn, IpHeader, Packet, Segment};
use core::net::SocketAddr;

/// MP_TCPRST: nothing is said of the reason (RFC 8684, section 3.6).
pub const REASON_UNSPECIFIED: u8 = 0x00;

/// MP_TCPRST: an error in MPTCP options.
pub const REASON_MPTCP: u8 = 0x01;

/// MP_TCPRST: administratively prohibited.
pub const REASON_PROHIBITED: u8 = 0x03;

/// MP_TCPRST: a middlebox interferes.
pub const REASON_MIDDLEBOX: u8 = 0x06;

/// Hop limit of our packets.
pub const HOP_LIMIT: u8 = 64;

/// A segment in an IP packet.
pub(crate) fn packet(local: SocketAddr, remote: SocketAddr, segment: Segment) -> Packet {
    Packet {
        ip: IpHeader {
            source: local.ip(),
            destination: remote.ip(),
            ecn: Ecn::NotCapable,
            dscp: 0,
            hop_limit: HOP_LIMIT,
        },
        segment,
    }
}
