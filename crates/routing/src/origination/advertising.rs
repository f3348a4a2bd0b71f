//! What the own LSAs say (RFC 5614, 9.4 and A.4; RFC 5340, 4.4.3; RFC 5838, 2.3 and 2.5).

use std::net::IpAddr;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lsa::{
    IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa, LinkPrefix, RouterFlags, RouterLink, RouterLsa,
};
use anabranch_wire::ospf::{LinkStateId, LsaBody, LsaKey, LsaType, Prefix, PrefixOptions, RouterId};

use crate::adjacency::is_backbone;
use crate::database::Place;
use crate::election::AdjConnectivity;
use crate::interface::{Interface, InterfaceState};
use crate::lsa_fullness::{Advertised, LsaFullness, ManetInterface, Standing};
use crate::neighbor::{Neighbor, NeighborState};
use crate::neighborhood::{self, Rank};
use crate::router::Router;

/// The prefix of a length that an address lies in.
fn prefix_of(address: IpAddr, length: u8) -> Option<Prefix> {
    match address {
        IpAddr::V4(address) => Prefix::v4(address, length),
        IpAddr::V6(address) => Prefix::v6(address, length),
    }
}

impl Router {
    /// The place of one of the own LSAs that do not stay on a link.
    fn own_place(&self, kind: LsaType) -> Place {
        Place { link: None, key: LsaKey { kind, advertising: self.config.router_id, id: LinkStateId(0) } }
    }

    /// The place of the own Link-LSA of an interface.
    fn link_place(&self, index: usize, interface: &Interface) -> Place {
        let id = LinkStateId(interface.config.id.0);
        Place { link: Some(index), key: LsaKey { kind: LsaType::LINK, advertising: self.config.router_id, id } }
    }

