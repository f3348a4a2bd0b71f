//! Routes around links that are not trusted: loop-free alternates (RFC 5286), used before the link fails instead of
//! afterwards. Nothing is flooded.
//!
//! Of next hops of equal cost, only those over trusted links are kept. If there is none, a neighbour N over a trusted
//! link may receive the packets for D from this router S if
//!
//! ```text
//! distance(N, D) < distance(S, D),  or
//! distance(N, D) = distance(S, D)  and N has announced no suspect link
//! ```
//!
//! The first are RFC 5286's downstream paths; the second are an extension. A packet gets nearer to D with every hop,
//! except for steps between two equally distant routers, which lead from the one that suspects its link to the one that
//! does not: no packet returns. So that the other router knows, suspect links are announced in Hellos (a cost of
//! [`MAX_LINK_METRIC`](crate::hello::MAX_LINK_METRIC) in the MDR-Metric TLV), which travel one hop, and this router
//! uses an alternate only from that Hello on. If the Hello is lost at a neighbour that begins to suspect its link in
//! the same second, the two may send packets to each other until the next one; the TLV is repeated like all changes in
//! Hellos. If N has just lost its own route, packets sent there by a false alarm may return until N's next Hello.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anabranch_wire::ospf::{InterfaceId, RouterId};

use super::Calculation;
use crate::config::Config;
use crate::forecasts::Forecasts;
use crate::graph::{Graph, Vertex};
use crate::handles::NeighborHandle;
use crate::interfaces::Interfaces;
use crate::neighbor::{Neighbor, NeighborState};
use crate::routing_table::{NextHop, Route};

/// Distances from a router, by index of the graph.
type Distances = Vec<Option<u32>>;

/// A neighbour that may replace a suspect next hop.
struct Candidate {
    hop: NextHop,
    /// Cost of the link to it.
    cost: u32,
    suspects: bool,
    distances: Distances,
}

/// Distances from a neighbour by the advertised LSAs, over those of its own links that are still in its Hellos, which
/// show a lost link seconds before an LSA does.
fn distances(graph: &Graph, from: RouterId, hears: impl Fn(RouterId) -> bool) -> Distances {
    let mut found = vec![None; graph.bound()];
    let mut queue = BinaryHeap::new();
    queue.extend(graph.index(Vertex::Router(from)).map(|index| Reverse((0_u32, index))));
    while let Some(Reverse((distance, index))) = queue.pop() {
        let Some(slot) = found.get_mut(index as usize).filter(|slot| slot.is_none()) else { continue };
        *slot = Some(distance);
        let Some(entry) = graph.entry(index).filter(|entry| entry.transit || distance == 0) else { continue };
        let alive = |to: u32| match graph.entry(to).map(|entry| entry.vertex) {
            Some(Vertex::Router(to)) => hears(to),
            Some(Vertex::Network(..)) | None => true,
        };
        let links = entry.links.iter().filter(|link| link.back && (distance > 0 || alive(link.to)));
        queue.extend(links.map(|link| Reverse((distance.saturating_add(link.cost.into()), link.to))));
    }
    found
}

/// Whether a neighbour may be a next hop.
fn is_usable(neighbor: &Neighbor) -> bool {
    neighbor.standing() == NeighborState::Full || neighbor.is_bidirectional() && neighbor.manet.chosen.routable
}

/// The inputs of the calculation of alternates.
pub(super) struct Alternates<'a> {
    pub config: &'a Config,
    pub interfaces: &'a Interfaces,
    pub calculation: &'a Calculation,
    pub forecasts: &'a Forecasts,
}

