//! Which data may be abandoned, and when.
//!
//! Either end can decide. The **receiver** abandons missing data while later data waits for it ([`Missing`]), without
//! any notice of the sender, which might be lost. The **sender** withdraws data that it has written and the peer has
//! not acknowledged ([`Outstanding`]), and notifies the peer.
//!
//! **The deadline** is defined once: a message is played at the receiver at
//!
//! ```text
//! base + play-out time of the message + latency
//! base = least of (arrival of its first byte - its play-out time), over the messages seen so far
//! ```
//!
//! where the play-out time counts from the beginning of the stream and the latency is a setting. [`PlayOutClock`]
//! computes this, corrected for the drift of the clocks. The message with the smallest delay sets the base, so the
//! latency is what other messages may take longer. Each video frame has its own play-out time or, with a deadline per
//! group of pictures, that of the first frame of its group: [`Deadline`].

mod api;
mod both_ends;
mod deadline;
mod forecast;
mod full;
mod lower_hull;
mod play_out_clock;
mod spe;
mod table;
mod too_late;
mod withdrawal;

pub use api::{
    BufferState, DEPENDED_ON, Decision, ESSENTIAL, EXPENDABLE, Level, Missing, Outstanding, Reason, Reliability, Terms,
    Unit, Verdict,
};
pub use deadline::{Deadline, DeadlineOf};
pub use full::Full;
pub use play_out_clock::PlayOutClock;
pub use table::TABLE;
