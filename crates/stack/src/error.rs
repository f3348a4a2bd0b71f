//! Errors of the stack.

use anabranch_mptcp::CloseCause;
use anabranch_mptcp::OperationError;
use std::io;

/// Why an address cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AttachError {
    /// The device was removed.
    #[error("no such device")]
    NoDevice,
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListenError {
    /// The engine refused.
    #[error(transparent)]
    Refused(#[from] OperationError),
    /// The stack has been shut down.
    #[error("the stack has been shut down")]
    ShutDown,
}

/// Why a connection was not established.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// It could not be opened.
    #[error(transparent)]
    Impossible(#[from] OperationError),
    /// It ended before it was established.
    #[error("{0}")]
    Ended(CloseCause),
    /// The stack has been shut down.
    #[error("the stack has been shut down")]
    ShutDown,
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Ended(cause) => closed(cause),
            ConnectError::Impossible(OperationError::NoAddress) => Self::new(io::ErrorKind::AddrNotAvailable, error),
            ConnectError::Impossible(_) | ConnectError::ShutDown => Self::other(error),
        }
    }
}

/// The error of reads and writes on a connection that has ended.
pub(super) fn closed(cause: CloseCause) -> io::Error {
    let kind = match cause {
        CloseCause::Finished => io::ErrorKind::BrokenPipe,
        CloseCause::Aborted => io::ErrorKind::ConnectionAborted,
        CloseCause::AbortedByPeer => io::ErrorKind::ConnectionReset,
        CloseCause::Refused => io::ErrorKind::ConnectionRefused,
        CloseCause::NetworkUnreachable => io::ErrorKind::NetworkUnreachable,
        CloseCause::HostUnreachable => io::ErrorKind::HostUnreachable,
        CloseCause::TimedOut | CloseCause::UserTimeout => io::ErrorKind::TimedOut,
        CloseCause::ProtocolError => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, cause)
}
