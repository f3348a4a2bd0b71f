//! Measuring what a path carries: a client and a server of our own protocol, over our stack or the kernel's sockets.
//!
//! [`run`] is the client, [`serve`] the server; a [`Plan`] says what is measured, a [`Report`] has the results. The receiver's
//! window of time opens with the first byte, and the sender goes on until the receiver's window is over: goodput is what arrived
//! in the window, over its length. `docs/perf.md` has the protocol and the report's fields.

mod client;
mod error;
mod host;
mod kernel;
mod link;
mod message;
pub mod messages;
mod meter;
mod plan;
mod reading;
mod report;
mod server;
mod socket_info;
mod transfer;

pub use client::{Progress, run, run_against_any};
pub use error::PerfError;
pub(crate) use host::Door;
pub use host::{Host, Ours};
pub use kernel::{KernelProtocol, KernelSockets};
pub(crate) use link::Link;
pub use message::VERSION;
pub use plan::{Direction, Length, Plan};
pub use reading::PathReading;
pub use report::{About, Interval, PathInterval, PathTotal, Report, SCHEMA, Side, StreamReport, Transfer};
pub use server::{ServerConfig, ServerCounters, ServerEvent, serve};

/// The port that client and server agree on if none is named.
pub const PORT: u16 = 5201;
