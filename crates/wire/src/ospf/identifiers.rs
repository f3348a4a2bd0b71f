//! Identifiers of routers, areas, interfaces and LSAs.

use core::fmt;
use core::net::Ipv4Addr;

/// Defines a number of 32 bits in dotted notation, like an IPv4 address.
macro_rules! dotted {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Ipv4Addr::from_bits(self.0).fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

dotted! {
    /// A router, unique in its network (RFC 5340, section C.1).
    RouterId
}
dotted! {
    /// An area (RFC 5340, section C.2).
    AreaId
}
dotted! {
    /// Distinguishes the advertisements of one type and router (RFC 5340, section 4.4.3).
    LinkStateId
}

impl RouterId {
    /// No router: no parent, no designated router.
    pub const NONE: Self = Self(0);
}

impl AreaId {
    /// The backbone, 0.0.0.0.
    pub const BACKBONE: Self = Self(0);
}

/// An interface, unique on its router (RFC 5340, section 4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct InterfaceId(pub u32);

/// One of several instances of OSPF on a link (RFC 5340, section 2.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct InstanceId(pub u8);

/// The routed address family of an instance (RFC 5838, section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressFamily {
    /// Instances 0 to 31.
    Ipv6Unicast,
    /// Instances 32 to 63.
    Ipv6Multicast,
    /// Instances 64 to 95.
    Ipv4Unicast,
    /// Instances 96 to 127.
    Ipv4Multicast,
}

impl InstanceId {
    /// The first instance of IPv6 unicast: OSPFv3 as in RFC 5340.
    pub const IPV6: Self = Self(0);
    /// The first instance of IPv4 unicast (RFC 5838, section 2.1).
    pub const IPV4: Self = Self(64);

    /// The address family; `None` for unassigned instances.
    pub const fn address_family(self) -> Option<AddressFamily> {
        match self.0 {
            0..=31 => Some(AddressFamily::Ipv6Unicast),
            32..=63 => Some(AddressFamily::Ipv6Multicast),
            64..=95 => Some(AddressFamily::Ipv4Unicast),
            96..=127 => Some(AddressFamily::Ipv4Multicast),
            _ => None,
        }
    }
}
