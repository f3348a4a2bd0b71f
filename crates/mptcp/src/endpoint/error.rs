//! Why an operation of the application cannot be done.

use crate::event::CloseCause;

/// Why an operation of the application cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    /// There is no such connection (any more).
    #[error("no such connection")]
    NoConnection,
    /// Our direction is closed.
    #[error("the sending direction is closed")]
    SendClosed,
    /// The connection is over, but for what arrived before and can still be read.
    #[error("the connection is over: {0}")]
    Ended(CloseCause),
    /// The port is taken.
    #[error("the port is in use")]
    PortInUse,
    /// No local address of the right family, or not the one named.
    #[error("no local address to reach the peer from")]
    NoAddress,
    /// The peer's address is not that of one host: multicast, broadcast or unspecified (RFC 9293, MUST-46).
    #[error("the peer's address is not that of one host")]
    NoPeer,
    /// The configured limit is reached.
    #[error("too many connections")]
    LimitReached,
    /// The connection carries bytes and not messages, or the reverse.
    #[error("the connection carries bytes where messages are written, or messages where bytes are")]
    WrongFraming,
    /// The message never fits: it is longer than the send buffer, or its play-out time is beyond what its header can say.
    #[error("the message is longer than the send buffer, or its play-out time beyond 2^48 microseconds")]
    MessageTooLong,
}
