//! Routes over several interfaces: the next hop of a destination for each interface.
//!
//! Source: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020, section
//! V-A-1, equations 1 to 4, and appendix C. A network has as many channels as its nodes have interfaces; interface X of node
//! Y is called e(X). Routes are computed for e(0), and copied from there for the others: a *lane* is the way over channel X.
//! To e(0) of a destination all next hops of equal cost are used, in either variant.
//!
//! Where the paper contradicts itself or is silent (the first value of each setting is the default):
//! - `interfaces` real | virtual. By equations 3 and 4 packets for e(1) to e(3) leave on eth0 as well, which fits
//!   virtual interfaces (the combination MFm) only: where nodes have four real ones (MFxM, MPxM), the paper's counts of
//!   packets per interface show that these were used. Real: by interface X, to the address of interface X of the next
//!   hop.
//! - `policy` spread | paper | disjoint. With two next hops, in appendix C lane 3 has the first one. At M4, with M6 and M7, that
//!   is M6, where Table 3 has M7; on the way back M7 takes M3 where Table 3 has M4. Spread: next hop number
//!   (X - 1) n / lanes of n, rounded down, which is Table 3. For more than three next hops or lanes appendix C says nothing;
//!   its rule goes on as (X - 1) mod n. Disjoint is ours, see [`LanePlan`](crate::lane_plan::LanePlan): routers
//!   take into account where the lanes go on to.
//! - `addresses` host_prefixes | arithmetic. Appendix C computes 112.26.X.5 from 112.26.0.5. Here every router
//!   advertises the addresses of all its interfaces, so nothing has to be computed.
//!
//! Every choice is one of the next hops of equal cost, so packets get nearer with every hop, and no policy causes a
//! loop. Lanes of one destination can still meet in a router, as each router chooses separately: [`Disjointness`]
//! counts that.

use crate::routing_table::NextHop;
use anabranch_wire::ospf::{InterfaceId, RouterId};
use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;

/// How many next hops are used for the interfaces other than e(0).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PathMode {
    /// "Full path", the first improvement (equation 3): all.
    Full,
    /// "Part path", the second (equation 4): one.
    #[default]
    Part,
}

/// Which of several next hops a lane uses on a part path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LanePolicy {
    /// So that neighbouring lanes spread over all next hops.
    #[default]
    Spread,
    /// Appendix C: in turn.
    Paper,
    /// As planned for the whole network, or where there is no plan, as spread.
    Disjoint,
}

/// The interface by which packets of lanes other than the first leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LaneInterfaces {
    /// Each lane by its own.
    #[default]
    Real,
    /// All by e(0), as equations 3 and 4 are printed.
    Virtual,
}

/// How the addresses of a router's other interfaces are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LaneAddresses {
    /// It advertises them.
    #[default]
    HostPrefixes,
    /// The third byte of the IPv4 address of e(0), plus X; an IPv6 address has no such byte, so no lanes.
    Arithmetic,
}

/// Settings of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneSettings {
    pub paths: PathMode,
    pub policy: LanePolicy,
    pub interfaces: LaneInterfaces,
    pub addresses: LaneAddresses,
}

/// A route to one interface of a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneRoute {
    /// Number of the interface, X.
    pub lane: usize,
    /// Its address.
    pub destination: IpAddr,
    /// Never empty.
    pub next_hops: Vec<NextHop>,
}

impl LaneSettings {
    /// The routes to all interfaces of `destination`. `interfaces` are the router's own, e(0) first; `next_hops` those of
    /// the route to e(0), in the order of their Router IDs. `address` tells the address of an interface of a router.
    ///
    /// A lane whose next hops have no such interface uses e(0): no route has a next hop that does not exist.
    pub fn routes(
        &self,
        interfaces: &[InterfaceId],
        next_hops: &[NextHop],
        destination: RouterId,
        address: impl Fn(RouterId, usize) -> Option<IpAddr>,
    ) -> Vec<LaneRoute> {
        self.planned_routes(interfaces, next_hops, destination, address, |_| None)
    }

