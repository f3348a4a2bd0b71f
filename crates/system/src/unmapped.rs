//! Addresses of peers of sockets that take both families, as people know them.

use core::net::SocketAddr;

/// An IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) as the IPv4 address that it stands for; any other as it is.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(six) => match six.ip().to_ipv4_mapped() {
            Some(four) => SocketAddr::from((four, six.port())),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mapped_address_becomes_another() {
        let of = |text: &str| unmapped(text.parse().unwrap()).to_string();
        assert_eq!(of("[::ffff:192.0.2.1]:4433"), "192.0.2.1:4433");
        assert_eq!(of("192.0.2.1:4433"), "192.0.2.1:4433");
        assert_eq!(of("[2001:db8::1]:4433"), "[2001:db8::1]:4433");
        assert_eq!(of("[::1]:4433"), "[::1]:4433");
        assert_eq!(of("[fe80::1%2]:4433"), "[fe80::1%2]:4433");
    }
}
