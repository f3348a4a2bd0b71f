//! How disjoint lanes between nodes of a mesh would be under each lane policy: routes are followed hop by hop through
//! the routers' tables, without sending anything.

use super::naming::{link_local, node_of, router_id};
use super::{NodeId, RadioId};
use crate::random::RandomStream;
use crate::world::World;
use anabranch_routing::lanes::{Disjointness, LanePolicy, LaneSettings, PathMode};
use anabranch_wire::ospf::{InterfaceId, RouterId};
use std::collections::BTreeSet;

/// The lane policies, in the order of [`LaneSurvey::rules`].
pub(crate) const RULES: [LanePolicy; 3] = [LanePolicy::Paper, LanePolicy::Spread, LanePolicy::Disjoint];

/// Number of lanes between two nodes, as in the MANET paper's table 3.
pub(crate) const LANES: usize = 3;

/// Limit of network size for planned lanes, since planning takes time for each router and destination in proportion to
/// the number of routers.
const MOST_PLANNED: usize = 64;

/// Results for the lanes between pairs of nodes at a distance of at least two hops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneSurvey {
    /// By policy, in the order paper, spread, disjoint.
    pub rules: [LanesApart; 3],
}

/// Pairs of lanes, and how many of them are disjoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LanesApart {
    /// Pairs of lanes that both reach the destination.
    pub pairs: u64,
    /// Of these, pairs without a common node.
    pub nodes_apart: u64,
    /// Of these, pairs without a common link.
    pub links_apart: u64,
}

impl LanesApart {
    /// The share of node-disjoint pairs; `None` without pairs.
    pub fn nodes_share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.nodes_apart as f64 / self.pairs as f64)
    }
    /// The share of link-disjoint pairs; `None` without pairs.
    pub fn links_share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.links_apart as f64 / self.pairs as f64)
    }
    fn add(&mut self, lanes: &[Vec<RouterId>]) {
        let nodes: Vec<BTreeSet<RouterId>> = lanes.iter().map(|lane| between(lane).iter().copied().collect()).collect();
        let count = Disjointness::of(&nodes);
        self.pairs += count.pairs as u64;
        self.nodes_apart += count.disjoint as u64;
        let links: Vec<BTreeSet<(RouterId, RouterId)>> = lanes.iter().map(|lane| links(lane)).collect();
        for (at, lane) in links.iter().enumerate() {
            self.links_apart += links[..at].iter().filter(|other| other.is_disjoint(lane)).count() as u64;
        }
    }
}

/// A route without its ends.
fn between(way: &[RouterId]) -> &[RouterId] {
    way.get(1..way.len().saturating_sub(1)).unwrap_or(&[])
}

/// The links of a route.
fn links(way: &[RouterId]) -> BTreeSet<(RouterId, RouterId)> {
    way.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect()
}

impl LaneSurvey {
    /// Surveys the lanes between random pairs of nodes.
    pub fn look(&mut self, world: &World, random: &mut RandomStream, pairs: usize) {
        let nodes = world.nodes() as u64;
        if nodes < 3 {
            return;
        }
        for _ in 0..pairs {
            let from = random.below(nodes);
            let to = (from + 1 + random.below(nodes - 1)) % nodes;
            self.look_between(world, NodeId(from as u32), NodeId(to as u32));
        }
    }
    /// Surveys the lanes between two nodes.
    pub(crate) fn look_between(&mut self, world: &World, from: NodeId, to: NodeId) {
        for (rule, sum) in RULES.into_iter().zip(&mut self.rules) {
            if rule == LanePolicy::Disjoint && world.nodes() > MOST_PLANNED {
                continue;
            }
            let lanes: Vec<_> = (1..=LANES).filter_map(|lane| way(world, rule, lane, from, to)).collect();
            // A neighbour is one link away; there is no choice.
            if lanes.iter().all(|lane| lane.len() > 2) {
                sum.add(&lanes);
            }
        }
    }
}

