//! The names, addresses and numbers that we use on a host. All follow from instance and path, so that instances never
//! conflict and leftovers are recognisable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of our routes and rules (`ip route show proto 198`).
pub const PROTOCOL: u8 = 198;

/// The priority of our rules: after the table of local addresses, before everything else.
pub(crate) const PRIORITY: u32 = 198;
/// The priority of rules from one stack of this host to another: before those that keep out packets for stacks from
/// other hosts.
pub(crate) const PRIORITY_BETWEEN: u32 = 197;

/// Most instances in a network namespace.
pub(crate) const MAX_INSTANCES: u8 = 100;

/// Most paths of an instance.
pub const MAX_PATHS: u8 = 32;

/// The names and numbers of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The number of the instance, below `MAX_INSTANCES`.
    pub instance: u8,
}

/// The routing table of the first path of the first instance.
const FIRST_TABLE: u32 = 198_180_000;

/// The host's side of a path's address pair.
const HOST: u8 = 1;

/// The stack's side.
const STACK: u8 = 2;

impl Layout {
    /// The name of a path's device.
    pub fn device(self, path: u8) -> String {
        format!("{}{path}", self.device_prefix())
    }

    /// The prefix of our devices' names.
    pub(crate) fn device_prefix(self) -> String {
        format!("anabranch{}-", self.instance)
    }

    /// The name of the instance's nftables table, of family `inet`.
    pub(crate) fn nft_table(self) -> String {
        format!("anabranch_{}", self.instance)
    }

    /// The routing table of a path.
    pub fn table(self, path: u8) -> u32 {
        FIRST_TABLE + u32::from(self.instance) * 100 + u32::from(path)
    }

    /// The host's IPv4 address on a path, from the benchmarking range (RFC 2544, appendix C.2.2), which is not routed.
    pub(crate) fn host_ipv4(self, path: u8) -> Ipv4Addr {
        self.ipv4(path, HOST)
    }

    /// The stack's IPv4 address on a path.
    pub fn stack_ipv4(self, path: u8) -> Ipv4Addr {
        self.ipv4(path, STACK)
    }

    /// The host's IPv6 address on a path, a unique local address (RFC 4193).
    pub(crate) fn host_ipv6(self, path: u8) -> Ipv6Addr {
        self.ipv6(path, HOST)
    }

    /// The stack's IPv6 address on a path.
    pub fn stack_ipv6(self, path: u8) -> Ipv6Addr {
        self.ipv6(path, STACK)
    }

    /// The network of all our addresses of a family, and its prefix length.
    pub(crate) fn network(address: IpAddr) -> (IpAddr, u8) {
        match address {
            IpAddr::V4(_) => (Ipv4Addr::new(198, 18, 0, 0).into(), 15),
            IpAddr::V6(_) => (Ipv6Addr::new(0xfd61, 0x6e61, 0x6272, 0, 0, 0, 0, 0).into(), 48),
        }
    }

    /// The instance to which a device of this name belongs.
    pub fn of_device(name: &str) -> Option<Self> {
        let (instance, _) = name.strip_prefix("anabranch")?.split_once('-')?;
        instance.parse().ok().map(|instance| Self { instance })
    }

    /// The instance to which an nftables table of this name belongs.
    pub(crate) fn of_nft_table(name: &str) -> Option<Self> {
        name.strip_prefix("anabranch_")?.parse().ok().map(|instance| Self { instance })
    }

    /// The instance to which a routing table of this number belongs.
    pub(crate) fn of_table(table: u32) -> Option<Self> {
        let number = table.checked_sub(FIRST_TABLE)? / 100;
        let instance = u8::try_from(number).ok().filter(|instance| *instance < MAX_INSTANCES)?;
        Some(Self { instance })
    }

    /// The instance to which an address from our range belongs.
    pub fn of_address(address: IpAddr) -> Option<Self> {
        let instance = match address {
            IpAddr::V4(address) => match address.octets() {
                [198, 18, instance, _] => instance,
                _ => return None,
            },
            IpAddr::V6(address) => match address.segments() {
                [0xfd61, 0x6e61, 0x6272, instance, ..] => u8::try_from(instance).ok()?,
                _ => return None,
            },
        };
        Some(Self { instance })
    }

    fn ipv4(self, path: u8, end: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.instance, 4 * (path % MAX_PATHS) + end)
    }

    fn ipv6(self, path: u8, end: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd61, 0x6e61, 0x6272, self.instance.into(), path.into(), 0, 0, end.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernels_fifteen_bytes() {
        let layout = Layout { instance: MAX_INSTANCES - 1 };
        assert_eq!(layout.device(MAX_PATHS - 1), "anabranch99-31");
        assert!(layout.device(MAX_PATHS - 1).len() <= 15);
    }

    #[test]
    fn the_last_path_of_the_last_instance_stays_within_its_network_and_tables() {
        let layout = Layout { instance: MAX_INSTANCES - 1 };
        assert_eq!(layout.stack_ipv4(MAX_PATHS - 1), Ipv4Addr::new(198, 18, 99, 126));
        assert_eq!(layout.table(MAX_PATHS - 1), 198_189_931);
    }

    #[test]
    fn what_is_ours_is_recognised_and_what_looks_like_it_is_not() {
        let layout = Layout { instance: 7 };
        assert_eq!(Layout::of_device(&layout.device(31)), Some(layout));
        assert_eq!(Layout::of_table(layout.table(31)), Some(layout));
        assert_eq!(Layout::of_nft_table(&layout.nft_table()), Some(layout));
        assert_eq!(Layout::of_address(layout.stack_ipv4(31).into()), Some(layout));
        assert_eq!(Layout::of_address(layout.host_ipv6(31).into()), Some(layout));
        assert_eq!(Layout::of_device("anabranch"), None);
        assert_eq!(Layout::of_table(198_179_999), None);
        assert_eq!(Layout::of_table(198_190_000), None);
        assert_eq!(Layout::of_nft_table("anabranch_mine"), None);
    }
}
