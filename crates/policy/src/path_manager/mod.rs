//! Which subflows exist, and which of them are active: one object per host.
//!
//! The vocabulary is that of Linux's `mptcp_pm` netlink family, so that one object can drive our engine and the
//! kernel. Added to it: path measurements and "receive buffer blocked" in, suspend, resume and probe out (in the
//! kernel, suspend and resume are the backup flag).

pub mod anabranch;
mod api;
pub mod full_mesh;
pub mod goodput_trial;
pub mod lm3;
pub mod one_way_delay;
pub mod predictive;
pub mod pu2m2;
pub mod same_subnet;
pub mod subnets;
pub mod suspending;
pub mod suspension;
mod table;
#[cfg(test)]
mod tests;

pub use api::{CloseReason, ForwardDelays, Measurements, PathAction, PathEvent, PathManager, Role};
pub use table::TABLE;
