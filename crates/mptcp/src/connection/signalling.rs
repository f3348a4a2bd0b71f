//! Owns announced and withdrawn addresses (RFC 8684, section 3.4).

use anabranch_policy::ids::AddressId;
use anabranch_policy::time::Instant;
use core::net::{IpAddr, SocketAddr};

/// What each end knows of the other's addresses.
#[derive(Debug, Default)]
pub(super) struct Signalling {
    /// Announcements that the peer has not echoed.
    pub announcements: Vec<Announcement>,
    /// Wire identifiers of withdrawn addresses whose REMOVE_ADDR waits for a subflow.
    pub removals: Vec<u8>,
    /// The peer's addresses.
    pub remote_addresses: Vec<RemoteAddress>,
}

/// An address that the peer announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RemoteAddress {
    pub id: AddressId,
    pub remote: SocketAddr,
}

/// An announcement that the peer has not echoed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Announcement {
    pub id: u8,
    pub address: IpAddr,
    pub attempts: u32,
    pub next: Instant,
}

impl Announcement {
    pub fn matches(&self, id: u8, address: IpAddr) -> bool {
        self.id == id && self.address == address
    }
}
