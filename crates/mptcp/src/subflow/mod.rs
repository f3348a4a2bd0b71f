//! The TCP of a single path: sequence space, round-trip time, loss and window (RFC 9293).
//!
//! A subflow carries data sequence numbers but does not interpret them: the connection assigns it ranges of data
//! ([`Subflow::push`]), asks it for segments, and learns what was acknowledged. Plain TCP is a connection with one
//! subflow and without MPTCP options.

pub mod acknowledge;
pub mod context;
pub mod control;
pub mod delay_meter;
pub mod delivery;
pub mod establish;
mod handshake;
mod identity;
mod info;
mod mappings;
mod negotiated;
pub mod parts;
pub mod path_mtu;
mod path_mtu_search;
mod queue;
mod rare_blocks;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
mod segment;
pub mod segment_arrives;
pub mod silence;
mod state;
mod tcp_state;
#[cfg(test)]
mod tests;
pub mod timers;
pub mod transmit;

pub use context::Context;
pub use establish::Setup;
pub use identity::{Identity, is_at};
pub use mappings::StoredMapping;
pub use negotiated::{MAPPING_SPACE, Signals};
pub use parts::Suspicion;
pub use state::Subflow;
pub use tcp_state::State;
