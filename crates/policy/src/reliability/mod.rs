//! What may be given up, and when.
//!
//! Two ends can give up. The **receiver** gives up what is missing while later data waits for it ([`Missing`]): it needs no
//! word from the sender, and none of it can get lost. The **sender** withdraws what it has written and the peer has not
//! acknowledged ([`Outstanding`]), and says so.
//!
//! **The deadline** has one definition: a message is to be played at the receiver at
//!
//! ```text
//! base + play-out time of the message + latency
//! base = least of (arrival of its first byte - its play-out time), over the messages seen so far
//! ```
//!
//! where the play-out time counts from the stream's beginning and the latency is chosen. [`PlayOutClock`] is this, with
//! the drift of the clocks taken out, and nothing else. The message that came through fastest sets the base, so the latency is
//! what all others may take longer. A video's frames have each a play-out time of its own or, with a deadline per group of
//! pictures, that of the first of their group: [`Deadline`].

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
