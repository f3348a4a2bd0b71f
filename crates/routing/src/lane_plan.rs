//! Disjoint lanes: for one destination, the next hop of each router for each lane.
//!
//! Every router computes the same plan from the same database, so it knows the lanes of its next hops without any
//! message. Routers choose in the order of their distance from the destination. Each lane of a router gets a next hop
//! of equal cost such that as few lanes as possible have a router in common, and then that as few routers as possible
//! are shared; the paths of the next hops are known already. As each router chooses among its next hops of equal cost,
//! packets get nearer with every hop even if the databases of two routers differ for some time; only then lanes may
//! meet unnecessarily.
//!
//! The choice is greedy: the first lane tries each next hop, the others follow in turn. With n routers, h next hops and
//! l lanes one destination takes n h^2 l^2 / 64 steps of n bits, so this is for networks of tens of routers, such as
//! those with several radios.

use crate::bit_matrix;
use crate::graph::{Graph, Vertex};
use anabranch_wire::ospf::RouterId;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// The plan for one destination; keeps its memory for the next.
#[derive(Clone, Default, Debug)]
pub struct LanePlan {
    lanes: usize,
    width: usize,
    /// By index of the graph.
    distances: Vec<u32>,
    order: Vec<u32>,
    /// By index of the graph and lane: the next hop.
    chosen: Vec<Option<u32>>,
    /// By index of the graph and lane: the routers on the lane, without the destination.
    passed: Vec<u64>,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
    candidates: Vec<u32>,
    attempt: Vec<u32>,
    best: Vec<u32>,
}

/// Distance of a router that cannot reach the destination.
const UNREACHED: u32 = u32::MAX;

impl LanePlan {
    /// Plans the lanes 1 to `lanes` to `destination`.
    pub fn compute(&mut self, graph: &Graph, destination: RouterId, lanes: usize) {
        let size = graph.bound();
        self.lanes = lanes;
        self.width = bit_matrix::words(size);
        self.chosen.clear();
        self.chosen.resize(size * lanes, None);
        self.passed.clear();
        self.passed.resize(size * lanes * self.width, 0);
        let Some(to) = graph.index(Vertex::Router(destination)) else { return };
        self.measure(graph, to);
        let order = core::mem::take(&mut self.order);
        for router in order.iter().filter(|router| **router != to) {
            self.choose(graph, *router, to);
        }
        self.order = order;
    }

    /// The next hop of a router on a lane, from 1; none if the plan has none.
    pub fn next_hop(&self, graph: &Graph, router: RouterId, lane: usize) -> Option<RouterId> {
        let index = graph.index(Vertex::Router(router))?;
        let hop =
            (*self.chosen.get(index as usize * self.lanes + lane.checked_sub(1)?)?).filter(|_| lane <= self.lanes)?;
        match graph.entry(hop)?.vertex {
            Vertex::Router(hop) => Some(hop),
            Vertex::Network(..) => None,
        }
    }

