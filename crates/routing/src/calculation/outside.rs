//! Routes out of the area: inter-area prefixes and external ones, of routers that know more than this area (RFC 5340,
//! 4.8.3 to 4.8.5; RFC 2328, 16.2, 16.4 and 11).
//!
//! A route within the area is preferred to one to another area, and that to an external one: by a metric of type 1, to
//! which the way to the border router adds, before one of type 2, to which it does not. Of border routers with the same
//! external metric the nearest counts. The border router may be in another area, where an inter-area-router-LSA leads to it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::{AsExternalLsa, MetricType, RouterFlags};
use anabranch_wire::ospf::{LsaBody, LsaType, Prefix, PrefixOptions, RouterId};

use crate::config::Config;
use crate::database::Database;
use crate::routing_table::{Route, RoutingTable, add};

/// LSInfinity: an unreachable prefix (RFC 2328, appendix B).
const INFINITY: u32 = 0xff_ffff;

/// The inputs of these routes.
pub(crate) struct Outside<'a> {
    pub config: &'a Config,
    pub database: &'a Database,
    pub now: Instant,
}

/// The order of external routes: the type of the metric, the sum or the metric, the way to the border router.
type Rank = (bool, u32, u32);

impl Outside<'_> {
    /// Adds routes to prefixes to which `table` has none.
    pub fn add_to(&self, table: &mut RoutingTable) {
        for routes in [Self::inter_area, Self::external] {
            let found = routes(self, table);
            for (prefix, route) in found {
                table.prefixes.entry(prefix).or_insert(route);
            }
        }
    }

    /// The LSAs of a type that other routers originated, each with its router.
    fn of_others(&self, kind: LsaType) -> impl Iterator<Item = (&LsaBody, RouterId)> {
        let alive = self.database.of_type(kind).filter(|entry| !entry.is_aged_out(self.now));
        let all = alive.map(|entry| (entry.lsa.body(), entry.lsa.key().advertising));
        all.filter(|(_, router)| *router != self.config.router_id)
    }

    /// Those of border routers of the area that are reachable, with the routes to them.
    fn summaries<'a>(
        &'a self,
        kind: LsaType,
        table: &'a RoutingTable,
    ) -> impl Iterator<Item = (&'a LsaBody, &'a Route)> {
        let is_border = |flags: RouterFlags| flags.area_border;
        self.of_others(kind).filter_map(move |(body, router)| Some((body, self.border(router, table, is_border)?)))
    }

    /// The route to a router of the area which has the flag.
    fn border<'a>(
        &self,
        router: RouterId,
        table: &'a RoutingTable,
        has_flag: fn(RouterFlags) -> bool,
    ) -> Option<&'a Route> {
        let route = table.routers.get(&router)?;
        let mut lsas = self.database.of_router(LsaType::ROUTER, router);
        let has_it = lsas.any(|entry| matches!(entry.lsa.body(), LsaBody::Router(lsa) if has_flag(lsa.flags)));
        has_it.then_some(route)
    }

    /// The routes to border routers of the routing domain in other areas (RFC 2328, 16.2).
    fn boundary_elsewhere(&self, table: &RoutingTable) -> BTreeMap<RouterId, Route> {
        let mut found = BTreeMap::new();
        for (body, route) in self.summaries(LsaType::INTER_AREA_ROUTER, table) {
            let LsaBody::InterAreaRouter(lsa) = body else { continue };
            if lsa.metric < INFINITY && lsa.destination != self.config.router_id {
                add(&mut found, lsa.destination, beyond(route, lsa.metric));
            }
        }
        found
    }

    /// Whether a prefix of this family may be used.
    fn fits(&self, prefix: Prefix, options: PrefixOptions, metric: u32) -> bool {
        let fits = !self.config.is_ipv4() || prefix.length() <= 32;
        fits && metric < INFINITY && !options.contains(PrefixOptions::NU)
    }

    fn inter_area(&self, table: &RoutingTable) -> BTreeMap<Prefix, Route> {
        let mut found = BTreeMap::new();
        for (body, route) in self.summaries(LsaType::INTER_AREA_PREFIX, table) {
            let LsaBody::InterAreaPrefix(lsa) = body else { continue };
            if self.fits(lsa.prefix, lsa.options, lsa.metric) {
                add(&mut found, lsa.prefix, beyond(route, lsa.metric));
            }
        }
        found
    }

    fn external(&self, table: &RoutingTable) -> BTreeMap<Prefix, Route> {
        let mut best: BTreeMap<Prefix, (Rank, BTreeMap<Prefix, Route>)> = BTreeMap::new();
        let elsewhere = self.boundary_elsewhere(table);
        for (body, router) in self.of_others(LsaType::AS_EXTERNAL) {
            let LsaBody::AsExternal(lsa) = body else { continue };
            // A path within the area counts before one between areas (RFC 2328, 11).
            let inside = self.border(router, table, |flags| flags.as_boundary);
            let Some(border) = inside.or_else(|| elsewhere.get(&router)) else { continue };
            // A router with a way out of its own needs no other's.
            let has_own = self.config.default_route.is_some() && lsa.prefix.length() == 0;
            if has_own || !self.fits(lsa.prefix, lsa.options, lsa.metric) {
                continue;
            }
            let Some(route) = self.way(lsa, border, table) else { continue };
            let rank = match lsa.metric_type {
                MetricType::One => (false, route.cost.saturating_add(lsa.metric), 0),
                MetricType::Two => (true, lsa.metric, route.cost),
            };
            let (known, routes) = best.entry(lsa.prefix).or_insert_with(|| (rank, BTreeMap::new()));
            if rank < *known {
                (*known, *routes) = (rank, BTreeMap::new());
            }
            if rank == *known {
                add(routes, lsa.prefix, Route { cost: rank.1, ..route.clone() });
            }
        }
        best.into_values().flat_map(|(_, routes)| routes).collect()
    }

    /// The route to the forwarding address of an external prefix, or without one to its border router.
    fn way<'a>(&self, lsa: &AsExternalLsa, border: &'a Route, table: &'a RoutingTable) -> Option<&'a Route> {
        let Some(address) = lsa.forwarding else { return Some(border) };
        let octets = address.octets();
        let address = match octets {
            [a, b, c, d, ..] if self.config.is_ipv4() => IpAddr::from([a, b, c, d]),
            _ => address.into(),
        };
        // One on a network of this router itself would be a next hop of its own, which is not supported.
        table.lookup(address).map(|(_, route)| route).filter(|route| !route.next_hops.is_empty())
    }
}

/// The route to what a border router tells of, at this metric from it.
fn beyond(border: &Route, metric: u32) -> Route {
    Route { cost: border.cost.saturating_add(metric), ..border.clone() }
}
