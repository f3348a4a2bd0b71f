//! Parameters of a new connection or join.

use crate::config::ConnectionConfig;
use crate::keys::{Derived, Key};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{ForwardDelays, Measurements};
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, VERSION};
use anabranch_wire::{MptcpOption, SeqNumber};
use core::net::SocketAddr;
use std::sync::Arc;

/// Parameters of a new connection.
pub struct Opening {
    pub id: ConnectionId,
    pub config: Arc<ConnectionConfig>,
    pub key: Key,
    /// Values computed from the key.
    pub derived: Derived,
    /// Initial sequence number of the first subflow.
    pub initial: SeqNumber,
    /// Added to the millisecond clock for timestamps (RFC 7323, section 5.4).
    pub stamp_offset: u32,
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Identifier of the local address.
    pub local_address: AddressId,
    /// Measurements that the path manager asks for.
    pub measurements: Measurements,
    /// One-way delays that it asks for.
    pub forward_delays: ForwardDelays,
}

/// Parameters of a new subflow of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Identifier of the local address.
    pub local_address: AddressId,
    /// Identifier of the remote address.
    pub remote_address: AddressId,
    pub initial: SeqNumber,
    pub nonce: u32,
    pub backup: bool,
}

/// A join whose handshake is not complete.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    pub subflow: SubflowId,
    pub local_nonce: u32,
    pub remote_nonce: u32,
}

/// The joins of a connection.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// Those whose handshake is not complete.
    pub open: Vec<Join>,
    /// Number of the next subflow.
    pub next_subflow: u32,
    /// The peer has withdrawn the address of the initial subflow.
    pub initial_removed: bool,
}

impl Join {
    pub fn subflow(&self) -> SubflowId {
        self.subflow
    }
}

/// The flags and keys of an MP_CAPABLE that we support: version 1, HMAC-SHA256, no extension.
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
