//! Selects the interfaces for a client's paths, and tracks them as they appear and disappear.

use anabranch_host::{Interface, Layout, Netlink, ServerAddresses, Snapshot, Watch};
use anabranch_policy::datagram::MAX_PATHS;
use core::net::SocketAddr;
use std::io;

/// The paths; the index of each is its number.
pub struct Uplinks {
    server: ServerAddresses,
    /// The names of the interfaces to use; empty: all with a default route.
    names: Vec<String>,
    /// The interfaces not to use for now, unless there is no other.
    barred: Vec<String>,
    netlink: Netlink,
    paths: Vec<Uplink>,
}

/// An interface that is or was a path.
struct Uplink {
    name: String,
    /// The kernel's index while the path is open.
    index: Option<u32>,
    /// Where it leads.
    server: SocketAddr,
}

/// A change to a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Open { path: u8, interface: String, server: SocketAddr },
    Close { path: u8 },
}

/// Watches the interfaces of the calling thread's namespace. All of `names` must exist.
///
/// # Errors
/// If netlink fails, or an interface of `names` does not exist or is the loopback interface.
pub fn watch(names: &[String]) -> io::Result<(Watch, Netlink, Snapshot)> {
    let watch = Watch::open()?;
    let mut netlink = Netlink::open()?;
    let snapshot = Snapshot::take(&mut netlink)?;
    for name in names {
        let interface = snapshot.interface(name).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no network interface '{name}'"))
        })?;
        if interface.loopback {
            let message = format!("'{name}' is the loopback interface, which leads to nobody else");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok((watch, netlink, snapshot))
}

/// Whether an interface is in `names`, or has a default route if `names` is empty. The loopback interface and our own
/// are excluded.
pub fn is_uplink(interface: &Interface, names: &[String]) -> bool {
    let named = if names.is_empty() { interface.has_default_route() } else { names.contains(&interface.name) };
    named && !interface.loopback && Layout::of_device(&interface.name).is_none()
}

impl Uplinks {
    /// Watches the interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// If netlink fails, or an interface of `names` does not exist or is the loopback interface.
    pub fn new(server: ServerAddresses, names: Vec<String>) -> io::Result<(Self, Watch)> {
        let (watch, netlink, _) = watch(&names)?;
        Ok((Self { server, names, barred: Vec::new(), netlink, paths: Vec::new() }, watch))
    }

    /// Sets the interfaces not to use for now.
    pub fn bar(&mut self, names: Vec<String>) {
        self.barred = names;
    }

    /// Sets where the server is.
    pub fn set_server(&mut self, server: ServerAddresses) {
        self.server = server;
    }

    /// The changes since the last call.
    pub fn look(&mut self) -> io::Result<Vec<Change>> {
        let snapshot = Snapshot::take(&mut self.netlink)?;
        Ok(self.compare(&snapshot.interfaces))
    }

    fn compare(&mut self, interfaces: &[Interface]) -> Vec<Change> {
        let servers = self.server;
        let is_wanted = |interface: &&Interface| is_uplink(interface, &self.names) && servers.over(interface).is_some();
        let mut wanted: Vec<&Interface> = interfaces.iter().filter(is_wanted).collect();
        let is_barred = |interface: &&Interface| self.barred.contains(&interface.name);
        if !wanted.iter().all(is_barred) {
            wanted.retain(|interface| !is_barred(interface));
        }
        let mut changes = Vec::new();
        for (path, uplink) in (0..).zip(&mut self.paths) {
            // One that was renamed is another uplink, also to who names it.
            let same = |there: &&Interface| {
                Some(there.index) == uplink.index && there.name == uplink.name && servers.stays(uplink.server, there)
            };
            let there = wanted.iter().any(same);
            if uplink.index.is_some() && !there {
                uplink.index = None;
                changes.push(Change::Close { path });
            }
        }
        for interface in wanted {
            let Some(server) = servers.over(interface) else { continue };
            let Some(place) = self.place(&interface.name) else { continue };
            if let Some(uplink) = self.paths.get_mut(place).filter(|uplink| uplink.index.is_none()) {
                uplink.name.clone_from(&interface.name);
                (uplink.index, uplink.server) = (Some(interface.index), server);
                changes.push(Change::Open { path: place as u8, interface: interface.name.clone(), server });
            }
        }
        changes
    }

