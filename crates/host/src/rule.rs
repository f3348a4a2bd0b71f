//! Which packets look into which routing table: a rule of ours.

use super::layout::{PRIORITY, PROTOCOL};
use super::netlink::family;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// A rule of ours.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// IPv6 rather than IPv4.
    pub ipv6: bool,
    /// For which packets.
    pub selector: Selector,
    /// The table to look into; none to refuse them.
    pub table: Option<u32>,
}

/// For which packets a rule is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Selector {
    /// From this address.
    From(IpAddr),
    /// To this address, from anywhere.
    To(IpAddr),
    /// To this address, from this host itself.
    LocalTo(IpAddr),
    /// Those that came in by a device.
    Input(String),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(address) => write!(f, "from {address}"),
            Self::To(address) => write!(f, "to {address}"),
            Self::LocalTo(address) => write!(f, "iif lo to {address}"),
            Self::Input(device) => write!(f, "iif {device}"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.ipv6 { "-6 " } else { "" };
        write!(f, "ip {family}rule add priority {PRIORITY} {} ", self.selector)?;
        match self.table {
            Some(table) => write!(f, "lookup {table}")?,
            None => write!(f, "prohibit")?,
        }
        write!(f, " protocol {PROTOCOL}")
    }
}

impl Rule {
    pub(crate) fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.ipv6);
        let whole = if self.ipv6 { 128 } else { 32 };
        let attributes = &mut message.attributes;
        attributes.push(RuleAttribute::Priority(PRIORITY));
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
        }
        match self.table {
            Some(table) => {
                message.header.action = RuleAction::ToTable;
                attributes.push(RuleAttribute::Table(table));
            }
            None => message.header.action = RuleAction::Prohibit,
        }
        message
    }
}
