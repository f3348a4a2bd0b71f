//! The host's addresses that paths can begin at, from rtnetlink.

use anabranch_host::{Netlink, Snapshot};
use anabranch_steering::event::{Event, Interface};
use nix::net::if_::if_indextoname;
use nix::unistd::User;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// Follows addresses.
pub struct Addresses {
    netlink: Netlink,
    /// Names of interfaces; none: all with a default route.
    wanted: Vec<String>,
    known: BTreeMap<IpAddr, Interface>,
}

impl Addresses {
    /// Follows the addresses of the interfaces `wanted` in the caller's namespace. If none is, those of all interfaces
    /// with a default route: without one an interface has no way to most peers, and the kernel would open subflows that
    /// never get an answer.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn open(wanted: Vec<String>) -> io::Result<Self> {
        Ok(Self { netlink: Netlink::open()?, wanted, known: BTreeMap::new() })
    }

    /// Looks again, and returns what changed.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn look(&mut self) -> io::Result<Vec<Event>> {
        let snapshot = Snapshot::take(&mut self.netlink)?;
        let now = usable(&snapshot, &self.wanted);
        let mut changes = Vec::new();
        for (address, interface) in &self.known {
            if now.get(address) != Some(interface) {
                changes.push(Event::AddressDown { address: *address });
            }
        }
        for (address, interface) in &now {
            if self.known.get(address) != Some(interface) {
                changes.push(Event::AddressUp { address: *address, interface: *interface });
            }
        }
        self.known = now;
        Ok(changes)
    }

    /// Those that can be used now, with their interfaces.
    pub fn known(&self) -> &BTreeMap<IpAddr, Interface> {
        &self.known
    }
}

/// The name of an interface in the calling thread's namespace; its number if it is gone.
pub fn interface_name(interface: Interface) -> String {
    let known = if_indextoname(interface.0).ok().and_then(|name| name.into_string().ok());
    known.unwrap_or_else(|| format!("interface {}", interface.0))
}

/// The number of a user, by name or number.
pub fn user_id(name: &str) -> Option<u32> {
    name.parse().ok().or_else(|| User::from_name(name).ok().flatten().map(|user| user.uid.as_raw()))
}

fn usable(snapshot: &Snapshot, wanted: &[String]) -> BTreeMap<IpAddr, Interface> {
    let mut all = BTreeMap::new();
    for interface in snapshot.interfaces.iter().filter(|interface| interface.running && !interface.loopback) {
        for address in &interface.addresses {
            let leads = |length: u8| length == 0 || !wanted.is_empty();
            let has_route = interface
                .routes
                .iter()
                .any(|route| route.destination.is_ipv6() == address.is_ipv6() && leads(route.length));
            if has_route && (wanted.is_empty() || wanted.contains(&interface.name)) {
                all.insert(*address, Interface(interface.index));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_host::{Interface as HostInterface, Route, Target};

    fn interface(index: u32, destination: &str, length: u8) -> HostInterface {
        let name = format!("eth{index}");
        let target = Target::Device { name: name.clone(), gateway: None, onlink: false, source: None };
        let destination = destination.parse().expect("an address");
        let addresses = vec![IpAddr::from([10, 0, index as u8, 1]), format!("fd00::{index}").parse().expect("one")];
        HostInterface {
            index,
            name,
            mtu: 1_500,
            loopback: false,
            running: true,
            held: addresses.clone(),
            addresses,
            routes: vec![Route { table: 254, destination, length, target, metric: 0 }],
        }
    }

    fn of(snapshot: &Snapshot, wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        usable(snapshot, &wanted).keys().map(IpAddr::to_string).collect()
    }

    #[test]
    fn addresses_with_a_default_route_of_their_family_are_used() {
        let mut down = interface(4, "0.0.0.0", 0);
        down.running = false;
        let interfaces = vec![interface(1, "0.0.0.0", 0), interface(2, "10.0.0.0", 8), interface(3, "::", 0), down];
        let snapshot = Snapshot { interfaces, ..Snapshot::default() };
        assert_eq!(of(&snapshot, &[]), ["10.0.1.1", "fd00::3"]);
        // An interface that is named needs no default route, but one that leads somewhere.
        assert_eq!(of(&snapshot, &["eth2", "eth4"]), ["10.0.2.1"]);
    }
}
