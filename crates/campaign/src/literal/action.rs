//! What a history has the literal peer do, and what of that is under way.

use super::time::Nanos;

/// An address that we announced.
#[derive(Debug)]
pub struct Announced {
    pub id: u8,
    pub path: usize,
    pub tries: u32,
    pub again_at: Nanos,
}

/// What a history has the peer do. Numbers are taken modulo what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Opens a subflow from this path of ours, announced or not.
    Join(u8),
    /// Tries to, with a token that nobody has.
    JoinUnknown(u8),
    /// Announces the address on this path.
    Announce(u8),
    /// Withdraws it; what uses it stays, and answers.
    Withdraw(u8),
    /// Changes the priority of a subflow.
    Priority(u8),
    /// Resets a subflow, if there is another.
    Reset(u8),
    /// Ends our half of a subflow, though the stream goes on.
    Fin(u8),
    /// Sends some of what is under way again.
    Again,
    /// Falls back, if it can.
    Infinite,
}
