//! Writes Hellos, full and differential (RFC 5614, 4.1; RFC 2328, 9.5).

use anabranch_wire::ospf::lls::{MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{Hello, Lls, Options, RouterId, Tlv};

use super::{MAX_LINK_METRIC, seconds};
use crate::config::Manet;
use crate::election::AdjConnectivity;
use crate::interface::Interface;
use crate::lsa_fullness::LsaFullness;
use crate::neighbor::announcement::List;
use crate::neighbor::{Neighbor, NeighborState};

/// The list of a Hello to which a neighbour belongs (RFC 5614, 4.1); none if it was never accepted.
fn list_of(neighbor: &Neighbor) -> Option<List> {
    match neighbor.state {
        NeighborState::Down => neighbor.manet.announcement.list().map(|_| List::Down),
        NeighborState::Init => Some(List::Init),
        NeighborState::TwoWay
        | NeighborState::ExStart
        | NeighborState::Exchange
        | NeighborState::Loading
        | NeighborState::Full => Some(if neighbor.manet.chosen.dependent {
            List::Dependent
        } else if neighbor.manet.chosen.selected {
            List::Selected
        } else {
            List::Unselected
        }),
    }
}

/// The neighbours listed in the next Hello of an interface, in the order of the lists and of router IDs within them.
/// Counts the Hello for each of them.
fn listed(interface: &mut Interface, own: RouterId, differential: bool) -> Vec<(List, RouterId)> {
    let Interface { neighbors, link_costs, config, suspects_announced, .. } = interface;
    let mut all = Vec::with_capacity(neighbors.len());
    for (router, neighbor) in neighbors {
        let list = list_of(neighbor);
        let deaf = neighbor.is_bidirectional() && !neighbor.manet.said.sets.hears(own);
        let usual = link_costs.get(router).copied().or(neighbor.delivery.cost()).unwrap_or(config.cost);
        let cost = if suspects_announced.contains(router) { MAX_LINK_METRIC } else { usual };
        let announcement = &mut neighbor.manet.announcement;
        announcement.update(list, cost);
        let Some(list) = list else { continue };
        let listed = if differential { announcement.is_news() || deaf } else { list != List::Down };
        if listed {
            announcement.count();
            all.push((list, *router));
        }
    }
    all.sort_unstable();
    all
}

/// Number of neighbours in a list.
fn count(all: &[(List, RouterId)], list: List) -> u8 {
    u8::try_from(all.iter().filter(|(one, _)| *one == list).count()).unwrap_or(u8::MAX)
}

/// The MDR-Metric TLV for the bidirectional neighbours of a Hello; none if it is not needed (RFC 5614, 4.1).
fn metric_of(interface: &Interface, manet: &Manet, all: &[(List, RouterId)]) -> Option<MdrMetric> {
    let costs_needed = match manet.lsa_fullness {
        LsaFullness::MinCost | LsaFullness::MinCostRedundant | LsaFullness::Multipath(_) => {
            let mut bidirectional = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
            bidirectional.any(|(router, _)| interface.cost_to(*router) != 1)
        }
        LsaFullness::Minimal | LsaFullness::MdrFull | LsaFullness::Full => false,
    };
    if !costs_needed && !all.iter().any(|(_, router)| interface.suspects_announced.contains(router)) {
        return None;
    }
    let cost_to = |router: RouterId| {
        if interface.suspects_announced.contains(&router) { MAX_LINK_METRIC } else { interface.cost_to(router) }
    };
    let default = interface.config.cost;
    let costs = || {
        let listed = all.iter().filter(|(list, _)| *list >= List::Dependent);
        listed.map(|(_, router)| (*router, cost_to(*router)))
    };
    let others: Vec<(RouterId, u16)> = costs().filter(|(_, cost)| *cost != default).collect();
    // The I bit is chosen so that the TLV is short: fewer than a third of the neighbours have to be listed.
    let metrics = if 3 * others.len() < costs().count() || others.is_empty() {
        MdrMetrics::Named(others)
    } else {
        MdrMetrics::InOrder(costs().map(|(_, cost)| cost).collect())
    };
    Some(MdrMetric { default, metrics })
}

/// The last Hello of an interface: a full one that lists nobody, of a router that is no candidate in any election.
pub(crate) fn last_hello(interface: &mut Interface, own: RouterId, options: Options) -> (Hello, Option<Lls>) {
    let (hello, lls) = next_hello(interface, own, options);
    let nobody = RouterId::NONE;
    let (designated_router, backup_designated_router) = (nobody, nobody);
    let hello = Hello { priority: 0, designated_router, backup_designated_router, neighbors: Vec::new(), ..hello };
    let lls = lls.as_ref().and_then(Lls::mdr_hello).map(|mdr| {
        let lists = MdrHello { differential: false, down: 0, init: 0, dependent: 0, selected_advertised: 0, ..*mdr };
        Lls { tlvs: vec![Tlv::MdrHello(lists)] }
    });
    (hello, lls)
}

/// The next Hello of an interface, and its LLS block on a MANET.
pub(crate) fn next_hello(interface: &mut Interface, own: RouterId, options: Options) -> (Hello, Option<Lls>) {
    let mut hello = Hello {
        interface: interface.config.id,
        priority: interface.config.priority,
        options,
        hello_interval: seconds(interface.config.hello_interval),
        router_dead_interval: seconds(interface.config.router_dead_interval),
        designated_router: interface.selection.parent.unwrap_or(RouterId::NONE),
        backup_designated_router: interface.selection.backup_parent.unwrap_or(RouterId::NONE),
        neighbors: Vec::new(),
    };
    let Some(manet) = interface.manet() else {
        let heard = interface.neighbors.iter().filter(|(_, one)| one.state >= NeighborState::Init);
        hello.neighbors = heard.map(|(router, _)| *router).collect();
        return (hello, None);
    };
    let full_adjacencies = manet.election.adj_connectivity == AdjConnectivity::Full;
    let refresh = manet.two_hop_refresh;
    let (sequence, differential) = interface.hello.count(refresh);
    let all = listed(interface, own, differential);
    let mdr = MdrHello {
        sequence,
        full_adjacencies,
        differential,
        down: count(&all, List::Down),
        init: count(&all, List::Init),
        dependent: count(&all, List::Dependent),
        selected_advertised: count(&all, List::Selected),
    };
    let metric = interface.manet().and_then(|manet| metric_of(interface, manet, &all));
    hello.neighbors = all.into_iter().map(|(_, router)| router).collect();
    let tlvs = [Some(Tlv::MdrHello(mdr)), metric.map(Tlv::MdrMetric)].into_iter().flatten().collect();
    (hello, Some(Lls { tlvs }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{InterfaceConfig, InterfaceKind};
    use anabranch_policy::Instant;
    use anabranch_wire::ospf::InterfaceId;
    use std::net::Ipv6Addr;

    /// A MANET interface with the neighbours 1 (Init), 2 (2-Way) and 3 (2-Way and dependent).
    fn interface() -> Interface {
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(4), Ipv6Addr::UNSPECIFIED));
        for (router, state) in [(1, NeighborState::Init), (2, NeighborState::TwoWay), (3, NeighborState::TwoWay)] {
            let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None);
            neighbor.state = state;
            neighbor.manet.chosen.dependent = router == 3;
            neighbor.manet.said.sets.bidirectional = vec![RouterId(9)];
            interface.neighbors.insert(RouterId(router), neighbor);
        }
        interface
    }

    #[test]
    fn rfc5614_4_1_neighbours_stand_in_the_order_of_their_lists() {
        let (hello, lls) = next_hello(&mut interface(), RouterId(9), Options::V6);
        assert_eq!(hello.neighbors, [1, 3, 2].map(RouterId));
        let lls = lls.unwrap();
        let mdr = lls.mdr_hello().unwrap();
        assert_eq!((mdr.down, mdr.init, mdr.dependent, mdr.selected_advertised), (0, 1, 1, 0));
        assert!(!mdr.differential && lls.mdr_metric().is_none());
    }

    #[test]
    fn a_link_of_another_cost_is_named_in_the_metric_tlv() {
        let mut interface = interface();
        interface.link_costs.insert(RouterId(2), 5);
        let (_, lls) = next_hello(&mut interface, RouterId(9), Options::V6);
        let metric = lls.as_ref().and_then(Lls::mdr_metric).cloned();
        let expected = MdrMetric { default: 1, metrics: MdrMetrics::InOrder(vec![1, 5]) };
        assert_eq!(metric, Some(expected));
    }

    #[test]
    fn a_point_to_point_hello_lists_who_was_heard_and_has_no_lls_block() {
        let mut interface = interface();
        interface.config.kind = InterfaceKind::PointToPoint;
        let (hello, lls) = next_hello(&mut interface, RouterId(9), Options::V6);
        assert_eq!((hello.neighbors, lls), ([1, 2, 3].map(RouterId).to_vec(), None));
    }

    #[test]
    fn the_last_hello_is_full_and_lists_nobody() {
        // The Hello that would be next is differential, and has a neighbour in each list.
        let before_the_last = || {
            let mut interface = interface();
            interface.selection.parent = Some(RouterId(3));
            interface.selection.backup_parent = Some(RouterId(2));
            if let InterfaceKind::Manet(manet) = &mut interface.config.kind {
                manet.two_hop_refresh = 3;
            }
            next_hello(&mut interface, RouterId(9), Options::V6);
            for (router, state, selected) in
                [(1, NeighborState::Down, false), (2, NeighborState::TwoWay, true), (4, NeighborState::Init, false)]
            {
                let new = || Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None);
                let neighbor = interface.neighbors.entry(RouterId(router)).or_insert_with(new);
                (neighbor.state, neighbor.manet.chosen.selected) = (state, selected);
            }
            interface
        };
        let (hello, lls) = next_hello(&mut before_the_last(), RouterId(9), Options::V6);
        let mdr = *lls.unwrap().mdr_hello().unwrap();
        assert_eq!((mdr.down, mdr.init, mdr.dependent, mdr.selected_advertised), (1, 1, 1, 1));
        assert!(mdr.differential && hello.priority > 0 && hello.designated_router == RouterId(3));
        let (hello, lls) = last_hello(&mut before_the_last(), RouterId(9), Options::V6);
        assert_eq!((hello.priority, &hello.neighbors[..]), (0, &[][..]));
        assert_eq!([hello.designated_router, hello.backup_designated_router], [RouterId::NONE; 2]);
        let lls = lls.unwrap();
        let mdr = lls.mdr_hello().unwrap();
        assert_eq!((mdr.down, mdr.init, mdr.dependent, mdr.selected_advertised), (0, 0, 0, 0));
        assert!(!mdr.differential && lls.tlvs.len() == 1);
    }
}
