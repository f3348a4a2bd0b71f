//! What happens to a host and its connections between two samples.

use crate::sample::{Endpoints, Token};
use core::net::{IpAddr, SocketAddr};

/// An interface of the host, by the index that the kernel gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Interface(pub u32);

/// An event. Those of connections are the kernel's (family `mptcp_pm`, group `mptcp_pm_events`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An address can be used: its interface is up and has a route.
    AddressUp {
        address: IpAddr,
        interface: Interface,
    },
    /// It is to be used for nothing new; what uses it may go on. [`Event::AddressUp`] ends that.
    AddressDeprecated {
        address: IpAddr,
    },
    /// It cannot be used any more.
    AddressDown {
        address: IpAddr,
    },
    /// A connection has begun; it may still fall back.
    Created {
        token: Token,
        endpoints: Endpoints,
        server: bool,
    },
    /// Joins are allowed.
    Established {
        token: Token,
        endpoints: Endpoints,
        server: bool,
        remote_denies_joins: bool,
    },
    /// It ended.
    Closed {
        token: Token,
    },
    /// The peer announced an address (ADD_ADDR), without port where it gave none.
    Announced {
        token: Token,
        remote_id: u8,
        remote: SocketAddr,
    },
    /// The peer withdrew an address (REMOVE_ADDR).
    Removed {
        token: Token,
        remote_id: u8,
    },
    SubflowEstablished {
        token: Token,
        endpoints: Endpoints,
        local_id: u8,
        remote_id: u8,
        backup: bool,
    },
    /// `error` is the errno of the socket, 0 in order.
    SubflowClosed {
        token: Token,
        endpoints: Endpoints,
        error: u32,
    },
    /// The peer changed the priority (MP_PRIO).
    SubflowPriority {
        token: Token,
        endpoints: Endpoints,
        backup: bool,
    },
    /// Events were lost (ENOBUFS): what is known must be compared with the next sample.
    Overrun,
}
