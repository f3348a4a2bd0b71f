//! What a router shows of itself: interfaces, neighbours, database.

use std::net::Ipv6Addr;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{AgedLsa, InterfaceId, RouterId};

use crate::election::Selection;
use crate::handles::NeighborHandle;
use crate::interface::InterfaceState;
use crate::neighbor::NeighborState;
use crate::neighborhood::Level;
use crate::router::Router;

/// An interface as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceView {
    /// Its number.
    pub id: InterfaceId,
    /// Its state.
    pub state: InterfaceState,
    /// What the last MDR selection chose on it.
    pub selection: Selection,
}

/// A neighbour as it is now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NeighborView {
    /// On which interface.
    pub interface: InterfaceId,
    /// Its router ID.
    pub router: RouterId,
    /// Its link-local address there.
    pub address: Ipv6Addr,
    /// The state of the conversation with it.
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
    /// How long ago its last Hello came.
    pub heard: Duration,
    /// LSAs it has not acknowledged.
    pub unacknowledged: usize,
    /// LSAs that are being fetched from it.
    pub requested: usize,
    /// Probability that the link to it is up at the horizon; none without a forecaster.
    pub forecast: Option<f64>,
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

    /// The neighbours, by interface and router ID; Down ones too, as long as they are remembered.
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

    /// The database with the ages of now; those that stay on a link come with its interface.
    pub fn lsas(&self, now: Instant) -> impl Iterator<Item = (Option<InterfaceId>, AgedLsa)> + '_ {
        self.database.all().map(move |(place, entry)| {
            let link = place.link.map(|handle| self.interfaces[handle].config.id);
            (link, entry.outgoing(now, 0))
        })
    }
}
