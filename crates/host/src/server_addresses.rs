//! Where a server is for an uplink: at its address of a family that the uplink has.

use super::snapshot::Interface;
use std::net::SocketAddr;

/// The addresses of a server: the one that is used wherever it can be, and one of the other family for uplinks without an
/// address and a route of the first one's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerAddresses {
    first: SocketAddr,
    other: Option<SocketAddr>,
}

impl From<SocketAddr> for ServerAddresses {
    fn from(first: SocketAddr) -> Self {
        Self { first, other: None }
    }
}

impl ServerAddresses {
    /// `first`, and the first of `known` of the other family.
    pub fn new(first: SocketAddr, known: &[SocketAddr]) -> Self {
        Self { first, other: known.iter().copied().find(|address| address.is_ipv6() != first.is_ipv6()) }
    }

    /// The one that is used wherever it can be.
    pub fn first(&self) -> SocketAddr {
        self.first
    }

    /// The one of the other family.
    pub fn other(&self) -> Option<SocketAddr> {
        self.other
    }

    /// All, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        core::iter::once(self.first).chain(self.other)
    }

    /// Its address of a family.
    pub fn of(&self, ipv6: bool) -> Option<SocketAddr> {
        self.iter().find(|address| address.is_ipv6() == ipv6)
    }

    /// Its address over an interface, if the interface has an address and a route of its family now.
    pub fn over(&self, interface: &Interface) -> Option<SocketAddr> {
        self.iter().find(|address| interface.public(address.is_ipv6()).is_some())
    }

    /// Whether `address` is still one of them, and can be used over the interface.
    pub fn stays(&self, address: SocketAddr, interface: &Interface) -> bool {
        self.iter().any(|known| known == address) && interface.public(address.is_ipv6()).is_some()
    }

    /// The same at another port.
    pub fn at_port(mut self, port: u16) -> Self {
        self.first.set_port(port);
        self.other.iter_mut().for_each(|other| other.set_port(port));
        self
    }
}
