//! Identifiers of the host's addresses: those that path managers see, and that are sent to peers (RFC 8684, section
//! 3.4.1).

use crate::event::Interface;
use anabranch_policy::ids::AddressId;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// An address.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: AddressId,
    up: bool,
    /// Nothing new begins there.
    deprecated: bool,
    /// Where it was when it was last up.
    interface: Option<Interface>,
}

/// The addresses, each with an identifier from 1 to 255. 0 means the address of an initial subflow, so none has it.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    known: BTreeMap<IpAddr, Known>,
}

impl Addresses {
    /// The identifier of an address, allotted if it has none; none if all 255 are taken.
    pub fn id(&mut self, address: IpAddr) -> Option<AddressId> {
        if let Some(known) = self.known.get(&address) {
            return Some(known.id);
        }
        let free = |id: &u8| !self.known.values().any(|known| known.id.0 == *id);
        let id = AddressId((1..=u8::MAX).find(free)?);
        self.known.insert(address, Known { id, up: false, deprecated: false, interface: None });
        Some(id)
    }

    /// The address came up: its identifier, unless it was up already or there is none left.
    pub fn raise(&mut self, address: IpAddr, interface: Interface) -> Option<AddressId> {
        let id = self.id(address)?;
        let known = self.known.get_mut(&address)?;
        known.interface = Some(interface);
        known.deprecated = false;
        (!core::mem::replace(&mut known.up, true)).then_some(id)
    }

    /// The address went down: its identifier, unless it was down already. It is kept for the subflows that still have
    /// the address, until [`Addresses::forget`].
    pub fn lower(&mut self, address: IpAddr) -> Option<AddressId> {
        let known = self.known.get_mut(&address)?;
        core::mem::replace(&mut known.up, false).then_some(known.id)
    }

    /// The address is to be used for nothing new.
    pub fn deprecate(&mut self, address: IpAddr) {
        if let Some(known) = self.known.get_mut(&address) {
            known.deprecated = true;
        }
    }

    pub fn is_deprecated(&self, id: AddressId) -> bool {
        self.known.values().any(|known| known.id == id && known.deprecated)
    }

    /// Whether a subflow from `other`, which is deprecated and not gone, has the path on which one from an address would be.
    pub fn is_replacement(&self, id: AddressId, other: IpAddr) -> bool {
        let found = self.known.iter().find(|(_, known)| known.id == id);
        found.zip(self.known.get(&other)).is_some_and(|((address, known), old)| {
            old.up
                && old.deprecated
                && old.id != id
                && old.interface == known.interface
                && other.is_ipv4() == address.is_ipv4()
        })
    }

    /// Whether subflows from an address would take a path that a connection has by another address: that of its initial
    /// subflow if that can be used and is one of the same interface, and else the first of the interface and family.
    pub fn is_same_path(&self, id: AddressId, initial: IpAddr) -> bool {
        let Some((address, known)) = self.known.iter().find(|(_, known)| known.id == id) else { return false };
        let beside = |other: &Known| known.interface.is_some() && other.interface == known.interface;
        let is_used = |other: &Known| other.up && !other.deprecated && beside(other);
        if self.known.get(&initial).is_some_and(is_used) {
            return *address != initial;
        }
        let before =
            |(other, of): (&IpAddr, &Known)| is_used(of) && other.is_ipv4() == address.is_ipv4() && of.id < known.id;
        self.known.iter().any(before)
    }

    pub fn is_up(&self, address: IpAddr) -> bool {
        self.known.get(&address).is_some_and(|known| known.up)
    }

    pub fn address(&self, id: AddressId) -> Option<IpAddr> {
        self.known.iter().find(|(_, known)| known.id == id).map(|(address, _)| *address)
    }

    /// Forgets addresses that are down and that nothing uses.
    pub fn forget(&mut self, used: impl Fn(AddressId) -> bool) {
        self.known.retain(|_, known| known.up || used(known.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_address_keeps_its_identifier_while_something_uses_it() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.raise(address(7), Interface(7)), Some(AddressId(1)));
        assert_eq!(addresses.raise(address(7), Interface(7)), None);
        assert_eq!(addresses.raise(address(8), Interface(8)), Some(AddressId(2)));
        assert_eq!(addresses.lower(address(7)), Some(AddressId(1)));
        assert_eq!(addresses.lower(address(7)), None);
        addresses.forget(|id| id == AddressId(1));
        assert_eq!(addresses.raise(address(7), Interface(7)), Some(AddressId(1)));
        addresses.lower(address(7));
        addresses.forget(|_| false);
        assert_eq!(addresses.address(AddressId(1)), None);
        assert_eq!(addresses.raise(address(9), Interface(9)), Some(AddressId(1)));
    }

    #[test]
    fn further_addresses_of_an_interface_are_the_same_path() {
        let mut addresses = Addresses::default();
        let ids: Vec<_> = [(1, 7), (2, 7), (3, 8)]
            .into_iter()
            .filter_map(|(last, interface)| addresses.raise(address(last), Interface(interface)))
            .collect();
        let same = |addresses: &Addresses, initial| {
            ids.iter().map(|id| addresses.is_same_path(*id, initial)).collect::<Vec<_>>()
        };
        assert_eq!(same(&addresses, address(2)), [true, false, false]);
        assert_eq!(same(&addresses, address(3)), [false, true, false]);
        addresses.lower(address(1));
        assert!(!same(&addresses, address(3))[1]);
    }

    #[test]
    fn there_are_255_identifiers() {
        let mut addresses = Addresses::default();
        for last in 0..255 {
            assert!(addresses.id(address(last)).is_some());
        }
        assert_eq!(addresses.id(address(255)), None);
    }
}
