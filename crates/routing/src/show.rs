//! Views of the router's state: interfaces, neighbours, database.

use std::net::Ipv6Addr;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{AgedLsa, InterfaceId, RouterId};

use crate::election::Selection;
use crate::handles::NeighborHandle;
use crate::interface::InterfaceState;
use crate::neighbor::NeighborState;
use crate::neighborhood::Level;
use crate::next_hops::Trust;
use crate::router::Router;

/// Present state of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceView {
    pub id: InterfaceId,
    pub state: InterfaceState,
    /// Result of the last MDR selection on it.
    pub selection: Selection,
}

/// Present state of a neighbour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NeighborView {
    pub interface: InterfaceId,
    pub router: RouterId,
    pub address: Ipv6Addr,
    pub state: NeighborState,
    /// Its Router Priority.
    pub priority: u8,
    /// Its MDR Level.
    pub level: Level,
    /// Its Parent.
    pub parent: RouterId,
    /// Whether it is a Dependent Neighbor.
    pub dependent: bool,
    /// Whether it is a Selected Advertised Neighbor.
    pub selected: bool,
    /// Whether it is routable.
    pub routable: bool,
    /// The cost of the link to it.
    pub cost: u16,
    /// Time since its last Hello.
    pub heard: Duration,
    /// LSAs it has not acknowledged.
    pub unacknowledged: usize,
    /// LSAs requested from it.
    pub requested: usize,
    /// Probability that the link to it is up at the horizon; none without a forecaster.
    pub forecast: Option<f64>,
    /// What its forecasts have made of it; trusted without a forecaster.
    pub trust: Trust,
}

impl Router {
    /// The interfaces, in the order in which they were added.
    pub fn interfaces(&self) -> impl Iterator<Item = InterfaceView> + '_ {
        self.interfaces.iter().map(|(_, one)| InterfaceView {
            id: one.config.id,
            state: one.state,
            selection: one.selection,
        })
    }

    /// The neighbours, by interface and router ID, including those that are Down and not yet removed.
    pub fn neighbors(&self, now: Instant) -> impl Iterator<Item = NeighborView> + '_ {
        self.interfaces.iter().flat_map(move |(_, interface)| {
            interface.neighbors.iter().map(move |(router, neighbor)| NeighborView {
                interface: interface.config.id,
                router: *router,
                address: neighbor.address,
                state: neighbor.state,
                priority: neighbor.priority,
                level: neighbor.manet.said.level,
                parent: neighbor.manet.said.parent,
                dependent: neighbor.manet.chosen.dependent,
                selected: neighbor.manet.chosen.selected,
                routable: neighbor.manet.chosen.routable,
                cost: interface.cost_to(*router),
                heard: now.since(neighbor.manet.heard),
                unacknowledged: neighbor.retransmissions.len(),
                requested: neighbor.exchange.requests.len(),
                forecast: self.forecasts.of(now, neighbor),
                trust: self.forecasts.trust(interface.config.id, *router),
            })
        })
    }

    /// Probability that the link to a neighbour is up after `horizon`; none without a forecaster.
    pub fn probability_up(
        &self,
        now: Instant,
        interface: InterfaceId,
        neighbor: RouterId,
        horizon: Duration,
    ) -> Option<f64> {
        let at = NeighborHandle { interface: self.interfaces.find(interface)?, router: neighbor };
        self.interfaces.neighbor(at)?.link.probability_up(now, horizon)
    }

    /// The database with present ages; LSAs of link-local scope come with their interface.
    pub fn lsas(&self, now: Instant) -> impl Iterator<Item = (Option<InterfaceId>, AgedLsa)> + '_ {
        self.database.all().map(move |(place, entry)| {
            let link = place.link.map(|handle| self.interfaces[handle].config.id);
            (link, entry.outgoing(now, 0))
        })
    }
}
