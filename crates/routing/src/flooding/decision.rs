//! The rules of RFC 5614, 8: on which MANET interfaces an LSA is flooded, and how a duplicate is acknowledged.

use anabranch_wire::ospf::{LsaHeader, RouterId};

use crate::election::AdjConnectivity;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::interface::Interface;
use crate::interfaces::Interfaces;
use crate::neighborhood::{Level, Rank};

/// How an LSA was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The neighbour that sent it.
    pub from: NeighborHandle,
    /// Whether it was multicast.
    pub multicast: bool,
}

/// The decision for an LSA on an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Not flooded.
    Stay,
    /// Flooded.
    Flood,
    /// Flooded later, if one of these neighbours may still need it.
    Wait(Vec<RouterId>),
}

/// An LSA that is new in the database, and the inputs of the decision.
pub(crate) struct NewLsa<'a> {
    interfaces: &'a Interfaces,
    own: RouterId,
    header: &'a LsaHeader,
    arrival: Option<Arrival>,
    /// The neighbours that have received it from its sender, in order.
    covered: &'a [RouterId],
}

impl<'a> NewLsa<'a> {
    /// A received LSA, or without `arrival` one that was originated or aged out here.
    pub fn new(interfaces: &'a Interfaces, own: RouterId, header: &'a LsaHeader, arrival: Option<Arrival>) -> Self {
        let sender = arrival.filter(|arrival| arrival.multicast);
        let sender = sender.and_then(|arrival| interfaces.neighbor(arrival.from));
        let covered = sender.map_or(&[][..], |sender| &sender.manet.said.sets.bidirectional);
        Self { interfaces, own, header, arrival, covered }
    }

    fn is_covered(&self, router: RouterId) -> bool {
        self.covered.binary_search(&router).is_ok()
    }

    /// The bidirectional neighbours on an interface that are not known to have it.
    fn lacking(&self, interface: &Interface) -> Vec<RouterId> {
        let bidirectional = interface.neighbors.iter().filter(|(_, neighbor)| neighbor.is_bidirectional());
        let lacking = bidirectional.filter(|(router, neighbor)| {
            let ack = neighbor.acked.get(&self.header.key);
            let acknowledged = ack.is_some_and(|ack| ack.compare_instance(self.header).is_eq());
            let sent_it = self.arrival.is_some_and(|arrival| arrival.from.router == **router);
            !sent_it && !acknowledged && !self.is_covered(**router)
        });
        lacking.map(|(router, _)| *router).collect()
    }

    /// Steps 2 to 7 of RFC 5614, 8.1, for a MANET interface.
    pub fn decide(&self, handle: InterfaceHandle) -> Decision {
        let interface = &self.interfaces[handle];
        let (level, non_flooding) = (interface.selection.level, interface.selection.non_flooding);
        let received_here = self.arrival.is_some_and(|arrival| arrival.from.interface == handle);
        // Step 3; step 2 would have the same result.
        if received_here && level == Level::Other {
            return Decision::Stay;
        }
        // Step 2.
        let lacking = self.lacking(interface);
        if lacking.is_empty() {
            return Decision::Stay;
        }
        // Step 5.
        let Some(arrival) = self.arrival else { return Decision::Flood };
        if level == Level::Mdr && !non_flooding {
            return Decision::Flood;
        }
        // Step 4.
        if received_here {
            return Decision::Wait(lacking);
        }
        // Step 6, if it came in on a MANET interface; step 7.
        let receiving = &self.interfaces[arrival.from.interface];
        if receiving.manet().is_none() {
            return Decision::Flood;
        }
        let own = Rank { priority: interface.config.priority, level, id: self.own };
        let on_both = interface.neighbors.iter().filter(|(router, _)| receiving.neighbors.contains_key(router));
        let mut ranks = on_both.filter(|(router, _)| self.is_covered(**router)).map(|(router, one)| Rank {
            priority: one.priority,
            level: one.manet.said.level,
            id: *router,
        });
        if ranks.all(|rank| own > rank) { Decision::Flood } else { Decision::Wait(lacking) }
    }
}

/// Whether a duplicate that was sent to this router alone is acknowledged at once (RFC 5614, 8.2, rule 3a).
pub(crate) fn acknowledges_at_once(interface: &Interface) -> bool {
    let Some(manet) = interface.manet() else { return true };
    match (interface.selection.level, manet.election.adj_connectivity) {
        (Level::Mdr, _) | (_, AdjConnectivity::Full) | (Level::BackupMdr, AdjConnectivity::Biconnected) => true,
        (Level::Other | Level::BackupMdr, AdjConnectivity::Uniconnected)
        | (Level::Other, AdjConnectivity::Biconnected) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use crate::neighbor::NeighborState;
    use anabranch_policy::Instant;
    use anabranch_wire::ospf::InterfaceId;
    use std::net::Ipv6Addr;

    const HERE: InterfaceHandle = InterfaceHandle::FIRST;

    /// An interface of a router of this level with the neighbours 2, 3 and 4, of which 2 hears 3.
    fn interfaces(level: Level) -> Interfaces {
        let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
        interface.selection.level = level;
        for router in [2, 3, 4].map(RouterId) {
            interface.add_neighbor(Instant::ZERO, router, Ipv6Addr::UNSPECIFIED, None);
            interface.neighbors.get_mut(&router).unwrap().state = NeighborState::TwoWay;
        }
        interface.neighbors.get_mut(&RouterId(2)).unwrap().manet.said.sets.bidirectional = vec![RouterId(3)];
        let mut interfaces = Interfaces::default();
        interfaces.add(interface);
        interfaces
    }

    fn decide(interfaces: &Interfaces, arrival: Option<(u32, bool)>) -> Decision {
        let from = |router| NeighborHandle { interface: HERE, router: RouterId(router) };
        let arrival = arrival.map(|(router, multicast)| Arrival { from: from(router), multicast });
        let header = LsaHeader::default();
        NewLsa::new(interfaces, RouterId(1), &header, arrival).decide(HERE)
    }

    #[test]
    fn rfc5614_8_1_mdrs_flood_backups_wait_and_others_stay() {
        let waits = |routers: &[u32]| Decision::Wait(routers.iter().copied().map(RouterId).collect());
        assert_eq!(decide(&interfaces(Level::Mdr), Some((2, true))), Decision::Flood);
        assert_eq!(decide(&interfaces(Level::BackupMdr), Some((2, true))), waits(&[4]));
        assert_eq!(decide(&interfaces(Level::BackupMdr), Some((2, false))), waits(&[3, 4]));
        assert_eq!(decide(&interfaces(Level::Other), Some((2, true))), Decision::Stay);
        // The router's own LSAs are always flooded.
        assert_eq!(decide(&interfaces(Level::Other), None), Decision::Flood);
    }

    #[test]
    fn rfc5614_8_1_nobody_floods_what_all_have() {
        let mut interfaces = interfaces(Level::Mdr);
        let header = LsaHeader::default();
        interfaces[HERE].neighbors.get_mut(&RouterId(4)).unwrap().acked.insert(header.key, header);
        assert_eq!(decide(&interfaces, Some((2, true))), Decision::Stay);
        assert_eq!(decide(&interfaces, Some((2, false))), Decision::Flood);
    }
}
