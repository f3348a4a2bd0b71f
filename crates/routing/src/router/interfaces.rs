//! Handles changes of interfaces.

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::config::{ConfigError, InterfaceConfig, LEAST_MTU, check_addresses};
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::interface::Interface;
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::router::Router;
use crate::verbs::InterfaceChange;

impl Router {
    pub(super) fn change_interface(
        &mut self,
        now: Instant,
        handle: InterfaceHandle,
        change: InterfaceChange,
    ) -> Result<(), ConfigError> {
        let interface = &mut self.interfaces[handle];
        match change {
            InterfaceChange::Up => {
                self.forecasts.start(now);
                interface.bring_up(now, self.random.unit());
                interface.hasten_hello(now, self.random.unit());
            }
            InterfaceChange::Down => self.bring_down(now, handle),
            InterfaceChange::Addresses(addresses) => {
                check_addresses(&addresses, self.config.is_ipv4())?;
                interface.config.addresses = addresses;
            }
            InterfaceChange::Cost(0) | InterfaceChange::LinkCost(_, Some(0)) => {
                return Err(ConfigError::OutOfRange("cost"));
            }
            InterfaceChange::Cost(cost) => {
                interface.config.cost = cost;
                self.calculation.schedule(now);
            }
            InterfaceChange::LinkCost(neighbor, cost) => {
                match cost {
                    Some(cost) => interface.link_costs.insert(neighbor, cost),
                    None => interface.link_costs.remove(&neighbor),
                };
                self.calculation.schedule(now);
            }
            InterfaceChange::Mtu(mtu) => self.change_mtu(now, handle, mtu)?,
            InterfaceChange::Priority(priority) => {
                // RFC 5614, 3.1.
                interface.config.priority = priority;
                interface.mdr_neighbor_change = true;
            }
        }
        self.interfaces[handle].advertised_change = true;
        self.check_router_lsa(now);
        self.check_other_lsas(now);
        Ok(())
    }

    /// An interface with another configuration.
    pub(super) fn begin_anew(&mut self, now: Instant, handle: InterfaceHandle, config: InterfaceConfig) {
        self.bring_down(now, handle);
        self.interfaces[handle] = Interface::new(config);
        self.interfaces[handle].advertised_change = true;
        self.check_router_lsa(now);
        self.check_other_lsas(now);
    }

    /// Exchanges begin anew, since the MTU is told in their descriptions. Neighbours that are Full stay so.
    fn change_mtu(&mut self, now: Instant, handle: InterfaceHandle, mtu: u16) -> Result<(), ConfigError> {
        if mtu < LEAST_MTU {
            return Err(ConfigError::OutOfRange("mtu"));
        }
        let interface = &mut self.interfaces[handle];
        interface.config.mtu = mtu;
        interface.barred.clear();
        let unfinished = interface.adjacent().filter(|(_, neighbor)| neighbor.state < NeighborState::Full);
        let unfinished: Vec<RouterId> = unfinished.map(|(router, _)| router).collect();
        for router in unfinished {
            let at = NeighborHandle { interface: handle, router };
            self.neighbor_event(now, at, NeighborEvent::AdjOk { wanted: false });
            self.adj_ok.insert(at);
        }
        Ok(())
    }

    fn bring_down(&mut self, now: Instant, handle: InterfaceHandle) {
        let all: Vec<RouterId> = self.interfaces[handle].neighbors.keys().copied().collect();
        for router in all {
            self.neighbor_event(now, NeighborHandle { interface: handle, router }, NeighborEvent::KillNbr);
        }
        let interface = &mut self.interfaces[handle];
        interface.remove_neighbors();
        interface.bring_down();
        self.adj_ok.retain(|at| at.interface != handle);
        self.database.clear_link(handle);
        self.origination.forget_link(handle);
        self.backup_waits.forget_link(handle);
        self.calculation.schedule(now);
    }
}
