//! Inputs and outputs of a router: packets, changes of interfaces, events.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use anabranch_policy::Duration;
use anabranch_wire::ospf::{InterfaceId, Packet, RouterId};

use crate::neighbor::NeighborState;
use crate::neighborhood::Level;

/// Bytes of an IPv6 header.
pub(crate) const IPV6_HEADER: usize = 40;

/// How a packet was received.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reception {
    /// Its link-local source address.
    pub source: Ipv6Addr,
    /// Whether it was sent to AllSPFRouters rather than to this router.
    pub multicast: bool,
    /// Its signal in dBm, if the radio reports it.
    pub signal: Option<f32>,
}

/// Destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// FF02::5.
    AllSpfRouters,
    /// The link-local address of a neighbour.
    Neighbor(RouterId, Ipv6Addr),
}

/// A packet to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Sent on this interface, from its link-local address, with hop limit 1.
    pub interface: InterfaceId,
    pub destination: Destination,
    pub packet: Arc<Packet>,
}

/// A change of an interface.
#[derive(Clone, PartialEq, Debug)]
pub enum InterfaceChange {
    /// It can send and receive (InterfaceUp).
    Up,
    /// It can no longer (InterfaceDown).
    Down,
    /// New addresses, as [`crate::config::InterfaceConfig::addresses`].
    Addresses(Vec<(IpAddr, u8)>),
    /// A new cost.
    Cost(u16),
    /// A new cost of the link to one neighbour; none: that of the interface.
    LinkCost(RouterId, Option<u16>),
    /// A new Router Priority (RFC 5614, 3.1).
    Priority(u8),
    /// A new MTU in bytes of IP, at least 1280.
    Mtu(u16),
}

/// What becomes of the help for a neighbour that restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// It stays a neighbour for so long.
    Begun(Duration),
    /// It asked for help, and has not all LSAs or is no full neighbour.
    Refused,
    /// It has restarted, or does not want help any more.
    Over,
    /// It has not done so in time.
    Expired,
    /// The network has changed meanwhile.
    Changed,
}

/// An event for the caller.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The routes changed, or the choice of [`crate::Router::choose`].
    Routes,
    /// The state of a neighbour changed.
    Neighbor {
        interface: InterfaceId,
        neighbor: RouterId,
        /// The previous state.
        from: NeighborState,
        /// The new state.
        to: NeighborState,
    },
    /// The exchange of databases with a neighbour made no progress: it is not accepted for a while.
    Unfinished {
        interface: InterfaceId,
        neighbor: RouterId,
        /// Its address.
        address: Ipv6Addr,
        /// Its MTU in bytes, if that is another than the interface's.
        other_mtu: Option<u16>,
    },
    /// A neighbour restarts its software (RFC 3623, RFC 5187).
    Restart { interface: InterfaceId, neighbor: RouterId, restart: Restart },
    /// The MDR Level of the router on an interface changed.
    Level {
        interface: InterfaceId,
        /// The new level.
        level: Level,
    },
}
