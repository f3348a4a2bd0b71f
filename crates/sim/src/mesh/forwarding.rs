//! Forwarding at a node: a table from destinations to weighted sets of next hops, and the choice among them by the
//! packet's flow.
//!
//! The choice is RFC 2992's hash-threshold: the space of a hash over addresses and ports is divided among the next hops
//! in proportion to their weights, so that a flow keeps its path and a change of weights moves only flows near a
//! border. Each node salts the hash, or flows that were split once would never be split again.

use super::ids::RadioId;
use crate::address::InterfaceId;
use crate::radio::StationId;
use crate::trace_hash::Digest;

/// A weighted next hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NextHop {
    /// The sending radio.
    pub radio: RadioId,
    /// The receiving station on that radio's channel.
    pub station: StationId,
    /// Its share of the flows, in proportion to the other weights of the set; 0: unused while another weight is above
    /// 0.
    pub weight: u32,
}

#[derive(Clone, Debug, Default)]
pub struct ForwardingTable {
    /// By destination.
    ways: Vec<Box<[NextHop]>>,
}

impl ForwardingTable {
    /// Replaces the next hops to a destination; an empty list removes the route.
    pub fn set(&mut self, destination: InterfaceId, hops: &[NextHop]) {
        if self.ways.len() <= destination.index() {
            if hops.is_empty() {
                return;
            }
            self.ways.resize_with(destination.index() + 1, Box::default);
        }
        self.ways[destination.index()] = hops.into();
    }
    /// Removes all routes.
    pub fn forget(&mut self) {
        self.ways.clear();
    }
    /// The next hops to a destination; empty: no route.
    pub fn hops(&self, destination: InterfaceId) -> &[NextHop] {
        self.ways.get(destination.index()).map_or(&[], |hops| hops)
    }
    /// The next hop of a flow with this hash.
    pub fn choose(&self, destination: InterfaceId, flow: u32) -> Option<NextHop> {
        choose(self.hops(destination), flow)
    }
}

/// The next hop among `hops` of a flow with this hash.
pub fn choose(hops: &[NextHop], flow: u32) -> Option<NextHop> {
    let (first, rest) = hops.split_first()?;
    if rest.is_empty() {
        return Some(*first);
    }
    let total: u64 = hops.iter().map(|hop| u64::from(hop.weight)).sum();
    if total == 0 {
        return hops.get(((u64::from(flow) * hops.len() as u64) >> 32) as usize).copied();
    }
    // The high half of a product maps the 32 bits of the hash onto the weights; their sum is below 2^40.
    let mut place = ((u128::from(flow) * u128::from(total)) >> 32) as u64;
    hops.iter().copied().find(|hop| {
        let here = place < u64::from(hop.weight);
        place = place.saturating_sub(u64::from(hop.weight));
        here
    })
}

/// The hash of a flow: source, destination, and both ports in one word (0 without ports), with a node's salt.
pub(crate) fn flow_hash(salt: u64, source: InterfaceId, destination: InterfaceId, ports: u32) -> u32 {
    let mut digest = Digest::default();
    digest.add(salt);
    digest.add(u64::from(source.0) << 32 | u64::from(destination.0));
    digest.add(u64::from(ports));
    (digest.value() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(station: u32, weight: u32) -> NextHop {
        NextHop { radio: RadioId(0), station: StationId(station), weight }
    }

    #[test]
    fn a_set_is_divided_in_proportion_to_its_weights() {
        // Thresholds at a quarter, 2^30, and at three quarters, 3 * 2^30.
        let hops = [hop(5, 1), hop(6, 2), hop(7, 1)];
        let at = |flow| choose(&hops, flow).map(|hop| hop.station.0);
        assert_eq!((at(0), at((1 << 30) - 1)), (Some(5), Some(5)));
        assert_eq!((at(1 << 30), at((3 << 30) - 1)), (Some(6), Some(6)));
        assert_eq!((at(3 << 30), at(u32::MAX)), (Some(7), Some(7)));
    }

    #[test]
    fn a_weight_of_zero_gets_nothing_unless_all_are_zero() {
        let hops = [hop(1, 0), hop(2, 3)];
        assert!((0..1000).all(|step| choose(&hops, step * 4_000_000).is_some_and(|hop| hop.station.0 == 2)));
        let hops = [hop(1, 0), hop(2, 0)];
        assert_eq!(choose(&hops, 0).map(|hop| hop.station.0), Some(1));
        assert_eq!(choose(&hops, u32::MAX).map(|hop| hop.station.0), Some(2));
        assert_eq!(choose(&[hop(9, 0)], 77).map(|hop| hop.station.0), Some(9));
        assert_eq!(choose(&[], 77), None);
    }

    #[test]
    fn flows_spread_evenly_and_differently_at_each_node() {
        let hops = [hop(0, 1), hop(1, 1), hop(2, 1)];
        let split = |salt: u64| {
            let way =
                |port| choose(&hops, flow_hash(salt, InterfaceId(1), InterfaceId(2), port)).map(|hop| hop.station.0);
            (0..3000).map(way).collect::<Vec<_>>()
        };
        let (one, other) = (split(1), split(2));
        for ways in [&one, &other] {
            for station in 0..3 {
                let count = ways.iter().filter(|way| **way == Some(station)).count();
                assert!((900..1100).contains(&count), "{count}");
            }
        }
        let alike = one.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!((900..1100).contains(&alike), "{alike}");
    }

    #[test]
    fn a_table_forgets_what_is_set_to_nothing() {
        let mut table = ForwardingTable::default();
        table.set(InterfaceId(3), &[]);
        assert_eq!(table.hops(InterfaceId(3)), []);
        table.set(InterfaceId(3), &[hop(1, 1)]);
        assert_eq!(table.choose(InterfaceId(3), 0), Some(hop(1, 1)));
        table.set(InterfaceId(3), &[]);
        assert_eq!(table.choose(InterfaceId(3), 0), None);
    }
}