    /// The same; with policy disjoint, `planned` returns the next hop of each lane from 1 on.
    pub fn planned_routes(
        &self,
        interfaces: &[InterfaceId],
        next_hops: &[NextHop],
        destination: RouterId,
        address: impl Fn(RouterId, usize) -> Option<IpAddr>,
        planned: impl Fn(usize) -> Option<RouterId>,
    ) -> Vec<LaneRoute> {
        let address = |router, lane| match self.addresses {
            LaneAddresses::HostPrefixes => address(router, lane),
            LaneAddresses::Arithmetic => address(router, 0).and_then(|first| by_arithmetic(first, lane)),
        };
        let lanes = interfaces.len().saturating_sub(1);
        let route = |(lane, interface): (usize, &InterfaceId)| {
            let to = address(destination, lane)?;
            let mut chosen = self.next_hops_of(lane, *interface, next_hops, &address);
            if chosen.is_empty() {
                chosen = next_hops.to_vec();
            }
            if lane > 0 && self.paths == PathMode::Part {
                let plan = || planned(lane).filter(|_| self.policy == LanePolicy::Disjoint);
                let by_plan = plan().and_then(|router| chosen.iter().find(|hop| hop.router == router)).copied();
                chosen = by_plan.or_else(|| self.choose(lane, lanes, &chosen)).into_iter().collect();
            }
            Some(LaneRoute { lane, destination: to, next_hops: chosen }).filter(|route| !route.next_hops.is_empty())
        };
        interfaces.iter().enumerate().filter_map(route).collect()
    }

    /// The next hops that a lane may take, on its interface.
    fn next_hops_of(
        &self,
        lane: usize,
        interface: InterfaceId,
        next_hops: &[NextHop],
        address: &impl Fn(RouterId, usize) -> Option<IpAddr>,
    ) -> Vec<NextHop> {
        if lane == 0 || self.interfaces == LaneInterfaces::Virtual {
            return next_hops.to_vec();
        }
        let on_lane =
            |hop: &NextHop| Some(NextHop { router: hop.router, interface, address: address(hop.router, lane)? });
        next_hops.iter().filter_map(on_lane).collect()
    }

    /// The one next hop of a lane, from 1 to `lanes`.
    fn choose(&self, lane: usize, lanes: usize, next_hops: &[NextHop]) -> Option<NextHop> {
        let index = match self.policy {
            LanePolicy::Paper => (lane - 1) % next_hops.len().max(1),
            LanePolicy::Spread | LanePolicy::Disjoint => (lane - 1) * next_hops.len() / lanes.max(1),
        };
        next_hops.get(index).copied()
    }
}

/// Appendix C, lines 4 to 8: 112.26.X.5 of 112.26.0.5.
fn by_arithmetic(first: IpAddr, lane: usize) -> Option<IpAddr> {
    match (first, u8::try_from(lane)) {
        (IpAddr::V4(first), Ok(lane)) => {
            let [a, b, c, d] = first.octets();
            Some(Ipv4Addr::new(a, b, c.checked_add(lane)?, d).into())
        }
        _ => None,
    }
}

/// How disjoint the lanes between two routers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Disjointness {
    /// Pairs of lanes.
    pub pairs: usize,
    /// Pairs without a common router in between.
    pub disjoint: usize,
    /// Routers that are on more than one lane.
    pub shared: usize,
}

