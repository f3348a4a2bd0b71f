//! One change of the host: how to print, apply and undo it.

use super::filter;
use super::layout::PROTOCOL;
use super::netlink::{Netlink, family};
use super::rule::Rule;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteProtocol, RouteScope, RouteType, RouteVia,
};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// A change of the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Step {
    /// A TUN device, which goes when the program ends, however it ends.
    Device {
        /// Its name.
        name: String,
        /// Its largest packet, bytes of IP.
        mtu: u16,
    },
    /// The host's own address on one of our devices; it goes with the device.
    Address {
        /// The device.
        device: String,
        /// The address.
        address: IpAddr,
    },
    /// One of our devices is switched on.
    Up {
        /// The device.
        device: String,
    },
    /// A route in a table of ours.
    Route(Route),
    /// A rule for a table of ours.
    Rule(Rule),
    /// A setting of the kernel.
    Setting {
        /// Its path below `/proc/sys`.
        key: String,
        /// The value it gets.
        value: String,
        /// The value it had and is to have again; none if it goes with a device of ours.
        before: Option<String>,
        /// Another setting, as yet different, that makes this value the host's own if it is set: then it is kept.
        unless: Option<String>,
    },
    /// A table in nftables, of family `inet`.
    Filter {
        /// Its name.
        table: String,
        /// What it says, in nft's language.
        text: String,
    },
}

/// A route in a table of ours.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Route {
    /// The table.
    pub table: u32,
    /// Where to; an unspecified address is anywhere.
    pub destination: IpAddr,
    /// Leading bits of the destination that count.
    pub length: u8,
    /// How.
    pub target: Target,
    /// Smaller ones are preferred; 0 for IPv6 is the kernel's default.
    pub metric: u32,
}

/// The next hop of a route.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Target {
    /// Out of a device.
    Device {
        /// Its name.
        name: String,
        /// The next router; none if the destination is on the link.
        gateway: Option<IpAddr>,
        /// The router is on the link though no route says so.
        onlink: bool,
        /// The host's own address for what it sends there.
        source: Option<IpAddr>,
    },
    /// Unreachable: the sender gets an error.
    Unreachable,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.destination.is_ipv6() { "-6 " } else { "" };
        let unreachable = if self.target == Target::Unreachable { "unreachable " } else { "" };
        write!(f, "ip {family}route add {unreachable}")?;
        if self.length == 0 {
            write!(f, "default")?
        } else {
            write!(f, "{}/{}", self.destination, self.length)?
        }
        self.fmt_target(f)?;
        if self.metric != 0 {
            write!(f, " metric {}", self.metric)?;
        }
        write!(f, " table {} protocol {PROTOCOL}", self.table)
    }
}

impl Route {
    fn fmt_target(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target::Device { name, gateway, onlink, source } = &self.target else { return Ok(()) };
        match gateway {
            Some(gateway) if gateway.is_ipv6() && self.destination.is_ipv4() => write!(f, " via inet6 {gateway}")?,
            Some(gateway) => write!(f, " via {gateway}")?,
            None => {}
        }
        let onlink = if *onlink { " onlink" } else { "" };
        write!(f, " dev {name}{onlink}")?;
        source.map_or(Ok(()), |source| write!(f, " src {source}"))
    }
}

impl fmt::Display for Step {
    /// The command that does the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { name, mtu } => {
                write!(f, "ip tuntap add dev {name} mode tun && ip link set {name} mtu {mtu}")
            }
            Self::Address { device, address: address @ IpAddr::V4(_) } => {
                write!(f, "ip address add {address}/32 dev {device}")
            }
            Self::Address { device, address } => {
                write!(f, "ip address add {address}/128 dev {device} nodad noprefixroute")
            }
            Self::Up { device } => write!(f, "ip link set {device} up"),
            Self::Route(route) => route.fmt(f),
            Self::Rule(rule) => rule.fmt(f),
            // A name may have dots itself.
            Self::Setting { key, value, .. } if key.contains('.') => write!(f, "sysctl -w {key}={value}"),
            Self::Setting { key, value, .. } => write!(f, "sysctl -w {}={value}", key.replace('/', ".")),
            Self::Filter { text, .. } => write!(f, "nft -f - <<'END'\n{text}END"),
        }
    }
}

fn index(device: &str) -> io::Result<u32> {
    Ok(if_nametoindex(device)?)
}

