//! What happens to interfaces, and their timers.

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::config::{ConfigError, check_addresses};
use crate::election::Selection;
use crate::interface::{InterfaceEvent, InterfaceState, transition};
use crate::neighbor::Neighbor;
use crate::router::Router;
use crate::verbs::{At, InterfaceChange};

impl Router {
    pub(crate) fn change_interface(
        &mut self,
        now: Instant,
        index: usize,
        change: InterfaceChange,
    ) -> Result<(), ConfigError> {
        let ipv4 = self.config.is_ipv4();
        let Some(interface) = self.interfaces.get_mut(index) else { return Ok(()) };
        match change {
            InterfaceChange::Up => self.interface_up(now, index),
            InterfaceChange::Down => self.interface_down(now, index),
            InterfaceChange::Addresses(addresses) => {
                check_addresses(&addresses, ipv4)?;
                interface.config.addresses = addresses;
            }
            InterfaceChange::Cost(0) | InterfaceChange::LinkCost(_, Some(0)) => {
                return Err(ConfigError::OutOfRange("cost"));
            }
            InterfaceChange::Cost(cost) => {
                interface.config.cost = cost;
                self.schedule_calculation(now);
            }
            InterfaceChange::LinkCost(neighbor, cost) => {
                match cost {
                    Some(cost) => interface.link_costs.insert(neighbor, cost),
                    None => interface.link_costs.remove(&neighbor),
                };
                self.schedule_calculation(now);
            }
            InterfaceChange::Priority(priority) => {
                // RFC 5614, 3.1.
                interface.config.priority = priority;
                interface.mdr_neighbor_change = true;
            }
        }
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.advertised_change = true;
        }
        self.check_router_lsa(now);
        self.check_other_lsas(now);
        Ok(())
    }

    fn interface_up(&mut self, now: Instant, index: usize) {
        if let Some(forecast) = &self.config.forecast {
            self.forecast_at = self.forecast_at.min(now + forecast.period);
        }
        let unit = self.random.unit();
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if interface.state != InterfaceState::Down {
            return;
        }
        interface.state = transition(interface.state, interface.kind(), InterfaceEvent::InterfaceUp);
        if interface.is_active() {
            // Not all routers that start at once shall keep step.
            let first = match interface.manet() {
                Some(_) => interface.config.hello_interval.mul_f64(unit),
                None => anabranch_policy::Duration::ZERO,
            };
            interface.hello_due = now + first;
            interface.hello_at = interface.hello_due;
            interface.hellos_to_full = 0;
        }
        if let (InterfaceState::Waiting, Some(manet)) = (interface.state, interface.manet()) {
            interface.wait_until = now + interface.config.hello_interval * u64::from(manet.two_hop_refresh);
        }
    }

    fn interface_down(&mut self, now: Instant, index: usize) {
        self.kill_neighbors(now, index);
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        interface.state = transition(interface.state, interface.kind(), InterfaceEvent::InterfaceDown);
        interface.selection = Selection::default();
        (interface.wait_until, interface.hello_at) = (Instant::NEVER, Instant::NEVER);
        interface.flood.clear();
        interface.acknowledgments.clear();
        (interface.flood_at, interface.acknowledge_at) = (Instant::NEVER, Instant::NEVER);
        self.database.clear_link(index);
        self.origination.forget_link(index);
        self.backup_wait.retain(|place, _| place.link != Some(index));
        self.schedule_calculation(now);
    }

    /// The timers of an interface and its neighbours.
    pub(crate) fn interface_timeouts(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if interface.wait_until <= now {
            interface.wait_until = Instant::NEVER;
            interface.state = transition(interface.state, interface.kind(), InterfaceEvent::WaitTimer);
            interface.mdr_neighbor_change = true;
            self.refresh(now, index);
        }
        let Some(interface) = self.interfaces.get(index) else { return };
        let silence = interface.silence_at <= now;
        let due: Vec<RouterId> = if silence {
            let due = |one: &Neighbor| one.silence_deadline().min(one.exchange_deadline()) <= now;
            interface.neighbors.iter().filter(|(_, one)| due(one)).map(|(router, _)| *router).collect()
        } else {
            let due = interface.adjacent().filter(|(_, one)| one.exchange_deadline() <= now);
            due.map(|(router, _)| router).collect()
        };
        for router in due {
            self.neighbor_timeouts(now, At { interface: index, router });
        }
        if silence && let Some(interface) = self.interfaces.get_mut(index) {
            let next = interface.neighbors.values().map(Neighbor::silence_deadline).min();
            interface.silence_at = next.unwrap_or(Instant::NEVER);
        }
        if self.interfaces.get(index).is_some_and(|interface| interface.hello_at <= now) {
            self.send_hello(now, index);
        }
        if self.interfaces.get(index).is_some_and(|interface| interface.acknowledge_at <= now) {
            self.send_acknowledgments(now, index);
        }
    }
}
