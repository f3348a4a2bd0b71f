//! Movement of nodes: positions are sampled in time steps, and used until the next step.

use crate::mobility::Movement;
use crate::radio::Position;
use anabranch_policy::time::{Duration, Instant};

/// Positions of nodes over time.
pub trait Positions {
    fn position(&self, node: usize, at: Instant) -> Position;
}

impl Positions for Movement {
    fn position(&self, node: usize, at: Instant) -> Position {
        Self::position(self, node, at)
    }
}

/// The movement of all nodes.
pub(crate) struct Movements {
    pub(super) positions: Box<dyn Positions>,
    pub(super) step: Duration,
}
