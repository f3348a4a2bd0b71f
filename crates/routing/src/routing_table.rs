//! Routes: from prefix to the next hops of equal cost.

use core::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::ospf::{InterfaceId, Prefix, RouterId};

/// The neighbour that receives a packet for the next hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NextHop {
    /// Its router ID.
    pub router: RouterId,
    /// The interface to it.
    pub interface: InterfaceId,
    /// Its address there: link-local in IPv6, from its Link-LSA in IPv4 (RFC 5838, 2.5); its link-local IPv6 address while
    /// that Link-LSA is missing.
    pub address: IpAddr,
}

/// A route to a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Cost of the whole path.
    pub cost: u32,
    /// The router that advertises the prefix at that cost (the smallest router ID if there are several).
    pub destination: RouterId,
    /// Next hops of equal cost, in order of router ID, then interface; empty for a prefix of this router itself. Routes with
    /// the same next hops share them.
    pub next_hops: Arc<[NextHop]>,
}

impl Route {
    /// Takes another route to the same prefix into account: the lowest cost counts, with the next hops of all routes of that
    /// cost. The router's own prefixes have no next hop.
    fn merge(&mut self, other: &Self) {
        match other.cost.cmp(&self.cost) {
            Ordering::Less => *self = other.clone(),
            Ordering::Equal => {
                self.destination = self.destination.min(other.destination);
                if self.next_hops.is_empty() || other.next_hops.is_empty() {
                    self.next_hops = Arc::default();
                } else {
                    let mut all = [&self.next_hops[..], &other.next_hops].concat();
                    all.sort_unstable();
                    all.dedup();
                    self.next_hops = all.into();
                }
            }
            Ordering::Greater => {}
        }
    }
}

/// All routes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoutingTable {
    /// Routes by prefix.
    pub prefixes: BTreeMap<Prefix, Route>,
    /// Routes to routers.
    pub routers: BTreeMap<RouterId, Route>,
}

impl RoutingTable {
    /// The route of the longest prefix that contains `address`.
    pub fn lookup(&self, address: IpAddr) -> Option<(&Prefix, &Route)> {
        let host = Prefix::host(address);
        (0..=host.length()).rev().find_map(|length| self.prefixes.get_key_value(&Prefix::new(host.bits(), length)?))
    }
}

/// Adds a route to a prefix or a router.
pub(crate) fn add<K: Ord>(routes: &mut BTreeMap<K, Route>, to: K, route: Route) {
    match routes.entry(to) {
        Entry::Vacant(entry) => {
            entry.insert(route);
        }
        Entry::Occupied(mut entry) => entry.get_mut().merge(&route),
    }
}

/// All routes to prefixes, of which there may be several to one. The map is built at once: added one by one in order, routes would
/// leave its nodes half empty.
pub(crate) fn merged(mut routes: Vec<(Prefix, Route)>) -> BTreeMap<Prefix, Route> {
    routes.sort_by_key(|(prefix, _)| *prefix);
    routes.dedup_by(|(prefix, route), (first, kept)| {
        let same = prefix == first;
        if same {
            kept.merge(route);
        }
        same
    });
    routes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix::v4(text.parse().unwrap(), length).unwrap()
    }

    #[test]
    fn the_longest_prefix_that_holds_the_address_is_found() {
        let route = |cost| Route { cost, destination: RouterId(1), next_hops: Arc::default() };
        let mut table = RoutingTable::default();
        table.prefixes.insert(prefix("10.0.0.0", 8), route(1));
        table.prefixes.insert(prefix("10.1.0.0", 16), route(2));
        table.prefixes.insert(prefix("10.1.0.7", 32), route(3));
        let cost = |address: &str| table.lookup(address.parse().unwrap()).map(|(_, route)| route.cost);
        assert_eq!(
            [cost("10.1.0.7"), cost("10.1.0.8"), cost("10.2.0.0"), cost("11.0.0.0")],
            [Some(3), Some(2), Some(1), None]
        );
    }
}
