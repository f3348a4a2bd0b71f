//! The lab in a web page: a run of a scenario with one policy, which is advanced in steps of simulated time, looked at, and
//! changed while it runs.
//!
//! [`Playground`] is the run. What a page draws comes as JSON, and packets as an array of numbers. In a browser the module
//! `exports` has the same methods for JavaScript; everything else is tested natively.

mod catalogue;
mod change;
#[cfg(target_family = "wasm")]
mod exports;
mod frame;
mod lanes;
mod mesh;
mod playground;
mod running;
mod witness;

pub use catalogue::{describe, scenario_text, scenarios};
pub use change::Quantity;
pub use playground::Playground;
