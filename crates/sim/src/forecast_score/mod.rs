//! Scores of forecasters: nodes move and send Hellos over the radio, and each forecast is compared with the later state
//! of the link.
//!
//! [`run`](fn@run) moves nodes for one seed and lets each node hear the others' Hellos over a [`Medium`]. For every
//! link that a node knows of, every contender forecasts once a second whether the link will be up `horizon` later.
//! [`Score`] holds the results of a contender in one run; [`compare`] returns means over seeds with 95 % intervals, and
//! the differences to `persistence` on the same seeds. [`settings`] are those of `docs/measurements/forecasters.md`.
//!
//! The true state is that of the link, not of Hellos: a link is up if more than half of the packets would be received
//! at its signal, with fading but without collisions. A forecaster sees only Hellos, some of which are lost by fading
//! and collisions.
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

/// Seeds on which the forecasters' parameters were chosen.
pub const DEVELOPMENT_SEEDS: core::ops::Range<u64> = 1..11;
/// Seeds that were run after all parameters were fixed.
pub const HELD_OUT_SEEDS: core::ops::Range<u64> = 101..121;
