//! Calculates the paths: when, and from which data (RFC 5614, 10; RFC 5340, 4.8; RFC 2328, 16).

mod alternates;
mod outside;
pub(crate) mod table;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lsa::LinkKind;
use anabranch_wire::ospf::{InterfaceId, LsaBody, LsaKey, LsaType, Options, RouterId};

use crate::config::{Config, RoutableQuality};
use crate::database::Database;
use crate::election::AdjConnectivity;
use crate::forecasts::Forecasts;
use crate::graph::{Graph, Vertex};
use crate::handles::NeighborHandle;
use crate::interface::Interface;
use crate::interfaces::Interfaces;
use crate::lane_plan::LanePlan;
use crate::lsa_fullness::LsaFullness;
use crate::neighbor::{Neighbor, NeighborState};
use crate::routing_table::NextHop;
use crate::spf::{Reduction, RootNeighbor, ShortestPaths};

/// Vertices of the largest graph for which the configured hold time is used.
const SMALL: u64 = 200;

/// Which parts of RFC 5614, 10, are in use.
fn reduction(interfaces: &Interfaces) -> Reduction {
    let manets = || interfaces.iter().filter_map(|(_, interface)| interface.manet());
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

/// What a calculation changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changed {
    /// The paths, or the addresses of their next hops.
    pub paths: bool,
    /// The prefixes behind a router, or its addresses.
    pub prefixes: bool,
}

/// State of the calculation of paths: schedule, inputs and result.
#[derive(Clone, Debug)]
pub(crate) struct Calculation {
    own: RouterId,
    ipv4: bool,
    /// Delay of the first calculation after a change, so that several changes share it.
    delay: Duration,
    /// Minimum time between two calculations for a small graph.
    hold: Duration,
    /// When the next calculation is; none if nothing changed.
    at: Option<Instant>,
    last: Option<Instant>,
    /// Routers and networks whose LSAs changed since the graph was updated.
    changed: BTreeSet<Vertex>,
    graph: Graph,
    paths: ShortestPaths,
    /// Digest of the paths and next hops of the last calculation, to detect changes.
    digest: u64,
    /// Whether LSAs with prefixes or addresses changed since then.
    prefixes_changed: bool,
    /// The neighbours at which paths begin, by the index of [`RootNeighbor`].
    roots: Vec<NeighborHandle>,
}

impl Calculation {
    pub fn new(config: &Config) -> Self {
        Self {
            own: config.router_id,
            ipv4: config.is_ipv4(),
            delay: config.spf_delay,
            hold: config.spf_hold,
            at: None,
            last: None,
            changed: BTreeSet::new(),
            graph: Graph::default(),
            paths: ShortestPaths::default(),
            digest: 0,
            prefixes_changed: false,
            roots: Vec::new(),
        }
    }

    /// The contents of an LSA changed.
    pub fn contents_changed(&mut self, now: Instant, key: LsaKey) {
        match key.kind {
            LsaType::ROUTER => {
                self.changed.insert(Vertex::Router(key.advertising));
            }
            LsaType::NETWORK => {
                self.changed.insert(Vertex::Network(key.advertising, InterfaceId(key.id.0)));
            }
            _ => self.prefixes_changed = true,
        }
        self.schedule(now);
    }

    /// Schedules a calculation, together with other changes that follow soon.
    pub fn schedule(&mut self, now: Instant) {
        let soonest = now + self.delay;
        let at = self.last.map_or(soonest, |last| soonest.max(last + self.hold()));
        self.at = Some(self.at.map_or(at, |before| before.min(at)));
    }

    /// Routers and networks in the graph.
    pub fn vertices(&self) -> usize {
        self.graph.len()
    }

    /// Minimum time between two calculations. The time that one takes grows with the graph.
    fn hold(&self) -> Duration {
        let vertices = self.vertices() as u64;
        self.hold * vertices.max(SMALL) / SMALL
    }

    pub fn next(&self) -> Option<Instant> {
        self.at
    }

    /// Memory of the graph and of the paths in bytes.
    pub fn footprint(&self) -> usize {
        self.graph.footprint() + self.paths.footprint()
    }

    /// The next hops of the lanes 1 to `lanes` to a destination, planned for the whole network.
    pub fn plan_lanes(&self, destination: RouterId, lanes: usize) -> Vec<Option<RouterId>> {
        let mut plan = LanePlan::default();
        plan.compute(&self.graph, destination, lanes);
        (1..=lanes).map(|lane| plan.next_hop(&self.graph, self.own, lane)).collect()
    }

