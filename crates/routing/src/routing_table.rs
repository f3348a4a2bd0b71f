//! Routes: from prefix to the next hops of equal cost.

use std::collections::BTreeMap;
use std::net::IpAddr;

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
    /// Next hops of equal cost, in order of router ID, then interface; empty for a prefix of this router itself.
    pub next_hops: Vec<NextHop>,
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

/// Adds a route to a prefix: the lowest cost counts, with the next hops of all routes of that cost. The router's own
/// prefixes have no next hop.
pub(crate) fn add(prefixes: &mut BTreeMap<Prefix, Route>, prefix: Prefix, route: Route) {
    let Some(known) = prefixes.get_mut(&prefix) else {
        prefixes.insert(prefix, route);
        return;
    };
    match route.cost.cmp(&known.cost) {
        core::cmp::Ordering::Less => *known = route,
        core::cmp::Ordering::Equal => {
            known.destination = known.destination.min(route.destination);
            if known.next_hops.is_empty() || route.next_hops.is_empty() {
                known.next_hops.clear();
            } else {
                known.next_hops.extend(route.next_hops);
                known.next_hops.sort_unstable();
                known.next_hops.dedup();
            }
        }
        core::cmp::Ordering::Greater => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix::v4(text.parse().unwrap(), length).unwrap()
    }

    #[test]
    fn the_longest_prefix_that_holds_the_address_is_found() {
        let route = |cost| Route { cost, destination: RouterId(1), next_hops: Vec::new() };
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
