//! How likely a link is up at a horizon.
//!
//! A forecaster stands for one direction of one link: (neighbour, channel). It is fed with what a router learns anyhow:
//! Hellos that come, with the strength they were received with where the receiver tells it, Hellos that were due and did
//! not come, and what the medium said about frames sent to the neighbour. Nothing is fed while no Hello is due: then
//! nothing was observed, which is not the same as a Hello that is missing.
//!
//! The family, from the simplest to the ones meant for use:
//!
//! | name | is |
//! |---|---|
//! | [`Persistence`] | the last observation |
//! | [`PaperLiteral`] | the hidden Markov model of the paper with its pseudo-code as printed |
//! | [`Viterbi`] | the same, decoded correctly |
//! | [`Forward`] | the same model as a filter, carried to the horizon |
//! | [`Online`] | a model of level and slope that learns its numbers on line |
//! | [`Trend`] | level and slope of the signal itself, carried to the horizon |

mod forward;
mod hidden_markov;
mod online;
mod paper_literal;
mod persistence;
mod quality;
mod sampling;
mod trend;
mod viterbi;

pub use forward::Forward;
pub use hidden_markov::{Decoding, MAX_WINDOW, Model, PAPER, STATES, State};
pub use online::Online;
pub use paper_literal::PaperLiteral;
pub use persistence::Persistence;
pub use quality::{InterfaceQuality, Symbol};
pub use trend::Trend;
pub use viterbi::Viterbi;

use crate::table::Member;
use crate::time::{Duration, Instant};

/// The forecasters.
pub const TABLE: &[Member<dyn LinkForecaster>] =
    &[forward::MEMBER, online::MEMBER, paper_literal::MEMBER, persistence::MEMBER, trend::MEMBER, viterbi::MEMBER];

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
        /// It was acknowledged; otherwise it was given up after its retries.
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

#[cfg(test)]
mod tests;
