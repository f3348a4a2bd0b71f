//! The addresses of the two hosts at the ends of emulated paths.
//!
//! Path `n`, from 1, has 10.0.n.1 and fd00:n::1 at the client and 10.0.n.2 and fd00:n::2 at the server. The server also
//! has 10.0.0.2 and fd00::2, reachable over every path, since the lab's server has only one address. The client selects
//! the path of a packet by its source address, and the answer uses the same path.

use super::network::Prefix;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefix length of a path's IPv4 network.
pub(crate) const IPV4_BITS: u8 = 24;
/// Prefix length of a path's IPv6 network.
pub(crate) const IPV6_BITS: u8 = 64;

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

fn ipv4(path: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, host).into()
}

fn ipv6(path: u8, host: u8) -> IpAddr {
    Ipv6Addr::new(0xfd00, u16::from(path), 0, 0, 0, 0, 0, u16::from(host)).into()
}

/// The client's addresses on a path, IPv4 and IPv6.
pub fn client(path: u8) -> [IpAddr; 2] {
    [ipv4(path, CLIENT), ipv6(path, CLIENT)]
}

/// The server's addresses on a path, IPv4 and IPv6.
pub fn server_on(path: u8) -> [IpAddr; 2] {
    [ipv4(path, SERVER), ipv6(path, SERVER)]
}

/// The server's own addresses, IPv4 and IPv6.
pub fn server() -> [IpAddr; 2] {
    [ipv4(0, SERVER), ipv6(0, SERVER)]
}

/// The networks of a path, IPv4 and IPv6.
pub fn prefixes(path: u8) -> [Prefix; 2] {
    [Prefix { address: ipv4(path, 0), bits: IPV4_BITS }, Prefix { address: ipv6(path, 0), bits: IPV6_BITS }]
}