impl Route {
    fn message(&self) -> io::Result<RouteMessage> {
        let mut message = RouteMessage::default();
        let ipv6 = self.destination.is_ipv6();
        message.header.address_family = family(ipv6);
        message.header.destination_prefix_length = self.length;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = RouteType::Unicast;
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Table(self.table));
        if self.length > 0 {
            attributes.push(RouteAttribute::Destination(self.destination.into()));
        }
        if self.metric != 0 {
            attributes.push(RouteAttribute::Priority(self.metric));
        }
        match &self.target {
            Target::Unreachable => message.header.kind = RouteType::Unreachable,
            Target::Device { name, gateway, onlink, source } => {
                attributes.push(RouteAttribute::Oif(index(name)?));
                match gateway {
                    Some(IpAddr::V6(gateway)) if !ipv6 => {
                        attributes.push(RouteAttribute::Via(RouteVia::Inet6(*gateway)))
                    }
                    Some(gateway) => attributes.push(RouteAttribute::Gateway((*gateway).into())),
                    None if !ipv6 => message.header.scope = RouteScope::Link,
                    None => {}
                }
                attributes.extend(source.map(|source| RouteAttribute::PrefSource(source.into())));
                if *onlink {
                    message.header.flags |= RouteFlags::Onlink;
                }
            }
        }
        Ok(message)
    }
}

/// The file of a setting.
fn setting(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(key)
}

/// Anywhere.
pub fn anywhere(ipv6: bool) -> IpAddr {
    if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// A setting's value; none if this kernel does not have it.
pub fn read_setting(key: &str) -> Option<String> {
    std::fs::read_to_string(setting(key)).ok().map(|text| text.trim().to_owned())
}

impl Step {
    /// The command that does the same, in a line.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Filter { table, .. } => format!("nft create table inet {table}"),
            other => other.to_string(),
        }
    }

    /// Does it. A device is the caller's to open, who must hold it.
    pub fn carry_out(&self, netlink: &mut Netlink) -> io::Result<()> {
        let new = NLM_F_CREATE | NLM_F_EXCL;
        match self {
            Self::Device { .. } => Ok(()),
            Self::Address { device, address } => {
                netlink.change(RouteNetlinkMessage::NewAddress(address_message(index(device)?, *address)), new)
            }
            Self::Up { device } => {
                let mut message = LinkMessage::default();
                message.header.index = index(device)?;
                message.header.flags = LinkFlags::Up;
                message.header.change_mask = LinkFlags::Up;
                netlink.change(RouteNetlinkMessage::SetLink(message), 0)
            }
            Self::Route(route) => netlink.change(RouteNetlinkMessage::NewRoute(route.message()?), new),
            Self::Rule(rule) => netlink.change(RouteNetlinkMessage::NewRule(rule.message()), new),
            Self::Setting { key, value, .. } => std::fs::write(setting(key), value),
            Self::Filter { text, .. } => filter::run(text),
        }
    }

    /// Whether it is this setting.
    pub fn sets(&self, wanted: &str) -> bool {
        matches!(self, Self::Setting { key, .. } if key == wanted)
    }

    /// Undoes it. What is not there any more is undone.
    pub fn undo(&self, netlink: &mut Netlink) -> io::Result<()> {
        let outcome = match self {
            // It goes when it is closed, but a child that is just being born may still hold it.
            Self::Device { name, .. } => index(name).and_then(|index| {
                let mut message = LinkMessage::default();
                message.header.index = index;
                netlink.change(RouteNetlinkMessage::DelLink(message), 0)
            }),
            // They go with the device.
            Self::Address { .. } | Self::Up { .. } | Self::Setting { before: None, .. } => Ok(()),
            Self::Route(route) => {
                route.message().and_then(|message| netlink.change(RouteNetlinkMessage::DelRoute(message), 0))
            }
            Self::Rule(rule) => netlink.change(RouteNetlinkMessage::DelRule(rule.message()), 0),
            Self::Setting { value, unless: Some(other), .. } if read_setting(other).as_ref() == Some(value) => Ok(()),
            Self::Setting { key, before: Some(before), .. } => std::fs::write(setting(key), before),
            Self::Filter { table, .. } => filter::remove(table),
        };
        match outcome {
            Err(error) if is_gone(&error) => Ok(()),
            outcome => outcome,
        }
    }
}

/// What the kernel says of something that is not there: no such route, file, device or address.
fn is_gone(error: &io::Error) -> bool {
    use nix::errno::Errno;
    error.raw_os_error().is_some_and(|number| {
        matches!(
            Errno::from_raw(number),
            Errno::ESRCH | Errno::ENOENT | Errno::ENODEV | Errno::EADDRNOTAVAIL | Errno::ENXIO
        )
    })
}

fn address_message(index: u32, address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.is_ipv6());
    message.header.prefix_len = if address.is_ipv6() { 128 } else { 32 };
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    if address.is_ipv6() {
        // No other host can have it, and our rule routes it.
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
    }
    message
}
