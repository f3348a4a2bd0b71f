//! The router: its verbs, and what it owns.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::Instant;
use anabranch_wire::ospf::{Body, InterfaceId, Packet, RouterId};

use crate::calculation::basis::Calculation;
use crate::config::{Config, ConfigError, InterfaceConfig};
use crate::counters::{Counters, DropReason};
use crate::database::{Database, Place};
use crate::election::Election;
use crate::flooding::backup_wait::BackupWait;
use crate::interface::Interface;
use crate::lsa_fullness::AdvertisedNeighbors;
use crate::neighbor::Neighbor;
use crate::neighborhood::Neighborhood;
use crate::next_hops::{ForecastUse, NextHopFilter, WeightedHop};
use crate::origination::own::Origination;
use crate::output::Output;
use crate::random::Random;
use crate::routing_table::{NextHop, RoutingTable};
use crate::verbs::{At, Event, InterfaceChange, Outgoing, Reception};

/// One router of an ad-hoc network, in one area.
pub struct Router {
    pub(crate) config: Config,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) database: Database,
    pub(crate) origination: Origination,
    pub(crate) calculation: Calculation,
    /// What Backup MDRs wait to flood.
    pub(crate) backup_wait: BTreeMap<Place, BackupWait>,
    /// Neighbours whose adjacency is to be decided.
    pub(crate) adj_ok: BTreeSet<At>,
    pub(crate) election: Election,
    pub(crate) neighborhood: Neighborhood,
    pub(crate) advertised: AdvertisedNeighbors,
    pub(crate) random: Random,
    pub(crate) output: Output,
    /// Made when it is asked for, and good until the next input.
    table: OnceCell<RoutingTable>,
    pub(crate) filter: NextHopFilter,
    /// When the forecasts are looked at next.
    pub(crate) forecast_at: Instant,
    wake: Instant,
}

