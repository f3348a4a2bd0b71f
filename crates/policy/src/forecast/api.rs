//! What a forecaster hears of a link, and what it is asked.

use crate::time::{Duration, Instant};

/// What was seen of a link, at the time of the call that reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observation {
    /// A packet of the neighbour's came: a Hello, or any other.
    Heard {
        /// Received signal strength in dBm, where the receiver tells it.
        signal: Option<f32>,
    },
    /// Hellos that were due did not come: the time of one has passed, or the sequence number of the one that came now shows a
    /// gap. Each missing Hello is reported once.
    Missed {
        /// How many; they are taken as spread evenly over the time since the last observation. 0 is no observation.
        hellos: u16,
    },
    /// The medium is done with a frame that was sent to the neighbour alone.
    Transmitted {
        /// It was acknowledged; otherwise it was dropped after its retries.
        delivered: bool,
    },
}

impl Observation {
    /// A packet came, with unknown strength.
    pub const HEARD: Self = Self::Heard { signal: None };
    /// A Hello that was due did not come.
    pub const MISSED: Self = Self::Missed { hellos: 1 };

    /// A packet came with this strength in dBm.
    pub const fn heard_at(signal: f32) -> Self {
        Self::Heard { signal: Some(signal) }
    }
    /// Whether the link carried something; none if nothing was observed.
    pub const fn carried(self) -> Option<bool> {
        match self {
            Self::Heard { .. } => Some(true),
            Self::Missed { hellos: 0 } => None,
            Self::Missed { .. } => Some(false),
            Self::Transmitted { delivered } => Some(delivered),
        }
    }
}

/// Forecasts one link.
pub trait LinkForecaster: Send {
    /// Takes one observation in. Time does not run backwards; an observation with an earlier time counts as of the latest.
    fn observe(&mut self, now: Instant, observation: Observation);
    /// Probability, 0 to 1, that the link is up at `now + horizon`. 1/2 while nothing is known, but for forecasters that
    /// have an opinion beforehand.
    fn probability_up(&self, now: Instant, horizon: Duration) -> f64;
}
