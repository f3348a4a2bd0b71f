//! Builds packets; reason codes of MP_TCPRST (RFC 8684, section 3.6).

use crate::subflow::Identity;
use anabranch_wire::{Ecn, IpHeader, Packet, Segment};
use core::net::{IpAddr, SocketAddr};

/// MP_TCPRST: unspecified error (RFC 8684, section 3.6).
pub const REASON_UNSPECIFIED: u8 = 0x00;

/// MP_TCPRST: MPTCP-specific error.
pub const REASON_MPTCP: u8 = 0x01;

/// MP_TCPRST: administratively prohibited.
pub const REASON_PROHIBITED: u8 = 0x03;

/// MP_TCPRST: middlebox interference.
pub const REASON_MIDDLEBOX: u8 = 0x06;

/// Hop limit of our packets.
pub const HOP_LIMIT: u8 = 64;

/// A segment in an IP packet.
pub(crate) fn packet(local: SocketAddr, remote: SocketAddr, segment: Segment) -> Packet {
    Packet { ip: header(local.ip(), remote.ip()), segment }
}

/// The header of a subflow's packets.
pub(super) fn ip_header(identity: &Identity) -> IpHeader {
    header(identity.local.ip(), identity.remote.ip())
}

fn header(source: IpAddr, destination: IpAddr) -> IpHeader {
    IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: HOP_LIMIT }
}
