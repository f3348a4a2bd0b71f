//! Baselines: the defaults of an MPTCP implementation, each value with its reason and source.
//!
//! The gain of a scheme depends on the reference. Most parameters of the reference are not in the papers: when data is
//! reinjected, the minimum retransmission timeout, which subflow is initial. A baseline specifies them all. Its values
//! replace the engine's defaults; a scenario overrides a baseline, and a policy overrides both.

mod find;
mod model;
mod read;

pub use find::{BASELINES, all, embedded, find};
pub use model::{Baseline, Reason};
pub use read::read;
