//! Policy routing rules.

use super::layout::{PRIORITY, PROTOCOL};
use super::netlink::family;
use netlink_packet_route::IpProtocol;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The kernel's main routing table.
pub(crate) const MAIN: u32 = 254;

/// A rule of ours.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// IPv6 rather than IPv4.
    pub ipv6: bool,
    /// The packets that match.
    pub selector: Selector,
    /// The table to look up; `None` makes the destination unreachable.
    pub table: Option<u32>,
    /// Lower priorities are evaluated first.
    #[serde(default = "first")]
    pub priority: u32,
    /// Ignores default routes of the table (suppress_prefixlength 0).
    #[serde(default)]
    pub but_default: bool,
    /// Another action, in place of `table`.
    #[serde(default)]
    pub instead: Option<Instead>,
}

/// Other actions of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Instead {
    /// Continue at the rule with this priority, which must exist.
    Goto(u32),
    /// No action: the target of a goto.
    Nothing,
}

/// The default for journals of older versions.
fn first() -> u32 {
    PRIORITY
}

/// The packets that a rule matches.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Selector {
    /// From this address.
    From(IpAddr),
    /// To this address, from anywhere.
    To(IpAddr),
    /// To this address, from this host itself.
    LocalTo(IpAddr),
    /// Received on a device; `lo` means sent by this host.
    Input(String),
    /// From a socket bound to a device.
    Output(String),
    /// From an address and a port up to this one.
    Served(IpAddr, Transport, u16),
    /// From a network (address and prefix length) to an address.
    Between(IpAddr, u8, IpAddr),
    /// To a network.
    Network(IpAddr, u8),
    /// To a port, from packets received on a device.
    Port(String, Transport, u16),
    /// From a port up to this one, perhaps to a port, from packets received on a device.
    LowPort(String, Transport, u16, Option<u16>),
    /// All packets.
    All,
}

/// A transport protocol with ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Transport {
    Udp,
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

impl From<Transport> for IpProtocol {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Udp => Self::Udp,
            Transport::Tcp => Self::Tcp,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(address) => write!(f, "from {address}"),
            Self::To(address) => write!(f, "to {address}"),
            Self::LocalTo(address) => write!(f, "iif lo to {address}"),
            Self::Input(device) => write!(f, "iif {device}"),
            Self::Output(device) => write!(f, "oif {device}"),
            Self::Between(network, length, address) => write!(f, "from {network}/{length} to {address}"),
            Self::Network(address, length) => write!(f, "to {address}/{length}"),
            Self::Served(address, transport, last) => write!(f, "from {address} ipproto {transport} sport 1-{last}"),
            Self::Port(device, transport, port) => write!(f, "iif {device} ipproto {transport} dport {port}"),
            Self::LowPort(device, transport, last, to) => {
                write!(f, "iif {device} ipproto {transport} sport 1-{last}")?;
                to.map_or(Ok(()), |port| write!(f, " dport {port}"))
            }
            Self::All => write!(f, "from all"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.ipv6 { "-6 " } else { "" };
        write!(f, "ip {family}rule add priority {} {} ", self.priority, self.selector)?;
        match (self.instead, self.table) {
            (Some(Instead::Goto(priority)), _) => write!(f, "goto {priority}")?,
            (Some(Instead::Nothing), _) => write!(f, "nop")?,
            (None, Some(MAIN)) => write!(f, "lookup main")?,
            (None, Some(table)) => write!(f, "lookup {table}")?,
            (None, None) => write!(f, "prohibit")?,
        }
        let suppress = if self.but_default { " suppress_prefixlength 0" } else { "" };
        write!(f, "{suppress} protocol {PROTOCOL}")
    }
}

impl Rule {
    /// A rule that precedes everything but the local table.
    pub(crate) fn new(ipv6: bool, selector: Selector, table: Option<u32>) -> Self {
        Self { ipv6, selector, table, priority: PRIORITY, but_default: false, instead: None }
    }

    /// The same rule with another priority.
    pub(crate) fn at(self, priority: u32) -> Self {
        Self { priority, ..self }
    }

    pub(crate) fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.ipv6);
        let whole = if self.ipv6 { 128 } else { 32 };
        let attributes = &mut message.attributes;
        attributes.push(RuleAttribute::Priority(self.priority));
        attributes.push(RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)));
        match &self.selector {
            Selector::From(address) => {
                message.header.src_len = whole;
                attributes.push(RuleAttribute::Source(*address));
            }
            Selector::To(address) => {
                message.header.dst_len = whole;
                attributes.push(RuleAttribute::Destination(*address));
            }
            Selector::LocalTo(address) => {
                message.header.dst_len = whole;
                attributes.push(RuleAttribute::Destination(*address));
                attributes.push(RuleAttribute::Iifname("lo".to_owned()));
            }
            Selector::Input(device) => attributes.push(RuleAttribute::Iifname(device.clone())),
            Selector::Output(device) => attributes.push(RuleAttribute::Oifname(device.clone())),
            Selector::Network(address, length) => {
                message.header.dst_len = *length;
                attributes.push(RuleAttribute::Destination(*address));
            }
            Selector::Between(network, length, address) => {
                (message.header.src_len, message.header.dst_len) = (*length, whole);
                attributes.push(RuleAttribute::Source(*network));
                attributes.push(RuleAttribute::Destination(*address));
            }
            Selector::Served(address, transport, last) => {
                message.header.src_len = whole;
                attributes.push(RuleAttribute::Source(*address));
                attributes.push(RuleAttribute::IpProtocol((*transport).into()));
                attributes.push(RuleAttribute::SourcePortRange(RulePortRange { start: 1, end: *last }));
            }
            Selector::Port(device, transport, port) => {
                attributes.push(RuleAttribute::Iifname(device.clone()));
                attributes.push(RuleAttribute::IpProtocol((*transport).into()));
                attributes.push(RuleAttribute::DestinationPortRange(RulePortRange { start: *port, end: *port }));
            }
            Selector::LowPort(device, transport, last, to) => {
                attributes.push(RuleAttribute::Iifname(device.clone()));
                attributes.push(RuleAttribute::IpProtocol((*transport).into()));
                attributes.push(RuleAttribute::SourcePortRange(RulePortRange { start: 1, end: *last }));
                let range = |port| RuleAttribute::DestinationPortRange(RulePortRange { start: port, end: port });
                attributes.extend(to.map(range));
            }
            Selector::All => {}
        }
        match (self.instead, self.table) {
            (Some(Instead::Goto(priority)), _) => {
                message.header.action = RuleAction::Goto;
                attributes.push(RuleAttribute::Goto(priority));
            }
            (Some(Instead::Nothing), _) => message.header.action = RuleAction::Nop,
            (None, Some(table)) => {
                message.header.action = RuleAction::ToTable;
                attributes.push(RuleAttribute::Table(table));
            }
            (None, None) => message.header.action = RuleAction::Prohibit,
        }
        if self.but_default {
            attributes.push(RuleAttribute::SuppressPrefixLen(0));
        }
        message
    }
}
