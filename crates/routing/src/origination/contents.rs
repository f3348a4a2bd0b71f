//! Contents of the own LSAs (RFC 5614, 9.4 and A.4; RFC 5340, 4.4.3; RFC 5838, 2.3 and 2.5).

use std::net::IpAddr;

use anabranch_wire::ospf::lsa::{
    AsExternalLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa, LinkPrefix, RouterFlags, RouterLink,
    RouterLsa,
};
use anabranch_wire::ospf::{LinkStateId, LsaBody, LsaKey, LsaType, Prefix, PrefixOptions, RouterId};

use crate::adjacency::is_backbone;
use crate::config::{Config, ExternalMetric};
use crate::database::{Database, Place};
use crate::election::AdjConnectivity;
use crate::handles::InterfaceHandle;
use crate::interface::{Interface, InterfaceState};
use crate::interfaces::Interfaces;
use crate::lsa_fullness::Standing;
use crate::neighbor::{Neighbor, NeighborState};

/// The prefix of this length that contains an address.
fn prefix_of(address: IpAddr, length: u8) -> Option<Prefix> {
    match address {
        IpAddr::V4(address) => Prefix::v4(address, length),
        IpAddr::V6(address) => Prefix::v6(address, length),
    }
}

/// A default route without a forwarding address: packets go to this router.
fn default_route(ExternalMetric { kind, metric }: ExternalMetric) -> AsExternalLsa {
    AsExternalLsa {
        metric_type: kind,
        metric,
        prefix: Prefix::DEFAULT,
        options: PrefixOptions::NONE,
        forwarding: None,
        tag: None,
        referenced: None,
    }
}

/// What the Router-LSA of the database has wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outdated {
    /// A path may lead nowhere, or be missing.
    Paths,
    /// A path may be longer than needed.
    Lengths,
}

/// The inputs of the own LSAs.
pub(crate) struct OwnLsas<'a> {
    pub config: &'a Config,
    pub interfaces: &'a Interfaces,
}

