//! Several addresses of a node, routed by the routes of the first: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based
//! Data Delivery Over MANETs", IEEE Access 8, 2020, section V-A-1 and appendix C.
//!
//! The routing protocol runs on the first interface of each node (lane 0) only. The address of a node on lane X has the
//! next hops of its address on lane 0: all of them (full path), or one of them (part path), on the same interface
//! (virtual interfaces) or on interface X (real ones).
//!
//! The paper's equations 2 to 4 say `eth0` for every lane, which is what virtual interfaces do; its tables 5 and 6 count
//! packets on each interface, as with real ones. Its rule of which next hop a lane takes (appendix C) contradicts its
//! table 3, where lane 3 leads over M4 and M7: with two next hops, as M4 has, lane 3 takes the first, which is M6.
//! [`LanePolicy`] has both readings.

use crate::address::InterfaceId;
use crate::world::World;
use std::collections::BTreeMap;

/// Which interfaces the lanes leave on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interfaces {
    /// All on that of lane 0: equations 2 to 4 as printed.
    Virtual,
    /// Each on its own.
    Real,
}

/// Which next hops a lane has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paths {
    /// All that lane 0 has.
    Full,
    /// One of them.
    Part(LanePolicy),
}

/// Which one of the next hops, in order of their routers, a lane takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LanePolicy {
    /// Appendix C: of three or more lane X the X-th, of two the first, the second and the first again.
    Paper,
    /// Lane X of `lanes` beside lane 0 takes the one at floor((X - 1) n / lanes) of n: what table 3 shows.
    Spread {
        /// How many lanes there are beside lane 0; 0 counts as 1.
        lanes: u8,
    },
}

/// How lanes are routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneRules {
    /// Which interfaces they leave on.
    pub interfaces: Interfaces,
    /// Which next hops they have.
    pub paths: Paths,
}

impl LaneRules {
    /// The place of a lane's next hop among `count`; none if it has all, as lane 0 always does.
    pub fn place(self, lane: u8, count: usize) -> Option<usize> {
        let (Paths::Part(policy), Some(turn)) = (self.paths, usize::from(lane).checked_sub(1)) else { return None };
        let last = count.checked_sub(1)?;
        Some(match policy {
            LanePolicy::Paper => turn % count,
            LanePolicy::Spread { lanes } => (turn * count / usize::from(lanes.max(1))).min(last),
        })
    }
}

/// Which addresses are lanes of which others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    /// By address: the one of lane 0, and the lane.
    members: BTreeMap<InterfaceId, (InterfaceId, u8)>,
    rules: Option<LaneRules>,
}

impl Lanes {
    /// The address whose route is asked for: that of lane 0, or the address itself.
    pub(super) fn base(&self, destination: InterfaceId) -> InterfaceId {
        self.members.get(&destination).map_or(destination, |(base, _)| *base)
    }
    /// The lane of an address, and the rules.
    pub(super) fn of(&self, destination: InterfaceId) -> Option<(u8, LaneRules)> {
        Some((self.members.get(&destination)?.1, self.rules?))
    }
}

impl World {
    /// Lets the interface `interface` be lane `lane` of the node where `base` is lane 0. Routers need not know it.
    pub fn add_lane(&mut self, base: InterfaceId, interface: InterfaceId, lane: u8) {
        self.network.mesh.lanes.members.insert(interface, (base, lane));
    }
    /// How lanes are routed, at every node.
    pub fn set_lane_rules(&mut self, rules: LaneRules) {
        self.network.mesh.lanes.rules = Some(rules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(policy: LanePolicy, count: usize) -> Vec<Option<usize>> {
        let rules = LaneRules { interfaces: Interfaces::Real, paths: Paths::Part(policy) };
        (0..4).map(|lane| rules.place(lane, count)).collect()
    }

    #[test]
    fn appendix_c_takes_first_second_first_of_two_and_all_three_of_three() {
        assert_eq!(places(LanePolicy::Paper, 3), [None, Some(0), Some(1), Some(2)]);
        assert_eq!(places(LanePolicy::Paper, 2), [None, Some(0), Some(1), Some(0)]);
        assert_eq!(places(LanePolicy::Paper, 1), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(places(LanePolicy::Paper, 0), [None; 4]);
    }

    #[test]
    fn table_3_needs_lane_3_to_take_the_second_of_two() {
        let spread = LanePolicy::Spread { lanes: 3 };
        // M1 has M2, M3, M4; M2 has M5, M6; M3 has M5, M6, M7; M4 has M6, M7.
        assert_eq!(places(spread, 3), [None, Some(0), Some(1), Some(2)]);
        assert_eq!(places(spread, 2), [None, Some(0), Some(0), Some(1)]);
        assert_eq!(places(spread, 1), [None, Some(0), Some(0), Some(0)]);
    }
}
