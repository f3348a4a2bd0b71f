//! Owns the segments assigned to a subflow that are not acknowledged yet.
//!
//! Records are in sequence order in one queue: first those sent, then those that wait for the window. A sent record is
//! in flight, selectively acknowledged, or lost; a retransmission puts a lost one in flight again. All walks are
//! amortised: an acknowledgement takes time for what it newly acknowledges, not for all that is outstanding.

mod acknowledged;
mod board;
mod lost;
mod record;
mod shared_mapping;
mod split;

pub use acknowledged::{Acknowledged, Proofs};
pub use board::Scoreboard;
pub use record::{Departing, Fate, Joined, Place, Record};
