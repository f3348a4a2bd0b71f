//! Selects MDRs and the neighbours to advertise on the router's interfaces (RFC 5614, 5 and 9.3).

use anabranch_wire::ospf::RouterId;

use crate::adjacency::is_backbone;
use crate::election::{AdjConnectivity, Election};
use crate::handles::InterfaceHandle;
use crate::interface::Interface;
use crate::interfaces::Interfaces;
use crate::lsa_fullness::{Advertised, AdvertisedNeighbors, LsaFullness, ManetInterface};
use crate::neighbor::NeighborState;
use crate::neighborhood::{Neighbor, Neighborhood, Rank};

/// The algorithms and their memory.
#[derive(Default)]
pub(crate) struct MdrSelection {
    election: Election,
    neighborhood: Neighborhood,
    advertised: AdvertisedNeighbors,
}

impl MdrSelection {
    /// Runs the MDR selection algorithm on a MANET interface (RFC 5614, 5). True if the router's level there changed.
    pub fn select_mdrs(&mut self, own: RouterId, interface: &mut Interface) -> bool {
        interface.mdr_neighbor_change = false;
        let settings = interface.manet().expect("MDRs are selected on MANET interfaces").election;
        fill(&mut self.neighborhood, interface, true);
        let before = interface.selection;
        let priority = interface.config.priority;
        let selection = self.election.select(own, priority, &before, &self.neighborhood, &settings);
        interface.select(selection);
        for (router, neighbor) in &mut interface.neighbors {
            let place = self.neighborhood.index(*router);
            neighbor.manet.chosen.dependent = place.is_some_and(|place| self.election.is_dependent(place));
        }
        before.level != selection.level
    }

    /// Selects the Selected Advertised Neighbors of all MANET interfaces, if their inputs changed on any of them (RFC
    /// 5614, 9.3).
    pub fn select_advertised(&mut self, own: RouterId, interfaces: &mut Interfaces) {
        if !interfaces.iter().any(|(_, interface)| interface.advertised_change) {
            return;
        }
        self.advertised.clear();
        let mut places: Vec<(InterfaceHandle, usize)> = Vec::new();
        for (handle, interface) in interfaces.iter_mut() {
            interface.advertised_change = false;
            places.extend(self.add_interface(interface).map(|place| (handle, place)));
        }
        self.advertised.select(own);
        for (handle, place) in places {
            let interface = &mut interfaces[handle];
            let mut selected = self.advertised.selected(place).peekable();
            for (router, neighbor) in &mut interface.neighbors {
                let selected = selected.next_if_eq(router).is_some();
                // The present selection is an input of the next one.
                interface.advertised_change |= selected != neighbor.manet.chosen.selected;
                neighbor.manet.chosen.selected = selected;
            }
        }
    }

    /// Adds an interface with its bidirectional neighbours to the selection; none if it takes no part.
    fn add_interface(&mut self, interface: &Interface) -> Option<usize> {
        let manet = interface.manet().filter(|_| interface.is_active())?;
        let place = self.advertised.add_interface(ManetInterface {
            priority: interface.config.priority,
            level: interface.selection.level,
            reduction: manet.election.adj_connectivity != AdjConnectivity::Full,
            fullness: manet.lsa_fullness,
        });
        let by_cost = !matches!(manet.lsa_fullness, LsaFullness::Minimal | LsaFullness::MdrFull | LsaFullness::Full);
        fill(&mut self.neighborhood, interface, by_cost);
        for (router, neighbor) in interface.neighbors.iter().filter(|(_, one)| one.is_bidirectional()) {
            let said = &neighbor.manet.said;
            let known = |router: RouterId| Some(router).filter(|router| *router != RouterId::NONE);
            let about = Advertised {
                id: *router,
                metric: interface.cost_to(*router),
                default_metric: 1,
                parents: [known(said.parent), known(said.backup_parent)],
                backbone: is_backbone(interface, *router, neighbor),
                selected: neighbor.manet.chosen.selected,
            };
            self.advertised.add_neighbor(
                &self.neighborhood,
                about,
                said.sets.dependent.iter().copied(),
                said.sets.selected.iter().copied(),
                said.metrics.iter().map(|(router, metric)| (*router, *metric)),
            );
        }
        Some(place)
    }
}

