//! The input and output of a forecaster for a link.

use crate::time::{Duration, Instant};

/// An observation of a link, at the time of the call that reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observation {
    /// A packet of the neighbour was received: a Hello, or any other.
    Heard {
        /// Received signal strength in dBm, if the receiver reports it.
        signal: Option<f32>,
    },
    /// Expected Hellos were not received: their time has passed, or a gap in the sequence numbers shows it. Each
    /// missing Hello is reported once.
    Missed {
        /// Their number; they are assumed to be spread evenly over the time since the last observation. 0 is no
        /// observation.
        hellos: u16,
    },
    /// The transmission of a unicast frame to the neighbour has ended.
    Transmitted {
        /// It was acknowledged; otherwise it was dropped after its retries.
        delivered: bool,
    },
}

impl Observation {
    /// A packet was received, with unknown strength.
    pub const HEARD: Self = Self::Heard { signal: None };
    /// An expected Hello was not received.
    pub const MISSED: Self = Self::Missed { hellos: 1 };

    /// A packet was received with this strength in dBm.
    pub const fn heard_at(signal: f32) -> Self {
        Self::Heard { signal: Some(signal) }
    }
    /// Whether the link worked; `None` if nothing was observed.
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
    /// Processes an observation. Time does not go backwards; an observation with an earlier time counts as of the
    /// latest.
    fn observe(&mut self, now: Instant, observation: Observation);
    /// Probability, 0 to 1, that the link is up at `now + horizon`. Without observations it is 1/2, unless the
    /// forecaster has a prior.
    fn probability_up(&self, now: Instant, horizon: Duration) -> f64;
}
