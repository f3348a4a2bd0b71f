//! Which neighbours become adjacent (RFC 5614, 7.2, 7.3 and 9.2).

use anabranch_wire::ospf::RouterId;

use crate::election::AdjConnectivity;
use crate::interface::Interface;
use crate::neighbor::{Neighbor, NeighborState};
use crate::neighborhood::Level;

/// Whether an adjacency with a neighbour should exist: the event AdjOK?.
pub(crate) fn is_ok(interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
    if neighbor.state >= NeighborState::ExStart {
        is_kept(interface, neighbor)
    } else {
        is_wanted(interface, router, neighbor)
    }
}

/// Whether an adjacency should be formed with a neighbour in state 2-Way (RFC 5614, 7.2). With adjacency reduction this
/// also makes it a backbone neighbour (9.2).
fn is_wanted(interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    if manet.election.adj_connectivity == AdjConnectivity::Full {
        return true;
    }
    let (own, said) = (interface.selection.level, &neighbor.manet.said);
    let (relays, it_relays) = (own > Level::Other, said.level > Level::Other);
    let is_parent = [interface.selection.parent, interface.selection.backup_parent].contains(&Some(router));
    relays && it_relays && (neighbor.manet.chosen.dependent || said.dependent_selector)
        || it_relays && is_parent
        || relays && said.child
        || said.a_bit
}

/// Whether an adjacency is maintained (RFC 5614, 7.3).
fn is_kept(interface: &Interface, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    manet.election.adj_connectivity == AdjConnectivity::Full
        || interface.selection.level > Level::Other
        || neighbor.manet.said.level > Level::Other
        || neighbor.manet.said.a_bit
}

/// Whether a bidirectional neighbour is a backbone neighbour (RFC 5614, 9.2).
pub(crate) fn is_backbone(interface: &Interface, router: RouterId, neighbor: &Neighbor) -> bool {
    let Some(manet) = interface.manet() else { return true };
    match manet.election.adj_connectivity {
        AdjConnectivity::Full => !neighbor.manet.said.a_bit,
        AdjConnectivity::Uniconnected | AdjConnectivity::Biconnected => is_wanted(interface, router, neighbor),
    }
}
