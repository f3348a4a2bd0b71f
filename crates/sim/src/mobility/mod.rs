//! Where nodes are, and when: movements that models draw or that files tell, all as straight legs between waypoints.
//!
//! A movement is complete before the run: drawn from the seed by a model ([`Model::draw`]), or read from the text of an ns-2
//! ([`ns2::read`]) or BonnMotion file ([`bonnmotion::read`]). Each node draws from a stream of its own, so that a node more
//! changes nobody else's way. Lengths are metres, speeds metres per second.

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