    /// Calculates the paths. True if other neighbours became routable.
    pub fn run(
        &mut self,
        now: Instant,
        database: &Database,
        interfaces: &mut Interfaces,
        forecasts: &Forecasts,
    ) -> bool {
        (self.at, self.last) = (None, Some(now));
        self.update_graph(now, database);
        let mut roots = self.root_neighbors(now, interfaces, forecasts);
        self.paths.run(&self.graph, self.own, &mut roots, reduction(interfaces));
        let mut changed = false;
        for (at, root) in self.roots.iter().zip(&roots) {
            let chosen = &mut interfaces[*at].manet.chosen;
            changed |= chosen.routable != root.routable;
            chosen.routable = root.routable;
        }
        changed
    }

    /// What changed since the last call; `next_hops` are those of the paths.
    pub fn take_changed(&mut self, next_hops: &[Option<NextHop>]) -> Changed {
        // Only compared within this process.
        let mut hasher = DefaultHasher::new();
        self.paths.hash(&self.graph, &mut hasher);
        next_hops.hash(&mut hasher);
        let digest = hasher.finish();
        let paths = core::mem::replace(&mut self.digest, digest) != digest;
        Changed { paths, prefixes: core::mem::take(&mut self.prefixes_changed) }
    }

    /// Makes the neighbours on an interface routable to which the last calculation found a path (RFC 5614, 9.1). True
    /// if there are any.
    pub fn update_routable(&self, now: Instant, interface: &mut Interface, forecasts: &Forecasts) -> bool {
        let Some(manet) = interface.manet() else { return false };
        if manet.election.adj_connectivity == AdjConnectivity::Full {
            return false;
        }
        let condition = manet.routable;
        let mut changed = false;
        for (router, neighbor) in &mut interface.neighbors {
            let candidate = neighbor.is_bidirectional() && !neighbor.manet.chosen.routable;
            if candidate && self.reaches(*router) {
                let good = is_good(&condition, neighbor, forecasts.of(now, neighbor));
                neighbor.manet.chosen.routable = good;
                changed |= good;
            }
        }
        changed
    }

    /// Whether the last calculation found a path to a router.
    pub fn reaches(&self, router: RouterId) -> bool {
        self.paths.distance(&self.graph, Vertex::Router(router)).is_some()
    }

