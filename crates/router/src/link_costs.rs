//! Tells the routers what radios tell of their links.

use super::daemon::RouteDaemon;
use super::radio::{INTERVAL, Links, Neighbor, News};
use anabranch_policy::time::Instant;
use anabranch_routing::{InterfaceChange, NeighborState};

impl RouteDaemon {
    /// Looks at the radios if it is time, and tells the routers.
    pub(super) fn look_at_radios(&mut self, now: Instant) {
        let Some(radio) = self.radio.as_mut().filter(|radio| radio.due <= now) else { return };
        radio.due = now + INTERVAL;
        let mut neighbors = Vec::new();
        for view in self.instances.iter().flat_map(|instance| instance.router.neighbors(now)) {
            let port = self.ports.iter().find(|port| port.id == view.interface);
            if let Some(index) = port.and_then(|port| port.index).filter(|_| view.state != NeighborState::Down) {
                let neighbor = Neighbor { port: view.interface, address: view.address, router: view.router };
                neighbors.push((index, neighbor));
            }
        }
        neighbors.sort_unstable();
        neighbors.dedup();
        let stations = radio.stations(&mut self.netlink, &neighbors);
        // An interface may have disappeared meanwhile; the next look is soon.
        let news = radio.links.look(now, &stations.unwrap_or_default());
        for News { neighbor: Neighbor { port, router, .. }, cost, delivered } in news {
            for instance in &mut self.instances {
                if let Some(cost) = cost.filter(|_| self.config.airtime) {
                    // An instance that does not have the interface has no link on it.
                    let _ = instance.router.handle_interface(now, port, InterfaceChange::LinkCost(router, cost));
                }
                if let Some(delivered) = delivered {
                    instance.router.handle_transmit_status(now, port, router, delivered);
                }
            }
        }
    }

    /// Routers or interfaces have begun anew: they are told all costs again.
    pub(super) fn forget_radios(&mut self) {
        if let Some(radio) = &mut self.radio {
            radio.links = Links::default();
        }
    }
}
