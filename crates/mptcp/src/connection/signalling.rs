//! Addresses that were announced and withdrawn (RFC 8684, section 3.4).

use anabranch_policy::ids::AddressId;
use anabranch_policy::time::Instant;
use core::net::{IpAddr, SocketAddr};

/// What each end knows of the other's addresses.
#[derive(Debug, Default)]
pub(super) struct Signalling {
    /// Ours that the peer has not confirmed.
    pub announcements: Vec<Announcement>,
    /// Identifiers on the wire of addresses that were withdrawn when there was no subflow to say so.
    pub removals: Vec<u8>,
    /// The peer's.
    pub remote_addresses: Vec<RemoteAddress>,
}

/// An address of the peer's, as it announced it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RemoteAddress {
    /// Its identifier.
    pub id: AddressId,
    /// Address and port.
    pub remote: SocketAddr,
}

/// An address of ours that the peer has not confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Announcement {
    pub id: u8,
    pub address: IpAddr,
    pub attempts: u32,
    pub next: Instant,
}

impl Announcement {
    /// Whether an echo is for this announcement.
    pub fn matches(&self, id: u8, address: IpAddr) -> bool {
        self.id == id && self.address == address
    }
}