    /// The number for an interface: the one that it had, a new one, or, when there are no more, that of one that is gone.
    fn place(&mut self, name: &str) -> Option<usize> {
        let known = self.paths.iter().position(|uplink| uplink.name == name);
        if known.is_none() && self.paths.len() < MAX_PATHS {
            self.paths.push(Uplink { name: name.to_owned(), index: None, server: self.server.first() });
            return Some(self.paths.len() - 1);
        }
        known.or_else(|| self.paths.iter().position(|uplink| uplink.index.is_none()))
    }

    /// Records that a path could not be opened; the next look tries again.
    pub fn failed(&mut self, path: u8) {
        if let Some(uplink) = self.paths.get_mut(usize::from(path)) {
            uplink.index = None;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use anabranch_host::{Route, Target};

    const SERVER: &str = "198.51.100.1:4411";
    const SERVER_IPV6: &str = "[2001:db8::1]:4411";

    pub(crate) fn interface(name: &str, index: u32, running: bool) -> Interface {
        let target = Target::Device { name: name.to_owned(), gateway: None, onlink: false, source: None };
        let any = "0.0.0.0".parse().expect("an address");
        Interface {
            index,
            name: name.to_owned(),
            mtu: 1_500,
            loopback: false,
            running,
            addresses: vec!["192.0.2.1".parse().expect("an address")],
            held: Vec::new(),
            routes: vec![Route { table: 254, destination: any, length: 0, target, metric: 0 }],
        }
    }

    fn uplinks(names: &[&str]) -> Uplinks {
        let server = SERVER.parse::<SocketAddr>().expect("an address").into();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Uplinks {
            server,
            names,
            barred: Vec::new(),
            netlink: Netlink::open().expect("rtnetlink is there"),
            paths: Vec::new(),
        }
    }

    fn open(path: u8, interface: &str) -> Change {
        Change::Open { path, interface: interface.to_owned(), server: SERVER.parse().expect("an address") }
    }

    #[test]
    fn an_interface_keeps_its_number_over_a_loss_and_when_it_is_made_anew() {
        let mut uplinks = uplinks(&[]);
        let both = [interface("eth0", 2, true), interface("wlan0", 3, true)];
        assert_eq!(uplinks.compare(&both), [open(0, "eth0"), open(1, "wlan0")]);
        assert_eq!(uplinks.compare(&both), []);
        let lost = [interface("eth0", 2, false), interface("wlan0", 3, true)];
        assert_eq!(uplinks.compare(&lost), [Change::Close { path: 0 }]);
        let anew = [interface("eth0", 2, true), interface("wlan0", 9, true)];
        assert_eq!(uplinks.compare(&anew), [Change::Close { path: 1 }, open(0, "eth0"), open(1, "wlan0")]);
    }

    #[test]
    fn one_that_is_renamed_is_another() {
        let mut uplinks = uplinks(&[]);
        assert_eq!(uplinks.compare(&[interface("eth0", 2, true)]), [open(0, "eth0")]);
        assert_eq!(uplinks.compare(&[interface("wan0", 2, true)]), [Change::Close { path: 0 }, open(1, "wan0")]);
    }

    /// As a telephone's that has another name each time it is plugged in.
    #[test]
    fn when_all_numbers_are_given_a_new_one_has_that_of_one_that_is_gone() {
        let mut uplinks = uplinks(&[]);
        let eth0 = interface("eth0", 2, true);
        uplinks.compare(std::slice::from_ref(&eth0));
        // Numbers 1 to 31.
        for n in 1..32 {
            let name = format!("usb{n}");
            uplinks.compare(&[eth0.clone(), interface(&name, 2 + n, true)]);
        }
        let both = [eth0, interface("usb32", 34, true)];
        assert_eq!(uplinks.compare(&both), [Change::Close { path: 31 }, open(1, "usb32")]);
        assert_eq!(uplinks.compare(&both), []);
    }

    #[test]
    fn only_those_that_are_named_are_used_if_any_is() {
        let mut uplinks = uplinks(&["wlan0"]);
        let both = [interface("eth0", 2, true), interface("wlan0", 3, true)];
        assert_eq!(uplinks.compare(&both), [open(0, "wlan0")]);
        uplinks.failed(0);
        assert_eq!(uplinks.compare(&both), [open(0, "wlan0")]);
    }

    #[test]
    fn one_that_is_barred_is_left_for_the_others_as_long_as_there_is_one() {
        let mut uplinks = uplinks(&[]);
        let both = [interface("eth0", 2, true), interface("wlan0", 3, true)];
        uplinks.compare(&both);
        uplinks.bar(vec!["eth0".to_owned()]);
        assert_eq!(uplinks.compare(&both), [Change::Close { path: 0 }]);
        assert_eq!(uplinks.compare(&both[..1]), [Change::Close { path: 1 }, open(0, "eth0")]);
        uplinks.bar(Vec::new());
        assert_eq!(uplinks.compare(&both), [open(1, "wlan0")]);
    }

    #[test]
    fn without_a_default_route_or_an_address_of_the_servers_family_it_is_no_uplink() {
        let mut uplinks = uplinks(&[]);
        let mut lan = interface("eth1", 4, true);
        lan.routes.iter_mut().for_each(|route| route.length = 24);
        assert_eq!(uplinks.compare(&[lan]), []);
        uplinks.server = SERVER_IPV6.parse::<SocketAddr>().expect("an address").into();
        assert_eq!(uplinks.compare(&[interface("eth0", 2, true)]), []);
    }

    #[test]
    fn another_address_of_the_server_moves_only_the_uplinks_that_lead_to_the_old_one() {
        let mut uplinks = uplinks(&[]);
        let [ipv4, ipv6, new] =
            [SERVER, SERVER_IPV6, "[2001:db8::2]:4411"].map(|text| text.parse().expect("an address"));
        uplinks.server = ServerAddresses::new(ipv4, &[ipv6]);
        let (dsl, mut mobile) = (interface("eth0", 2, true), interface("wwan0", 3, true));
        mobile.addresses = vec!["2001:db8:1::2".parse().expect("an address")];
        mobile.routes.iter_mut().for_each(|route| route.destination = "::".parse().expect("an address"));
        let both = [dsl, mobile];
        assert_eq!(uplinks.compare(&both).len(), 2);
        uplinks.set_server(ServerAddresses::new(ipv4, &[new]));
        let opened = Change::Open { path: 1, interface: "wwan0".to_owned(), server: new };
        assert_eq!(uplinks.compare(&both), [Change::Close { path: 1 }, opened]);
        assert_eq!(uplinks.compare(&both), []);
    }

    /// As a network of mobile telephones without IPv4, beside a DSL line without IPv6.
    #[test]
    fn each_uplink_leads_to_the_servers_address_of_a_family_that_it_has() {
        let mut uplinks = uplinks(&[]);
        let [ipv4, ipv6] = [SERVER, SERVER_IPV6].map(|text| text.parse::<SocketAddr>().expect("an address"));
        uplinks.server = ServerAddresses::new(ipv6, &[ipv6, ipv4]);
        let (dsl, mut mobile) = (interface("eth0", 2, true), interface("wwan0", 3, true));
        mobile.addresses = vec!["2001:db8:1::2".parse().expect("an address")];
        mobile.routes.iter_mut().for_each(|route| route.destination = "::".parse().expect("an address"));
        let to = |path, interface: &str, server| Change::Open { path, interface: interface.to_owned(), server };
        let both = [dsl.clone(), mobile.clone()];
        assert_eq!(uplinks.compare(&both), [to(0, "eth0", ipv4), to(1, "wwan0", ipv6)]);
        // One that works stays where it leads when it gets the first family too, and changes when it loses its own.
        let mut with_both = dsl.clone();
        with_both.addresses.extend(mobile.addresses.clone());
        with_both.routes.extend(mobile.routes.clone());
        assert_eq!(uplinks.compare(&[with_both.clone(), mobile.clone()]), []);
        with_both.addresses.remove(0);
        assert_eq!(uplinks.compare(&[with_both, mobile]), [Change::Close { path: 0 }, to(0, "eth0", ipv6)]);
    }
}
