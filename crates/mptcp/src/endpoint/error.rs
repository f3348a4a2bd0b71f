//! Errors of the application's operations.

use crate::event::CloseCause;

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    /// The connection does not exist, or no longer.
    #[error("no such connection")]
    NoConnection,
    /// The sending direction is closed.
    #[error("the sending direction is closed")]
    SendClosed,
    /// The connection has ended. Data that arrived before can still be read.
    #[error("the connection is over: {0}")]
    Ended(CloseCause),
    /// The port is in use.
    #[error("the port is in use")]
    PortInUse,
    /// There is no local address of the right family, or not the given one.
    #[error("no local address to reach the peer from")]
    NoAddress,
    /// The peer's address is multicast, broadcast or unspecified (RFC 9293, MUST-46).
    #[error("the peer's address is not that of one host")]
    NoPeer,
    /// A configured limit is reached.
    #[error("too many connections")]
    LimitReached,
    /// The connection carries bytes, not messages, or vice versa.
    #[error("the connection carries bytes where messages are written, or messages where bytes are")]
    WrongFraming,
    /// The message is longer than the send buffer, or its play-out time does not fit its header.
    #[error("the message is longer than the send buffer, or its play-out time beyond 2^48 microseconds")]
    MessageTooLong,
}