impl Router {
    /// A router without interfaces.
    ///
    /// # Errors
    /// When the configuration cannot be.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let filter =
            NextHopFilter::new(config.forecast.as_ref().map_or(ForecastUse::Ignored, |forecast| forecast.usage));
        let random = Random::new(config.seed, config.router_id);
        let output = Output::new(&config);
        Ok(Self {
            config,
            interfaces: Vec::new(),
            database: Database::default(),
            origination: Origination::default(),
            calculation: Calculation::default(),
            backup_wait: BTreeMap::new(),
            adj_ok: BTreeSet::new(),
            election: Election::default(),
            neighborhood: Neighborhood::default(),
            advertised: AdvertisedNeighbors::default(),
            random,
            output,
            table: OnceCell::new(),
            filter,
            forecast_at: Instant::NEVER,
            wake: Instant::NEVER,
        })
    }

    /// Adds an interface; it is down until [`InterfaceChange::Up`].
    ///
    /// # Errors
    /// When its configuration cannot be.
    pub fn add_interface(&mut self, now: Instant, config: InterfaceConfig) -> Result<(), ConfigError> {
        config.check(self.config.is_ipv4())?;
        if self.interfaces.iter().any(|interface| interface.config.id == config.id) {
            return Err(ConfigError::InterfaceId(config.id));
        }
        self.interfaces.push(Interface::new(config));
        self.settle(now);
        Ok(())
    }

    /// Something happened to an interface.
    ///
    /// # Errors
    /// When there is no such interface, or the change cannot be.
    pub fn handle_interface(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        change: InterfaceChange,
    ) -> Result<(), ConfigError> {
        let index = self.index_of(interface).ok_or(ConfigError::NoSuchInterface(interface))?;
        self.change_interface(now, index, change)?;
        self.settle(now);
        Ok(())
    }

    /// A packet came in on an interface. Its checksum and its authentication are the caller's.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, how: &Reception, packet: &Packet) {
        if let Err(reason) = self.receive(now, interface, how, packet) {
            self.output.counters.drop(reason);
        }
        self.settle(now);
    }

    /// The link layer delivered a unicast frame to a neighbour, or gave up.
    pub fn handle_transmit_status(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        neighbor: RouterId,
        delivered: bool,
    ) {
        let Some(index) = self.index_of(interface) else { return };
        self.observe_transmission(now, At { interface: index, router: neighbor }, delivered);
        self.settle(now);
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.interfaces.len() {
            self.interface_timeouts(now, index);
        }
        self.backup_wait_timeouts(now);
        self.ageing_timeouts(now);
        self.origination_timeouts(now);
        self.calculation_timeouts(now);
        self.forecast_timeouts(now);
        self.settle(now);
    }

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.output.next_packet()
    }

    /// The next thing to be told.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.output.next_event()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.wake != Instant::NEVER).then_some(self.wake)
    }

    /// The routes, with all next hops of equal cost: the prefixes in the database, by the paths of the last calculation.
    pub fn routes(&self) -> &RoutingTable {
        self.table.get_or_init(|| self.make_table())
    }

    /// The next hops to use of those of a route, or of a part of them, and each one's share of the traffic, by what is
    /// forecast of their links. All with equal shares if nothing is forecast. [`Event::Routes`] tells of changes.
    pub fn choose(&self, next_hops: &[NextHop]) -> Vec<WeightedHop> {
        self.filter.choose(next_hops)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.output.counters
    }

    pub(crate) fn index_of(&self, interface: InterfaceId) -> Option<usize> {
        self.interfaces.iter().position(|one| one.config.id == interface)
    }

    pub(crate) fn neighbor(&self, at: At) -> Option<&Neighbor> {
        self.interfaces.get(at.interface)?.neighbors.get(&at.router)
    }

    pub(crate) fn neighbor_mut(&mut self, at: At) -> Option<&mut Neighbor> {
        self.interfaces.get_mut(at.interface)?.neighbors.get_mut(&at.router)
    }

    /// The checks of RFC 5340, 4.2.2, that are not the caller's, and the way to the packet's type.
    fn receive(&mut self, now: Instant, id: InterfaceId, how: &Reception, packet: &Packet) -> Result<(), DropReason> {
        let index = self.index_of(id).ok_or(DropReason::Interface)?;
        let active = self.interfaces.get(index).is_some_and(Interface::is_active);
        if !active {
            return Err(DropReason::Interface);
        }
        self.output.counters.count_received(packet.body.packet_type());
        if packet.area != self.config.area {
            return Err(DropReason::Area);
        }
        if packet.instance != self.config.instance {
            return Err(DropReason::Instance);
        }
        if packet.router == RouterId::NONE || packet.router == self.config.router_id {
            return Err(DropReason::RouterId);
        }
        if !how.source.is_unicast_link_local() {
            return Err(DropReason::Source);
        }
        let at = At { interface: index, router: packet.router };
        if let Body::Hello(hello) = &packet.body {
            return self.receive_hello(now, at, how, hello, packet.lls.as_ref());
        }
        if self.neighbor(at).is_none() {
            return Err(DropReason::UnknownNeighbor);
        }
        self.hear(now, at, how);
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

    /// What is left to do after every input, and when the next one is due at the latest.
    fn settle(&mut self, now: Instant) {
        self.table.take();
        while let Some(at) = self.adj_ok.pop_first() {
            self.decide_adjacency(now, at);
        }
        self.originate_due(now);
        for index in 0..self.interfaces.len() {
            self.flush_flood(now, index);
        }
        self.remove_aged_out(now);
        let interfaces = self.interfaces.iter().map(Interface::deadline);
        let backup = self.backup_wait.values().map(|wait| wait.at);
        let own = [self.origination.deadline(), self.calculation.deadline(), self.forecast_at];
        let ageing = self.database.next_expiry();
        self.wake = interfaces.chain(backup).chain(own).chain(ageing).min().unwrap_or(Instant::NEVER);
    }
}
