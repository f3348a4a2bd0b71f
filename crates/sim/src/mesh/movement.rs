//! Nodes that move: where they are is asked for in steps of time, since radio reaches as far at every moment between.

use super::{MOVEMENT_EVENT, NodeId};
use crate::event_queue::Target;
use crate::mobility::Movement;
use crate::network::Network;
use crate::radio::Position;
use crate::world::World;
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
    positions: Box<dyn Positions>,
    step: Duration,
}

impl World {
    /// Lets all nodes move, from now on, in steps of time: at 10 m/s and 100 ms a place is wrong by a metre at most.
    /// Zero counts as a millisecond.
    pub fn set_movement(&mut self, positions: Box<dyn Positions>, step: Duration) {
        let step = step.max(Duration::from_millis(1));
        let first = self.network.mesh.movement.is_none();
        self.network.mesh.movement = Some(Movements { positions, step });
        self.network.move_nodes(self.now());
        if first {
            self.network.events.put(self.now() + step, Target::new(MOVEMENT_EVENT, 0));
        }
    }
}

impl Network {
    /// The next step of the movement has come.
    pub(crate) fn handle_movement(&mut self, now: Instant) {
        self.move_nodes(now);
        if let Some(movement) = &self.mesh.movement {
            self.events.put(now + movement.step, Target::new(MOVEMENT_EVENT, 0));
        }
    }
    fn move_nodes(&mut self, now: Instant) {
        let Some(movement) = self.mesh.movement.take() else { return };
        for node in 0..self.mesh.nodes.len() {
            let position = movement.positions.position(node, now);
            self.mesh.move_node(NodeId(node as u32), position);
        }
        self.mesh.movement = Some(movement);
    }
}
