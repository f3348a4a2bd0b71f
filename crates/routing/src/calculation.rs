//! Calculating the routes: when, and from the database to the table (RFC 5614, 10; RFC 5340, 4.8; RFC 2328, 16).

mod alternates;
pub(crate) mod basis;
mod prefixes;

use std::hash::{DefaultHasher, Hash, Hasher};

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::LinkKind;
use anabranch_wire::ospf::{InterfaceId, LsaBody, LsaType, Options};

use crate::config::RoutableQuality;
use crate::database::Place;
use crate::election::AdjConnectivity;
use crate::graph::Vertex;
use crate::interface::Interface;
use crate::lsa_fullness::LsaFullness;
use crate::neighbor::{Neighbor, NeighborState};
use crate::router::Router;
use crate::spf::{Reduction, RootNeighbor};
use crate::verbs::{At, Event};

pub(crate) use alternates::DOUBTED;
use basis::Calculation;

/// Which parts of RFC 5614, 10, are in use.
fn reduction(interfaces: &[Interface]) -> Reduction {
    let manets = || interfaces.iter().filter_map(Interface::manet);
    if manets().any(|manet| manet.election.adj_connectivity != AdjConnectivity::Full) {
        Reduction::Adjacencies
    } else if manets().all(|manet| manet.lsa_fullness == LsaFullness::Full) {
        Reduction::None
    } else {
        Reduction::PartialTopology
    }
}

/// The routable neighbour quality condition (RFC 5614, 9.1).
fn is_good(condition: &RoutableQuality, neighbor: &Neighbor, forecast: Option<f64>) -> bool {
    neighbor.manet.hears_us >= condition.hellos
        && condition.forecast.is_none_or(|least| forecast.is_none_or(|forecast| forecast >= least))
}

impl Router {
    /// The contents of an LSA changed.
    pub(crate) fn contents_changed(&mut self, now: Instant, place: Place) {
        let key = place.key;
        match key.kind {
            LsaType::ROUTER => {
                self.calculation.changed.insert(Vertex::Router(key.advertising));
            }
            LsaType::NETWORK => {
                self.calculation.changed.insert(Vertex::Network(key.advertising, InterfaceId(key.id.0)));
            }
            _ => self.calculation.prefixes_changed = true,
        }
        self.schedule_calculation(now);
    }

    /// Routes are to be calculated, together with what else happens soon.
    pub(crate) fn schedule_calculation(&mut self, now: Instant) {
        let soonest = now + self.config.spf_delay;
        let after_last = self.calculation.last.map_or(soonest, |last| last + self.config.spf_hold);
        self.calculation.at = self.calculation.at.min(soonest.max(after_last));
    }

    pub(crate) fn calculation_timeouts(&mut self, now: Instant) {
        if self.calculation.at <= now {
            self.calculate(now);
        }
    }

    /// Brings the graph up to date with the database.
    fn update_graph(&mut self, now: Instant) {
        let ipv6 = !self.config.is_ipv4();
        while let Some(vertex) = self.calculation.changed.pop_first() {
            let (kind, router) = match vertex {
                Vertex::Router(router) => (LsaType::ROUTER, router),
                Vertex::Network(router, _) => (LsaType::NETWORK, router),
            };
            let mut links = Vec::new();
            let mut transit = None;
            for entry in self.database.of_router(kind, router).filter(|entry| !entry.is_aged_out(now)) {
                match (entry.lsa.body(), vertex) {
                    // All of a router's LSAs count as one; its options stand in the first (RFC 5340, 4.8.1).
                    (LsaBody::Router(lsa), Vertex::Router(_)) => {
                        let forwards = lsa.options.contains(Options::R);
                        transit.get_or_insert(forwards && (!ipv6 || lsa.options.contains(Options::V6)));
                        links.extend(lsa.links.iter().filter_map(|link| match link.kind {
                            LinkKind::PointToPoint => Some((Vertex::Router(link.neighbor), link.metric)),
                            LinkKind::Transit => {
                                Some((Vertex::Network(link.neighbor, link.neighbor_interface), link.metric))
                            }
                            LinkKind::Virtual | LinkKind::Other(_) => None,
                        }));
                    }
                    (LsaBody::Network(lsa), Vertex::Network(_, interface)) if entry.lsa.key().id.0 == interface.0 => {
                        transit = Some(true);
                        links.extend(lsa.attached.iter().map(|router| (Vertex::Router(*router), 0)));
                    }
                    _ => {}
                }
            }
            match transit {
                Some(transit) => self.calculation.graph.set(vertex, transit, links),
                None => self.calculation.graph.remove(vertex),
            };
        }
    }

