//! Several addresses of a node, routed by the routes of the first, as described in [`anabranch_routing::lanes`]: the
//! routing protocol runs on the first radio of each node, and the other addresses follow it.

use super::ids::{NodeId, RadioId};
use super::naming::{interface_id, link_local, node_of};
use crate::address::InterfaceId;
use anabranch_routing::lanes::{LaneInterfaces, LanePolicy, LaneSettings};
use anabranch_routing::{NextHop, Router};
use anabranch_wire::ospf::RouterId;
use std::collections::BTreeMap;

/// Which addresses are lanes of which others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    /// By address: the address of lane 0, and the lane.
    pub(super) members: BTreeMap<InterfaceId, (InterfaceId, usize)>,
    /// Number of lanes, lane 0 included.
    pub(super) count: usize,
    pub(super) settings: LaneSettings,
}

impl Lanes {
    /// The address whose route is used: that of lane 0, or the address itself.
    pub(super) fn base(&self, destination: InterfaceId) -> InterfaceId {
        self.members.get(&destination).map_or(destination, |(base, _)| *base)
    }

    /// The next hops of a node's router to an address of a lane, derived from those to its base address; `radios` is
    /// the number of a node's radios.
    pub(super) fn next_hops_to(
        &self,
        router: &Router,
        destination: InterfaceId,
        (to, hops): (RouterId, &[NextHop]),
        radios: impl Fn(NodeId) -> usize,
    ) -> Vec<NextHop> {
        let Some((_, lane)) = self.members.get(&destination) else { return hops.to_vec() };
        let has_radio =
            |node: NodeId, lane: usize| self.settings.interfaces == LaneInterfaces::Virtual || lane < radios(node);
        let plan = match self.settings.policy {
            LanePolicy::Disjoint => router.plan_lanes(to, self.count.saturating_sub(1)),
            LanePolicy::Spread | LanePolicy::Paper => Vec::new(),
        };
        let planned = |lane: usize| plan.get(lane.checked_sub(1)?).copied().flatten();
        next_hops(&self.settings, (*lane, self.count), (to, hops), has_radio, planned)
    }
}

/// The next hops of a lane (out of how many lanes) to a destination, derived from those of lane 0; `has_radio` says
/// which nodes have a radio of a lane, `planned` holds the next hops of planned lanes.
pub(super) fn next_hops(
    settings: &LaneSettings,
    (lane, count): (usize, usize),
    (to, hops): (RouterId, &[NextHop]),
    has_radio: impl Fn(NodeId, usize) -> bool,
    planned: impl Fn(usize) -> Option<RouterId>,
) -> Vec<NextHop> {
    let radio = |lane: usize| RadioId(u8::try_from(lane).unwrap_or(u8::MAX));
    let interfaces: Vec<_> = (0..count.max(1)).map(|lane| interface_id(radio(lane))).collect();
    let address = |router, lane| {
        let node = node_of(router)?;
        // The destination has an address on every lane, or it would not be looked up.
        (router == to || has_radio(node, lane)).then(|| link_local(node, radio(lane)).into())
    };
    let routes = settings.planned_routes(&interfaces, hops, to, address, planned);
    routes.into_iter().find(|route| route.lane == lane).map_or_else(Vec::new, |route| route.next_hops)
}