impl OwnLsas<'_> {
    /// The place of the own Router-LSA.
    pub fn router_place(&self) -> Place {
        self.wide_place(LsaType::ROUTER)
    }

    /// The place of the LSA of the default route.
    pub fn default_route_place(&self) -> Place {
        self.wide_place(LsaType::AS_EXTERNAL)
    }

    /// The place of an own LSA that is not of link-local scope.
    fn wide_place(&self, kind: LsaType) -> Place {
        Place { link: None, key: LsaKey { kind, advertising: self.config.router_id, id: LinkStateId(0) } }
    }

    /// The place of the own Link-LSA of an interface.
    fn link_place(&self, handle: InterfaceHandle) -> Place {
        let id = LinkStateId(self.interfaces[handle].config.id.0);
        Place { link: Some(handle), key: LsaKey { kind: LsaType::LINK, advertising: self.config.router_id, id } }
    }

    /// The present contents of an own LSA; none if it should not exist.
    pub fn contents(&self, place: Place) -> Option<LsaBody> {
        if place == self.router_place() {
            return Some(LsaBody::Router(RouterLsa {
                flags: self.flags(),
                options: self.config.options(),
                links: self.advertised_links(),
            }));
        }
        if place == self.wide_place(LsaType::INTRA_AREA_PREFIX) {
            let prefixes = self.advertised_prefixes();
            let referenced = self.router_place().key;
            let empty = prefixes.is_empty();
            return (!empty).then_some(LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes }));
        }
        if place == self.default_route_place() {
            return self.config.default_route.map(|metric| LsaBody::AsExternal(default_route(metric)));
        }
        let handle = place.link?;
        let interface = &self.interfaces[handle];
        let wanted = interface.is_active() && !interface.config.link_lsa_suppression;
        (wanted && place == self.link_place(handle)).then(|| LsaBody::Link(self.link_lsa(interface)))
    }

    /// The flags of the Router-LSA.
    fn flags(&self) -> RouterFlags {
        RouterFlags { as_boundary: self.config.as_boundary, ..RouterFlags::default() }
    }

    /// Whether one of the conditions of RFC 5614, 9.4, for a new Router-LSA holds: a neighbour is missing in the one of
    /// the database, one in it is no longer bidirectional (on other interfaces: not Full), or a cost changed. A
    /// neighbour that need not be in it any more is no reason. Paths over a link that costs something else remain, and are worth
    /// an instance of their own if it costs twice as much or more.
    pub fn router_lsa_outdated(&self, database: &Database) -> Option<Outdated> {
        let Some(LsaBody::Router(current)) = database.get(self.router_place()).map(|entry| entry.lsa.body()) else {
            // The first instance is not needed before the first adjacency; an empty one would delay the one with the
            // first link by MinLSInterval.
            let mut all = self.interfaces.iter().flat_map(|(_, interface)| interface.neighbors.values());
            let wanted =
                all.any(|neighbor| neighbor.standing() == NeighborState::Full) || !self.advertised_links().is_empty();
            return wanted.then_some(Outdated::Paths);
        };
        let gone = |link: &RouterLink| {
            let Some(interface) = self.interface_of(link) else { return true };
            let least = if interface.manet().is_some() { NeighborState::TwoWay } else { NeighborState::Full };
            interface.neighbors.get(&link.neighbor).is_none_or(|one| one.standing() < least)
        };
        let mut missing = self.advertised_links();
        missing.retain(|link| !current.links.iter().any(|known| is_same(known, link)));
        let needed = missing.iter().any(|link| !self.only_shortens(link));
        let costs = || current.links.iter().map(|link| (link.metric, self.cost_of(link)));
        let dearer = costs().any(|(known, now)| now >= known.saturating_mul(2));
        if current.flags != self.flags() || needed || dearer || current.links.iter().any(gone) {
            return Some(Outdated::Paths);
        }
        let changed = costs().any(|(known, now)| now != known);
        (changed || !missing.is_empty()).then_some(Outdated::Lengths)
    }

    /// The interface of a link of the Router-LSA.
    fn interface_of(&self, link: &RouterLink) -> Option<&Interface> {
        self.interfaces.find(link.interface).map(|handle| &self.interfaces[handle])
    }

    /// What a link of the Router-LSA costs now.
    fn cost_of(&self, link: &RouterLink) -> u16 {
        self.interface_of(link).map_or(link.metric, |interface| interface.cost_to(link.neighbor))
    }

    /// Whether a link is in the Router-LSA for shorter paths alone: those of the backbone and to Full neighbours connect all
    /// routers without it (RFC 5614, 9.2 and 9.3).
    fn only_shortens(&self, link: &RouterLink) -> bool {
        let Some(interface) = self.interface_of(link) else { return false };
        let needed =
            |one: &Neighbor| one.standing() == NeighborState::Full || is_backbone(interface, link.neighbor, one);
        interface.manet().is_some() && !interface.neighbors.get(&link.neighbor).is_none_or(needed)
    }

    /// The other LSAs whose contents differ from those in the database.
    pub fn outdated(&self, database: &Database) -> Vec<Place> {
        let links = self.interfaces.handles().map(|handle| self.link_place(handle));
        let places = links.chain([self.wide_place(LsaType::INTRA_AREA_PREFIX)]);
        let current = |place| database.get(place).map(|entry| entry.lsa.body());
        places.filter(|place| current(*place) != self.contents(*place).as_ref()).collect()
    }

    /// The links of the Router-LSA, in order of interface and neighbour.
    fn advertised_links(&self) -> Vec<RouterLink> {
        let mut links = Vec::new();
        for (_, interface) in self.interfaces.iter().filter(|(_, interface)| interface.is_active()) {
            for (router, neighbor) in &interface.neighbors {
                if self.is_advertised(interface, *router, neighbor) {
                    links.push(RouterLink {
                        kind: LinkKind::PointToPoint,
                        metric: interface.cost_to(*router),
                        interface: interface.config.id,
                        neighbor_interface: neighbor.interface,
                        neighbor: *router,
                    });
                }
            }
        }
        links
    }

    /// Whether a neighbour is in the Router-LSA (RFC 5614, 9.4; RFC 5340, 4.4.3.2).
    fn is_advertised(&self, interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
        let full = neighbor.standing() == NeighborState::Full;
        let Some(manet) = interface.manet() else { return full };
        let mut everywhere = self.interfaces.iter().filter_map(|(_, one)| one.neighbors.get(&router));
        let standing = Standing {
            full,
            routable: neighbor.manet.chosen.routable,
            backbone: is_backbone(interface, router, neighbor),
            selected: everywhere.any(|one| one.manet.chosen.selected),
            selector: neighbor.manet.said.sets.selected.binary_search(&self.config.router_id).is_ok(),
        };
        standing.is_advertised(manet.election.adj_connectivity != AdjConnectivity::Full)
    }

    /// The prefixes of the router: each own address as a host prefix with the LA bit, the prefixes of links that no
    /// other router shares, and the attached ones.
    fn advertised_prefixes(&self) -> Vec<IntraAreaPrefix> {
        let mut all = Vec::new();
        for (_, interface) in self.interfaces.iter().filter(|(_, interface)| interface.state != InterfaceState::Down) {
            for (address, length) in &interface.config.addresses {
                let prefix = Prefix::host(*address);
                all.push(IntraAreaPrefix { prefix, options: PrefixOptions::LA, metric: 0 });
                let metric = if interface.state == InterfaceState::Loopback { 0 } else { interface.config.cost };
                if let Some(prefix) = prefix_of(*address, *length).filter(|_| interface.manet().is_none()) {
                    all.push(IntraAreaPrefix { prefix, options: PrefixOptions::NONE, metric });
                }
            }
        }
        let attached = self.config.attached.iter();
        all.extend(attached.map(|(prefix, metric)| IntraAreaPrefix {
            prefix: *prefix,
            options: PrefixOptions::NONE,
            metric: *metric,
        }));
        // Of a link whose prefix is a single address the first one stays, which has the LA bit.
        all.sort_by_key(|one| (one.prefix, one.metric));
        all.dedup_by_key(|one| one.prefix);
        all
    }

    fn link_lsa(&self, interface: &Interface) -> LinkLsa {
        let config = &interface.config;
        let own = config.addresses.iter().map(|(address, _)| *address);
        let v4 = own.filter_map(|address| if let IpAddr::V4(address) = address { Some(address) } else { None }).next();
        let address = match v4 {
            // RFC 5838, 2.5.
            Some(address) if self.config.is_ipv4() => LinkLsa::field_of_v4(address),
            None if self.config.is_ipv4() => std::net::Ipv6Addr::UNSPECIFIED,
            Some(_) | None => config.link_local,
        };
        // A MANET has no prefix that is shared on the link (RFC 5614, A.4.2).
        let shared = config.addresses.iter().filter(|_| interface.manet().is_none());
        let mut prefixes: Vec<LinkPrefix> = shared
            .filter_map(|(address, length)| prefix_of(*address, *length))
            .map(|prefix| LinkPrefix { prefix, options: PrefixOptions::NONE })
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        LinkLsa { priority: config.priority, options: self.config.options(), address, prefixes }
    }
}

