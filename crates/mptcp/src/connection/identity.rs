//! Identity of a connection: keys, tokens, and the addresses of its initial subflow (RFC 8684, section 3.1).

use super::opening::Opening;
use crate::keys::{Derived, Key, Keys};
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::Role;
use core::net::{IpAddr, SocketAddr};

/// Keys and initial addresses. Changes once, when the peer's key arrives.
#[derive(Debug)]
pub(super) struct ConnectionIdentity {
    /// Both keys; the peer's is 0 before it is known.
    pub keys: Keys,
    /// Values computed from our key.
    pub local: Derived,
    /// Values computed from the peer's key.
    pub remote: Derived,
    /// Added to the millisecond clock for timestamps (RFC 7323, section 5.4).
    pub stamp_offset: u32,
    /// Identifier of our address of the initial subflow, 0 on the wire.
    pub initial_address: AddressId,
    /// Our address of the initial subflow.
    pub initial_local: IpAddr,
    /// The peer's address and port of the initial subflow.
    pub initial_remote: SocketAddr,
    /// Which end we are.
    pub role: Role,
    /// The peer does not allow joins to its initial address (MP_CAPABLE, flag C).
    pub remote_denies_joins: bool,
}

impl ConnectionIdentity {
    /// The identity before the peer has answered.
    pub fn new(opening: &Opening, role: Role) -> Self {
        Self {
            keys: Keys { local: opening.key, remote: Key(0) },
            local: opening.derived,
            remote: Derived { token: 0, initial_data_seq: 0 },
            stamp_offset: opening.stamp_offset,
            initial_address: opening.local_address,
            initial_local: opening.local.ip(),
            initial_remote: opening.remote,
            role,
            remote_denies_joins: false,
        }
    }

    /// Sets the peer's key.
    pub fn set_remote_key(&mut self, key: u64) {
        self.keys.remote = Key(key);
        self.remote = Key(key).derive();
    }

    /// The wire identifier of a local address: 0 for that of the initial subflow (RFC 8684, section 3.4.1).
    pub fn wire_address(&self, id: AddressId) -> u8 {
        if id == self.initial_address { 0 } else { id.0 }
    }

    /// The data sequence number on the wire of an offset in our stream.
    pub fn wire_data_seq(&self, offset: u64) -> u64 {
        self.local.data_seq(offset)
    }
}
