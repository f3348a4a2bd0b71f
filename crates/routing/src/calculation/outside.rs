//! Routes out of the area: inter-area prefixes and external ones, of routers that know more than this area (RFC 5340,
//! 4.8.3 to 4.8.5; RFC 2328, 16.2, 16.4 and 11).
//!
//! A route within the area is preferred to one to another area, and that to an external one: by a metric of type 1, to
//! which the way to the border router adds, before one of type 2, to which it does not. Of border routers with the same
//! external metric the nearest counts.

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

    /// The LSAs of a type that other, reachable routers originated which have the flag, with the routes to them.
    fn advertised<'a>(
        &'a self,
        kind: LsaType,
        table: &'a RoutingTable,
        has_flag: fn(RouterFlags) -> bool,
    ) -> impl Iterator<Item = (&'a LsaBody, &'a Route)> {
        let alive = self.database.of_type(kind).filter(|entry| !entry.is_aged_out(self.now));
        let others = alive.filter(|entry| entry.lsa.key().advertising != self.config.router_id);
        others.filter_map(move |entry| {
            let router = entry.lsa.key().advertising;
            let route = table.routers.get(&router)?;
            self.is_border(router, has_flag).then_some((entry.lsa.body(), route))
        })
    }

    fn is_border(&self, router: RouterId, has_flag: fn(RouterFlags) -> bool) -> bool {
        self.database.of_router(LsaType::ROUTER, router).any(|entry| match entry.lsa.body() {
            LsaBody::Router(lsa) => has_flag(lsa.flags),
            _ => false,
        })
    }

    /// Whether a prefix of this family may be used.
    fn fits(&self, prefix: Prefix, options: PrefixOptions, metric: u32) -> bool {
        let fits = !self.config.is_ipv4() || prefix.length() <= 32;
        fits && metric < INFINITY && !options.contains(PrefixOptions::NU)
    }

    fn inter_area(&self, table: &RoutingTable) -> BTreeMap<Prefix, Route> {
        let mut found = BTreeMap::new();
        for (body, route) in self.advertised(LsaType::INTER_AREA_PREFIX, table, |flags| flags.area_border) {
            let LsaBody::InterAreaPrefix(lsa) = body else { continue };
            if self.fits(lsa.prefix, lsa.options, lsa.metric) {
                let cost = route.cost.saturating_add(lsa.metric);
                add(&mut found, lsa.prefix, Route { cost, ..route.clone() });
            }
        }
        found
    }

    fn external(&self, table: &RoutingTable) -> BTreeMap<Prefix, Route> {
        let mut best: BTreeMap<Prefix, (Rank, BTreeMap<Prefix, Route>)> = BTreeMap::new();
        for (body, border) in self.advertised(LsaType::AS_EXTERNAL, table, |flags| flags.as_boundary) {
            let LsaBody::AsExternal(lsa) = body else { continue };
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
