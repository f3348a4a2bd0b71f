//! State of the attempts to open a connection.

use anabranch_policy::ids::AddressId;
use anabranch_wire::Unreachable;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

/// An address pair for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Identifier of the local address.
    pub local_address: AddressId,
    pub local: IpAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Something else than the peer answered from there lately.
    pub distrusted: bool,
}

/// State of the attempts to open a connection.
#[derive(Debug)]
pub(super) struct Race {
    pub waiting: VecDeque<Candidate>,
    /// The most specific reason why an attempt failed; a reset counts as an unreachable port.
    pub failed: Option<Unreachable>,
}