    /// Distances to the destination, over links that exist both ways, and the order by them.
    fn measure(&mut self, graph: &Graph, to: u32) {
        self.distances.clear();
        self.distances.resize(graph.bound(), UNREACHED);
        self.order.clear();
        self.queue.clear();
        self.queue.push(Reverse((0, to)));
        if let Some(slot) = self.distances.get_mut(to as usize) {
            *slot = 0;
        }
        while let Some(Reverse((distance, index))) = self.queue.pop() {
            if self.distances.get(index as usize) != Some(&distance) {
                continue;
            }
            let Some(entry) = graph.entry(index) else { continue };
            self.order.push(index);
            if !entry.transit && index != to {
                continue;
            }
            for link in entry.links.iter().filter(|link| link.back) {
                let cost =
                    graph.entry(link.to).and_then(|from| from.link(index)).map_or(0, |link| u32::from(link.cost));
                match self.distances.get_mut(link.to as usize) {
                    Some(known) if distance + cost < *known => {
                        *known = distance + cost;
                        self.queue.push(Reverse((*known, link.to)));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Chooses the next hops of a router; nearer routers have chosen theirs.
    fn choose(&mut self, graph: &Graph, router: u32, to: u32) {
        let Some(entry) = graph.entry(router) else { return };
        let distance = |index: u32| self.distances.get(index as usize).copied().unwrap_or(UNREACHED);
        let own = distance(router);
        self.candidates.clear();
        for link in entry.links.iter().filter(|link| link.back) {
            let open = link.to == to || graph.entry(link.to).is_some_and(|entry| entry.transit);
            if open && distance(link.to) != UNREACHED && distance(link.to) + u32::from(link.cost) == own {
                self.candidates.push(link.to);
            }
        }
        // In the order of Router IDs, since indices depend on the order of arrival.
        self.candidates.sort_unstable_by_key(|index| graph.entry(*index).map(|entry| entry.vertex));
        let mut least = (usize::MAX, usize::MAX);
        for first in 0..self.candidates.len() {
            let overlap = self.attempt(first, to);
            if overlap < least {
                least = overlap;
                core::mem::swap(&mut self.attempt, &mut self.best);
            }
        }
        if self.candidates.is_empty() {
            return;
        }
        for lane in 0..self.lanes {
            if let Some(hop) = self.best.get(lane).copied() {
                self.take(router, lane, hop, to);
            }
        }
    }

    /// Assigns a candidate to the first lane, and to the others those that overlap least; returns how many pairs of
    /// lanes meet, and the number of shared routers.
    fn attempt(&mut self, first: usize, to: u32) -> (usize, usize) {
        let mut attempt = core::mem::take(&mut self.attempt);
        attempt.clear();
        let mut total = (0, 0);
        for lane in 0..self.lanes {
            let overlap = |hop: u32| {
                attempt.iter().enumerate().fold((0, 0), |(pairs, routers), (other, chosen)| {
                    let common = self.common((lane, hop), (other, *chosen), to);
                    (pairs + usize::from(common > 0), routers + common)
                })
            };
            // If all are equal, the lanes spread.
            let count = self.candidates.len();
            let start = if lane == 0 { first } else { (first + lane * count / self.lanes.max(1)) % count.max(1) };
            let turns = if lane == 0 { 1 } else { count };
            let hops = (0..turns).filter_map(|turn| self.candidates.get((start + turn) % count.max(1)).copied());
            let Some((least, hop)) = hops.map(|hop| (overlap(hop), hop)).min_by_key(|(overlap, _)| *overlap) else {
                break;
            };
            total = (total.0 + least.0, total.1 + least.1);
            attempt.push(hop);
        }
        self.attempt = attempt;
        total
    }

    /// Number of routers that two lanes with these next hops have in common.
    fn common(&self, (lane, hop): (usize, u32), (other, chosen): (usize, u32), to: u32) -> usize {
        let meets = usize::from(hop == chosen && hop != to);
        // No router is on a path of one that is not farther from the destination, so a next hop of one lane can be on
        // the other only if distances differ.
        let (one, two) = (self.row(hop, lane), self.row(chosen, other));
        let crossed = usize::from(bit_matrix::contains(one, chosen as usize))
            + usize::from(bit_matrix::contains(two, hop as usize));
        meets + crossed + bit_matrix::common(one, two)
    }

    fn take(&mut self, router: u32, lane: usize, hop: u32, to: u32) {
        let place = router as usize * self.lanes + lane;
        if let Some(slot) = self.chosen.get_mut(place) {
            *slot = Some(hop);
        }
        if hop == to {
            return;
        }
        let from = (hop as usize * self.lanes + lane) * self.width;
        let row = place * self.width;
        if from + self.width <= self.passed.len() && row + self.width <= self.passed.len() {
            self.passed.copy_within(from..from + self.width, row);
        }
        if let Some(row) = self.passed.get_mut(row..row + self.width) {
            bit_matrix::insert(row, hop as usize);
        }
    }

    /// The routers on a lane of a router.
    fn row(&self, router: u32, lane: usize) -> &[u64] {
        let start = (router as usize * self.lanes + lane) * self.width;
        self.passed.get(start..start + self.width).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of undirected links of cost 1.
    fn database(links: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::default();
        let most = links.iter().map(|(a, b)| *a.max(b)).max().unwrap_or(0);
        for from in 1..=most {
            let to = links.iter().filter_map(|(a, b)| match from {
                from if from == *a => Some(*b),
                from if from == *b => Some(*a),
                _ => None,
            });
            let to: Vec<_> = to.map(|to| (Vertex::Router(RouterId(to)), 1)).collect();
            graph.set(Vertex::Router(RouterId(from)), true, to);
        }
        graph
    }

    fn lane(graph: &Graph, plan: &LanePlan, from: u32, to: u32, lane: usize) -> Vec<u32> {
        let mut passed = Vec::new();
        let mut at = RouterId(from);
        while let Some(next) = plan.next_hop(graph, at, lane).filter(|next| next.0 != to) {
            passed.push(next.0);
            at = next;
        }
        passed
    }

    #[test]
    fn lanes_that_each_router_would_lead_together_by_itself_are_kept_apart() {
        // 1 has 2 and 3; 2 has 4 and 5, 3 has 4 alone: lane 1 must leave 4 to lane 2.
        let graph = database(&[(1, 2), (1, 3), (2, 4), (2, 5), (3, 4), (4, 6), (5, 6)]);
        let mut plan = LanePlan::default();
        plan.compute(&graph, RouterId(6), 2);
        let lanes = [lane(&graph, &plan, 1, 6, 1), lane(&graph, &plan, 1, 6, 2)];
        assert!(lanes.contains(&vec![2, 5]) && lanes.contains(&vec![3, 4]), "{lanes:?}");
        assert_eq!(plan.next_hop(&graph, RouterId(6), 1), None);
        assert_eq!(plan.next_hop(&graph, RouterId(1), 3), None);
        assert_eq!(plan.next_hop(&graph, RouterId(9), 1), None);
    }

    /// A router-LSA: who, whether it carries what is not for itself, and its links.
    type Lsa<'a> = (u32, bool, &'a [(u32, u16)]);

    /// The next hops of router 1 on two lanes to 9.
    fn next_hops(lsas: &[Lsa]) -> [Option<u32>; 2] {
        let router = |id: u32| Vertex::Router(RouterId(id));
        let mut graph = Graph::default();
        for (from, transit, links) in lsas {
            graph.set(router(*from), *transit, links.iter().map(|(to, cost)| (router(*to), *cost)));
        }
        let mut plan = LanePlan::default();
        plan.compute(&graph, RouterId(9), 2);
        [1, 2].map(|lane| plan.next_hop(&graph, RouterId(1), lane).map(|hop| hop.0))
    }

    #[test]
    fn next_hops_of_unequal_cost_and_those_that_lead_nowhere_are_on_no_lane() {
        let (first, last) = ((1, true, &[(2, 1), (3, 1)][..]), (9, true, &[(2, 1), (3, 1)][..]));
        let back = &[(1, 1), (9, 1)][..];
        assert_eq!(next_hops(&[first, (2, true, back), (3, true, back), last]), [Some(2), Some(3)]);
        // Costs are those towards the destination: 2 pays more for its link to 9, though 9 pays as much for both.
        let dear = &[(1, 1), (9, 2)][..];
        assert_eq!(next_hops(&[first, (2, true, dear), (3, true, back), last]), [Some(3), Some(3)]);
        assert_eq!(next_hops(&[(1, true, &[(2, 2), (3, 1)]), (2, true, back), (3, true, back), last]), [Some(3); 2]);
        // A router without the R-bit is not passed, and a link counts if both ends have it.
        assert_eq!(next_hops(&[first, (2, false, back), (3, true, back), last]), [Some(3), Some(3)]);
        assert_eq!(next_hops(&[first, (2, true, &[(9, 1)]), (3, true, back), last]), [Some(3), Some(3)]);
        assert_eq!(next_hops(&[first, (2, true, &[(1, 1)]), (3, true, back), last]), [Some(3), Some(3)]);
        assert_eq!(next_hops(&[first, (2, true, &[(1, 1)]), (3, true, &[(1, 1)]), last]), [None, None]);
        // The destination itself need not carry anything on.
        assert_eq!(next_hops(&[(1, true, &[(9, 1)]), (9, false, &[(1, 1)])]), [Some(9), Some(9)]);
    }

    #[test]
    fn a_next_hop_on_the_way_of_another_lane_is_left_to_it() {
        // From 1 the ways over 2, over 3 and 2, and over 4 cost the same.
        let lsas: [Lsa; 5] = [
            (1, true, &[(2, 2), (3, 1), (4, 2)]),
            (2, true, &[(1, 2), (3, 1), (9, 1)]),
            (3, true, &[(1, 1), (2, 1)]),
            (4, true, &[(1, 2), (9, 1)]),
            (9, true, &[(2, 1), (4, 1)]),
        ];
        assert_eq!(next_hops(&lsas), [Some(2), Some(4)]);
    }

    #[test]
    fn lanes_spread_over_next_hops_that_are_all_alike() {
        // 2 to 6 are all between 1 and 9; the second lane begins in the middle of them.
        let middle = [(1, 1), (9, 1)];
        let ends: Vec<(u32, u16)> = (2..=6).map(|id| (id, 1)).collect();
        let mut lsas: Vec<Lsa> = (2..=6).map(|id| (id, true, &middle[..])).collect();
        lsas.extend([(1, true, &ends[..]), (9, true, &ends[..])]);
        assert_eq!(next_hops(&lsas), [Some(2), Some(4)]);
    }

    /// Random networks of unlike costs, some of them over several words of bits.
    #[test]
    fn lanes_follow_shortest_paths_and_the_plan_knows_whom_they_pass() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |of: u64| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits % of
        };
        let mut plan = LanePlan::default();
        let (mut apart, mut together) = (0, 0);
        for round in 0..60 {
            let (size, lanes) = (if round % 10 == 0 { 70 } else { 4 + draw(12) as u32 }, 2 + round % 3);
            let links: Vec<(u32, u32, u16)> = (2..=size)
                .flat_map(|to| (0..3).map(move |_| to))
                .map(|to| (1 + draw(u64::from(to) - 1) as u32, to, 1 + draw(2) as u16))
                .collect();
            let mut graph = Graph::default();
            for from in 1..=size {
                let ends = links.iter().filter(|link| link.0 == from || link.1 == from);
                let ends = ends.map(|(a, b, cost)| (Vertex::Router(RouterId(a + b - from)), *cost));
                graph.set(Vertex::Router(RouterId(from)), true, ends.collect::<Vec<_>>());
            }
            // Distances from 1 by relaxation of all links until nothing changes.
            let mut distances = vec![u32::MAX; size as usize + 1];
            distances[1] = 0;
            for _ in 0..size {
                for (a, b, cost) in &links {
                    let (a, b) = (*a as usize, *b as usize);
                    let through = |end: u32| end.saturating_add(u32::from(*cost));
                    distances[a] = distances[a].min(through(distances[b]));
                    distances[b] = distances[b].min(through(distances[a]));
                }
            }
            plan.compute(&graph, RouterId(1), lanes);
            for from in 2..=size {
                let walks: Vec<Vec<u32>> = (1..=lanes).map(|number| lane(&graph, &plan, from, 1, number)).collect();
                for (number, walk) in walks.iter().enumerate() {
                    let mut at = from;
                    for next in walk.iter().chain([&1]) {
                        let cost = graph.links(Vertex::Router(RouterId(at)));
                        let mut cost = cost.filter(|(to, _)| *to == Vertex::Router(RouterId(*next)));
                        let cost = u32::from(cost.next().expect("a lane follows links").1);
                        assert_eq!(distances[*next as usize] + cost, distances[at as usize]);
                        at = *next;
                    }
                    let index = graph.index(Vertex::Router(RouterId(from))).unwrap();
                    let noted = bit_matrix::ones(plan.row(index, number)).map(|passed| graph.entry(passed as u32));
                    let mut noted: Vec<Vertex> = noted.map(|entry| entry.unwrap().vertex).collect();
                    let mut walked: Vec<Vertex> = walk.iter().map(|id| Vertex::Router(RouterId(*id))).collect();
                    noted.sort_unstable();
                    walked.sort_unstable();
                    assert_eq!(noted, walked);
                }
                let meet = walks[0].iter().any(|router| walks[1].contains(router));
                (apart, together) = (apart + usize::from(!meet), together + usize::from(meet));
            }
        }
        assert!(apart > 100 && together > 100, "{apart} {together}");
    }
}
