//! The router: its verbs, and what it owns.

use std::collections::VecDeque;
use std::net::Ipv6Addr;
use std::sync::Arc;

use anabranch_policy::Instant;
use anabranch_wire::ospf::{InterfaceId, Packet, RouterId};

use crate::config::{Config, ConfigError, InterfaceConfig};
use crate::counters::{Counters, DropReason};
use crate::routing_table::RoutingTable;

/// How a packet came in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reception {
    /// The link-local address it came from.
    pub source: Ipv6Addr,
    /// Whether it was sent to AllSPFRouters rather than to this router alone.
    pub multicast: bool,
    /// The signal it came with in dBm, where the radio tells it.
    pub signal: Option<f32>,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// FF02::5.
    AllSpfRouters,
    /// One neighbour's link-local address.
    Neighbor(RouterId, Ipv6Addr),
}

/// A packet to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// On this interface, from its link-local address, with hop limit 1.
    pub interface: InterfaceId,
    /// To here.
    pub destination: Destination,
    /// This.
    pub packet: Arc<Packet>,
}

/// What happens to an interface.
#[derive(Clone, PartialEq, Debug)]
pub enum InterfaceChange {
    /// It can send and receive (InterfaceUp).
    Up,
    /// It cannot (InterfaceDown).
    Down,
    /// It has these addresses now, as [`InterfaceConfig::addresses`].
    Addresses(Vec<(std::net::IpAddr, u8)>),
    /// Its cost is this now.
    Cost(u16),
    /// The link to one neighbour costs this now; none: as the interface.
    LinkCost(RouterId, Option<u16>),
    /// Its Router Priority is this now (RFC 5614, 3.1).
    Priority(u8),
}

/// What a caller may want to know.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The routes are others now.
    Routes,
}

/// One router of an ad-hoc network, in one area.
pub struct Router {
    config: Config,
    outgoing: VecDeque<Outgoing>,
    events: VecDeque<Event>,
    table: RoutingTable,
    counters: Counters,
}

impl Router {
    /// A router without interfaces.
    ///
    /// # Errors
    /// When the configuration cannot be.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            table: RoutingTable::default(),
            counters: Counters::default(),
        })
    }

    /// Adds an interface; it is down until [`InterfaceChange::Up`].
    ///
    /// # Errors
    /// When its configuration cannot be.
    pub fn add_interface(&mut self, _now: Instant, _config: InterfaceConfig) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Something happened to an interface.
    ///
    /// # Errors
    /// When there is no such interface, or the change cannot be.
    pub fn handle_interface(
        &mut self,
        _now: Instant,
        _interface: InterfaceId,
        _change: InterfaceChange,
    ) -> Result<(), ConfigError> {
        Ok(())
    }

    /// A packet came in on an interface. Its checksum and its authentication are the caller's.
    pub fn handle_packet(&mut self, _now: Instant, _interface: InterfaceId, _how: &Reception, _packet: &Packet) {
        self.counters.drop(DropReason::Interface);
    }

    /// The link layer delivered a unicast frame to a neighbour, or gave up.
    pub fn handle_transmit_status(
        &mut self,
        _now: Instant,
        _interface: InterfaceId,
        _neighbor: RouterId,
        _delivered: bool,
    ) {
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// The next thing to be told.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The routes.
    pub fn routes(&self) -> &RoutingTable {
        &self.table
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