/// Whether two links differ in their costs at most.
fn is_same(one: &RouterLink, other: &RouterLink) -> bool {
    RouterLink { metric: other.metric, ..*one } == *other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use crate::database::Source;
    use anabranch_policy::Instant;
    use anabranch_wire::ospf::lsa::LsaSequence;
    use anabranch_wire::ospf::{AgedLsa, InterfaceId, Lsa};
    use std::net::Ipv6Addr;

    /// A point-to-point interface with the neighbour 2.
    fn interfaces(state: NeighborState) -> Interfaces {
        let mut config = InterfaceConfig::point_to_point(InterfaceId(1), Ipv6Addr::LOCALHOST);
        config.addresses = vec![("fd00::1".parse().unwrap(), 64)];
        let mut interface = Interface::new(config);
        interface.bring_up(Instant::ZERO, 0.0);
        interface.add_neighbor(Instant::ZERO, RouterId(2), Ipv6Addr::LOCALHOST, None);
        interface.neighbors.get_mut(&RouterId(2)).unwrap().state = state;
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        interfaces
    }

    #[test]
    fn the_router_lsa_is_outdated_when_a_link_is_missing_gone_or_costs_something_else() {
        let config = Config::new(RouterId(1));
        let mut interfaces = interfaces(NeighborState::ExStart);
        interfaces[InterfaceHandle::FIRST].config.cost = 7;
        let mut database = Database::default();
        fn own<'a>(config: &'a Config, interfaces: &'a Interfaces) -> OwnLsas<'a> {
            OwnLsas { config, interfaces }
        }
        assert_eq!(own(&config, &interfaces).router_lsa_outdated(&database), None);
        interfaces[InterfaceHandle::FIRST].neighbors.get_mut(&RouterId(2)).unwrap().state = NeighborState::Full;
        assert_eq!(own(&config, &interfaces).router_lsa_outdated(&database), Some(Outdated::Paths));
        let place = own(&config, &interfaces).router_place();
        let body = own(&config, &interfaces).contents(place).unwrap();
        let lsa = Lsa::new(place.key, LsaSequence::INITIAL, body).unwrap();
        database.install(place, AgedLsa { age: 0, lsa }, Instant::ZERO, Source::Originated);
        assert_eq!(own(&config, &interfaces).router_lsa_outdated(&database), None);
        for (cost, outdated) in [(1, Outdated::Lengths), (13, Outdated::Lengths), (14, Outdated::Paths)] {
            interfaces[InterfaceHandle::FIRST].config.cost = cost;
            assert_eq!(own(&config, &interfaces).router_lsa_outdated(&database), Some(outdated), "{cost}");
        }
        interfaces[InterfaceHandle::FIRST].config.cost = 7;
        interfaces[InterfaceHandle::FIRST].neighbors.get_mut(&RouterId(2)).unwrap().state = NeighborState::Loading;
        assert_eq!(own(&config, &interfaces).router_lsa_outdated(&database), Some(Outdated::Paths));
    }

    #[test]
    fn a_missing_link_that_only_shortens_paths_is_of_lengths_and_any_link_is_reason_for_the_first_router_lsa() {
        let config = Config::new(RouterId(1));
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::LOCALHOST));
        interface.bring_up(Instant::ZERO, 0.0);
        interface.add_neighbor(Instant::ZERO, RouterId(2), Ipv6Addr::LOCALHOST, None);
        interface.neighbors.get_mut(&RouterId(2)).unwrap().state = NeighborState::TwoWay;
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        let mut database = Database::default();
        let own = OwnLsas { config: &config, interfaces: &interfaces };
        assert_eq!(own.router_lsa_outdated(&database), None);
        let place = own.router_place();
        let body = own.contents(place).unwrap();
        let neighbor = |interfaces: &mut Interfaces, change: fn(&mut Neighbor)| {
            change(interfaces[InterfaceHandle::FIRST].neighbors.get_mut(&RouterId(2)).unwrap());
        };
        neighbor(&mut interfaces, |neighbor| {
            (neighbor.manet.chosen.selected, neighbor.manet.chosen.routable) = (true, true);
        });
        let own = OwnLsas { config: &config, interfaces: &interfaces };
        assert_eq!(own.router_lsa_outdated(&database), Some(Outdated::Paths));
        let lsa = Lsa::new(place.key, LsaSequence::INITIAL, body).unwrap();
        database.install(place, AgedLsa { age: 0, lsa }, Instant::ZERO, Source::Originated);
        let own = OwnLsas { config: &config, interfaces: &interfaces };
        assert_eq!(own.router_lsa_outdated(&database), Some(Outdated::Lengths));
        neighbor(&mut interfaces, |neighbor| neighbor.state = NeighborState::Full);
        let own = OwnLsas { config: &config, interfaces: &interfaces };
        assert_eq!(own.router_lsa_outdated(&database), Some(Outdated::Paths));
    }

    #[test]
    fn a_link_only_shortens_paths_if_its_neighbour_is_neither_full_nor_of_the_backbone() {
        let config = Config::new(RouterId(1));
        let only_shortens = |state, relay, kind: fn(InterfaceId, Ipv6Addr) -> InterfaceConfig| {
            let mut interface = Interface::new(kind(InterfaceId(1), Ipv6Addr::LOCALHOST));
            interface.add_neighbor(Instant::ZERO, RouterId(2), Ipv6Addr::LOCALHOST, None);
            let neighbor = interface.neighbors.get_mut(&RouterId(2)).unwrap();
            // A neighbour that wants an adjacency with every router is of the backbone.
            (neighbor.state, neighbor.manet.said.a_bit) = (state, relay);
            let mut interfaces = Interfaces::default();
            interfaces.add(interface);
            let interface = InterfaceId(1);
            let link = RouterLink {
                kind: LinkKind::PointToPoint,
                metric: 1,
                interface,
                neighbor_interface: interface,
                neighbor: RouterId(2),
            };
            OwnLsas { config: &config, interfaces: &interfaces }.only_shortens(&link)
        };
        let of_a_mesh = |state, relay| only_shortens(state, relay, InterfaceConfig::manet);
        assert!(of_a_mesh(NeighborState::TwoWay, false));
        assert!(!of_a_mesh(NeighborState::Full, false) && !of_a_mesh(NeighborState::TwoWay, true));
        assert!(!only_shortens(NeighborState::TwoWay, false, InterfaceConfig::point_to_point));
    }

    #[test]
    fn an_address_is_advertised_as_a_host_and_a_links_prefix_beside_it() {
        let config = Config::new(RouterId(1));
        let interfaces = interfaces(NeighborState::Full);
        let own = OwnLsas { config: &config, interfaces: &interfaces };
        let places = own.outdated(&Database::default());
        assert_eq!(places.len(), 2);
        let bodies: Vec<LsaBody> = places.iter().filter_map(|place| own.contents(*place)).collect();
        let [LsaBody::Link(link), LsaBody::IntraAreaPrefix(lsa)] = &bodies[..] else { panic!("{bodies:?}") };
        let lengths: Vec<u8> = lsa.prefixes.iter().map(|one| one.prefix.length()).collect();
        assert_eq!((link.prefixes.len(), lengths), (1, vec![64, 128]));
    }
}
