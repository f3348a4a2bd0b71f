//! Forecasts of the probability that a link is up at a horizon.
//!
//! A forecaster handles one direction of one link: (neighbour, channel). Its input is known to a router anyway:
//! received Hellos, with their signal strength if the receiver reports it, missing Hellos, and results of frames sent
//! to the neighbour. While no Hello is due there is no input: no observation differs from a missing Hello.
//!
//! The family, from the simplest to the ones meant for use:
//!
//! | name | is |
//! |---|---|
//! | [`Persistence`] | the last observation |
//! | [`PaperLiteral`] | the hidden Markov model of the paper with its pseudo-code as printed |
//! | `viterbi` | the same, decoded correctly |
//! | [`Forward`] | the same model as a filter, extrapolated to the horizon |
//! | `online` | a model of level and slope that learns its parameters online |
//! | `trend` | level and slope of the signal itself, extrapolated to the horizon |

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
pub use hidden_markov::{Decoding, MAX_WINDOW, Model, STATES, State};
pub use paper_literal::PaperLiteral;
pub use persistence::Persistence;
pub use quality::{InterfaceQuality, Symbol};
pub use table::TABLE;
