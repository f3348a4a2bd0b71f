//! Clients and servers of sealed datagrams without sockets and clocks: datagrams and the time are arguments, what is to be sent is
//! in an outbox.
//!
//! Only the handshake is not a function of these: its keys are the operating system's random numbers.

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
