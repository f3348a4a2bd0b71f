//! Who a subflow is.

use anabranch_policy::ids::{AddressId, SubflowId};
use core::net::SocketAddr;

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
}