/// Fills the neighbourhood of an interface; its NCM only if needed.
fn fill(neighborhood: &mut Neighborhood, interface: &Interface, connected: bool) {
    neighborhood.clear();
    for (router, neighbor) in interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional()) {
        let said = &neighbor.manet.said;
        let listed = Neighbor {
            rank: Rank { priority: neighbor.priority, level: said.level, id: *router },
            adjacent: neighbor.state >= NeighborState::ExStart,
            full_hello_received: said.full_hello_received,
        };
        let heard: &[RouterId] = if connected { &said.sets.bidirectional } else { &[] };
        neighborhood.add(listed, heard.iter().copied());
    }
    neighborhood.connect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{InterfaceConfig, InterfaceKind};
    use crate::interface::InterfaceState;
    use crate::neighborhood::Level;
    use anabranch_policy::Instant;
    use anabranch_wire::ospf::InterfaceId;
    use std::net::Ipv6Addr;

    /// An interface with the neighbours 2 and 3, which do not hear each other.
    fn interfaces() -> Interfaces {
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
        interface.bring_up(Instant::ZERO, 0.0);
        interface.end_waiting();
        for router in [2, 3].map(RouterId) {
            interface.add_neighbor(Instant::ZERO, router, Ipv6Addr::UNSPECIFIED, None);
            let neighbor = interface.neighbors.get_mut(&router).unwrap();
            neighbor.state = NeighborState::Full;
            neighbor.priority = 1;
            neighbor.manet.said.full_hello_received = true;
            neighbor.manet.said.sets.bidirectional = vec![RouterId(1)];
        }
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        interfaces
    }

    #[test]
    fn a_router_between_two_that_do_not_hear_each_other_becomes_an_mdr_once() {
        let mut interfaces = interfaces();
        let interface = &mut interfaces[InterfaceHandle::FIRST];
        let mut selection = MdrSelection::default();
        assert!(interface.mdr_neighbor_change && selection.select_mdrs(RouterId(1), interface));
        assert_eq!((interface.state, interface.selection.level), (InterfaceState::Dr, Level::Mdr));
        assert!(!interface.mdr_neighbor_change && !selection.select_mdrs(RouterId(1), interface));
    }

    #[test]
    fn neighbours_that_need_the_router_to_reach_each_other_are_advertised() {
        let mut interfaces = interfaces();
        let mut selection = MdrSelection::default();
        interfaces[InterfaceHandle::FIRST].selection.level = Level::Mdr;
        // Not selected: no change was recorded.
        interfaces[InterfaceHandle::FIRST].advertised_change = false;
        selection.select_advertised(RouterId(1), &mut interfaces);
        let selected = |interfaces: &Interfaces| {
            let all = interfaces[InterfaceHandle::FIRST].neighbors.values();
            all.map(|one| one.manet.chosen.selected).collect::<Vec<bool>>()
        };
        assert_eq!(selected(&interfaces), [false, false]);
        interfaces[InterfaceHandle::FIRST].advertised_change = true;
        selection.select_advertised(RouterId(1), &mut interfaces);
        assert_eq!(selected(&interfaces), [true, true]);
        // What is selected now is an input of the next selection, which changes nothing.
        assert!(interfaces[InterfaceHandle::FIRST].advertised_change);
        selection.select_advertised(RouterId(1), &mut interfaces);
        assert!(!interfaces[InterfaceHandle::FIRST].advertised_change);
    }

    #[test]
    fn a_neighbour_is_left_to_its_parent_if_that_connects_it_as_well() {
        // 3 hears 2 and 4, as router 9 does, whose ID is larger. Only what 2 says of its parent puts 3 before it.
        let selected = |parent: RouterId| {
            let mut config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
            if let InterfaceKind::Manet(manet) = &mut config.kind {
                manet.lsa_fullness = LsaFullness::MinCost;
            }
            let mut interface = Interface::new(config);
            interface.bring_up(Instant::ZERO, 0.0);
            interface.end_waiting();
            for (router, hears) in [(2, vec![3, 9]), (3, vec![2, 4, 9]), (4, vec![3, 9])] {
                interface.add_neighbor(Instant::ZERO, RouterId(router), Ipv6Addr::UNSPECIFIED, None);
                let neighbor = interface.neighbors.get_mut(&RouterId(router)).unwrap();
                (neighbor.state, neighbor.priority) = (NeighborState::Full, 1);
                neighbor.manet.said.full_hello_received = true;
                neighbor.manet.said.sets.bidirectional = hears.into_iter().map(RouterId).collect();
            }
            interface.neighbors.get_mut(&RouterId(2)).unwrap().manet.said.parent = parent;
            interface.neighbors.get_mut(&RouterId(3)).unwrap().manet.said.level = Level::Mdr;
            interface.advertised_change = true;
            let mut interfaces = Interfaces::default();
            interfaces.add(interface);
            MdrSelection::default().select_advertised(RouterId(9), &mut interfaces);
            interfaces[InterfaceHandle::FIRST].neighbors.get(&RouterId(2)).unwrap().manet.chosen.selected
        };
        assert!(selected(RouterId::NONE) && selected(RouterId(9)));
        assert!(!selected(RouterId(3)));
    }
}
