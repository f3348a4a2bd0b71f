//! What the operating system is asked to do.

use crate::sample::{Endpoints, Token};
use core::net::{IpAddr, SocketAddr};

/// A command. Those with a token need the path manager of user space, or for [`Command::SetBackup`] one whose endpoint
/// flags are changed for the whole namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Announce a local address (ADD_ADDR).
    Announce {
        token: Token,
        address: IpAddr,
        local_id: u8,
    },
    /// Withdraw it (REMOVE_ADDR).
    Remove {
        token: Token,
        local_id: u8,
    },
    /// Open a subflow (MP_JOIN).
    CreateSubflow {
        token: Token,
        local: IpAddr,
        local_id: u8,
        remote: SocketAddr,
        backup: bool,
    },
    DestroySubflow {
        token: Token,
        endpoints: Endpoints,
    },
    /// Make a subflow a backup or not, at both ends (MP_PRIO).
    SetBackup {
        token: Token,
        endpoints: Endpoints,
        backup: bool,
    },
}

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    /// The kernel refused, with this errno.
    Refused(i32),
    /// This kernel, or its path manager, has no such command.
    Unsupported,
}
