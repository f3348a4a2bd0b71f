//! The next step with a client.

use crate::target::Target;
use bytes::Bytes;

/// What to do next with a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Read more from it.
    Read,
    /// Write this to it, and ask again.
    Write(Bytes),
    /// Connect it to the target; then send it [`super::Negotiation::accepted`] or [`super::Negotiation::refused`].
    Connect(Target),
    /// Write this to it and close: its request is malformed or not supported.
    Refuse(Bytes, Refusal),
}

/// Why a client is refused before it has named a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It speaks neither SOCKS5 nor HTTP, or malformed, or its request is too long.
    Malformed,
    /// It does not send the right name and password.
    Unauthorized,
    /// It wants something other than a connection.
    Unsupported,
}
