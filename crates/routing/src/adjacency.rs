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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use anabranch_policy::Instant;
    use anabranch_wire::ospf::InterfaceId;
    use std::net::Ipv6Addr;

    const OTHER: Level = Level::Other;
    const ROUTER: RouterId = RouterId(2);

    /// This router and a neighbour in state 2-Way, of these levels.
    fn pair(own: Level, other: Level) -> (Interface, Neighbor) {
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
        interface.selection.level = own;
        let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None);
        neighbor.state = NeighborState::TwoWay;
        neighbor.manet.said.level = other;
        (interface, neighbor)
    }

    /// Whether an adjacency should be formed after a change, for two MDR Others, where only the neighbour is a Backup MDR, where
    /// only this router is, and where both are.
    fn wanted(change: fn(&mut Interface, &mut Neighbor)) -> [bool; 4] {
        let relay = Level::BackupMdr;
        [(OTHER, OTHER), (OTHER, relay), (relay, OTHER), (relay, relay)].map(|(own, other)| {
            let (mut interface, mut neighbor) = pair(own, other);
            change(&mut interface, &mut neighbor);
            is_ok(&interface, ROUTER, &neighbor)
        })
    }

    #[test]
    fn rfc5614_7_2_two_that_relay_are_adjacent_if_one_depends_on_the_other_and_others_with_their_parents() {
        assert_eq!(wanted(|_, _| {}), [false; 4]);
        assert_eq!(wanted(|_, neighbor| neighbor.manet.chosen.dependent = true), [false, false, false, true]);
        assert_eq!(wanted(|_, neighbor| neighbor.manet.said.dependent_selector = true), [false, false, false, true]);
        let of_a_parent = [false, true, false, true];
        assert_eq!(wanted(|interface, _| interface.selection.parent = Some(ROUTER)), of_a_parent);
        assert_eq!(wanted(|interface, _| interface.selection.backup_parent = Some(ROUTER)), of_a_parent);
        assert_eq!(wanted(|interface, _| interface.selection.parent = Some(RouterId(3))), [false; 4]);
        assert_eq!(wanted(|_, neighbor| neighbor.manet.said.child = true), [false, false, true, true]);
        assert_eq!(wanted(|_, neighbor| neighbor.manet.said.a_bit = true), [true; 4]);
    }

    #[test]
    fn rfc5614_7_3_an_adjacency_stays_while_one_of_both_relays() {
        let kept = |change: fn(&mut Neighbor)| {
            [(OTHER, OTHER), (OTHER, Level::Mdr), (Level::BackupMdr, OTHER)].map(|(own, other)| {
                let (interface, mut neighbor) = pair(own, other);
                neighbor.state = NeighborState::ExStart;
                change(&mut neighbor);
                is_ok(&interface, ROUTER, &neighbor)
            })
        };
        assert_eq!(kept(|_| {}), [false, true, true]);
        assert_eq!(kept(|neighbor| neighbor.manet.said.a_bit = true), [true; 3]);
    }
}
