//! What a connection or a join begins with.

use crate::config::ConnectionConfig;
use crate::keys::{Derived, Key};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{ForwardDelays, Measurements};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, VERSION};
use anabranch_wire::{MptcpOption, SeqNumber};
use core::net::SocketAddr;
use std::sync::Arc;

/// What a new connection is made from.
pub struct Opening {
    /// Its id.
    pub id: ConnectionId,
    /// Its settings.
    pub config: Arc<ConnectionConfig>,
    /// Our key.
    pub key: Key,
    /// What follows from it.
    pub derived: Derived,
    /// Initial sequence number of the first subflow.
    pub initial: SeqNumber,
    /// Added to the millisecond clock for timestamps (RFC 7323, section 5.4).
    pub stamp_offset: u32,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Identifier of our address.
    pub local_address: AddressId,
    /// What the path manager wants measured.
    pub measurements: Measurements,
    /// Which forward delays it wants.
    pub forward_delays: ForwardDelays,
}

/// What a new subflow of an existing connection is made from.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Identifier of our address.
    pub local_address: AddressId,
    /// Identifier of the peer's address.
    pub remote_address: AddressId,
    /// Initial sequence number.
    pub initial: SeqNumber,
    /// Our random number.
    pub nonce: u32,
    /// A backup.
    pub backup: bool,
}

/// A join whose handshake is not over.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    pub subflow: SubflowId,
    pub local_nonce: u32,
    pub remote_nonce: u32,
}

/// The joins of a connection.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// Those whose handshake is not over.
    pub open: Vec<Join>,
    /// Number of the next subflow.
    pub next_subflow: u32,
}

impl Join {
    /// The subflow it opens.
    pub fn subflow(&self) -> SubflowId {
        self.subflow
    }
}

/// The flags and keys of an MP_CAPABLE that we can use: version 1, HMAC-SHA256, no extension.
pub(super) fn usable_capable(option: &MptcpOption) -> Option<(CapableFlags, CapableKeys)> {
    match option {
        MptcpOption::Capable { version, flags, keys }
            if *version >= VERSION && flags.hmac_sha256 && !flags.extensibility =>
        {
            Some((*flags, *keys))
        }
        _ => None,
    }
}
