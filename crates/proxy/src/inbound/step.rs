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
    /// Write this to it and close: it asked wrongly, or for what there is not.
    Refuse(Bytes, Refusal),
}

/// Why a client is turned away before it has named a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It does not speak SOCKS5 or HTTP, or wrongly, or at too great length.
    Malformed,
    /// It does not show the right name and password.
    Unauthorized,
    /// It wants something other than a connection.
    Unsupported,
}
