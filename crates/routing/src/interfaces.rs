//! All interfaces of the router with their neighbours.

use core::ops::{Index, IndexMut};

use anabranch_policy::Instant;
use anabranch_wire::ospf::{InterfaceId, LsaHeader};

use crate::database::Place;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::interface::Interface;
use crate::neighbor::Neighbor;

/// The interfaces, in the order in which they were added. None is ever removed.
#[derive(Default)]
pub(crate) struct Interfaces {
    all: Vec<Interface>,
}

impl Interfaces {
    pub fn add(&mut self, interface: Interface) {
        self.all.push(interface);
    }

    /// The interface of a number.
    pub fn find(&self, id: InterfaceId) -> Option<InterfaceHandle> {
        self.all.iter().position(|one| one.config.id == id).map(InterfaceHandle::new)
    }

    pub fn handles(&self) -> impl Iterator<Item = InterfaceHandle> + use<> {
        (0..self.all.len()).map(InterfaceHandle::new)
    }

    pub fn iter(&self) -> impl Iterator<Item = (InterfaceHandle, &Interface)> {
        self.handles().zip(&self.all)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (InterfaceHandle, &mut Interface)> {
        self.handles().zip(&mut self.all)
    }

    /// The interfaces on which an LSA is flooded.
    pub fn eligible(&self, place: Place) -> impl Iterator<Item = &Interface> {
        self.iter().filter(move |(handle, _)| place.is_eligible(*handle)).map(|(_, interface)| interface)
    }

    fn eligible_mut(&mut self, place: Place) -> impl Iterator<Item = &mut Interface> {
        self.iter_mut().filter(move |(handle, _)| place.is_eligible(*handle)).map(|(_, interface)| interface)
    }

    pub fn neighbor(&self, at: NeighborHandle) -> Option<&Neighbor> {
        self.all.get(at.interface.index())?.neighbors.get(&at.router)
    }

    pub fn neighbor_mut(&mut self, at: NeighborHandle) -> Option<&mut Neighbor> {
        self.all.get_mut(at.interface.index())?.neighbors.get_mut(&at.router)
    }

    /// The neighbours in state Exchange or Loading.
    pub fn exchanging(&self) -> impl Iterator<Item = NeighborHandle> {
        self.iter().flat_map(|(interface, one)| {
            let exchanging = one.adjacent().filter(|(_, neighbor)| neighbor.is_fetching());
            exchanging.map(move |(router, _)| NeighborHandle { interface, router })
        })
    }

    /// Removes an LSA from all retransmission lists.
    pub fn stop_retransmitting(&mut self, place: Place) {
        for interface in self.eligible_mut(place) {
            interface.for_each_adjacent(|_, neighbor| {
                neighbor.retransmissions.remove(place.key);
            });
        }
    }

    /// Removes an LSA from all request lists.
    pub fn stop_requesting(&mut self, place: Place) {
        for interface in self.eligible_mut(place) {
            interface.for_each_adjacent(|_, neighbor| {
                neighbor.exchange.requests.remove(&place.key);
            });
        }
    }

    /// Removes instances from the Acked LSA lists that are not newer than `own`, the database's.
    pub fn forget_acknowledged(&mut self, own: &LsaHeader) {
        for interface in &mut self.all {
            interface.for_each_adjacent(|_, neighbor| {
                if neighbor.acked.get(&own.key).is_some_and(|ack| ack.compare_instance(own).is_le()) {
                    neighbor.acked.remove(&own.key);
                }
            });
        }
    }

    /// Whether an LSA is still to be sent to, or acknowledged by, any neighbour.
    pub fn is_awaited(&self, place: Place) -> bool {
        self.eligible(place).any(|interface| {
            interface.flood.contains(place.key)
                || interface.adjacent().any(|(_, neighbor)| neighbor.retransmissions.contains(place.key))
        })
    }

    /// The next expiry of a timer of an interface or neighbour, or slightly earlier.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(Interface::next_timeout).min()
    }
}

