//! A change to the host: how to print, apply and undo it.

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
use std::process::{Command, Output};

/// A change to the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Step {
    /// A TUN device, which disappears when the program ends in any way.
    Device {
        name: String,
        /// MTU in bytes of IP.
        mtu: u16,
    },
    /// A TUN device that nobody reads, which drops what is sent and stays until it is undone.
    Sink { name: String },
    /// The host's address on one of our devices; it disappears with the device.
    Address {
        /// The device.
        device: String,
        address: IpAddr,
    },
    /// Brings up one of our devices.
    Up {
        /// The device.
        device: String,
    },
    /// A route in one of our tables.
    Route(Route),
    /// A rule for one of our tables.
    Rule(Rule),
    /// A kernel setting (sysctl).
    Setting {
        /// Its path below `/proc/sys`.
        key: String,
        value: String,
        /// The value to restore; `None` if the setting disappears with a device of ours.
        before: Option<String>,
        /// A second setting that differs at first. If it later has this value too, the user set it, and the value is
        /// kept.
        unless: Option<String>,
    },
    /// An endpoint of the kernel's MPTCP that is made a backup.
    Endpoint {
        address: IpAddr,
        /// Whether it has the flag `fullmesh`, which each change says again.
        full_mesh: bool,
    },
    /// An nftables table of family `inet`.
    Filter {
        table: String,
        /// Its content in nft's language.
        text: String,
    },
}

/// A route in one of our tables.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Route {
    pub table: u32,
    /// The destination; an unspecified address is the default route.
    pub destination: IpAddr,
    /// The prefix length.
    pub length: u8,
    pub target: Target,
    /// Lower metrics are preferred; 0 is the kernel's default for IPv6.
    pub metric: u32,
}

/// The next hop of a route.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Target {
    /// Through a device.
    Device {
        name: String,
        /// The next router; `None` if the destination is on the link.
        gateway: Option<IpAddr>,
        /// The router is on the link although no route says so.
        onlink: bool,
        /// The preferred source address.
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
    /// The equivalent command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { name, mtu } => {
                write!(f, "ip tuntap add dev {name} mode tun && ip link set {name} mtu {mtu}")
            }
            Self::Sink { name } => write!(f, "ip {}", sink_words(name)),
            Self::Address { device, address: address @ IpAddr::V4(_) } => {
                write!(f, "ip address add {address}/32 dev {device}")
            }
            Self::Address { device, address } => {
                write!(f, "ip address add {address}/128 dev {device} nodad noprefixroute")
            }
            Self::Up { device } => write!(f, "ip link set {device} up"),
            Self::Route(route) => route.fmt(f),
            Self::Rule(rule) => rule.fmt(f),
            // A name may itself contain dots.
            Self::Setting { key, value, .. } if key.contains('.') => write!(f, "sysctl -w {key}={value}"),
            Self::Setting { key, value, .. } => write!(f, "sysctl -w {}={value}", key.replace('/', ".")),
            Self::Endpoint { address, full_mesh } => write!(f, "ip {}", endpoint_words(*address, *full_mesh, "backup")),
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

/// The destination of a default route.
pub fn anywhere(ipv6: bool) -> IpAddr {
    if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// The value of a setting; `None` if this kernel does not have it.
pub fn read_setting(key: &str) -> Option<String> {
    std::fs::read_to_string(setting(key)).ok().map(|text| text.trim().to_owned())
}

impl Step {
    /// The equivalent command, on one line.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Filter { table, .. } => format!("nft create table inet {table}"),
            other => other.to_string(),
        }
    }

    /// Applies the step. A device is opened by the caller instead, who keeps its descriptor.
    pub fn carry_out(&self, netlink: &mut Netlink) -> io::Result<()> {
        let new = NLM_F_CREATE | NLM_F_EXCL;
        match self {
            Self::Device { .. } => Ok(()),
            Self::Sink { name } => run_ip(&sink_words(name)).and_then(|output| {
                if output.status.success() {
                    return Ok(());
                }
                Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
            }),
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
            Self::Endpoint { address, full_mesh } => change_endpoint(*address, *full_mesh, "backup"),
            Self::Filter { text, .. } => filter::run(text),
        }
    }

    /// Whether the step changes this setting.
    pub fn sets(&self, wanted: &str) -> bool {
        matches!(self, Self::Setting { key, .. } if key == wanted)
    }

    /// Undoes the step. Succeeds if it is already undone.
    pub fn undo(&self, netlink: &mut Netlink) -> io::Result<()> {
        let outcome = match self {
            // The device disappears when it is closed, but a child between fork and exec may still have the descriptor.
            Self::Device { name, .. } | Self::Sink { name } => index(name).and_then(|index| {
                let mut message = LinkMessage::default();
                message.header.index = index;
                netlink.change(RouteNetlinkMessage::DelLink(message), 0)
            }),
            // These disappear with the device.
            Self::Address { .. } | Self::Up { .. } | Self::Setting { before: None, .. } => Ok(()),
            Self::Route(route) => {
                route.message().and_then(|message| netlink.change(RouteNetlinkMessage::DelRoute(message), 0))
            }
            Self::Rule(rule) => netlink.change(RouteNetlinkMessage::DelRule(rule.message()), 0),
            Self::Setting { value, unless: Some(other), .. } if read_setting(other).as_ref() == Some(value) => Ok(()),
            Self::Setting { key, before: Some(before), .. } => std::fs::write(setting(key), before),
            Self::Endpoint { address, full_mesh } => change_endpoint(*address, *full_mesh, "nobackup"),
            Self::Filter { table, .. } => filter::remove(table),
        };
        match outcome {
            Err(error) if is_gone(&error) => Ok(()),
            outcome => outcome,
        }
    }
}

/// Its own words, since rtnetlink makes no TUN device.
fn sink_words(name: &str) -> String {
    format!("tuntap add dev {name} mode tun")
}

/// Runs the program `ip`.
fn run_ip(words: &str) -> io::Result<Output> {
    let ran = Command::new("ip").args(words.split(' ')).output();
    ran.map_err(|error| io::Error::other(format!("the program 'ip' cannot be run: {error}")))
}

fn endpoint_words(address: IpAddr, full_mesh: bool, flag: &str) -> String {
    format!("mptcp endpoint change {address} {flag}{}", if full_mesh { " fullmesh" } else { "" })
}

/// Changes an endpoint by the program `ip`. One that is gone needs no change; but if the program is missing, the
/// endpoint is not taken for gone.
fn change_endpoint(address: IpAddr, full_mesh: bool, flag: &str) -> io::Result<()> {
    run_ip(&endpoint_words(address, full_mesh, flag)).map(drop)
}

/// Whether the error means that the route, file, device or address does not exist.
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
        // No duplicate detection: no other host can have the address. No prefix route: our rules route it.
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
    }
    message
}
