//! What waits to be tried while a connection is being opened, and what became of the attempts.

use anabranch_policy::ids::AddressId;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

/// From where to where an attempt can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Identifier of our address.
    pub local_address: AddressId,
    /// Our address.
    pub local: IpAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

/// What waits to be tried, and what became of the attempts.
#[derive(Debug)]
pub(super) struct Race {
    pub waiting: VecDeque<Candidate>,
    /// An attempt was refused.
    pub refused: bool,
}
