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

/// The path's number has the digits that it has in IPv4: path 10 is fd00:10::.
fn ipv6(path: u8, host: u8) -> IpAddr {
    let path = u16::from(path);
    let digits = path / 100 * 0x100 + path / 10 % 10 * 0x10 + path % 10;
    Ipv6Addr::new(0xfd00, digits, 0, 0, 0, 0, 0, u16::from(host)).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_same_digits_in_both_families() {
        for (path, v4, v6) in
            [(1, "10.0.1.1", "fd00:1::1"), (10, "10.0.10.1", "fd00:10::1"), (255, "10.0.255.1", "fd00:255::1")]
        {
            assert_eq!(client(path).map(|address| address.to_string()), [v4, v6]);
        }
    }
}
