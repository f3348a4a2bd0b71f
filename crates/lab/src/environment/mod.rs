//! Environments for learning: a simulation that advances by an interval at each step, with an agent from outside in
//! place of one policy, which acts on what a sender can observe.

mod agent;
mod observation;
mod reward;
mod vector;
mod world;

pub use agent::Decides;
pub use observation::Observes;
pub use reward::Reward;
pub use vector::{Steps, VectorEnvironment};
pub use world::{Spec, Step, WorldEnvironment};
