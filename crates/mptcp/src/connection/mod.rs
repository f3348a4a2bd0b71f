//! The data level of a connection: one stream each way over any number of subflows (RFC 8684).
//!
//! A [`Connection`] owns its subflows, and parts that own the rest of its state (`state` lists them). What it does is split by
//! what happens, into files that call downwards only.

mod association;
mod checksum;
mod close;
mod fallback;
mod handshake;
mod identity;
mod info;
mod joined;
mod life;
mod mapping;
mod measurement;
mod opening;
mod options;
mod output;
mod partial;
mod paths;
mod receiver;
mod receiver_watch;
mod reinjections;
mod rescue;
mod resolved;
mod schedule;
mod scheduling;
mod segment_arrives;
mod sender;
mod signalling;
mod stamp_clock;
mod state;
mod subflow_order;
mod timer_table;
mod timers;
mod trains;
mod transmit;

pub use association::Protocol;
pub(crate) use close::{REASON_MPTCP, REASON_PROHIBITED, packet};
pub use joined::JoinedSegments;
pub use opening::{Joining, Opening};
pub(crate) use output::{Notice, Workspace};
pub use partial::MessageError;
pub use state::Connection;
