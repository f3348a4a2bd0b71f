//! Maps interfaces to addresses: the index, written as 10.x.y.z or fd00::x:y, so that no lookup table is needed.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface of a host, numbered from 0 in the world. It has one IPv4 and one IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct InterfaceId(pub u32);

/// Address of the interface before the first: 10.0.0.0 and fd00::.
const IPV4_BASE: u32 = 0x0a00_0000;
const IPV6_BASE: u128 = 0xfd00 << 112;

/// Number of interfaces in 10.0.0.0/8, without its first and last address.
pub const LIMIT: u32 = (1 << 24) - 2;

impl InterfaceId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
    /// The first interface has 10.0.0.1.
    pub fn ipv4(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(IPV4_BASE + 1 + self.0))
    }
    /// The first interface has fd00::1.
    pub fn ipv6(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(IPV6_BASE + 1 + u128::from(self.0)))
    }
    /// The interface with this address, or `None` outside of the ranges.
    pub fn of(address: IpAddr) -> Option<Self> {
        let number = match address {
            IpAddr::V4(address) => address.to_bits().wrapping_sub(IPV4_BASE + 1),
            IpAddr::V6(address) => u32::try_from(address.to_bits().wrapping_sub(IPV6_BASE + 1)).unwrap_or(u32::MAX),
        };
        (number < LIMIT).then_some(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_are_documented_and_lead_back() {
        assert_eq!(InterfaceId(0).ipv4().to_string(), "10.0.0.1");
        assert_eq!(InterfaceId(256).ipv4().to_string(), "10.0.1.1");
        assert_eq!(InterfaceId(0).ipv6().to_string(), "fd00::1");
        assert_eq!(InterfaceId(0x1_0000).ipv6().to_string(), "fd00::1:1");
        for id in [0, 1, 254, 255, 70_000, LIMIT - 1].map(InterfaceId) {
            assert_eq!((InterfaceId::of(id.ipv4()), InterfaceId::of(id.ipv6())), (Some(id), Some(id)));
        }
    }

    #[test]
    fn other_addresses_belong_to_no_interface() {
        for other in ["10.0.0.0", "9.255.255.255", "11.0.0.1", "10.255.255.255", "fd00::", "fd01::1", "::1"] {
            assert_eq!(InterfaceId::of(other.parse().unwrap()), None, "{other}");
        }
    }
}
