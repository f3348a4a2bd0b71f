//! Address prefixes of either family.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A prefix of 0 to 128 bits (RFC 5340, section A.4.1). Its family follows from the instance in which it is advertised
/// (RFC 5838, section 2.3): an IPv4 prefix is in the first of the 128 bits. Bits beyond its length are zero, so that
/// equal prefixes compare equal; the order is by address, shorter ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    bits: u128,
    length: u8,
}

impl Prefix {
    /// The default route.
    pub const DEFAULT: Self = Self { bits: 0, length: 0 };

    /// The first `length` of `bits`; `None` above 128.
    pub const fn new(bits: u128, length: u8) -> Option<Self> {
        match length {
            0 => Some(Self::DEFAULT),
            1..=128 => Some(Self { bits: bits & (u128::MAX << (128 - length)), length }),
            _ => None,
        }
    }
    /// Of an IPv6 address; `None` if `length` is above 128.
    pub const fn v6(address: Ipv6Addr, length: u8) -> Option<Self> {
        Self::new(address.to_bits(), length)
    }
    /// Of an IPv4 address; `None` if `length` is above 32.
    pub const fn v4(address: Ipv4Addr, length: u8) -> Option<Self> {
        if length > 32 { None } else { Self::new((address.to_bits() as u128) << 96, length) }
    }
    /// The whole IPv6 address.
    pub const fn host_v6(address: Ipv6Addr) -> Self {
        Self { bits: address.to_bits(), length: 128 }
    }
    /// The whole IPv4 address.
    pub const fn host_v4(address: Ipv4Addr) -> Self {
        Self { bits: (address.to_bits() as u128) << 96, length: 32 }
    }
    /// The whole address.
    pub const fn host(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::host_v4(address),
            IpAddr::V6(address) => Self::host_v6(address),
        }
    }

    /// Number of bits, 0 to 128.
    pub const fn length(self) -> u8 {
        self.length
    }
    /// Its bits from the left, followed by zeros.
    pub const fn bits(self) -> u128 {
        self.bits
    }
    /// Its first address as IPv6.
    pub const fn address_v6(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.bits)
    }
    /// Its first address as IPv4; `None` if it is longer than 32 bits.
    pub const fn address_v4(self) -> Option<Ipv4Addr> {
        if self.length > 32 { None } else { Some(Ipv4Addr::from_bits((self.bits >> 96) as u32)) }
    }
    /// Whether an address of its family begins with it.
    pub const fn contains(self, address: IpAddr) -> bool {
        let (bits, available) = match address {
            IpAddr::V4(address) => ((address.to_bits() as u128) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        self.length <= available && (self.length == 0 || (bits ^ self.bits) >> (128 - self.length) == 0)
    }

    /// Bytes of the address as encoded, a multiple of four.
    pub(super) const fn encoded_len(self) -> usize {
        self.length.div_ceil(32) as usize * 4
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address_v6(), self.length)
    }
}
