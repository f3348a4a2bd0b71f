//! Which subflow carries the next chunk of data, or whether to wait.

pub mod anabranch;
mod api;
pub mod blest;
pub mod blocked_window;
mod candidates;
pub mod daps;
pub mod deadline_reinjection;
pub mod ecf;
pub mod learned;
pub mod linux;
pub mod lowest_rtt;
pub mod maps;
pub mod message_head;
pub mod ns2;
pub mod otias;
#[cfg(test)]
pub(crate) mod pile;
pub mod primary_overflow;
pub mod qoe;
pub mod redundant;
pub mod round_robin;
mod shares;
pub mod sttf;
mod table;
#[cfg(test)]
pub(crate) mod tests;
pub mod weighted;

pub use api::{
    Answer, Chunk, ChunkKind, Decision, Hole, Needs, Outstanding, Reinjection, Relief, Scheduler, Unsent, Work, again,
    unsent,
};
pub use shares::Shares;
pub use table::TABLE;
