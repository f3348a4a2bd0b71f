//! Inputs of the router: packets, changes of interfaces, results of transmissions, time.

use std::net::Ipv6Addr;

use anabranch_policy::Instant;
use anabranch_wire::ospf::{Body, InterfaceId, Packet, Prefix, RouterId};

use crate::config::{ConfigError, ExternalMetric, InterfaceConfig};
use crate::counters::DropReason;
use crate::handles::NeighborHandle;
use crate::interface::Interface;
use crate::neighbor::{Neighbor, NeighborEvent};
use crate::router::Router;
use crate::verbs::{InterfaceChange, Reception};

impl Router {
    /// Adds an interface; it is down until [`InterfaceChange::Up`].
    ///
    /// # Errors If its configuration is invalid.
    pub fn add_interface(&mut self, now: Instant, config: InterfaceConfig) -> Result<(), ConfigError> {
        config.check(self.config.is_ipv4())?;
        if self.interfaces.find(config.id).is_some() {
            return Err(ConfigError::InterfaceId(config.id));
        }
        self.interfaces.add(Interface::new(config));
        self.settle(now);
        Ok(())
    }

    /// Gives an interface another configuration. It is down until [`InterfaceChange::Up`], with no neighbours; other interfaces
    /// go on.
    ///
    /// # Errors If there is no such interface, or its configuration is invalid.
    pub fn replace_interface(&mut self, now: Instant, config: InterfaceConfig) -> Result<(), ConfigError> {
        config.check(self.config.is_ipv4())?;
        let handle = self.interfaces.find(config.id).ok_or(ConfigError::NoSuchInterface(config.id))?;
        self.begin_anew(now, handle, config);
        self.settle(now);
        Ok(())
    }

    /// Tells other prefixes behind this router, as [`crate::Config::attached`], and whether it is a border router.
    pub fn set_behind(&mut self, now: Instant, attached: Vec<(Prefix, u16)>, as_boundary: bool) {
        (self.config.attached, self.config.as_boundary) = (attached, as_boundary);
        if !as_boundary && self.config.default_route.take().is_some() {
            self.check_default_route(now);
        }
        self.check_router_lsa(now);
        self.check_other_lsas(now);
        self.calculation.schedule(now);
        self.settle(now);
    }

    /// A change of an interface.
    ///
    /// # Errors If there is no such interface, or the change is invalid.
    pub fn handle_interface(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        change: InterfaceChange,
    ) -> Result<(), ConfigError> {
        let handle = self.interfaces.find(interface).ok_or(ConfigError::NoSuchInterface(interface))?;
        self.change_interface(now, handle, change)?;
        self.settle(now);
        Ok(())
    }

