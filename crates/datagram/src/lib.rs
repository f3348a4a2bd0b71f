//! Sealed datagrams between a client with several uplinks and a server: UDP, ICMP echo and DNS of unmodified programs.
//!
//! docs/datagrams.md has the format, the policies, and the security properties.

#![warn(missing_docs)]

mod client;
mod config;
mod datagram;
mod direct;
pub mod format;
mod mappings;
mod outside;
mod question;
mod questions;
mod server;
pub mod session;
mod share;
mod socket;
mod straight;
mod uplinks;
mod way;

pub use client::{Client, ClientCounters};
pub use config::{Allow, ClientConfig, Journal, Limits, PathReport, PolicyFactory, ServerConfig};
pub use datagram::{Datagram, INSIDE_MTU, Kind, LARGEST_PAYLOAD, Reason, Unreachable};
pub use direct::{Direct, DirectConfig};
pub use mappings::{MappingCounters, named_resolvers, nameservers};
pub use server::{Done, Server};
pub use session::{ClientState, ServerCounters};
pub use share::{ClientKey, Owner};
pub use straight::LaneState;
pub use uplinks::is_uplink;
pub use way::Way;
