//! Weights of the paths from a neural network that was trained in the lab's environment `Scheduler-v0`.
//!
//! At the first decision after each interval the network is given the observation of the interval
//! ([`crate::observation`]) and answers with a weight of each path, 0 to 1, for the next one. New data is divided in
//! proportion to the weights among the subflows with room; weight 0 excludes a path as long as another one is preferred
//! (not a backup, not stale).
//! Until the first interval is over, all weights are 1.
//!
//! Decisions:
//! - The environment observes at the end of each interval, and a scheduler is asked only when something can be sent: here
//!   the interval ends with the first decision after its length. A connection that has nothing to send is not observed.
//! - Paths beyond those that the network was trained with have weight 1.
//! - The built-in network is the example of docs/python.md: two paths whose delays vary, and a receive buffer that is too
//!   small for both. It shows the way of a trained network; nothing says that it is good elsewhere.

mod network;

use super::{Chunk, Decision, Scheduler, Shares};
use crate::ids::SubflowId;
use crate::observation::{ConnectionSample, Observer, PathSample, path_of};
use crate::table::{Parameter, Reader, Setting, SettingError};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowView};
pub use network::Network;

const WEIGHTS: Weights = Weights;

const SUMMARY: &str = "Weights of the network's connections; paths beyond those that it was trained with have weight 1";

/// The setting `weights`.
struct Weights;

impl Setting for Weights {
    type Value = Network;

    fn name(&self) -> &'static str {
        "weights"
    }

    fn parameter(&self) -> Parameter {
        let (default, values) = ("built-in".to_owned(), "built-in | @FILE, of anabranch.learned in Python".to_owned());
        Parameter { name: self.name(), default, values, summary: SUMMARY }
    }

    fn default(&self) -> Network {
        Network::read(include_str!("learned/two_paths.txt")).expect("a test reads it")
    }

    fn parse(&self, text: &str) -> Result<Network, String> {
        match text {
            "built-in" => Ok(self.default()),
            text => Network::read(text).map_err(|wrong| format!("a trained network: {wrong}")),
        }
    }
}

/// The scheduler `learned`.
#[derive(Debug)]
pub struct Learned {
    network: Network,
    observer: Observer,
    /// When the present interval began; none before the first decision.
    began: Option<Instant>,
    observation: Vec<f32>,
    /// By path.
    weights: Vec<f32>,
    shares: Shares,
}

impl Learned {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::new(reader.read(&WEIGHTS)?)))
    }

    fn new(network: Network) -> Self {
        let paths = network.paths();
        Self {
            observer: Observer::new(paths),
            began: None,
            observation: vec![0.0; network.inputs()],
            weights: vec![1.0; paths],
            shares: Shares::default(),
            network,
        }
    }

    /// Takes new weights if the interval is over.
    fn refresh(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) {
        let now = connection.now;
        let began = *self.began.get_or_insert(now);
        let step = now.since(began);
        if step < self.network.interval() {
            return;
        }
        self.began = Some(now);
        self.observation.fill(0.0);
        for sample in subflows.iter().filter_map(|subflow| PathSample::of(subflow, now)) {
            self.observer.observe_path(&sample, step, &mut self.observation);
        }
        let of_connection = &mut self.observation[self.observer.path_features()..];
        self.observer.observe_sender(&ConnectionSample::of(connection), step, of_connection);
        self.network.weights(&self.observation, &mut self.weights);
    }
}

impl Scheduler for Learned {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.refresh(connection, subflows);
        let weight = |subflow: &SubflowView| {
            let path = path_of(subflow.local_address, subflow.remote_address);
            self.weights.get(path).map_or(1.0, |weight| f64::from(*weight))
        };
        self.shares.schedule(chunk, subflows, weight)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.shares.remove(id);
    }
}

#[cfg(test)]
mod tests;
