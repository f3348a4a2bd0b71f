//! The data level of a connection: one stream in each direction over several subflows (RFC 8684).
//!
//! A [`Connection`] owns its subflows, and parts that own the rest of its state (listed in `state`). Its methods are in
//! files by event, which call downwards only.

mod acknowledgement;
mod agenda;
mod application;
mod assignment;
mod association;
mod attempts;
mod blocked;
mod buffer_growth;
mod checksum;
mod close;
mod data_ack;
mod data_segment;
mod deadlines;
mod establish;
mod fallback;
mod fin;
mod handshake;
mod handshake_segments;
mod icmp_errors;
mod identity;
mod insert;
mod join;
mod joined;
mod life;
mod mapping;
mod measurement;
mod numbers;
mod opening;
mod opportunity;
mod options;
mod output;
mod outstanding;
mod packets;
mod partial;
mod paths;
mod process;
mod race;
mod receiver;
mod receiver_watch;
mod reinject;
mod reinjections;
mod report;
mod resolved;
mod schedule;
mod scheduling;
mod segment_arrives;
mod sender;
mod shared_mapping;
mod signalling;
mod silence;
mod state;
mod subflow_order;
mod subflows;
mod teardown;
#[cfg(test)]
mod tests;
mod time_wait;
mod timer_table;
mod timers;

mod transmit;
mod window_probe;

pub use association::Protocol;
pub use icmp_errors::Heed;
pub use joined::JoinedSegments;
pub use opening::{Joining, Opening};
pub(crate) use output::{Attempt, Notice, Workspace};
pub(crate) use packets::{REASON_MPTCP, REASON_PROHIBITED, packet};
pub use partial::MessageError;
pub use race::Candidate;
pub use state::Connection;
pub(crate) use time_wait::{TimeWait, TimeWaitVerdict};