    /// What the own LSA of a place is to say now; none if there is not to be one.
    pub(super) fn own_body(&self, place: Place) -> Option<LsaBody> {
        if place == self.own_place(LsaType::ROUTER) {
            return Some(LsaBody::Router(RouterLsa {
                flags: RouterFlags::default(),
                options: self.config.options(),
                links: self.advertised_links(),
            }));
        }
        if place == self.own_place(LsaType::INTRA_AREA_PREFIX) {
            let prefixes = self.advertised_prefixes();
            let referenced = self.own_place(LsaType::ROUTER).key;
            let body = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes });
            return Some(body).filter(|body| !matches!(body, LsaBody::IntraAreaPrefix(lsa) if lsa.prefixes.is_empty()));
        }
        let index = place.link?;
        let interface = self.interfaces.get(index)?;
        let wanted = interface.is_active() && !interface.config.link_lsa_suppression;
        (wanted && place == self.link_place(index, interface)).then(|| LsaBody::Link(self.link_lsa(interface)))
    }

    /// The links of the Router-LSA, in order of interface and neighbour.
    fn advertised_links(&self) -> Vec<RouterLink> {
        let mut links = Vec::new();
        for interface in self.interfaces.iter().filter(|interface| interface.is_active()) {
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

    /// Whether a neighbour stands in the Router-LSA (RFC 5614, 9.4; RFC 5340, 4.4.3.2).
    fn is_advertised(&self, interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
        let full = neighbor.state == NeighborState::Full;
        let Some(manet) = interface.manet() else { return full };
        let mut everywhere = self.interfaces.iter().filter_map(|one| one.neighbors.get(&router));
        let standing = Standing {
            full,
            routable: neighbor.manet.routable,
            backbone: is_backbone(interface, router, neighbor),
            selected: everywhere.any(|one| one.manet.selected),
            selector: neighbor.manet.sets.selected.binary_search(&self.config.router_id).is_ok(),
        };
        standing.is_advertised(manet.election.adj_connectivity != AdjConnectivity::Full)
    }

    /// Originates a new Router-LSA if one of the conditions of RFC 5614, 9.4, occurs: a neighbour is missing in it, one in
    /// it is not bidirectional any more (on other interfaces: not Full), or a cost changed. That one need not be in it any
    /// more is no reason.
    pub(crate) fn check_router_lsa(&mut self, now: Instant) {
        let place = self.own_place(LsaType::ROUTER);
        let Some(LsaBody::Router(current)) = self.database.get(place).map(|entry| entry.lsa.body()) else {
            // Nobody needs the first instance before someone is adjacent; an empty one would put off, by MinLSInterval, the
            // one with the first link.
            let mut all = self.interfaces.iter().flat_map(|interface| interface.neighbors.values());
            if all.any(|neighbor| neighbor.state == NeighborState::Full) || !self.advertised_links().is_empty() {
                self.originate(now, place);
            }
            return;
        };
        let is_there = |link: &RouterLink| current.links.contains(link);
        let gone = |link: &RouterLink| {
            let interface = self.interfaces.iter().find(|interface| interface.config.id == link.interface);
            let Some(interface) = interface else { return true };
            let least = if interface.manet().is_some() { NeighborState::TwoWay } else { NeighborState::Full };
            interface.neighbors.get(&link.neighbor).is_none_or(|one| one.state < least)
                || interface.cost_to(link.neighbor) != link.metric
        };
        if !self.advertised_links().iter().all(is_there) || current.links.iter().any(gone) {
            self.originate(now, place);
        }
    }

    /// Originates the other LSAs anew if what they say changed.
    pub(crate) fn check_other_lsas(&mut self, now: Instant) {
        let links = self.interfaces.iter().enumerate().map(|(index, interface)| self.link_place(index, interface));
        let places: Vec<Place> = links.chain([self.own_place(LsaType::INTRA_AREA_PREFIX)]).collect();
        for place in places {
            let current = self.database.get(place).map(|entry| entry.lsa.body());
            if current != self.own_body(place).as_ref() {
                self.originate(now, place);
            }
        }
    }

    /// The prefixes of the router: each own address as a host prefix with the LA bit, the prefixes of links that nobody else
    /// shares, and what is attached.
    fn advertised_prefixes(&self) -> Vec<IntraAreaPrefix> {
        let mut all = Vec::new();
        for interface in self.interfaces.iter().filter(|interface| interface.state != InterfaceState::Down) {
            for (address, length) in &interface.config.addresses {
                let prefix = Prefix::host(*address);
                all.push(IntraAreaPrefix { prefix, options: PrefixOptions::LA, metric: 0 });
                let wide = prefix_of(*address, *length).filter(|wide| wide.length() < prefix.length());
                let metric = if interface.state == InterfaceState::Loopback { 0 } else { interface.config.cost };
                if let Some(prefix) = wide.filter(|_| interface.manet().is_none()) {
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
        // A MANET has no prefix that all on it share (RFC 5614, A.4.2).
        let shared = config.addresses.iter().filter(|_| interface.manet().is_none());
        let mut prefixes: Vec<LinkPrefix> = shared
            .filter_map(|(address, length)| prefix_of(*address, *length))
            .map(|prefix| LinkPrefix { prefix, options: PrefixOptions::NONE })
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        LinkLsa { priority: config.priority, options: self.config.options(), address, prefixes }
    }

    /// Selects the Selected Advertised Neighbors of all MANET interfaces, if what they depend on changed on one of them
    /// (RFC 5614, 9.3).
    pub(crate) fn select_advertised(&mut self, _index: usize) {
        if !self.interfaces.iter().any(|interface| interface.advertised_change) {
            return;
        }
        let own = self.config.router_id;
        let Self { interfaces, neighborhood, advertised, .. } = self;
        advertised.clear();
        let mut places = Vec::new();
        for (index, interface) in interfaces.iter_mut().enumerate() {
            interface.advertised_change = false;
            let Some(manet) = interface.manet().filter(|_| interface.is_active()) else { continue };
            let place = advertised.add_interface(ManetInterface {
                priority: interface.config.priority,
                level: interface.selection.level,
                reduction: manet.election.adj_connectivity != AdjConnectivity::Full,
                fullness: manet.lsa_fullness,
            });
            places.push((index, place));
            let by_cost =
                !matches!(manet.lsa_fullness, LsaFullness::Minimal | LsaFullness::MdrFull | LsaFullness::Full);
            fill(neighborhood, interface, by_cost);
            for (router, neighbor) in interface.neighbors.iter().filter(|(_, one)| one.is_bidirectional()) {
                let known = |router: RouterId| Some(router).filter(|router| *router != RouterId::NONE);
                let about = Advertised {
                    id: *router,
                    metric: interface.cost_to(*router),
                    default_metric: 1,
                    parents: [known(neighbor.manet.parent), known(neighbor.manet.backup_parent)],
                    backbone: is_backbone(interface, *router, neighbor),
                    selected: neighbor.manet.selected,
                };
                let (dependent, selected) = (&neighbor.manet.sets.dependent, &neighbor.manet.sets.selected);
                let metrics = neighbor.manet.metrics.iter().map(|(router, metric)| (*router, *metric));
                advertised.add_neighbor(
                    neighborhood,
                    about,
                    dependent.iter().copied(),
                    selected.iter().copied(),
                    metrics,
                );
            }
        }
        advertised.select(own);
        for (index, place) in places {
            let Some(interface) = interfaces.get_mut(index) else { continue };
            let mut chosen = advertised.selected(place).peekable();
            for (router, neighbor) in &mut interface.neighbors {
                let selected = chosen.next_if_eq(router).is_some();
                // What is selected now is looked at when it is selected next.
                interface.advertised_change |= selected != neighbor.manet.selected;
                neighbor.manet.selected = selected;
            }
        }
    }
}

/// Fills the neighbourhood of an interface; who is connected with whom only if it is asked for.
pub(crate) fn fill(neighborhood: &mut neighborhood::Neighborhood, interface: &Interface, connected: bool) {
    neighborhood.clear();
    for (router, neighbor) in interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional()) {
        let listed = neighborhood::Neighbor {
            rank: Rank { priority: neighbor.priority, level: neighbor.manet.level, id: *router },
            adjacent: neighbor.state >= NeighborState::ExStart,
            full_hello_received: neighbor.manet.full_hello_received,
        };
        let heard: &[RouterId] = if connected { &neighbor.manet.sets.bidirectional } else { &[] };
        neighborhood.add(listed, heard.iter().copied());
    }
    neighborhood.connect();
}
