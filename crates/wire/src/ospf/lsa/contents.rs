//! The bodies of LSAs, by type (RFC 5340, sections A.4.3 to A.4.10).

use crate::ospf::{InterfaceId, LinkStateId, LsaKey, LsaType, Options, Prefix, PrefixOptions, RouterId};
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The contents of an advertisement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LsaBody {
    /// A router's links.
    Router(RouterLsa),
    /// The routers of a transit network.
    Network(NetworkLsa),
    /// A prefix of another area.
    InterAreaPrefix(InterAreaPrefixLsa),
    /// A border router of another area.
    InterAreaRouter(InterAreaRouterLsa),
    /// A prefix outside of the autonomous system.
    AsExternal(AsExternalLsa),
    /// A router's addresses on a link.
    Link(LinkLsa),
    /// Prefixes of a router or transit network.
    IntraAreaPrefix(IntraAreaPrefixLsa),
    /// Any other type: stored and flooded, but not interpreted.
    Unknown(Bytes),
}

/// A router's links (section A.4.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouterLsa {
    /// Roles of the router.
    pub flags: RouterFlags,
    /// Capabilities.
    pub options: Options,
    /// Its links.
    pub links: Vec<RouterLink>,
}

/// Roles of a router (section A.4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterFlags {
    /// B: between areas.
    pub area_border: bool,
    /// E: at the border of the autonomous system.
    pub as_boundary: bool,
    /// V: the end of a virtual link.
    pub virtual_link_endpoint: bool,
    /// Nt: translates for a not-so-stubby area.
    pub nssa_translator: bool,
}

/// A link of a router (section A.4.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RouterLink {
    /// The type of the other end.
    pub kind: LinkKind,
    /// Cost.
    pub metric: u16,
    /// The router's interface.
    pub interface: InterfaceId,
    /// The neighbour's interface, or that of the network's designated router.
    pub neighbor_interface: InterfaceId,
    /// The neighbour, or the network's designated router.
    pub neighbor: RouterId,
}

/// The other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum LinkKind {
    /// Type 1: another router.
    #[default]
    PointToPoint,
    /// Type 2: a transit network.
    Transit,
    /// Type 4: another router, across an area.
    Virtual,
    /// Any other: to be ignored.
    Other(u8),
}

/// The routers of a transit network (section A.4.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkLsa {
    /// Capabilities.
    pub options: Options,
    /// Routers adjacent to the designated router, and itself.
    pub attached: Vec<RouterId>,
}

/// A prefix of another area (section A.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterAreaPrefixLsa {
    /// Cost, 24 bits.
    pub metric: u32,
    /// The prefix.
    pub prefix: Prefix,
    /// Its options.
    pub options: PrefixOptions,
}

/// A border router of another area (section A.4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterAreaRouterLsa {
    /// Capabilities.
    pub options: Options,
    /// Cost, 24 bits.
    pub metric: u32,
    /// The router.
    pub destination: RouterId,
}

/// The comparison of external costs (section A.4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MetricType {
    /// In the units of internal links; costs add up.
    One,
    /// Larger than any internal route (bit E).
    #[default]
    Two,
}

/// A prefix outside of the autonomous system (section A.4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsExternalLsa {
    /// How `metric` is compared.
    pub metric_type: MetricType,
    /// Cost, 24 bits.
    pub metric: u32,
    /// The prefix.
    pub prefix: Prefix,
    /// Its options.
    pub options: PrefixOptions,
    /// The next hop for the prefix, if it is not the advertising router; an IPv4 address is in the first 32 bits (RFC
    /// 5838, section 2.6).
    pub forwarding: Option<Ipv6Addr>,
    /// Information between border routers.
    pub tag: Option<u32>,
    /// A related advertisement of the same router; the type is not 0.
    pub referenced: Option<(LsaType, LinkStateId)>,
}

/// A router's addresses on a link (section A.4.9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkLsa {
    /// Router priority on the link.
    pub priority: u8,
    /// Capabilities.
    pub options: Options,
    /// The router's address on the link. An IPv4 address is in the first 32 bits, see [`Self::address_v4`].
    pub address: Ipv6Addr,
    /// The prefixes of the link.
    pub prefixes: Vec<LinkPrefix>,
}

impl LinkLsa {
    /// The value of [`Self::address`] for an IPv4 address (RFC 5838, section 2.5).
    pub const fn field_of_v4(address: Ipv4Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits((address.to_bits() as u128) << 96)
    }
    /// The IPv4 address in [`Self::address`]: in an instance of IPv4, the next hop.
    pub const fn address_v4(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits((self.address.to_bits() >> 96) as u32)
    }
}

/// A prefix of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkPrefix {
    /// The prefix.
    pub prefix: Prefix,
    /// Its options.
    pub options: PrefixOptions,
}

/// Prefixes of a router or transit network (section A.4.10).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IntraAreaPrefixLsa {
    /// The router-LSA or network-LSA that they belong to.
    pub referenced: LsaKey,
    /// The prefixes, at most 65 535.
    pub prefixes: Vec<IntraAreaPrefix>,
}

/// A prefix of a router or transit network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IntraAreaPrefix {
    /// The prefix.
    pub prefix: Prefix,
    /// Its options.
    pub options: PrefixOptions,
    /// Cost.
    pub metric: u16,
}
