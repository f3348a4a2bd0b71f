//! OSPFv3 packets (RFC 5340, section A.3).

use super::{
    AreaId, DatabaseDescription, Hello, InstanceId, LinkStateAcknowledgment, LinkStateRequest, LinkStateUpdate, Lls,
    LsaHeader, RouterId,
};
use core::net::Ipv6Addr;

/// Number of OSPF in the next header field of IPv6.
pub const PROTOCOL_OSPF: u8 = 89;
/// The supported version of OSPF.
pub const VERSION: u8 = 3;
/// Length of the packet header, bytes (RFC 5340, section A.3.1).
pub const HEADER: usize = 16;
/// Multicast address of all OSPF routers of a link (RFC 5340, section A.1).
pub const ALL_SPF_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);
/// Hop limit of packets on a link: OSPF is not forwarded (RFC 5340, sections A.1 and 4.2.1).
pub const HOP_LIMIT: u8 = 1;
/// Differentiated services code point of control traffic between routers, CS6 (RFC 2474, section 4.2.2.2).
pub const DSCP: u8 = 48;

/// An OSPFv3 packet (RFC 5340, section A.3), with the link-local signalling after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The sender.
    pub router: RouterId,
    /// Area of the link.
    pub area: AreaId,
    /// The instance on the link, which determines the address family (RFC 5838).
    pub instance: InstanceId,
    /// The contents.
    pub body: Body,
    /// The block of link-local signalling; only Hellos and database descriptions can have one (RFC 5613, section 2).
    pub lls: Option<Lls>,
}

/// The contents of a packet, by type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Type 1: announces the sender and its neighbours.
    Hello(Hello),
    /// Type 2: headers of the sender's database.
    DatabaseDescription(DatabaseDescription),
    /// Type 3: requests advertisements.
    LinkStateRequest(LinkStateRequest),
    /// Type 4: link state advertisements.
    LinkStateUpdate(LinkStateUpdate),
    /// Type 5: acknowledges advertisements.
    LinkStateAcknowledgment(LinkStateAcknowledgment),
}

impl Body {
    /// The number of the type on the wire, 1 to 5.
    pub const fn packet_type(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::DatabaseDescription(_) => 2,
            Self::LinkStateRequest(_) => 3,
            Self::LinkStateUpdate(_) => 4,
            Self::LinkStateAcknowledgment(_) => 5,
        }
    }

    /// Whether it should leave before packets of the other types: Hellos and acknowledgements (RFC 4222, section 2, recommendation
    /// 1).
    pub const fn is_urgent(&self) -> bool {
        matches!(self, Self::Hello(_) | Self::LinkStateAcknowledgment(_))
    }

    /// Encoded length in bytes, without the packet header.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Hello(hello) => Hello::FIXED + 4 * hello.neighbors.len(),
            Self::DatabaseDescription(description) => {
                DatabaseDescription::FIXED + LsaHeader::LENGTH * description.headers.len()
            }
            Self::LinkStateRequest(request) => LinkStateRequest::ENTRY * request.keys.len(),
            Self::LinkStateUpdate(update) => {
                LinkStateUpdate::FIXED + update.lsas.iter().map(|aged| aged.lsa.encoded_len()).sum::<usize>()
            }
            Self::LinkStateAcknowledgment(acknowledgment) => LsaHeader::LENGTH * acknowledgment.headers.len(),
        }
    }
}

impl Packet {
    /// Encoded length in bytes: header, body and link-local signalling, which is the payload of the IPv6 packet. An
    /// authentication trailer is added to it, see [`super::authentication::Algorithm::trailer_len`].
    pub fn encoded_len(&self) -> usize {
        HEADER + self.body.encoded_len() + self.lls.as_ref().map_or(0, Lls::encoded_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_acknowledgments_are_urgent() {
        let acknowledgment = LinkStateAcknowledgment { headers: Vec::new() };
        assert!(Body::LinkStateAcknowledgment(acknowledgment).is_urgent());
        assert!(!Body::LinkStateUpdate(LinkStateUpdate { lsas: Vec::new() }).is_urgent());
        assert!(!Body::LinkStateRequest(LinkStateRequest { keys: Vec::new() }).is_urgent());
    }
}
