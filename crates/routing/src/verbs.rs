//! What goes into a router and comes out of it: packets, changes of interfaces, events.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use anabranch_wire::ospf::{InterfaceId, Packet, RouterId};

use crate::neighbor::NeighborState;
use crate::neighborhood::Level;

/// Bytes of an IPv6 header.
pub(crate) const IPV6_HEADER: usize = 40;

/// How a packet came in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reception {
    /// The link-local address it came from.
    pub source: Ipv6Addr,
    /// Whether it was sent to AllSPFRouters rather than to this router alone.
    pub multicast: bool,
    /// The signal it came with in dBm, where the radio tells it.
    pub signal: Option<f32>,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// FF02::5.
    AllSpfRouters,
    /// One neighbour's link-local address.
    Neighbor(RouterId, Ipv6Addr),
}

/// A packet to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// On this interface, from its link-local address, with hop limit 1.
    pub interface: InterfaceId,
    /// To here.
    pub destination: Destination,
    /// This.
    pub packet: Arc<Packet>,
}

/// What happens to an interface.
#[derive(Clone, PartialEq, Debug)]
pub enum InterfaceChange {
    /// It can send and receive (InterfaceUp).
    Up,
    /// It cannot (InterfaceDown).
    Down,
    /// It has these addresses now, as [`crate::config::InterfaceConfig::addresses`].
    Addresses(Vec<(IpAddr, u8)>),
    /// Its cost is this now.
    Cost(u16),
    /// The link to one neighbour costs this now; none: as the interface.
    LinkCost(RouterId, Option<u16>),
    /// Its Router Priority is this now (RFC 5614, 3.1).
    Priority(u8),
}

/// What a caller may want to know.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The routes are others now, or what [`crate::Router::choose`] makes of them.
    Routes,
    /// A neighbour is in another state now.
    Neighbor {
        /// On which interface.
        interface: InterfaceId,
        /// Which one.
        neighbor: RouterId,
        /// The state it was in.
        from: NeighborState,
        /// The state it is in.
        to: NeighborState,
    },
    /// The router has another MDR Level on an interface now.
    Level {
        /// On which interface.
        interface: InterfaceId,
        /// Its level there.
        level: Level,
    },
}
