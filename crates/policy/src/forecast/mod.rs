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

mod api;
mod forward;
mod hidden_markov;
mod online;
mod paper_literal;
mod persistence;
mod quality;
mod sampling;
mod table;
#[cfg(test)]
mod tests;
mod trend;
mod viterbi;

pub use api::{LinkForecaster, Observation};
pub use forward::Forward;
pub use hidden_markov::{Decoding, MAX_WINDOW, Model, PAPER, STATES, State};
pub use online::Online;
pub use paper_literal::PaperLiteral;
pub use persistence::Persistence;
pub use quality::{InterfaceQuality, Symbol};
pub use table::TABLE;
pub use trend::Trend;
pub use viterbi::Viterbi;
