//! Whether a run agrees with what a paper says: one judgement per claim and baseline, each made from the numbers.

mod compare;
mod judge;
mod model;
mod words;

pub use compare::{change, difference, differences};
pub use judge::judge;
#[cfg(test)]
pub use model::samples;
pub use model::{Agreement, Cell, Verdict, count};
pub use words::{percent, signed, with_interval};