    /// What the root's dummy Router-LSA holds (RFC 5614, 10).
    fn root_neighbors(&mut self, now: Instant) -> Vec<RootNeighbor> {
        let mut roots = Vec::new();
        self.calculation.roots.clear();
        let Self { interfaces, calculation, config, .. } = self;
        let horizon = config.forecast.as_ref().map(|forecast| forecast.horizon);
        for (index, interface) in interfaces.iter().enumerate().filter(|(_, interface)| interface.is_active()) {
            for (router, neighbor) in interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional()) {
                let forecast = horizon.and_then(|at| Some(neighbor.forecaster.as_ref()?.probability_up(now, at)));
                roots.push(RootNeighbor {
                    vertex: Vertex::Router(*router),
                    cost: interface.cost_to(*router),
                    manet: interface.manet().is_some(),
                    bidirectional: true,
                    full: neighbor.state == NeighborState::Full,
                    routable: neighbor.manet.routable,
                    quality: interface.manet().is_some_and(|manet| is_good(&manet.routable, neighbor, forecast)),
                });
                calculation.roots.push(At { interface: index, router: *router });
            }
        }
        roots
    }

    fn calculate(&mut self, now: Instant) {
        self.calculation.at = Instant::NEVER;
        self.calculation.last = Some(now);
        self.output.counters.calculations += 1;
        self.update_graph(now);
        let mut roots = self.root_neighbors(now);
        let reduction = reduction(&self.interfaces);
        let Calculation { graph, paths, .. } = &mut self.calculation;
        paths.run(graph, self.config.router_id, &mut roots, reduction);
        let mut changed = false;
        let ats = core::mem::take(&mut self.calculation.roots);
        for (at, root) in ats.iter().zip(&roots) {
            if let Some(neighbor) = self.neighbor_mut(*at) {
                changed |= neighbor.manet.routable != root.routable;
                neighbor.manet.routable = root.routable;
            }
        }
        self.calculation.roots = ats;
        self.tell_of_routes();
        if changed {
            self.check_router_lsa(now);
        }
    }

    /// Tells if the calculation may have changed a route.
    fn tell_of_routes(&mut self) {
        // Only compared with others of this process.
        let mut hasher = DefaultHasher::new();
        self.calculation.paths.hash(&self.calculation.graph, &mut hasher);
        self.next_hops().hash(&mut hasher);
        let digest = hasher.finish();
        let prefixes = core::mem::take(&mut self.calculation.prefixes_changed);
        if prefixes {
            self.count_foreign_prefixes();
        }
        // Ways around doubted links depend on more than the own paths.
        let around = self.uses_alternates() && !self.filter.trusts_all();
        if digest != self.calculation.digest || prefixes || around {
            self.calculation.digest = digest;
            self.output.tell(Event::Routes);
        }
    }

    /// Makes neighbours routable to whom the last calculation found a way (RFC 5614, 9.1).
    pub(crate) fn update_routable(&mut self, now: Instant, index: usize) {
        let Self { interfaces, calculation, config, .. } = self;
        let horizon = config.forecast.as_ref().map(|forecast| forecast.horizon);
        let Some(interface) = interfaces.get_mut(index) else { return };
        let Some(manet) = interface.manet() else { return };
        if manet.election.adj_connectivity == AdjConnectivity::Full {
            return;
        }
        let condition = manet.routable;
        let mut changed = false;
        for (router, neighbor) in &mut interface.neighbors {
            let candidate = neighbor.is_bidirectional() && !neighbor.manet.routable;
            if candidate && calculation.reaches(*router) {
                let forecast = horizon.and_then(|at| Some(neighbor.forecaster.as_ref()?.probability_up(now, at)));
                neighbor.manet.routable = is_good(&condition, neighbor, forecast);
                changed |= neighbor.manet.routable;
            }
        }
        if changed {
            self.schedule_calculation(now);
        }
    }
}
