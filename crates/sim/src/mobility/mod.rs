//! Movements of nodes, drawn by models or read from files, as straight legs between waypoints.
//!
//! A movement is complete before the run: drawn from the seed by a model ([`Model::draw`]), or read from an ns-2
//! ([`ns2::read`]) or BonnMotion file ([`bonnmotion::read`]). Each node draws from its own random stream, so that an
//! additional node does not change the others. Lengths are metres, speeds metres per second.

mod area;
pub mod bonnmotion;
mod error;
mod gauss_markov;
mod group;
mod model;
mod movement;
pub mod ns2;
mod random_direction;
mod random_waypoint;
#[cfg(test)]
mod tests;

pub use area::{Area, Span};
pub use error::MobilityError;
pub use model::Model;
pub use movement::{Movement, Waypoint};
