//! A snapshot of the host's network: interfaces, their routes, and the numbers in use.

use super::layout::{Layout, MAX_INSTANCES, PROTOCOL};
use super::netlink::Netlink;
use super::step::{Route, Target, anywhere};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHopFlags, RouteProtocol, RouteType,
    RouteVia,
};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Least prefix lengths, IPv4 and IPv6, of a route by which addresses of ours count as used: those of the networks that ours are
/// from. A shorter one is for much else, as that of a VPN for half of all addresses.
const NETWORK: [u8; 2] = [15, 48];

/// Most routes read for an interface, default routes first.
const MAX_ROUTES: usize = 256;

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The kernel's index; it changes when the interface is recreated.
    pub index: u32,
    pub name: String,
    pub mtu: u32,
    pub loopback: bool,
    /// It is up and has a carrier.
    pub running: bool,
    /// Its global addresses, in the kernel's order.
    pub addresses: Vec<IpAddr>,
    /// All addresses except link-local ones, including deprecated ones.
    pub held: Vec<IpAddr>,
    /// The main table's routes through it.
    pub routes: Vec<Route>,
}

impl Interface {
    /// Its public address of a family.
    pub fn address(&self, ipv6: bool) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| address.is_ipv6() == ipv6)
    }

    fn has_route(&self, ipv6: bool) -> bool {
        self.routes.iter().any(|route| route.destination.is_ipv6() == ipv6)
    }

    pub fn has_default_route(&self) -> bool {
        self.routes.iter().any(|route| route.length == 0)
    }

    /// The stack's public address on it, if usable now.
    pub fn public(&self, ipv6: bool) -> Option<IpAddr> {
        self.address(ipv6).filter(|_| self.running && self.has_route(ipv6))
    }
}

/// The state at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    pub interfaces: Vec<Interface>,
    /// Our routes in any table.
    pub ours: Vec<Route>,
    /// Numbers of instances whose names, addresses or tables are in use.
    pub taken: BTreeSet<u8>,
}

impl Snapshot {
    /// Reads the state of `netlink`'s network namespace.
    pub fn take(netlink: &mut Netlink) -> io::Result<Self> {
        let mut snapshot = Self::default();
        for message in netlink.list(&RouteNetlinkMessage::GetLink(LinkMessage::default()))? {
            if let RouteNetlinkMessage::NewLink(message) = message {
                snapshot.add_link(&message);
            }
        }
        for message in netlink.list(&RouteNetlinkMessage::GetAddress(AddressMessage::default()))? {
            if let RouteNetlinkMessage::NewAddress(message) = message {
                snapshot.add_address(&message);
            }
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            for message in netlink.list(&RouteNetlinkMessage::GetRoute(request))? {
                if let RouteNetlinkMessage::NewRoute(message) = message {
                    snapshot.add_route(&message);
                }
            }
            let mut request = RuleMessage::default();
            request.header.family = family;
            for message in netlink.list(&RouteNetlinkMessage::GetRule(request))? {
                if let RouteNetlinkMessage::NewRule(message) = message {
                    snapshot.add_rule(&message);
                }
            }
        }
        for interface in &mut snapshot.interfaces {
            interface.routes.sort_by_key(|route| (route.length, route.metric));
            interface.routes.dedup();
            interface.routes.truncate(MAX_ROUTES);
        }
        Ok(snapshot)
    }

    /// The interface of this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    fn by_index(&mut self, index: u32) -> Option<&mut Interface> {
        self.interfaces.iter_mut().find(|interface| interface.index == index)
    }

    fn add_link(&mut self, message: &LinkMessage) {
        let mut interface = Interface {
            index: message.header.index,
            name: String::new(),
            mtu: 1_500,
            loopback: message.header.flags.contains(LinkFlags::Loopback),
            running: message.header.flags.contains(LinkFlags::Up | LinkFlags::Running),
            addresses: Vec::new(),
            held: Vec::new(),
            routes: Vec::new(),
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name.clone_from(name),
                LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
                _ => {}
            }
        }
        self.taken.extend(Layout::of_device(&interface.name).map(|layout| layout.instance));
        self.interfaces.push(interface);
    }

    fn add_address(&mut self, message: &AddressMessage) {
        let Some((address, flags)) = address_of(message) else { return };
        self.taken.extend(Layout::of_address(address).map(|layout| layout.instance));
        let unfit = AddressFlags::Tentative | AddressFlags::Dadfailed | AddressFlags::Deprecated;
        if message.header.scope == AddressScope::Universe
            && let Some(interface) = self.by_index(message.header.index)
        {
            interface.held.push(address);
            interface.addresses.extend(Some(address).filter(|_| !flags.intersects(unfit)));
        }
    }

    fn add_rule(&mut self, message: &RuleMessage) {
        for attribute in &message.attributes {
            if let RuleAttribute::Table(table) = attribute {
                self.taken.extend(Layout::of_table(*table).map(|layout| layout.instance));
            }
        }
    }

    fn add_route(&mut self, message: &RouteMessage) {
        if message.header.flags.contains(RouteFlags::Cloned) {
            return;
        }
        let Some(found) = Found::new(message) else { return };
        self.taken.extend(Layout::of_table(found.table).map(|layout| layout.instance));
        if found.length >= NETWORK[usize::from(found.destination.is_ipv6())] {
            self.taken.extend((0..MAX_INSTANCES).filter(|instance| found.covers(Layout { instance: *instance })));
        }
        let main = found.table == u32::from(RouteHeader::RT_TABLE_MAIN);
        // In the main table there are routes of ours only where a program of `run` is, to which they are as any others.
        if message.header.protocol == RouteProtocol::Other(PROTOCOL) && !main {
            let routes = found.routes(&self.interfaces);
            self.ours.extend(routes.into_iter().map(|(_, route)| route));
        } else if main && found.unicast && !found.is_of_the_link() {
            for (index, route) in found.routes(&self.interfaces) {
                if let Some(interface) = self.by_index(index) {
                    interface.routes.push(route);
                }
            }
        }
    }
}