impl Index<InterfaceHandle> for Interfaces {
    type Output = Interface;

    fn index(&self, handle: InterfaceHandle) -> &Interface {
        self.all.get(handle.index()).expect("an interface is never removed")
    }
}

impl IndexMut<InterfaceHandle> for Interfaces {
    fn index_mut(&mut self, handle: InterfaceHandle) -> &mut Interface {
        self.all.get_mut(handle.index()).expect("an interface is never removed")
    }
}

/// A neighbour that must be known: it sent the packet that is handled, or its timer expired.
impl Index<NeighborHandle> for Interfaces {
    type Output = Neighbor;

    fn index(&self, at: NeighborHandle) -> &Neighbor {
        self.neighbor(at).expect("a neighbour is forgotten by its own timer or with its interface only")
    }
}

impl IndexMut<NeighborHandle> for Interfaces {
    fn index_mut(&mut self, at: NeighborHandle) -> &mut Neighbor {
        self.neighbor_mut(at).expect("a neighbour is forgotten by its own timer or with its interface only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::InterfaceConfig;
    use anabranch_wire::ospf::{LsaKey, LsaType, RouterId};
    use std::net::Ipv6Addr;

    /// Two interfaces with a neighbour in state Exchange each, which has this LSA on its retransmission and Acked LSA
    /// lists.
    fn interfaces(header: &LsaHeader) -> Interfaces {
        let mut interfaces = Interfaces::default();
        for id in [4, 5] {
            let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(id), Ipv6Addr::UNSPECIFIED));
            interface.add_adjacent(Instant::ZERO, RouterId(2));
            interface.for_each_adjacent(|_, neighbor| {
                neighbor.retransmissions.add(header.key, Instant::ZERO, anabranch_policy::Duration::ZERO);
                neighbor.acked.insert(header.key, *header);
            });
            interfaces.add(interface);
        }
        interfaces
    }

    #[test]
    fn an_interface_is_found_by_its_number_and_keeps_its_handle() {
        let interfaces = interfaces(&LsaHeader::default());
        let handle = interfaces.find(InterfaceId(5)).unwrap();
        assert_eq!((handle.index(), interfaces[handle].config.id), (1, InterfaceId(5)));
        assert_eq!(interfaces.find(InterfaceId(6)), None);
        assert_eq!(interfaces.exchanging().map(|at| at.interface.index()).collect::<Vec<usize>>(), [0, 1]);
        let unknown = NeighborHandle { interface: handle, router: RouterId(3) };
        assert!(interfaces.neighbor(unknown).is_none());
    }

    #[test]
    fn an_lsa_that_stays_on_a_link_concerns_its_interface_only() {
        let header = LsaHeader { key: LsaKey { kind: LsaType::LINK, ..LsaKey::default() }, ..LsaHeader::default() };
        let mut interfaces = interfaces(&header);
        let first = Place::on(InterfaceHandle::FIRST, header.key).unwrap();
        let second = Place::on(interfaces.find(InterfaceId(5)).unwrap(), header.key).unwrap();
        interfaces.stop_retransmitting(first);
        assert!(!interfaces.is_awaited(first) && interfaces.is_awaited(second));
    }

    #[test]
    fn an_acknowledgment_of_a_newer_instance_is_remembered() {
        let header = LsaHeader::default();
        let acked = |interfaces: &Interfaces| {
            interfaces.iter().any(|(_, one)| one.adjacent().any(|(_, n)| !n.acked.is_empty()))
        };
        let newer = LsaHeader { sequence: header.sequence.next().unwrap(), ..header };
        let mut interfaces = interfaces(&newer);
        interfaces.forget_acknowledged(&header);
        assert!(acked(&interfaces));
        interfaces.forget_acknowledged(&newer);
        assert!(!acked(&interfaces));
    }
}
