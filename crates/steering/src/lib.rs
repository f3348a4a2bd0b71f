//! Path policies for connections that an operating system carries.
//!
//! An operating system with MPTCP of its own has a scheduler and congestion controls that cannot be replaced. What a
//! daemon can do is to open and close subflows, and to make them backups or not. This crate decides that with the path
//! managers of [`anabranch_policy::path_manager`], from counters that are sampled every 100 ms.
//!
//! There is no input or output here, as in the engine: [`event::Event`]s and [`sample::HostSample`]s go in,
//! [`command::Command`]s come out of [`steering::Steering`]. Linux's side is the crate `anabranch-steer`; in the lab it
//! is the simulated host.

mod addresses;
mod attempts;
pub mod command;
pub mod connection;
pub mod estimator;
pub mod event;
pub mod sample;
pub mod settings;
pub mod status;
pub mod steering;
mod subflow;
