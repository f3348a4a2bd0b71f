//! Networks of the scheduler `learned`, for those who write them.

use crate::failure::plain;
use anabranch_policy::observation::{PATH_FEATURES, SENDER_FEATURES};
use anabranch_policy::scheduler::learned::Network;
use pyo3::prelude::*;

/// Names of the numbers that a trained network is given.
#[pyfunction]
pub fn network_features(paths: usize) -> Vec<&'static str> {
    let of_paths = std::iter::repeat_n(PATH_FEATURES, paths).flatten();
    of_paths.chain(SENDER_FEATURES).map(|feature| feature.name).collect()
}

/// Weights of the paths by a network after an observation; without one, only reads the network.
#[pyfunction]
pub fn network_weights(text: &str, observation: Vec<f32>) -> PyResult<Vec<f32>> {
    let mut network = Network::read(text).map_err(plain)?;
    let mut weights = vec![1.0; network.paths()];
    if !observation.is_empty() {
        if observation.len() != network.inputs() {
            return Err(plain(format!("an observation has {} numbers, not {}", network.inputs(), observation.len())));
        }
        network.weights(&observation, &mut weights);
    }
    Ok(weights)
}
