//! With whom to be adjacent (RFC 5614, 7.2 and 7.3), and the selection of MDRs that decides it (5).

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::election::AdjConnectivity;
use crate::interface::{Interface, InterfaceEvent, transition};
use crate::neighbor::{Neighbor, NeighborEvent, NeighborState};
use crate::neighborhood::Level;
use crate::origination::fill;
use crate::router::Router;
use crate::verbs::{At, Event};

/// Whether an adjacency should be formed with a neighbour in state 2-Way (RFC 5614, 7.2), which is also what makes it a
/// backbone neighbour if adjacency reduction is used (9.2).
pub(crate) fn is_wanted(interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    if manet.election.adj_connectivity == AdjConnectivity::Full {
        return true;
    }
    let (own, other) = (interface.selection.level, &neighbor.manet);
    let (relays, it_relays) = (own > Level::Other, other.level > Level::Other);
    let is_parent = [interface.selection.parent, interface.selection.backup_parent].contains(&Some(router));
    relays && it_relays && (other.dependent || other.dependent_selector)
        || it_relays && is_parent
        || relays && other.child
        || other.a_bit
}

/// Whether an adjacency is maintained (RFC 5614, 7.3).
pub(crate) fn is_kept(interface: &Interface, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    manet.election.adj_connectivity == AdjConnectivity::Full
        || interface.selection.level > Level::Other
        || neighbor.manet.level > Level::Other
        || neighbor.manet.a_bit
}

/// Whether a bidirectional neighbour is a backbone neighbour (RFC 5614, 9.2).
pub(crate) fn is_backbone(interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    match manet.election.adj_connectivity {
        AdjConnectivity::Full => !neighbor.manet.a_bit,
        AdjConnectivity::Uniconnected | AdjConnectivity::Biconnected => is_wanted(interface, router, neighbor),
    }
}

impl Router {
    /// The event AdjOK?.
    pub(crate) fn decide_adjacency(&mut self, now: Instant, at: At) {
        let Some(interface) = self.interfaces.get(at.interface) else { return };
        let Some(neighbor) = interface.neighbors.get(&at.router) else { return };
        let wanted = if neighbor.state >= NeighborState::ExStart {
            is_kept(interface, neighbor)
        } else {
            is_wanted(interface, at.router, neighbor)
        };
        self.neighbor_event(now, at, NeighborEvent::AdjOk { wanted });
    }

    /// What RFC 5614, 9.4, found to work well before each Hello and when a bidirectional neighbour is lost: MDRs,
    /// adjacencies, routable neighbours, Selected Advertised Neighbors, Router-LSA.
    pub(crate) fn refresh(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get(index) else { return };
        if !interface.is_active() || interface.state == crate::interface::InterfaceState::Waiting {
            return;
        }
        if interface.mdr_neighbor_change {
            self.select_mdrs(now, index);
        }
        self.update_routable(now, index);
        self.select_advertised(index);
        self.check_router_lsa(now);
    }

    /// Runs the MDR selection algorithm on an interface (RFC 5614, 5).
    pub(crate) fn select_mdrs(&mut self, now: Instant, index: usize) {
        let own = self.config.router_id;
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        interface.mdr_neighbor_change = false;
        let Some(settings) = interface.manet().map(|manet| manet.election) else { return };
        fill(&mut self.neighborhood, interface, true);
        let priority = interface.config.priority;
        let before = interface.selection;
        let selection = self.election.select(own, priority, &before, &self.neighborhood, &settings);
        interface.selection = selection;
        interface.state = transition(interface.state, interface.kind(), InterfaceEvent::Selected(selection.level));
        interface.advertised_change = true;
        for (router, neighbor) in &mut interface.neighbors {
            let place = self.neighborhood.index(*router);
            neighbor.manet.dependent = place.is_some_and(|place| self.election.is_dependent(place));
            if neighbor.is_bidirectional() {
                self.adj_ok.insert(At { interface: index, router: *router });
            }
        }
        let id = interface.config.id;
        if before.level != selection.level {
            self.output.tell(Event::Level { interface: id, level: selection.level });
        }
        while let Some(at) = self.adj_ok.pop_first() {
            self.decide_adjacency(now, at);
        }
    }
}
