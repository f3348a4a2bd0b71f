//! Sending Hellos, full and differential (RFC 5614, 4.1; RFC 2328, 9.5).

mod reception;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lls::{MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{Body, Hello, Lls, RouterId, Tlv};

use crate::calculation::DOUBTED;
use crate::config::{HELLO_REPEAT_COUNT, Manet};
use crate::election::AdjConnectivity;
use crate::interface::Interface;
use crate::lsa_fullness::LsaFullness;
use crate::neighbor::{List, Neighbor, NeighborState};
use crate::router::Router;
use crate::verbs::Destination;

/// Whole seconds, as Hellos say them: rounded up, at least 1.
pub(crate) fn seconds(span: Duration) -> u16 {
    u16::try_from(span.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u16::MAX).max(1)
}

/// In which list of a Hello a neighbour belongs (RFC 5614, 4.1); none if it was never heard of enough.
fn list_of(neighbor: &Neighbor) -> Option<List> {
    match neighbor.state {
        NeighborState::Down => neighbor.manet.listing.list.map(|_| List::Down),
        NeighborState::Init => Some(List::Init),
        NeighborState::TwoWay
        | NeighborState::ExStart
        | NeighborState::Exchange
        | NeighborState::Loading
        | NeighborState::Full => Some(if neighbor.manet.dependent {
            List::Dependent
        } else if neighbor.manet.selected {
            List::Selected
        } else {
            List::Unselected
        }),
    }
}

/// Who is listed in the next Hello of an interface, in the order of the lists and of router IDs within them. Counts the
/// Hello for each of them.
fn listed(interface: &mut Interface, own: RouterId, differential: bool) -> Vec<(List, RouterId)> {
    let Interface { neighbors, link_costs, config, doubts_told, .. } = interface;
    let mut all = Vec::with_capacity(neighbors.len());
    for (router, neighbor) in neighbors {
        let list = list_of(neighbor);
        let deaf = neighbor.is_bidirectional() && !neighbor.manet.sets.hears(own);
        let usual = link_costs.get(router).copied().unwrap_or(config.cost);
        let cost = if doubts_told.contains(router) { DOUBTED } else { usual };
        let manet = &mut neighbor.manet;
        manet.listing.put(list);
        if manet.announced_cost != cost {
            (manet.announced_cost, manet.metric_repeats) = (cost, HELLO_REPEAT_COUNT);
        }
        let Some(list) = list else { continue };
        let listed = if differential {
            manet.listing.repeats > 0 || deaf || manet.metric_repeats > 0
        } else {
            list != List::Down
        };
        if listed {
            manet.listing.repeats = manet.listing.repeats.saturating_sub(1);
            manet.metric_repeats = manet.metric_repeats.saturating_sub(1);
            all.push((list, *router));
        }
    }
    all.sort_unstable();
    all
}

/// How many of a list are in a Hello.
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
    if !costs_needed && !all.iter().any(|(_, router)| interface.doubts_told.contains(router)) {
        return None;
    }
    let cost_to = |router: RouterId| {
        if interface.doubts_told.contains(&router) { DOUBTED } else { interface.cost_to(router) }
    };
    let default = interface.config.cost;
    let costs = || {
        let listed = all.iter().filter(|(list, _)| *list >= List::Dependent);
        listed.map(|(_, router)| (*router, cost_to(*router)))
    };
    let others: Vec<(RouterId, u16)> = costs().filter(|(_, cost)| *cost != default).collect();
    // The I bit is chosen so that the TLV is short: with fewer than a third of them to be named.
    let metrics = if 3 * others.len() < costs().count() || others.is_empty() {
        MdrMetrics::Named(others)
    } else {
        MdrMetrics::InOrder(costs().map(|(_, cost)| cost).collect())
    };
    Some(MdrMetric { default, metrics })
}

impl Router {
    /// Sends the Hello that is due on an interface, and sets the time of the next one.
    pub(crate) fn send_hello(&mut self, now: Instant, index: usize) {
        self.refresh(now, index);
        self.tell_doubts(index);
        let unit = self.random.unit();
        let (own, options) = (self.config.router_id, self.config.options());
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let interval = interface.config.hello_interval;
        // The jitter does not add up: the rate stays that of HelloInterval.
        interface.hello_due = (interface.hello_due + interval).max(now);
        let jitter = interval.mul_f64(interface.config.hello_jitter);
        interface.hello_at = interface.hello_due + jitter.mul_f64(2.0 * unit) - jitter;
        let mut hello = Hello {
            interface: interface.config.id,
            priority: interface.config.priority,
            options,
            hello_interval: seconds(interval),
            router_dead_interval: seconds(interface.config.router_dead_interval),
            designated_router: interface.selection.parent.unwrap_or(RouterId::NONE),
            backup_designated_router: interface.selection.backup_parent.unwrap_or(RouterId::NONE),
            neighbors: Vec::new(),
        };
        let lls = if let Some((refresh, reduced)) = interface
            .manet()
            .map(|manet| (manet.two_hop_refresh, manet.election.adj_connectivity != AdjConnectivity::Full))
        {
            let differential = interface.hellos_to_full > 0;
            interface.hellos_to_full = if differential { interface.hellos_to_full - 1 } else { refresh - 1 };
            let all = listed(interface, own, differential);
            let sequence = interface.hello_sequence;
            interface.hello_sequence = sequence.wrapping_add(1);
            let mdr = MdrHello {
                sequence,
                full_adjacencies: !reduced,
                differential,
                down: count(&all, List::Down),
                init: count(&all, List::Init),
                dependent: count(&all, List::Dependent),
                selected_advertised: count(&all, List::Selected),
            };
            let metric = interface.manet().and_then(|manet| metric_of(interface, manet, &all));
            hello.neighbors = all.into_iter().map(|(_, router)| router).collect();
            Some(Lls { tlvs: [Some(Tlv::MdrHello(mdr)), metric.map(Tlv::MdrMetric)].into_iter().flatten().collect() })
        } else {
            let heard = interface.neighbors.iter().filter(|(_, one)| one.state >= NeighborState::Init);
            hello.neighbors = heard.map(|(router, _)| *router).collect();
            None
        };
        let id = interface.config.id;
        self.output.send(id, Destination::AllSpfRouters, Body::Hello(hello), lls);
    }
}
