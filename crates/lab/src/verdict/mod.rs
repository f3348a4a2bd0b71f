//! Whether runs agree with a paper: one verdict per claim and baseline, computed from the numbers.

mod compare;
mod judge;
mod model;
mod words;

pub use compare::{change, difference, differences};
pub use judge::judge;
#[doc(hidden)]
pub use model::samples;
pub use model::{Agreement, Cell, Verdict, count};
pub use words::{percent, signed, with_interval};
