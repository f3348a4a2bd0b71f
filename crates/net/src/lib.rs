//! Anabranch in real time: the same engine and policies as in the lab, on real networks.
//!
//! A [`stack::Stack`] is a host of our own in user space: one [`anabranch_mptcp::Endpoint`], the [`device`]s that carry its
//! packets, and one event loop ([`stack::Driver`]) between them; applications hold [`stack::Stream`]s and
//! [`stack::Listener`]s. This is the only crate with sockets and clocks.

pub mod attach;
pub mod blocking;
pub mod clock;
pub mod descriptor;
pub mod device;
pub mod emulate;
pub mod host;
pub mod messages;
pub mod namespace;
pub mod perf;
pub mod proxy;
pub mod route;
mod slots;
pub mod stack;
mod timer;

/// The examples of `docs/library.md`, so that they are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct LibraryPage;

pub use clock::Clock;
pub use device::Device;
pub use stack::{Listener, Stack, StackConfig, Stream};