    /// Brings the graph up to date with the database.
    fn update_graph(&mut self, now: Instant, database: &Database) {
        while let Some(vertex) = self.changed.pop_first() {
            let (kind, router) = match vertex {
                Vertex::Router(router) => (LsaType::ROUTER, router),
                Vertex::Network(router, _) => (LsaType::NETWORK, router),
            };
            let mut links = Vec::new();
            let mut transit = None;
            for entry in database.of_router(kind, router).filter(|entry| !entry.is_aged_out(now)) {
                match (entry.lsa.body(), vertex) {
                    // All LSAs of a router count as one; its options are those of the first (RFC 5340, 4.8.1).
                    (LsaBody::Router(lsa), Vertex::Router(_)) => {
                        let forwards = lsa.options.contains(Options::R);
                        transit.get_or_insert(forwards && (self.ipv4 || lsa.options.contains(Options::V6)));
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
                Some(transit) => self.graph.set(vertex, transit, links),
                None => self.graph.remove(vertex),
            };
        }
    }

    /// The links of the root's dummy Router-LSA (RFC 5614, 10).
    fn root_neighbors(&mut self, now: Instant, interfaces: &Interfaces, forecasts: &Forecasts) -> Vec<RootNeighbor> {
        let mut roots = Vec::new();
        self.roots.clear();
        for (handle, interface) in interfaces.iter().filter(|(_, interface)| interface.is_active()) {
            for (router, neighbor) in interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional()) {
                let good = |condition| is_good(condition, neighbor, forecasts.of(now, neighbor));
                roots.push(RootNeighbor {
                    vertex: Vertex::Router(*router),
                    cost: interface.cost_to(*router),
                    manet: interface.manet().is_some(),
                    bidirectional: true,
                    full: neighbor.standing() == NeighborState::Full,
                    routable: neighbor.manet.chosen.routable,
                    quality: interface.manet().is_some_and(|manet| good(&manet.routable)),
                });
                self.roots.push(NeighborHandle { interface: handle, router: *router });
            }
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use crate::database::{Place, Source};
    use crate::handles::InterfaceHandle;
    use anabranch_wire::ospf::lsa::{LsaSequence, RouterFlags, RouterLink, RouterLsa};
    use anabranch_wire::ospf::{AgedLsa, LinkStateId, Lsa};
    use std::net::Ipv6Addr;

    fn milli(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn rfc5614_10_links_are_used_by_the_topology_that_the_manets_advertise() {
        use crate::config::{InterfaceKind, Manet};
        use crate::election::ElectionSettings;
        let of = |manets: &[(AdjConnectivity, LsaFullness)]| {
            let mut interfaces = Interfaces::default();
            for (adj_connectivity, lsa_fullness) in manets {
                let election = ElectionSettings { adj_connectivity: *adj_connectivity, ..ElectionSettings::default() };
                let manet = Manet { election, lsa_fullness: *lsa_fullness, ..Manet::default() };
                let mut config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
                config.kind = InterfaceKind::Manet(manet);
                interfaces.add(Interface::new(config));
            }
            reduction(&interfaces)
        };
        let (all, few) = ((AdjConnectivity::Full, LsaFullness::Full), (AdjConnectivity::Full, LsaFullness::MinCost));
        let reduced = (AdjConnectivity::Uniconnected, LsaFullness::Full);
        assert_eq!([of(&[]), of(&[all]), of(&[all, all])], [Reduction::None; 3]);
        assert_eq!([of(&[few]), of(&[all, few])], [Reduction::PartialTopology; 2]);
        assert_eq!([of(&[reduced]), of(&[few, reduced])], [Reduction::Adjacencies; 2]);
    }

    /// Installs the Router-LSA of a router with links to these.
    fn install(database: &mut Database, router: u32, to: &[u32]) -> LsaKey {
        let link = |to: &u32| RouterLink {
            kind: LinkKind::PointToPoint,
            metric: 1,
            interface: InterfaceId(1),
            neighbor_interface: InterfaceId(1),
            neighbor: RouterId(*to),
        };
        let links = to.iter().map(link).collect();
        let options = Options::V6 | Options::E | Options::R;
        let body = LsaBody::Router(RouterLsa { flags: RouterFlags::default(), options, links });
        let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(router), id: LinkStateId(0) };
        let lsa = Lsa::new(key, LsaSequence::INITIAL, body).unwrap();
        database.install(Place { link: None, key }, AgedLsa { age: 0, lsa }, Instant::ZERO, Source::Flooded);
        key
    }

    #[test]
    fn changes_share_a_calculation_and_calculations_keep_apart() {
        let mut calculation = Calculation::new(&Config::new(RouterId(1)));
        calculation.schedule(milli(0));
        calculation.schedule(milli(5));
        assert_eq!(calculation.next(), Some(milli(10)));
        let (database, mut interfaces) = (Database::default(), Interfaces::default());
        assert!(!calculation.run(milli(10), &database, &mut interfaces, &Forecasts::new(None)));
        assert_eq!(calculation.next(), None);
        calculation.schedule(milli(20));
        assert_eq!(calculation.next(), Some(milli(110)));
    }

    #[test]
    fn the_hold_time_grows_with_a_graph_of_more_than_two_hundred() {
        for (routers, hold) in [(1, 100), (200, 100), (600, 300)] {
            let (mut database, mut interfaces) = (Database::default(), Interfaces::default());
            let mut calculation = Calculation::new(&Config::new(RouterId(1)));
            for router in 1..=routers {
                let key = install(&mut database, router, &[]);
                calculation.contents_changed(milli(0), key);
            }
            calculation.run(milli(10), &database, &mut interfaces, &Forecasts::new(None));
            calculation.schedule(milli(20));
            assert_eq!(calculation.next(), Some(milli(10 + hold)), "{routers}");
        }
    }

    #[test]
    fn a_neighbour_to_whom_a_way_leads_becomes_routable() {
        let mut database = Database::default();
        let mut calculation = Calculation::new(&Config::new(RouterId(1)));
        for (router, to) in [(1, vec![2]), (2, vec![1, 3]), (3, vec![2])] {
            let key = install(&mut database, router, &to);
            calculation.contents_changed(milli(0), key);
        }
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
        interface.bring_up(milli(0), 0.0);
        for (router, state) in [(2, NeighborState::Full), (3, NeighborState::TwoWay)] {
            interface.add_neighbor(milli(0), RouterId(router), Ipv6Addr::UNSPECIFIED, None);
            let neighbor = interface.neighbors.get_mut(&RouterId(router)).unwrap();
            (neighbor.state, neighbor.manet.hears_us) = (state, 1);
        }
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        assert!(calculation.run(milli(10), &database, &mut interfaces, &Forecasts::new(None)));
        let third = NeighborHandle { interface: InterfaceHandle::FIRST, router: RouterId(3) };
        assert!(interfaces[third].manet.chosen.routable);
        assert_eq!(calculation.take_changed(&[]), Changed { paths: true, prefixes: false });
        assert_eq!(calculation.take_changed(&[]), Changed { paths: false, prefixes: false });
        // It becomes so between calculations, as soon as it hears this router again.
        interfaces[third].manet.chosen.routable = false;
        let interface = &mut interfaces[InterfaceHandle::FIRST];
        assert!(calculation.update_routable(milli(20), interface, &Forecasts::new(None)));
        assert!(!calculation.update_routable(milli(20), interface, &Forecasts::new(None)));
    }
}
