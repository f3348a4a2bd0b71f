//! Clients and servers of sealed datagrams without sockets and clocks: datagrams and the time are arguments, and output
//! is in an outbox.
//!
//! Only the handshake is not deterministic: its keys are random numbers of the operating system.

mod allowance;
mod arrivals;
mod assembly;
mod client;
mod epoch;
mod noise;
mod outbox;
mod path_mtu;
mod peer;
mod receiving;
mod sending;
mod server;
mod window;

pub use client::{ClientSession, ClientState, Counts};
pub use outbox::{Batch, Outbox};
pub use peer::Path;
pub use server::{ServerCounters, ServerSessions, Whereabouts};

#[cfg(test)]
mod tests;
