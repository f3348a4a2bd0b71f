//! Actions of the literal peer in a history, and state of these.

use super::time::Nanos;

/// An address that we announced.
#[derive(Debug)]
pub struct Announced {
    pub id: u8,
    pub path: usize,
    pub tries: u32,
    pub again_at: Nanos,
}

/// Actions of the literal peer. Numbers are taken modulo the number of choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Opens a subflow from this path of ours, announced or not.
    Join(u8),
    /// The same with an unknown token.
    JoinUnknown(u8),
    /// Announces the address on this path.
    Announce(u8),
    /// Withdraws it; its subflows stay.
    Withdraw(u8),
    /// Changes the priority of a subflow.
    Priority(u8),
    /// Resets a subflow, if there is another.
    Reset(u8),
    /// Ends our half of a subflow, though the stream continues.
    Fin(u8),
    /// Retransmits or reinjects some data in flight.
    Again,
    /// Falls back, if possible.
    Infinite,
}