impl Alternates<'_> {
    /// Routes around links that are not trusted.
    pub fn go_around(&self, hops: &[Option<NextHop>], routers: &mut BTreeMap<RouterId, Route>) {
        if !self.forecasts.uses_alternates() || self.forecasts.trusts_all() {
            return;
        }
        let mut candidates = None;
        for (destination, route) in routers {
            if route.next_hops.iter().all(|hop| self.forecasts.trusts(hop)) {
                continue;
            }
            let trusted: Vec<NextHop> =
                route.next_hops.iter().copied().filter(|hop| self.forecasts.trusts(hop)).collect();
            if !trusted.is_empty() {
                route.next_hops = trusted.into();
                continue;
            }
            let Some(interface) = self.announced_on(&route.next_hops) else { continue };
            let candidates = candidates.get_or_insert_with(|| self.candidates(hops));
            let around = self.alternates(*destination, route, interface, candidates);
            if !around.is_empty() {
                route.next_hops = around.into();
            }
        }
    }

    /// The interface of these next hops if it is the same, and if our Hellos there have announced that the links to
    /// them are suspect.
    fn announced_on(&self, next_hops: &[NextHop]) -> Option<InterfaceId> {
        let id = next_hops.first()?.interface;
        let interface = &self.interfaces[self.interfaces.find(id)?];
        let told = |hop: &NextHop| hop.interface == id && interface.suspects_announced.contains(&hop.router);
        next_hops.iter().all(told).then_some(id)
    }

    /// The neighbours over trusted links with their distances.
    fn candidates(&self, hops: &[Option<NextHop>]) -> Vec<Candidate> {
        let all = self.calculation.roots.iter().zip(hops);
        let candidate = |(at, hop): (&NeighborHandle, &Option<NextHop>)| {
            let hop = hop.filter(|hop| self.forecasts.trusts(hop))?;
            let neighbor = self.interfaces.neighbor(*at).filter(|neighbor| is_usable(neighbor))?;
            let cost = self.interfaces[at.interface].cost_to(at.router).into();
            let hears = |router| neighbor.manet.said.sets.hears(router);
            let distances = distances(&self.calculation.graph, at.router, hears);
            Some(Candidate { hop, cost, suspects: !neighbor.manet.said.suspects.is_empty(), distances })
        };
        all.filter_map(candidate).collect()
    }

    /// The best of the neighbours that may be used.
    fn alternates(
        &self,
        destination: RouterId,
        route: &Route,
        interface: InterfaceId,
        candidates: &[Candidate],
    ) -> Vec<NextHop> {
        let Some(index) = self.calculation.graph.index(Vertex::Router(destination)) else { return Vec::new() };
        let costs = candidates.iter().filter(|one| one.hop.interface == interface).filter_map(|one| {
            let distance = one.distances.get(index as usize).copied().flatten()?;
            let safe = distance < route.cost || distance == route.cost && !one.suspects;
            safe.then_some((one.cost.saturating_add(distance), one.hop))
        });
        let costs: Vec<(u32, NextHop)> = costs.collect();
        let least = costs.iter().map(|(cost, _)| *cost).min();
        let mut best: Vec<NextHop> =
            costs.iter().filter(|(cost, _)| Some(*cost) == least).map(|(_, hop)| *hop).collect();
        best.sort_unstable();
        best.truncate(self.config.maximum_paths);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_lead_over_links_that_both_ends_have_and_first_over_one_that_is_heard() {
        let [one, two, three] = [1, 2, 3].map(|id| Vertex::Router(RouterId(id)));
        let mut graph = Graph::default();
        graph.set(one, true, [(two, 5), (three, 20)]);
        graph.set(two, true, [(one, 5), (three, 5)]);
        graph.set(three, true, [(one, 20)]);
        let of = |graph: &Graph, heard: &[u32], to: Vertex| {
            let found = distances(graph, RouterId(1), |router| heard.contains(&router.0));
            graph.index(to).and_then(|index| found[index as usize])
        };
        // Router 3 does not have the link to 2.
        assert_eq!(of(&graph, &[2, 3], three), Some(20));
        graph.set(three, true, [(one, 20), (two, 5)]);
        assert_eq!(of(&graph, &[2, 3], three), Some(10));
        // The link to 2 is gone: it is missing in its Hellos.
        assert_eq!(of(&graph, &[3], two), Some(25));
    }

    #[test]
    fn full_neighbours_are_next_hops_and_of_the_bidirectional_ones_those_that_are_routable() {
        let is = |state: NeighborState, routable: bool| {
            let mut neighbor = Neighbor::new(std::net::Ipv6Addr::UNSPECIFIED, anabranch_policy::Instant::ZERO, None);
            neighbor.state = state;
            neighbor.manet.chosen.routable = routable;
            is_usable(&neighbor)
        };
        assert!(is(NeighborState::Full, false) && is(NeighborState::TwoWay, true));
        assert!(!is(NeighborState::TwoWay, false) && !is(NeighborState::Init, true));
    }
}
