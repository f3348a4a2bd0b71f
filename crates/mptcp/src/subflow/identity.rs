//! Who a subflow is.

use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_wire::{IpHeader, Segment};
use core::net::{IpAddr, SocketAddr};

/// Who a subflow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its number in the connection.
    pub id: SubflowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Identifier of our address.
    pub local_address: AddressId,
    /// Identifier of the peer's address.
    pub remote_address: AddressId,
}

impl Identity {
    /// Bytes of the IP and TCP headers without options.
    pub fn header_length(&self) -> u16 {
        if self.local.is_ipv6() { 60 } else { 40 }
    }

    /// Whether a packet with these headers comes from the peer's address and port to ours.
    #[inline]
    pub(crate) fn has_sent(&self, ip: &IpHeader, segment: &Segment) -> bool {
        is_at(&self.remote, &ip.source, segment.source_port)
            && is_at(&self.local, &ip.destination, segment.destination_port)
    }
}

/// Whether it is this address and port.
#[inline]
pub fn is_at(known: &SocketAddr, address: &IpAddr, port: u16) -> bool {
    match (known, address) {
        (SocketAddr::V4(known), IpAddr::V4(address)) => known.port() == port && known.ip() == address,
        (SocketAddr::V6(_), IpAddr::V6(address)) => *known == SocketAddr::new((*address).into(), port),
        (SocketAddr::V4(_), IpAddr::V6(_)) | (SocketAddr::V6(_), IpAddr::V4(_)) => false,
    }
}
