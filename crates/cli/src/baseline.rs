//! Baselines: the defaults of an MPTCP implementation, each value with its reason and source.
//!
//! The gain of a scheme depends on what it is compared with. Most of what decides that is not in the papers: when data goes on
//! another subflow, how long a retransmission timeout is at least, which subflow comes first. A baseline names all of it. What
//! it says takes the place of the engine's defaults; a scenario wins over it, and a policy over both.

mod find;
mod model;
#[cfg(all(test, feature = "lab"))]
mod tests;

pub use find::{BASELINES, all, embedded, find};
pub use model::{Baseline, Reason};
