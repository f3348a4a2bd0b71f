//! Nodes that move: where they are is asked for in steps of time, since radio reaches as far at every moment between.

use crate::mobility::Movement;
use crate::radio::Position;
use anabranch_policy::time::{Duration, Instant};

/// Where nodes are, and when.
pub trait Positions {
    /// Where a node is at a moment.
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
