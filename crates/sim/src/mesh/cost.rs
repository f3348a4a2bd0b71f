//! Cost of a mesh so far: the energy of its radios, and the work of its routers.

use crate::world::World;
use core::ops::Sub;

/// Sums over all nodes since time zero.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MeshCost {
    /// Joules drawn by the radios. They never sleep, so most of it is idle power.
    pub joules: f64,
    /// Joules beyond permanently idle radios.
    pub joules_active: f64,
    /// Route calculations.
    pub calculations: u64,
    /// LSAs received by routers, duplicates included.
    pub lsas_received: u64,
    /// Routing packets received by routers.
    pub packets_received: u64,
}

impl Sub for MeshCost {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            joules: self.joules - before.joules,
            joules_active: self.joules_active - before.joules_active,
            calculations: self.calculations - before.calculations,
            lsas_received: self.lsas_received - before.lsas_received,
            packets_received: self.packets_received - before.packets_received,
        }
    }
}

impl World {
    /// The cost so far. Frames on the air count when they end.
    pub(crate) fn mesh_cost(&self) -> MeshCost {
        let mut cost = MeshCost::default();
        let on = self.now().as_secs_f64();
        for node in &self.network.mesh.nodes {
            for radio in &node.radios {
                let medium = &self.network.mesh.channels[radio.channel.index()].medium;
                let joules = medium.energy(radio.station, self.now());
                cost.joules += joules;
                cost.joules_active += joules - on * medium.config().power.idle;
            }
            cost.packets_received += node.counters.control.received_packets;
            let Some(agent) = &node.agent else { continue };
            let counters = agent.router.counters();
            cost.calculations += counters.calculations;
            cost.lsas_received += counters.lsas_received;
        }
        cost
    }
    /// Bytes that all routers together need for their state.
    pub fn router_memory(&self) -> u64 {
        let routers = self.network.mesh.nodes.iter().filter_map(|node| node.agent.as_ref());
        routers.map(|agent| agent.router.footprint().total() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::mesh::moving_network::MovingNetwork;
    use anabranch_policy::time::{Duration, Instant};
    use anabranch_routing::lsa_fullness::LsaFullness;

    #[test]
    fn two_routers_cost_what_their_radios_wait_and_the_little_that_they_say() {
        let mut network = MovingNetwork::appendix_e(2, 250.0, LsaFullness::MinCost, 1);
        network.area = crate::mobility::Area { x: 100.0, y: 100.0 };
        let mut world = network.build().unwrap();
        world.run_until(Instant::ZERO + Duration::from_secs(50));
        let cost = world.mesh_cost();
        // Two radios that are idle for 50 s at 0.7394 W each.
        let idle = 2.0 * 50.0 * 0.739_4;
        assert!((cost.joules - cost.joules_active - idle).abs() < 1e-9);
        // 25 Hellos of about 100 bytes each way at 1 Mbit/s are sent and received: 2 x 25 x 1 ms x (0.61 + 0.16) W.
        assert!((0.01..0.2).contains(&cost.joules_active), "{cost:?}");
        assert!(cost.calculations >= 2 && cost.lsas_received >= 2 && cost.packets_received > 40, "{cost:?}");
        // Both have all LSAs of both: Router-LSA, Intra-Area-Prefix-LSA and Link-LSA each, of 24 bytes and more.
        let memory = world.router_memory();
        assert!((2 * 6 * 24..20_000).contains(&memory), "{memory}");
    }
}
