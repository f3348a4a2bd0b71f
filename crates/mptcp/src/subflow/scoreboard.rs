//! What was given to a subflow and is not acknowledged yet: where each segment is.
//!
//! Records lie in sequence order in one queue: first those sent, then those that wait for the window. A sent record is
//! in flight, selectively acknowledged, or lost; retransmission puts a lost one in flight again. All walks are
//! amortised: an acknowledgement costs what it newly acknowledges, not what is outstanding.

mod acknowledged;
mod board;
mod lost;
mod record;
mod shared_mapping;
mod split;

pub use acknowledged::{Acknowledged, Newest};
pub use board::Scoreboard;
pub use record::{Departing, Fate, Joined, Place, Record};
