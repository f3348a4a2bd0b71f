//! Number and addresses of a subflow.

use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_wire::{IpHeader, Segment};
use core::net::{IpAddr, SocketAddr};

/// Number and addresses of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    pub id: SubflowId,
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Identifier of the local address.
    pub local_address: AddressId,
    /// Identifier of the remote address.
    pub remote_address: AddressId,
}

impl Identity {
    /// Length of the IP and TCP headers without options, in bytes.
    pub fn header_length(&self) -> u16 {
        if self.local.is_ipv6() { 60 } else { 40 }
    }

    /// Whether a packet with these headers was sent from the remote to the local address.
    #[inline]
    pub(crate) fn has_sent(&self, ip: &IpHeader, segment: &Segment) -> bool {
        is_at(&self.remote, &ip.source, segment.source_port)
            && is_at(&self.local, &ip.destination, segment.destination_port)
    }
}

#[inline]
pub fn is_at(known: &SocketAddr, address: &IpAddr, port: u16) -> bool {
    match (known, address) {
        (SocketAddr::V4(known), IpAddr::V4(address)) => known.port() == port && known.ip() == address,
        (SocketAddr::V6(_), IpAddr::V6(address)) => *known == SocketAddr::new((*address).into(), port),
        (SocketAddr::V4(_), IpAddr::V6(_)) | (SocketAddr::V6(_), IpAddr::V4(_)) => false,
    }
}
