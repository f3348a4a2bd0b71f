//! Sealed datagrams between a client with several uplinks and a server: UDP, ICMP echo and DNS of programs that know nothing of it.
//!
//! docs/datagrams.md has the format, the policies, and what an attacker can and cannot do.

#![warn(missing_docs)]

mod client;
mod config;
mod datagram;
mod format;
mod server;
mod session;

pub use client::Client;
pub use config::{Allow, ClientConfig, Limits, PathReport, PolicyFactory, ServerConfig};
pub use datagram::{Datagram, INSIDE_MTU, Kind, LARGEST_PAYLOAD};
pub use server::{Server, ServerCounters};