/// One next hop.
#[derive(Default)]
struct Hop {
    index: u32,
    gateway: Option<IpAddr>,
    onlink: bool,
}

impl Hop {
    fn add(&mut self, attribute: &RouteAttribute) {
        match attribute {
            RouteAttribute::Oif(index) => self.index = *index,
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => self.gateway = Some((*address).into()),
            RouteAttribute::Gateway(RouteAddress::Inet6(address)) => self.gateway = Some((*address).into()),
            RouteAttribute::Via(RouteVia::Inet(address)) => self.gateway = Some((*address).into()),
            RouteAttribute::Via(RouteVia::Inet6(address)) => self.gateway = Some((*address).into()),
            _ => {}
        }
    }
}

/// A route as reported by the kernel.
struct Found {
    table: u32,
    destination: IpAddr,
    length: u8,
    metric: u32,
    source: Option<IpAddr>,
    unicast: bool,
    unreachable: bool,
    hops: Vec<Hop>,
}

impl Found {
    fn new(message: &RouteMessage) -> Option<Self> {
        let header = &message.header;
        let ipv6 = match header.address_family {
            AddressFamily::Inet => false,
            AddressFamily::Inet6 => true,
            _ => return None,
        };
        let mut found = Self {
            table: header.table.into(),
            destination: anywhere(ipv6),
            length: header.destination_prefix_length,
            metric: 0,
            source: None,
            unicast: header.kind == RouteType::Unicast,
            unreachable: header.kind == RouteType::Unreachable,
            hops: Vec::new(),
        };
        let mut hop = Hop { onlink: header.flags.contains(RouteFlags::Onlink), ..Hop::default() };
        for attribute in &message.attributes {
            hop.add(attribute);
            match attribute {
                RouteAttribute::Table(table) => found.table = *table,
                RouteAttribute::Destination(RouteAddress::Inet(address)) => found.destination = (*address).into(),
                RouteAttribute::Destination(RouteAddress::Inet6(address)) => found.destination = (*address).into(),
                RouteAttribute::PrefSource(RouteAddress::Inet(address)) => found.source = Some((*address).into()),
                RouteAttribute::PrefSource(RouteAddress::Inet6(address)) => found.source = Some((*address).into()),
                RouteAttribute::Priority(metric) => found.metric = *metric,
                RouteAttribute::MultiPath(hops) => found.hops.extend(hops.iter().map(|hop| {
                    let onlink = hop.flags.contains(RouteNextHopFlags::Onlink);
                    let mut one = Hop { index: hop.interface_index, gateway: None, onlink };
                    hop.attributes.iter().for_each(|attribute| one.add(attribute));
                    one
                })),
                _ => {}
            }
        }
        if hop.index != 0 || found.unreachable {
            found.hops.push(hop);
        }
        Some(found)
    }

    /// Link-local and multicast networks, which need no route in our table.
    fn is_of_the_link(&self) -> bool {
        match self.destination {
            IpAddr::V4(address) => self.length > 0 && (address.is_link_local() || address.is_multicast()),
            IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
        }
    }

    /// Whether the destination overlaps an instance's network.
    fn covers(&self, layout: Layout) -> bool {
        match (self.destination, IpAddr::from(layout.host_ipv4(0)), IpAddr::from(layout.host_ipv6(0))) {
            (IpAddr::V4(ours), IpAddr::V4(theirs), _) => {
                let length = u32::from(self.length.min(24));
                (u32::from(ours) ^ u32::from(theirs)).leading_zeros() >= length
            }
            (IpAddr::V6(ours), _, IpAddr::V6(theirs)) => {
                let length = u32::from(self.length.min(64));
                (u128::from(ours) ^ u128::from(theirs)).leading_zeros() >= length
            }
            _ => false,
        }
    }

    /// A route for each next hop, with the interface's index.
    fn routes(&self, interfaces: &[Interface]) -> Vec<(u32, Route)> {
        let route = |target| Route {
            table: self.table,
            destination: self.destination,
            length: self.length,
            target,
            metric: self.metric,
        };
        if self.unreachable {
            return vec![(0, route(Target::Unreachable))];
        }
        let mut routes = Vec::new();
        for hop in &self.hops {
            if let Some(interface) = interfaces.iter().find(|interface| interface.index == hop.index) {
                let target = Target::Device {
                    name: interface.name.clone(),
                    gateway: hop.gateway,
                    onlink: hop.onlink,
                    source: self.source,
                };
                routes.push((hop.index, route(target)));
            }
        }
        routes
    }
}

/// The host's own address in a message, with its flags. On point-to-point links it is not the first address.
pub fn address_of(message: &AddressMessage) -> Option<(IpAddr, AddressFlags)> {
    let (mut local, mut peer, mut flags) = (None, None, AddressFlags::empty());
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => peer = Some(*address),
            AddressAttribute::Flags(all) => flags = *all,
            _ => {}
        }
    }
    Some((local.or(peer)?, flags))
}
