//! Scores of forecasters: nodes move and send Hellos over the radio, and each forecast is compared with what followed.
//!
//! [`run`](fn@run) moves nodes for one seed and lets each node hear the others' Hellos over a [`Medium`]; for every link that a node
//! knows of, every contender forecasts once a second whether the link will be up `horizon` later. [`Score`] is what became of
//! a contender's forecasts in that run; [`compare`] has their means over seeds, each with its 95 % interval, and beside them
//! the differences to `persistence` on the same seeds. [`settings`] are those of `docs/measurements/forecasters.md`.
//!
//! The truth is the link's, not the Hello's: it is up if more than half of the packets would be received at its signal, fading
//! and nothing else taken into account. A forecaster never sees it, only Hellos, of which fading and collisions take some.
//!
//! [`Medium`]: crate::radio::Medium

mod comparison;
mod measures;
mod neighbors;
mod reception;
mod run;
mod setting;
#[cfg(test)]
mod tests;

pub use comparison::{Row, compare, contenders};
pub use measures::{Forecasts, Interval, Measure, Score, interval};
pub use reception::Fading;
pub use run::{Contender, run};
pub use setting::{Setting, settings};

/// Seeds that the forecasters' parameters were chosen on.
pub const DEVELOPMENT_SEEDS: core::ops::Range<u64> = 1..11;
/// Seeds that were run when nothing was changed any more.
pub const HELD_OUT_SEEDS: core::ops::Range<u64> = 101..121;
