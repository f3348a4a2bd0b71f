//! The words of a router that does not pass a packet on: ICMP (RFC 792, RFC 1812) and ICMPv6 (RFC 4443).

use anabranch_wire::checksum::Checksum;
use anabranch_wire::ip::{self, IpHeader};
use core::net::IpAddr;

/// Why a packet is not passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// There is no way to its destination's network.
    NoRoute,
    /// Its destination does not answer.
    Host,
    /// It is not allowed.
    Prohibited,
}

/// Protocol numbers of ICMP and ICMPv6.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Type "destination unreachable".
const UNREACHABLE: u8 = 3;
const UNREACHABLE_V6: u8 = 1;

/// Bytes of a packet that are quoted: of IPv4 its header and eight more are enough for everybody (RFC 792), of IPv6 it is as many as fit
/// into the least MTU of 1280 (RFC 4443, section 3.1); nobody looks further than this.
const QUOTED: usize = 512;

/// The message about `packet`, an IP packet, to who sent it; none if none may be sent (RFC 1122, section 3.2.2; RFC 4443,
/// section 2.4). It comes from the packet's destination.
pub(crate) fn unreachable(packet: &[u8], reason: Reason) -> Option<Vec<u8>> {
    let (source, destination) = ends(packet)?;
    let kind = match (source, reason) {
        (IpAddr::V4(_), Reason::NoRoute) => [UNREACHABLE, 0],
        (IpAddr::V4(_), Reason::Host) => [UNREACHABLE, 1],
        (IpAddr::V4(_), Reason::Prohibited) => [UNREACHABLE, 13],
        (IpAddr::V6(_), Reason::NoRoute) => [UNREACHABLE_V6, 0],
        (IpAddr::V6(_), Reason::Host) => [UNREACHABLE_V6, 3],
        (IpAddr::V6(_), Reason::Prohibited) => [UNREACHABLE_V6, 1],
    };
    let header =
        IpHeader { source: destination, destination: source, ecn: ip::Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    let quoted = packet.get(..packet.len().min(QUOTED))?;
    let message = [&kind[..], &[0; 6], quoted].concat();
    emit(&header, message)
}

/// Source and destination of an IP packet.
fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let header = ip::parse(packet).ok()?.header;
    Some((header.source, header.destination))
}

/// A packet with an ICMP message whose checksum is still to be made.
fn emit(header: &IpHeader, mut message: Vec<u8>) -> Option<Vec<u8>> {
    let mut checksum = Checksum::new();
    let protocol = if header.source.is_ipv4() { ICMP } else { ICMPV6 };
    if protocol == ICMPV6 {
        checksum.add_pseudo_header(header, protocol, u32::try_from(message.len()).ok()?);
    }
    checksum.add_bytes(&message);
    message.get_mut(2..4)?.copy_from_slice(&checksum.finish().to_be_bytes());
    let mut packet = Vec::new();
    header.emit(protocol, message.len(), &mut packet).ok()?;
    packet.extend_from_slice(&message);
    Some(packet)
}
