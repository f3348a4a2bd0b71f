//! From paths to routers to routes to prefixes (RFC 5340, 4.8.1, second stage, and 4.8.2; RFC 5838, 2.3 and 2.5).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_policy::Instant;
use anabranch_wire::ospf::{InterfaceId, LsaBody, LsaType, Prefix, PrefixOptions, RouterId};

use super::Calculation;
use super::alternates::Alternates;
use super::outside::Outside;
use crate::config::Config;
use crate::counters::DropReason;
use crate::database::Database;
use crate::forecasts::Forecasts;
use crate::graph::Vertex;
use crate::handles::NeighborHandle;
use crate::interfaces::Interfaces;
use crate::routing_table::{NextHop, Route, RoutingTable, merged};

/// The inputs of the routing table.
pub(crate) struct TableMaker<'a> {
    pub config: &'a Config,
    pub interfaces: &'a Interfaces,
    pub database: &'a Database,
    pub calculation: &'a Calculation,
    pub forecasts: &'a Forecasts,
}

/// The next hops of routes. Those of most routes are the same few sets: each is made once, and shared.
struct HopSets<'a> {
    calculation: &'a Calculation,
    /// The next hops by the index of their neighbour.
    hops: &'a [Option<NextHop>],
    /// Most next hops of a route.
    most: usize,
    made: BTreeMap<&'a [u64], Arc<[NextHop]>>,
}

impl HopSets<'_> {
    /// The route to a vertex; none if it is unreachable.
    fn route_to(&mut self, vertex: Vertex, destination: RouterId) -> Option<Route> {
        let Calculation { paths, graph, .. } = self.calculation;
        let (cost, set) = paths.found(graph, vertex)?;
        let next_hops = self.made.entry(set).or_insert_with(|| {
            let mut next_hops: Vec<_> = paths.hops_of(set).filter_map(|hop| *self.hops.get(hop.neighbor)?).collect();
            next_hops.sort_unstable();
            next_hops.truncate(self.most);
            next_hops.into()
        });
        Some(Route { cost, destination, next_hops: Arc::clone(next_hops) })
    }
}

impl TableMaker<'_> {
    /// The address of a neighbour as a next hop.
    fn address_of(&self, at: NeighborHandle) -> Option<IpAddr> {
        let neighbor = self.interfaces.neighbor(at)?;
        if self.config.is_ipv4() {
            let link = self.database.link_lsa(at.interface, at.router, neighbor.interface);
            if let Some(address) = link.map(|link| link.address_v4()).filter(|address| !address.is_unspecified()) {
                return Some(address.into());
            }
        }
        Some(neighbor.address.into())
    }

    /// The first hops of the paths, as next hops, by the index of their neighbour.
    pub fn next_hops(&self) -> Vec<Option<NextHop>> {
        let hop = |at: &NeighborHandle| {
            let interface = self.interfaces[at.interface].config.id;
            Some(NextHop { router: at.router, interface, address: self.address_of(*at)? })
        };
        self.calculation.roots.iter().map(hop).collect()
    }

    /// Prefixes too long for the address family, and LSAs on behalf of another router.
    pub fn foreign_prefixes(&self) -> Vec<DropReason> {
        let ipv4 = self.config.is_ipv4();
        let mut foreign = Vec::new();
        for entry in self.database.of_type(LsaType::INTRA_AREA_PREFIX) {
            let LsaBody::IntraAreaPrefix(lsa) = entry.lsa.body() else { continue };
            if lsa.referenced.advertising != entry.lsa.key().advertising {
                foreign.push(DropReason::PrefixOwner);
            } else if ipv4 {
                let long = lsa.prefixes.iter().filter(|prefix| prefix.prefix.length() > 32);
                foreign.extend(long.map(|_| DropReason::PrefixFamily));
            }
        }
        foreign
    }

    /// Computes the table from the paths of the last calculation and the prefixes in the database. With many routers
    /// that is most of the work, so it is done on demand.
    pub fn make(&self) -> RoutingTable {
        let mut table = RoutingTable::default();
        let Some(now) = self.calculation.last else { return table };
        let hops = self.next_hops();
        let Self { config, interfaces, database, calculation, forecasts } = *self;
        let mut sets = HopSets { calculation, hops: &hops, most: config.maximum_paths, made: BTreeMap::new() };
        let alive = |kind| database.of_type(kind).filter(|entry| !entry.is_aged_out(now));
        let routers = alive(LsaType::ROUTER).map(|entry| entry.lsa.key().advertising);
        let others = routers.filter(|router| *router != config.router_id);
        let mut routers: BTreeMap<_, _> =
            others.filter_map(|router| Some((router, sets.route_to(Vertex::Router(router), router)?))).collect();
        Alternates { config, interfaces, calculation, forecasts }.go_around(&hops, &mut routers);
        table.routers = routers;
        table.prefixes = merged(self.within_the_area(now, &table.routers, &mut sets));
        Outside { config, database, now }.add_to(&mut table);
        for route in table.prefixes.values_mut() {
            if route.next_hops.len() > config.maximum_paths {
                route.next_hops = route.next_hops.iter().take(config.maximum_paths).copied().collect();
            }
        }
        table
    }

    /// The routes to the prefixes that the routers of the area advertise.
    fn within_the_area(
        &self,
        now: Instant,
        routers: &BTreeMap<RouterId, Route>,
        sets: &mut HopSets<'_>,
    ) -> Vec<(Prefix, Route)> {
        let mut routes = Vec::new();
        let ipv4 = self.config.is_ipv4();
        for entry in self.database.of_type(LsaType::INTRA_AREA_PREFIX).filter(|entry| !entry.is_aged_out(now)) {
            let LsaBody::IntraAreaPrefix(lsa) = entry.lsa.body() else { continue };
            let router = lsa.referenced.advertising;
            if router != entry.lsa.key().advertising {
                // The two must be equal (RFC 5340, 4.4.3.9): a router cannot advertise the prefixes of another.
                continue;
            }
            let own = router == self.config.router_id;
            let route = match lsa.referenced.kind {
                LsaType::ROUTER if own => Some(Route { cost: 0, destination: router, next_hops: Arc::default() }),
                LsaType::ROUTER => routers.get(&router).cloned(),
                LsaType::NETWORK => sets.route_to(Vertex::Network(router, InterfaceId(lsa.referenced.id.0)), router),
                _ => None,
            };
            let Some(route) = route else { continue };
            for prefix in lsa.prefixes.iter().filter(|prefix| !prefix.options.contains(PrefixOptions::NU)) {
                // RFC 5838, 2.3.
                if ipv4 && prefix.prefix.length() > 32 {
                    continue;
                }
                let cost = route.cost.saturating_add(prefix.metric.into());
                routes.push((prefix.prefix, Route { cost, ..route.clone() }));
            }
        }
        routes
    }
}
