//! Policies that choose the paths of each datagram.
//!
//! Datagrams are neither acknowledged nor retransmitted; what counts is their delay and order. The two ends measure
//! each path: the one-way delay, which can be compared between the paths of a session since they use the same two
//! clocks, the loss, and the delivery rate.

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
