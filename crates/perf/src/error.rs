//! Errors of a measurement.

use super::message::{MessageError, VERSION};
use core::net::SocketAddr;
use std::io;

/// Why a measurement was not made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// There is no answer, or not a server's.
    #[error("no connection to {remote}: {error}; is `anabranch perf --server` running there?")]
    Connect {
        /// The server.
        remote: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The server refuses.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The peer speaks another version.
    #[error("the server has protocol version {0} and this program {VERSION}: use the same release at both ends")]
    Version(u16),
    /// The peer is not a perf server.
    #[error("the server at {0} is not `anabranch perf --server`")]
    NotOurs(SocketAddr),
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(&'static str),
    /// The connections broke.
    #[error("the test was interrupted: {0}")]
    Broken(#[from] io::Error),
    /// The server said something unexpected.
    #[error("the test was interrupted: {0}")]
    Confused(&'static str),
    /// The server does not answer any more.
    #[error("the test was interrupted: the server does not answer any more")]
    Silent,
}

impl PerfError {
    /// Whether the measurement was never begun, because its plan is impossible.
    pub fn is_users(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::Confused(_) | Self::Silent)
    }

    pub(super) fn of_message(error: MessageError, remote: SocketAddr) -> Self {
        match error {
            MessageError::NotOurs | MessageError::TooLong(_) | MessageError::Malformed => Self::NotOurs(remote),
            MessageError::Version(version) => Self::Version(version),
            MessageError::Broken(error) => Self::Broken(error),
        }
    }
}
