//! The host's addresses that paths can begin at, from rtnetlink.

use anabranch_host::{Netlink, Snapshot};
use anabranch_steering::event::{Event, Interface};
use nix::net::if_::if_indextoname;
use nix::unistd::User;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long an address stays whose route is missing. A program that renews a route removes it for a moment, at which paths,
/// perhaps the only one of a connection, would be closed.
const BRIEF: Duration = Duration::from_millis(500);

/// Follows addresses.
pub struct Addresses {
    netlink: Netlink,
    /// Names of interfaces; none: all with a default route.
    wanted: Vec<String>,
    known: BTreeMap<IpAddr, Interface>,
    /// The names that their interfaces had.
    names: BTreeMap<IpAddr, String>,
    /// Those of them for nothing new.
    deprecated: BTreeSet<IpAddr>,
    routeless: Routeless,
    /// All of the host, whether or not paths can begin there.
    own: BTreeSet<IpAddr>,
}

/// Known addresses without a route, and when that was first seen.
#[derive(Default)]
struct Routeless(BTreeMap<IpAddr, Instant>);

impl Routeless {
    /// Adds to the `usable` addresses those that are known, still `held`, and without a route for a moment only.
    fn spare(
        &mut self,
        now: Instant,
        known: &BTreeMap<IpAddr, Interface>,
        held: impl Fn(IpAddr, Interface) -> bool,
        usable: &mut BTreeMap<IpAddr, Interface>,
    ) {
        let mut missing = known.clone();
        missing.retain(|address, interface| !usable.contains_key(address) && held(*address, *interface));
        self.0.retain(|address, _| missing.contains_key(address));
        for (address, interface) in missing {
            let since = *self.0.entry(address).or_insert(now);
            if now < since + BRIEF {
                usable.insert(address, interface);
            } else {
                self.0.remove(&address);
            }
        }
    }
}

impl Addresses {
    /// Follows the addresses of the interfaces `wanted` in the caller's namespace. If none is, those of all interfaces
    /// with a default route: without one an interface has no way to most peers, and the kernel would open subflows that
    /// never get an answer.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn open(wanted: Vec<String>) -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open()?,
            wanted,
            known: BTreeMap::new(),
            names: BTreeMap::new(),
            deprecated: BTreeSet::new(),
            routeless: Routeless::default(),
            own: BTreeSet::new(),
        })
    }

    /// When to look again although nothing changes.
    pub fn due(&self) -> Option<Instant> {
        self.routeless.0.values().min().map(|since| *since + BRIEF)
    }

    /// Looks again, and returns what changed.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn look(&mut self) -> io::Result<Vec<Event>> {
        let snapshot = Snapshot::take(&mut self.netlink)?;
        self.own = snapshot.interfaces.iter().flat_map(|interface| interface.held.iter().copied()).collect();
        let mut now = usable(&snapshot, &self.wanted);
        now.retain(|address, (_, preferred)| *preferred || self.known.contains_key(address));
        let deprecated = now.iter().filter(|(_, (_, preferred))| !preferred).map(|(address, _)| *address).collect();
        let mut now: BTreeMap<IpAddr, Interface> =
            now.into_iter().map(|(address, (interface, _))| (address, interface)).collect();
        let held = |address, interface: Interface| {
            let mut there = snapshot.interfaces.iter().filter(|there| there.running && there.index == interface.0);
            there.any(|there| there.held.contains(&address))
        };
        self.routeless.spare(Instant::now(), &self.known, held, &mut now);
        Ok(self.compare(&snapshot, now, deprecated))
    }

    /// Takes what there is `now`, and returns what changed.
    fn compare(
        &mut self,
        snapshot: &Snapshot,
        now: BTreeMap<IpAddr, Interface>,
        deprecated: BTreeSet<IpAddr>,
    ) -> Vec<Event> {
        let name = |of: &Interface| {
            let mut all = snapshot.interfaces.iter();
            all.find(|there| there.index == of.0).map(|there| there.name.clone()).unwrap_or_default()
        };
        let names: BTreeMap<IpAddr, String> =
            now.iter().map(|(address, interface)| (*address, name(interface))).collect();
        let mut changes = Vec::new();
        for (address, interface) in &self.known {
            if now.get(address) != Some(interface) {
                changes.push(Event::AddressDown { address: *address });
            }
        }
        for (address, interface) in &now {
            let is_other = self.known.get(address) != Some(interface) || self.names.get(address) != names.get(address);
            let (before, is_deprecated) = (self.deprecated.contains(address), deprecated.contains(address));
            if is_other || (before && !is_deprecated) {
                changes.push(Event::AddressUp { address: *address, interface: *interface });
            }
            if is_deprecated && (is_other || !before) {
                changes.push(Event::AddressDeprecated { address: *address });
            }
        }
        (self.known, self.names, self.deprecated) = (now, names, deprecated);
        changes
    }

    /// Those of [`Self::known`] that are for nothing new: their preferred lifetime has ended, and paths from them stay.
    pub fn deprecated(&self) -> &BTreeSet<IpAddr> {
        &self.deprecated
    }

    /// All addresses of the host, as of the last look.
    pub fn own(&self) -> &BTreeSet<IpAddr> {
        &self.own
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

/// Addresses with a route, and whether they may be used for something new.
fn usable(snapshot: &Snapshot, wanted: &[String]) -> BTreeMap<IpAddr, (Interface, bool)> {
    let mut all = BTreeMap::new();
    for interface in snapshot.interfaces.iter().filter(|interface| interface.running && !interface.loopback) {
        for address in &interface.held {
            let leads = |length: u8| length == 0 || !wanted.is_empty();
            let has_route = interface
                .routes
                .iter()
                .any(|route| route.destination.is_ipv6() == address.is_ipv6() && leads(route.length));
            if has_route && (wanted.is_empty() || wanted.contains(&interface.name)) {
                all.insert(*address, (Interface(interface.index), interface.addresses.contains(address)));
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
    fn an_address_without_a_route_for_a_moment_stays_and_one_that_is_gone_does_not() {
        let (begin, address) = (Instant::now(), IpAddr::from([10, 0, 1, 1]));
        let known = BTreeMap::from([(address, Interface(1))]);
        let after = |milliseconds, held: bool, routeless: &mut Routeless| {
            let mut usable = BTreeMap::new();
            routeless.spare(begin + Duration::from_millis(milliseconds), &known, |_, _| held, &mut usable);
            usable == known
        };
        let mut routeless = Routeless::default();
        assert!(after(0, true, &mut routeless) && after(499, true, &mut routeless));
        assert!(!after(500, true, &mut routeless));
        assert!(routeless.0.is_empty(), "it is not looked for again");
        assert!(!after(600, false, &mut routeless));
        // One that came back meanwhile is missing anew.
        assert!(after(1_000, true, &mut routeless));
        routeless.spare(begin + Duration::from_millis(1_400), &known, |_, _| true, &mut known.clone());
        assert!(after(1_600, true, &mut routeless));
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
