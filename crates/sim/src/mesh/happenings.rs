//! Events of the mesh besides forwarding: movement steps and probes.

use super::movement::{Movements, Positions};
use super::probes::{ProbeConfig, Probes};
use super::{MOVEMENT_EVENT, NodeId, PROBE_EVENT};
use crate::event_queue::Target;
use crate::network::Network;
use crate::random::RandomStream;
use crate::world::World;
use anabranch_policy::time::{Duration, Instant};

impl World {
    /// Moves all nodes in time steps from now on: at 10 m/s and 100 ms, positions are off by at most a metre. A step of
    /// zero becomes a millisecond.
    pub fn set_movement(&mut self, positions: Box<dyn Positions>, step: Duration) {
        let step = step.max(Duration::from_millis(1));
        let first = self.network.mesh.movement.is_none();
        self.network.mesh.movement = Some(Movements { positions, step });
        self.network.move_nodes(self.now());
        if first {
            self.network.events.put(self.now() + step, Target::new(MOVEMENT_EVENT, 0));
        }
    }
    /// Adds probes. Their fate is counted by nodes ([`super::results::NodeCounters`]).
    pub fn add_probes(&mut self, config: ProbeConfig) {
        let random = RandomStream::new(self.seed(), &format!("probes/{}", config.name));
        let mut probes = Probes { random, sent: 0, config };
        if probes.config.among.len() < 2 {
            return;
        }
        let (first, number) = (probes.next(probes.config.start), self.network.mesh.probes.len());
        self.network.mesh.probes.push(probes);
        self.network.events.put(first, Target::new(PROBE_EVENT, number));
    }
    /// Number of probes sent by all sources.
    pub fn probes_sent(&self) -> u64 {
        self.network.mesh.probes.iter().map(|probes| probes.sent).sum()
    }
}

impl Network {
    /// The next movement step is due.
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
    /// A probe is due.
    pub(crate) fn handle_probe(&mut self, now: Instant, number: usize) {
        let probes = &mut self.mesh.probes[number];
        if now >= probes.config.stop {
            return;
        }
        let among = &probes.config.among;
        let from = probes.random.below(among.len() as u64) as usize;
        let to = (from + 1 + probes.random.below(among.len() as u64 - 1) as usize) % among.len();
        let (from, to) = if probes.config.one_way { (0, 1) } else { (from, to) };
        let (from, to) = (among[from], among[to]);
        probes.sent += 1;
        let (count, bytes, next) = (probes.sent, probes.config.bytes, probes.next(now));
        self.events.put(next, Target::new(PROBE_EVENT, number));
        self.send_udp(now, (from, to), bytes, count);
    }
}
