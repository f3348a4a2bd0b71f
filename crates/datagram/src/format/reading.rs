//! Parses numbers and addresses from the front of a slice.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The bytes left to parse.
pub struct Reading<'a>(pub &'a [u8]);

impl Reading<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    pub fn word2(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub fn word4(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn word8(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub fn address(&mut self, ipv6: bool) -> Option<IpAddr> {
        Some(if ipv6 {
            self.take::<16>().map(Ipv6Addr::from)?.into()
        } else {
            self.take::<4>().map(Ipv4Addr::from)?.into()
        })
    }

    /// Parses an address, and a port of two bytes.
    pub fn socket_address(&mut self, ipv6: bool) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address(ipv6)?, self.word2()?))
    }
}

/// Writes an address.
pub fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => out.extend(v4.octets()),
        IpAddr::V6(v6) => out.extend(v6.octets()),
    }
}

/// Writes an address and a port of two bytes.
pub fn write_socket_address(address: SocketAddr, out: &mut Vec<u8>) {
    write_address(address.ip(), out);
    out.extend(address.port().to_be_bytes());
}
