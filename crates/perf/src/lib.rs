//! Throughput measurement: a client and a server of our own protocol, over our stack or the kernel's sockets.
//!
//! [`run`] is the client, [`serve`] the server; a [`Plan`] describes the test, a [`Report`] the results. The receiver's
//! measurement window opens with the first byte, and the sender continues until that window has ended. Goodput is the
//! bytes that arrived in the window, divided by its length. `docs/perf.md` has the protocol and the report's fields.

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
pub use report::{About, Interval, PathInterval, PathTotal, Report, SCHEMA, Side, Stopper, StreamReport, Transfer};
pub use server::{ServerConfig, ServerCounters, ServerEvent, serve};

/// The default port of client and server.
pub const PORT: u16 = 5201;