/// The routers that a lane passes, both ends included; `None` if it does not reach the destination.
pub(crate) fn way(world: &World, rule: LanePolicy, lane: usize, from: NodeId, to: NodeId) -> Option<Vec<RouterId>> {
    let mut way = vec![router_id(from)];
    let mut at = from;
    while at != to {
        let next = next_hop(world, rule, lane, at, to)?;
        way.push(next);
        at = node_of(next)?;
        // Databases can differ for a while, which can cause loops.
        if way.len() > world.nodes() {
            return None;
        }
    }
    Some(way)
}

/// The next hop of a lane at a node.
fn next_hop(world: &World, rule: LanePolicy, lane: usize, at: NodeId, to: NodeId) -> Option<RouterId> {
    let router = world.mesh_router(at)?;
    let route = router.routes().routers.get(&router_id(to))?;
    let settings = LaneSettings { paths: PathMode::Part, policy: rule, ..LaneSettings::default() };
    let interfaces: Vec<InterfaceId> = (1..=LANES as u32 + 1).map(InterfaceId).collect();
    let address = |router, lane: usize| Some(link_local(node_of(router)?, RadioId(lane as u8)).into());
    let plan = if rule == LanePolicy::Disjoint { router.plan_lanes(router_id(to), LANES) } else { Vec::new() };
    let planned = |lane: usize| plan.get(lane.checked_sub(1)?).copied().flatten();
    let routes = settings.planned_routes(&interfaces, &route.next_hops, router_id(to), address, planned);
    routes.iter().find(|route| route.lane == lane)?.next_hops.first().map(|hop| hop.router)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::paper::combination::Combination;
    use crate::mesh::paper::network::{self, Routes, WARM_UP};
    use crate::mesh::paper::{Case, Rates};
    use anabranch_policy::time::Instant;
    use anabranch_routing::lsa_fullness::LsaFullness;

    /// From M1 to M8: node-disjoint pairs of lanes, by policy.
    fn apart(fullness: LsaFullness) -> [u64; 3] {
        let mut case = Case::new(Combination::named("MPxM").unwrap(), Rates::HOMOGENEOUS, 1);
        case.routes = Routes::Routers { fullness };
        let mut built = network::build(&case).unwrap();
        built.world.run_until(Instant::ZERO + WARM_UP);
        let mut survey = LaneSurvey::default();
        survey.look_between(&built.world, NodeId(0), NodeId(7));
        assert!(survey.rules.iter().all(|rule| rule.pairs == 3));
        survey.rules.map(|rule| rule.nodes_apart)
    }

    #[test]
    fn on_the_papers_mesh_appendix_c_lets_two_of_three_lanes_meet_and_table_3_none() {
        // Lanes 2-5, 3-6 and 4-6; or 2-5, 3-6 and 4-7.
        assert_eq!(apart(LsaFullness::Full), [2, 3, 3]);
    }

    #[test]
    fn neighbours_have_no_lanes_to_look_at() {
        let mut built = network::build(&Case::new(Combination::named("MPxM").unwrap(), Rates::HOMOGENEOUS, 1)).unwrap();
        built.world.run_until(Instant::ZERO + WARM_UP);
        let mut survey = LaneSurvey::default();
        survey.look_between(&built.world, NodeId(0), NodeId(1));
        assert_eq!(survey, LaneSurvey::default());
    }

    #[test]
    fn links_are_common_where_two_ways_use_the_same_hop() {
        let way = |nodes: &[u32]| nodes.iter().map(|node| RouterId(*node)).collect::<Vec<_>>();
        let mut sum = LanesApart::default();
        // The first two meet at 6 and share the rest; the third is disjoint.
        sum.add(&[way(&[1, 2, 6, 8]), way(&[1, 3, 6, 8]), way(&[1, 4, 7, 8])]);
        assert_eq!(sum, LanesApart { pairs: 3, nodes_apart: 2, links_apart: 2 });
    }
}