    /// A packet was received on an interface. The caller has verified its checksum and authentication.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, how: &Reception, packet: &Packet) {
        if let Err(reason) = self.receive(now, interface, how, packet) {
            self.output.counters.drop(reason);
        }
        self.settle(now);
    }

    /// The link layer delivered a unicast frame to a neighbour, or dropped it after its last attempt.
    pub fn handle_transmit_status(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        neighbor: RouterId,
        delivered: bool,
    ) {
        let Some(handle) = self.interfaces.find(interface) else { return };
        let at = NeighborHandle { interface: handle, router: neighbor };
        if let Some(neighbor) = self.interfaces.neighbor_mut(at) {
            neighbor.link.transmitted(now, delivered);
        }
        self.settle(now);
    }

    /// Something faster than Hellos has found that the neighbour with this address is unreachable (RFC 5882, section 4.4).
    pub fn handle_lost(&mut self, now: Instant, interface: InterfaceId, address: Ipv6Addr) {
        let Some(handle) = self.interfaces.find(interface) else { return };
        // One that restarts does not answer.
        let is_lost = |neighbor: &Neighbor| neighbor.address == address && neighbor.grace.is_none();
        let with = |(router, neighbor): (&RouterId, &Neighbor)| is_lost(neighbor).then_some(*router);
        let lost: Vec<RouterId> = self.interfaces[handle].neighbors.iter().filter_map(with).collect();
        for router in lost {
            self.neighbor_event(now, NeighborHandle { interface: handle, router }, NeighborEvent::KillNbr);
        }
        self.settle(now);
    }

    /// There is a way out of the routing domain through this router, or none any more: a default route is told to the
    /// others or withdrawn at once, with [`crate::Config::as_boundary`] only. While there is one, those of others are not used:
    /// two gateways would send packets to each other.
    pub fn set_default_route(&mut self, now: Instant, metric: Option<ExternalMetric>) {
        let metric = metric.filter(|_| self.config.as_boundary);
        if self.config.default_route != metric {
            self.config.default_route = metric;
            self.check_default_route(now);
            self.calculation.schedule(now);
            self.settle(now);
        }
    }

    /// The time of [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for handle in self.interfaces.handles() {
            self.interface_timeouts(now, handle);
        }
        self.backup_wait_timeouts(now);
        self.ageing_timeouts(now);
        self.origination.schedule_refreshes(now);
        self.calculation_timeouts(now);
        self.forecast_timeouts(now);
        self.settle(now);
    }

    /// The checks of RFC 5340, 4.2.2, that are not left to the caller; dispatches on the type.
    fn receive(&mut self, now: Instant, id: InterfaceId, how: &Reception, packet: &Packet) -> Result<(), DropReason> {
        let handle = self.interfaces.find(id).ok_or(DropReason::Interface)?;
        if !self.interfaces[handle].is_active() {
            return Err(DropReason::Interface);
        }
        self.output.counters.count_received(packet.body.packet_type());
        if packet.area != self.config.area {
            return Err(DropReason::Area);
        }
        if packet.instance != self.config.instance {
            return Err(DropReason::Instance);
        }
        if packet.router == RouterId::NONE {
            return Err(DropReason::RouterId);
        }
        if packet.router == self.config.router_id {
            return Err(DropReason::DuplicateRouterId);
        }
        if !how.source.is_unicast_link_local() {
            return Err(DropReason::Source);
        }
        let at = NeighborHandle { interface: handle, router: packet.router };
        if let Body::Hello(hello) = &packet.body {
            return self.receive_hello(now, at, how, hello, packet.lls.as_ref());
        }
        let neighbor = self.interfaces.neighbor_mut(at).ok_or(DropReason::UnknownNeighbor)?;
        if neighbor.address != how.source {
            return Err(DropReason::DuplicateNeighbor);
        }
        neighbor.link.hear(now, how.signal);
        self.interfaces[at.interface].hear(now, at.router);
        match &packet.body {
            Body::Hello(_) => Ok(()),
            Body::DatabaseDescription(description) => {
                self.receive_description(now, at, description, packet.lls.as_ref())
            }
            Body::LinkStateRequest(request) => self.receive_request(now, at, request),
            Body::LinkStateUpdate(update) => self.receive_update(now, at, how, update),
            Body::LinkStateAcknowledgment(acknowledgment) => self.receive_acknowledgment(now, at, acknowledgment),
        }
    }

    /// After every input: pending work, and the next timeout.
    fn settle(&mut self, now: Instant) {
        self.table.take();
        self.decide_adjacencies(now);
        self.originate_due(now);
        for handle in self.interfaces.handles() {
            self.begin_next_exchange(now, handle);
            for router in self.interfaces[handle].take_full_again() {
                self.pass_on(now, router);
            }
            self.flush_flood(now, handle);
        }
        self.remove_aged_out(now);
        let timers = [
            self.interfaces.next_timeout(),
            self.backup_waits.next(),
            self.origination.next(),
            self.calculation.next(),
            self.forecasts.next(),
            self.database.next_expiry(),
        ];
        self.wake = timers.into_iter().flatten().min();
    }
}
