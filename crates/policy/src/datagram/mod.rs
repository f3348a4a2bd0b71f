//! Which paths carry a datagram.
//!
//! Datagrams are not acknowledged and not sent again, so that what counts is when they arrive and in which order. The two ends
//! measure each path: one-way delays, which can be compared between the paths of a session since they have the same two clocks,
//! loss, and the rate at which datagrams come through.

mod api;
mod by_flow;
mod duplicate;
mod flows;
mod lowest_delay;
mod table;
#[cfg(test)]
mod testing;
mod weighted;

pub use api::{DatagramPolicy, Decision, MAX_PATHS, Outgoing, PathSet, PathView};
pub use table::TABLE;
