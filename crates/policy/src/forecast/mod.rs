//! How likely a link is up at a horizon.

mod persistence;

pub use persistence::Persistence;

use crate::table::Member;
use crate::time::{Duration, Instant};

/// The forecasters.
pub const TABLE: &[Member<dyn LinkForecaster>] = &[persistence::MEMBER];

/// What was seen of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observation {
    /// It carried something: an acknowledgement, a Hello.
    Heard,
    /// It failed to carry something that was due.
    Missed,
}

/// Forecasts one link.
pub trait LinkForecaster: Send {
    /// Takes one observation in.
    fn observe(&mut self, now: Instant, observation: Observation);
    /// Probability, 0 to 1, that the link is up at `now + horizon`.
    fn probability_up(&self, now: Instant, horizon: Duration) -> f64;
}