impl Disjointness {
    /// Of the routers on each lane, without the two ends.
    pub fn of(lanes: &[BTreeSet<RouterId>]) -> Self {
        let mut count = Self::default();
        let mut seen = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for (index, lane) in lanes.iter().enumerate() {
            count.pairs += index;
            count.disjoint += lanes.iter().take(index).filter(|other| other.is_disjoint(lane)).count();
            shared.extend(lane.intersection(&seen).copied());
            seen.extend(lane.iter().copied());
        }
        count.shared = shared.len();
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LaneInterfaces::{Real, Virtual};
    use LanePolicy::{Disjoint, Paper, Spread};
    use PathMode::{Full, Part};

    const INTERFACES: [InterfaceId; 4] = [InterfaceId(1), InterfaceId(2), InterfaceId(3), InterfaceId(4)];

    /// Equation 1: 112.26.X.Y.
    fn address(router: RouterId, lane: usize) -> Option<IpAddr> {
        (lane < 4).then(|| Ipv4Addr::new(112, 26, lane as u8, router.0 as u8).into())
    }

    fn hops(routers: &[u32]) -> Vec<NextHop> {
        let hop = |router: &u32| NextHop {
            router: RouterId(*router),
            interface: INTERFACES[0],
            address: address(RouterId(*router), 0).unwrap(),
        };
        routers.iter().map(hop).collect()
    }

    /// Routes to M8 as the paper writes them.
    fn printed(settings: LaneSettings, next_hops: &[u32]) -> Vec<String> {
        let line = |route: &LaneRoute, hop: &NextHop| {
            format!("via {} eth{} to {}", hop.address, hop.interface.0 - 1, route.destination)
        };
        let routes = settings.routes(&INTERFACES, &hops(next_hops), RouterId(8), address);
        routes.iter().flat_map(|route| route.next_hops.iter().map(move |hop| line(route, hop))).collect()
    }

    fn settings(paths: PathMode, policy: LanePolicy, interfaces: LaneInterfaces) -> LaneSettings {
        LaneSettings { paths, policy, interfaces, addresses: LaneAddresses::HostPrefixes }
    }

    #[test]
    fn virtual_interfaces_have_the_entries_of_equations_2_to_4_to_the_letter() {
        // M1 to M8 by M2, M3, M4: 3 + 9 entries, all on eth0.
        let first = [
            "via 112.26.0.2 eth0 to 112.26.0.8",
            "via 112.26.0.3 eth0 to 112.26.0.8",
            "via 112.26.0.4 eth0 to 112.26.0.8",
        ];
        let full = printed(settings(Full, Paper, Virtual), &[2, 3, 4]);
        assert_eq!(full.len(), 3 + 9);
        assert_eq!(full[..3], first);
        assert_eq!(full[3..5], ["via 112.26.0.2 eth0 to 112.26.1.8", "via 112.26.0.3 eth0 to 112.26.1.8"]);
        // 3 + 3 entries: Y = X + 1.
        let part = printed(settings(Part, Paper, Virtual), &[2, 3, 4]);
        assert_eq!(part[..3], first);
        assert_eq!(
            part[3..],
            [
                "via 112.26.0.2 eth0 to 112.26.1.8",
                "via 112.26.0.3 eth0 to 112.26.2.8",
                "via 112.26.0.4 eth0 to 112.26.3.8"
            ]
        );
    }

    #[test]
    fn real_interfaces_take_their_own_channel() {
        let part = printed(settings(Part, Spread, Real), &[2, 3, 4]);
        assert_eq!(
            part[3..],
            [
                "via 112.26.1.2 eth1 to 112.26.1.8",
                "via 112.26.2.3 eth2 to 112.26.2.8",
                "via 112.26.3.4 eth3 to 112.26.3.8"
            ]
        );
        assert_eq!(printed(settings(Full, Spread, Real), &[2, 3, 4]).len(), 3 + 9);
    }

    /// Which next hops the lanes 1 to 3 take.
    fn taken(policy: LanePolicy, next_hops: &[u32]) -> Vec<u32> {
        let routes = settings(Part, policy, Real).routes(&INTERFACES, &hops(next_hops), RouterId(8), address);
        routes.iter().skip(1).map(|route| route.next_hops[0].router.0).collect()
    }

    #[test]
    fn by_appendix_c_three_lanes_use_the_first_second_first_of_two_next_hops() {
        assert_eq!(taken(Paper, &[2, 3, 4]), [2, 3, 4]);
        assert_eq!(taken(Paper, &[6, 7]), [6, 7, 6]);
        assert_eq!(taken(Paper, &[5]), [5, 5, 5]);
        assert_eq!(taken(Spread, &[2, 3, 4]), [2, 3, 4]);
        assert_eq!(taken(Spread, &[6, 7]), [6, 6, 7]);
        assert_eq!(taken(Spread, &[5]), [5, 5, 5]);
        assert_eq!(taken(Spread, &[2, 3, 4, 5, 6, 7]), [2, 4, 6]);
    }

    #[test]
    fn a_planned_next_hop_is_taken_if_it_is_one_of_equal_cost() {
        let taken = |policy, planned: u32| {
            let settings = settings(Part, policy, Real);
            let planned = |_| Some(RouterId(planned));
            let routes = settings.planned_routes(&INTERFACES, &hops(&[6, 7]), RouterId(8), address, planned);
            routes.iter().skip(1).map(|route| route.next_hops[0].router.0).collect::<Vec<_>>()
        };
        assert_eq!(taken(Disjoint, 7), [7, 7, 7]);
        assert_eq!(taken(Disjoint, 5), [6, 6, 7]);
        assert_eq!(taken(Spread, 7), [6, 6, 7]);
    }

    #[test]
    fn arithmetic_makes_the_addresses_that_the_paper_makes() {
        let first = |router: RouterId, lane| address(router, lane).filter(|_| lane == 0);
        let settings = LaneSettings { addresses: LaneAddresses::Arithmetic, ..LaneSettings::default() };
        let by_arithmetic = settings.routes(&INTERFACES, &hops(&[2, 3, 4]), RouterId(8), first);
        assert_eq!(by_arithmetic, LaneSettings::default().routes(&INTERFACES, &hops(&[2, 3, 4]), RouterId(8), address));
        // Without it, a router that advertises one address has one lane.
        assert_eq!(LaneSettings::default().routes(&INTERFACES, &hops(&[2, 3, 4]), RouterId(8), first).len(), 1);
    }

    #[test]
    fn addresses_need_not_follow_any_pattern() {
        let odd = |router: RouterId, lane: usize| -> Option<IpAddr> {
            Some(Ipv4Addr::from(0x0a00_0000 + (router.0 * 7919 + lane as u32 * 104_729) % 65_536).into())
        };
        let routes = LaneSettings::default().routes(&INTERFACES, &hops(&[2, 3, 4]), RouterId(8), odd);
        let third = &routes[3];
        assert_eq!(
            (Some(third.destination), third.next_hops[0].address),
            (odd(RouterId(8), 3), odd(RouterId(4), 3).unwrap())
        );
    }

    #[test]
    fn a_lane_that_no_next_hop_has_an_interface_for_goes_by_the_first_interface() {
        // Of the next hops only M3 has an e(2), and none an e(3).
        let some = |router: RouterId, lane: usize| match (router.0, lane) {
            (8, _) | (_, 0 | 1) | (3, 2) => address(router, lane),
            _ => None,
        };
        let routes = settings(Full, Spread, Real).routes(&INTERFACES, &hops(&[2, 3, 4]), RouterId(8), some);
        let shape = |route: &LaneRoute| {
            (route.lane, route.next_hops.len(), route.next_hops.iter().map(|hop| hop.interface.0).max().unwrap())
        };
        assert_eq!(routes.iter().map(shape).collect::<Vec<_>>(), [(0, 3, 1), (1, 3, 2), (2, 1, 3), (3, 3, 1)]);
        // No next hop at all is no route.
        assert!(LaneSettings::default().routes(&INTERFACES, &[], RouterId(8), address).is_empty());
    }

    #[test]
    fn lanes_that_meet_are_counted() {
        let lane = |routers: &[u32]| routers.iter().map(|router| RouterId(*router)).collect();
        assert_eq!(
            Disjointness::of(&[lane(&[2, 5]), lane(&[3, 6]), lane(&[4, 7])]),
            Disjointness { pairs: 3, disjoint: 3, shared: 0 }
        );
        assert_eq!(
            Disjointness::of(&[lane(&[2, 6]), lane(&[3, 6]), lane(&[4, 7])]),
            Disjointness { pairs: 3, disjoint: 2, shared: 1 }
        );
        assert_eq!(
            Disjointness::of(&[lane(&[2, 6]), lane(&[3, 6]), lane(&[4, 6])]),
            Disjointness { pairs: 3, disjoint: 0, shared: 1 }
        );
    }
}
