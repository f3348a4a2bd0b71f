//! What may be given up, and when.

mod full;

pub use full::Full;

use crate::table::Member;
use crate::time::Instant;

/// The reliability policies.
pub const TABLE: &[Member<dyn Reliability>] = &[full::MEMBER];

/// Missing data that later data waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// Data sequence of its first byte.
    pub data_seq: u64,
    /// Bytes.
    pub length: u64,
    /// Since when later data has been waiting for it.
    pub since: Instant,
}

/// Decides what the receiver gives up.
pub trait Reliability: Send {
    /// Whether the missing data is to be given up now.
    fn give_up(&mut self, now: Instant, missing: &Missing) -> bool;
}
