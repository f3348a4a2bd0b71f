//! The host's state that a router needs: interfaces, their addresses, and whether they are up.

use anabranch_host::{Netlink, address_of};
use anabranch_wire::ospf::Prefix;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with a prefix length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Network {
    pub address: IpAddr,
    pub length: u8,
}

impl Network {
    /// The address with a full prefix length.
    pub(super) fn host(self) -> Self {
        Self { length: if self.address.is_ipv4() { 32 } else { 128 }, ..self }
    }

    /// Why no router may lead there: a route to it would take packets that belong to a link, or to this host, off it.
    pub(super) fn unroutable(self) -> Option<&'static str> {
        let within = |range: [u16; 2], bits: u8| {
            let range = Self { address: Ipv6Addr::new(range[0], range[1], 0, 0, 0, 0, 0, 0).into(), length: bits };
            self.address.is_ipv6() && self.length > 0 && range.overlaps(self)
        };
        if within([0xfe80, 0], 10) {
            Some("link-local addresses are in it, which belong to each link (RFC 5340, 2.5)")
        } else if self.length > 0 && self.address.is_multicast() || within([0xff00, 0], 8) {
            Some("it is of multicast")
        } else if self.length > 0 && self.address.is_loopback() {
            Some("it is of the loopback")
        } else if self.length > 8 && self.address.is_unspecified() || self.address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            Some("no host has such an address")
        } else {
            None
        }
    }

    /// Whether one contains the other.
    pub(super) fn overlaps(self, other: Self) -> bool {
        let length = self.length.min(other.length);
        Self { length, ..self }.masked() == Self { length, ..other }.masked()
    }

    /// The network, with the host bits cleared.
    pub(super) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => Prefix::v4(address, self.length).and_then(Prefix::address_v4).map(IpAddr::V4),
            IpAddr::V6(address) => Prefix::v6(address, self.length).map(|prefix| prefix.address_v6().into()),
        };
        // Longer than an address: all of it.
        Self { address: address.unwrap_or(self.address), ..self }
    }
}

/// The state of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Device {
    /// The kernel's index; it changes when the interface is recreated.
    pub index: u32,
    pub name: String,
    /// MTU in bytes of IP.
    pub mtu: u32,
    pub loopback: bool,
    /// Its hardware address; empty if it has none.
    pub hardware: Vec<u8>,
    /// It supports multicast.
    pub multicast: bool,
    /// It is up and has a carrier.
    pub running: bool,
    /// The source address for OSPF, the lowest link-local one.
    pub link_local: Option<Ipv6Addr>,
    /// Addresses that may be advertised, in the kernel's order.
    pub networks: Vec<Network>,
}

impl Device {
    /// The MTU for OSPF. Below the least one of IPv6 the kernel takes the interface's addresses away.
    pub(super) fn usable_mtu(&self) -> u16 {
        u16::try_from(self.mtu).unwrap_or(u16::MAX).max(1_280)
    }

    /// The source address for OSPF, if it can send now.
    pub(super) fn speaks(&self) -> Option<Ipv6Addr> {
        self.link_local.filter(|_| self.running)
    }
}

/// All interfaces, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ground {
    pub devices: BTreeMap<String, Device>,
}

impl Ground {
    /// Reads the state of `netlink`'s network namespace.
    pub(super) fn take(netlink: &mut Netlink) -> io::Result<Self> {
        let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
        for message in netlink.list(&RouteNetlinkMessage::GetLink(LinkMessage::default()))? {
            if let RouteNetlinkMessage::NewLink(message) = message {
                devices.insert(message.header.index, device(&message));
            }
        }
        for message in netlink.list(&RouteNetlinkMessage::GetAddress(AddressMessage::default()))? {
            if let RouteNetlinkMessage::NewAddress(message) = message
                && let Some(device) = devices.get_mut(&message.header.index)
            {
                add_address(device, &message);
            }
        }
        Ok(Self { devices: devices.into_values().map(|device| (device.name.clone(), device)).collect() })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.devices.keys().cloned().collect()
    }
}

fn device(message: &LinkMessage) -> Device {
    let flags = message.header.flags;
    let mut device = Device {
        index: message.header.index,
        name: String::new(),
        mtu: 1_500,
        loopback: flags.contains(LinkFlags::Loopback),
        hardware: Vec::new(),
        multicast: flags.contains(LinkFlags::Multicast),
        running: flags.contains(LinkFlags::Up | LinkFlags::Running),
        link_local: None,
        networks: Vec::new(),
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => device.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => device.mtu = *mtu,
            LinkAttribute::Address(hardware) => device.hardware.clone_from(hardware),
            _ => {}
        }
    }
    device
}

fn add_address(device: &mut Device, message: &AddressMessage) {
    let Some((address, flags)) = address_of(message) else { return };
    if flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed) {
        return;
    }
    match (address, message.header.scope) {
        (IpAddr::V6(address), AddressScope::Link) if address.is_unicast_link_local() => {
            device.link_local = Some(device.link_local.map_or(address, |known| known.min(address)));
        }
        (_, AddressScope::Universe | AddressScope::Site) => {
            device.networks.push(Network { address, length: message.header.prefix_len });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_masked_at_any_length() {
        let network = |text: &str, length| Network { address: text.parse().expect("an address"), length };
        assert_eq!(network("10.1.2.3", 24).masked(), network("10.1.2.0", 24));
        assert_eq!(network("10.1.2.3", 0).masked(), network("0.0.0.0", 0));
        assert_eq!(network("10.1.2.3", 32).masked(), network("10.1.2.3", 32));
        assert_eq!(network("2001:db8::1", 64).masked(), network("2001:db8::", 64));
        assert_eq!(network("2001:db8::1", 0).masked(), network("::", 0));
        assert_eq!(network("2001:db8::1", 64).host(), network("2001:db8::1", 128));
    }

    #[test]
    fn networks_of_links_and_of_the_host_itself_are_not_routable() {
        let unroutable = |text: &str| {
            let (address, length) = text.split_once('/').expect("a network");
            let address = address.parse().expect("an address");
            Network { address, length: length.parse().expect("a length") }.unroutable().is_some()
        };
        // Half of all addresses, which some advertise in place of a default route, has those of the links of IPv6 in it.
        for wrong in [
            "fe80::/10",
            "fe80::/64",
            "fe80::1/128",
            "fe00::/7",
            "8000::/1",
            "ff02::5/128",
            "ff00::/8",
            "::1/128",
            "::/128",
            "224.0.0.0/4",
            "224.0.0.5/32",
            "127.0.0.0/8",
            "127.0.0.1/32",
            "255.255.255.255/32",
            "0.0.0.0/32",
        ] {
            assert!(unroutable(wrong), "{wrong}");
        }
        for right in [
            "::/0",
            "0.0.0.0/0",
            "0.0.0.0/1",
            "128.0.0.0/1",
            "::/1",
            "2000::/3",
            "fd00::/8",
            "fec0::/10",
            "2001:db8::1/128",
            "10.0.0.0/8",
            "169.254.0.0/16",
            "192.0.2.1/32",
        ] {
            assert!(!unroutable(right), "{right}");
        }
    }
}
