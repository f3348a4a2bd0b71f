//! Where nodes are: a node that is held stays where it was put, whatever moves it.

use super::{Mesh, Node, NodeId};
use crate::radio::Position;
use crate::world::World;

impl World {
    /// Moves a node with all its radios, unless it is held.
    pub(crate) fn move_node(&mut self, node: NodeId, position: Position) {
        self.network.mesh.move_node(node, position);
    }
    /// Puts a node somewhere and holds it there. Frames on the air still reach the stations they reached.
    ///
    /// # Panics
    /// If this world does not have the node.
    pub fn hold_node(&mut self, node: NodeId, position: Position) {
        let mesh = &mut self.network.mesh;
        let place = mesh.nodes[node.index()].position;
        mesh.held.entry(node).or_insert(place);
        mesh.put_node(node, position);
    }
    /// Lets go of a node that is held: it is where it would be by now.
    pub fn release_node(&mut self, node: NodeId) {
        let mesh = &mut self.network.mesh;
        if let Some(position) = mesh.held.remove(&node) {
            mesh.put_node(node, position);
        }
    }
}

impl Mesh {
    pub(super) fn move_node(&mut self, node: NodeId, position: Position) {
        match self.held.get_mut(&node) {
            Some(place) => *place = position,
            None => self.put_node(node, position),
        }
    }
    fn put_node(&mut self, node: NodeId, position: Position) {
        let Node { radios, position: place, .. } = &mut self.nodes[node.index()];
        *place = position;
        for radio in radios {
            self.channels[radio.channel.index()].medium.set_position(radio.station, position);
        }
    }
}
