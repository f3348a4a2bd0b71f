//! A path of the stack: which of its two addresses are usable, with their IDs and public addresses.

use crate::attachment::AttachedPath;
use crate::group::Group;
use anabranch_host::{Layout, PathPlan};
use anabranch_policy::ids::AddressId;
use anabranch_stack::DeviceId;
use std::net::IpAddr;

/// Allocates address IDs. A released ID is reused as late as possible: the peer may still process its REMOVE_ADDR, and
/// would close subflows of a new address with this ID.
#[derive(Debug, Default)]
pub(super) struct Ids {
    taken: Vec<AddressId>,
    last: u8,
}

impl Ids {
    fn take(&mut self) -> AddressId {
        // Zero identifies the address of a connection's first subflow (RFC 8684, section 3.2). There are far fewer
        // addresses than IDs.
        let mut next = self.last;
        loop {
            next = if next == u8::MAX { 1 } else { next + 1 };
            if !self.taken.contains(&AddressId(next)) {
                break;
            }
        }
        self.last = next;
        self.taken.push(AddressId(next));
        AddressId(next)
    }

    fn give_back(&mut self, id: AddressId) {
        self.taken.retain(|taken| *taken != id);
    }
}

/// A path with its state.
pub(super) struct Lane {
    pub plan: PathPlan,
    pub device: DeviceId,
    /// The kernel's index of the uplink when last seen.
    pub index: Option<u32>,
    /// The usable addresses, IPv4 and IPv6.
    usable: [Option<Usable>; 2],
}

/// A usable address.
#[derive(Clone, Copy)]
struct Usable {
    id: AddressId,
    /// Its public address.
    public: IpAddr,
}

impl Lane {
    pub(super) fn new(plan: PathPlan, device: DeviceId) -> Self {
        Self { plan, device, index: None, usable: [None; 2] }
    }

    /// The public addresses, IPv4 and IPv6; `None` if unusable.
    pub(super) fn public(&self) -> [Option<IpAddr>; 2] {
        self.usable.map(|usable| usable.map(|usable| usable.public))
    }

    pub(super) fn show(&self, layout: Layout) -> AttachedPath {
        let usable = [false, true].into_iter().zip(self.usable);
        let addresses = usable.filter_map(|(ipv6, usable)| Some((usable?.id, self.address(layout, ipv6))));
        AttachedPath {
            name: self.plan.name.clone(),
            device: self.device,
            mtu: self.plan.mtu,
            addresses: addresses.collect(),
        }
    }

    /// The stack's address of a family.
    fn address(&self, layout: Layout, ipv6: bool) -> IpAddr {
        let number = self.plan.number;
        if ipv6 { layout.stack_ipv6(number).into() } else { layout.stack_ipv4(number).into() }
    }

    /// Makes the addresses of all the path's families usable, without public addresses.
    pub(super) fn open_to_the_host(&mut self, stack: &Group, layout: Layout, ids: &mut Ids) {
        self.up(stack, layout, false, self.address(layout, false), ids);
        if self.plan.ipv6 {
            self.up(stack, layout, true, self.address(layout, true), ids);
        }
    }

    /// Makes the address of a family usable; `public` is its public address.
    pub(super) fn up(&mut self, stack: &Group, layout: Layout, ipv6: bool, public: IpAddr, ids: &mut Ids) {
        let address = self.address(layout, ipv6);
        let Some(place) = self.usable.get_mut(usize::from(ipv6)) else { return };
        let id = ids.take();
        if stack.address_up(self.device, id, [address, public], &self.plan.name).is_ok() {
            *place = Some(Usable { id, public });
        } else {
            // The device has failed permanently: the address is unusable in all stacks.
            stack.address_down(id);
            ids.give_back(id);
        }
    }

    /// Makes the address of a family unusable.
    pub(super) fn down(&mut self, stack: &Group, ipv6: bool, ids: &mut Ids) {
        if let Some(gone) = self.usable.get_mut(usize::from(ipv6)).and_then(Option::take) {
            stack.address_down(gone.id);
            ids.give_back(gone.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_only_after_all_others() {
        let mut ids = Ids::default();
        let held = ids.take();
        assert_eq!(held, AddressId(1));
        for round in 2..=255 {
            let id = ids.take();
            assert_eq!(id, AddressId(round));
            ids.give_back(id);
        }
        // Zero is reserved, and the first is still in use.
        assert_eq!(ids.take(), AddressId(2));
    }
}
