//! Errors of a measurement.

use super::message::{MessageError, VERSION};
use core::net::SocketAddr;
use std::io;

/// The text for a stream that was lost during a test.
pub(super) const EARLY: &str = "one of its connections ended too early";

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// No connection to the server, or no answer.
    #[error("no connection to {remote}: {error}{}", advice(.error))]
    Connect {
        /// The server.
        remote: SocketAddr,
        error: io::Error,
    },
    /// The port cannot be used for listening.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        error: io::Error,
    },
    /// The server refused the test.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The peer speaks another version.
    #[error("the server has protocol version {0} and this program {VERSION}: use the same release at both ends")]
    Version(u16),
    /// The peer is not a perf server.
    #[error("the server at {0} is not `anabranch perf --server`")]
    NotOurs(SocketAddr),
    /// The plan is invalid, or leaves nothing to be measured.
    #[error("{0}")]
    Plan(&'static str),
    /// It was told to stop before the test began, so there are no results.
    #[error("stopped before the test began")]
    Stopped,
    /// The connections failed.
    #[error("the test was interrupted: {0}")]
    Broken(#[from] io::Error),
    /// Unexpected message from the server.
    #[error("the test was interrupted: {0}")]
    Confused(&'static str),
    /// The server stopped answering.
    #[error("the test was interrupted: the server does not answer any more")]
    Silent,
}

/// What to look at if there is no connection; nothing at a host that is not reached.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "",
        _ => "; is `anabranch perf --server` running there?",
    }
}

impl PerfError {
    /// Whether the plan was invalid, so that nothing was measured.
    pub fn is_users(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::Confused(_) | Self::Silent | Self::Stopped)
    }

    pub(super) fn of_message(error: MessageError, remote: SocketAddr) -> Self {
        match error {
            MessageError::NotOurs | MessageError::TooLong(_) | MessageError::Malformed => Self::NotOurs(remote),
            MessageError::Version(version) => Self::Version(version),
            MessageError::Broken(error) => Self::Broken(error),
        }
    }
}
