//! Access rules for the targets that clients may name.

use super::target::{Host, Target};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Metadata services of clouds that are not at a link-local address: of Alibaba Cloud, and of Amazon over IPv6.
const METADATA_V4: Ipv4Addr = Ipv4Addr::new(100, 100, 100, 200);
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Hosts that a rule is about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    /// `*`: all except addresses that only the server's own host can reach.
    All,
    /// One name, as the client says it.
    Name(Box<str>),
    /// `*.NAME`: all names that end in this, which begins with a dot.
    Under(Box<str>),
    /// Addresses that agree with this one in so many first bits.
    Network(IpAddr, u8),
}

/// One rule: hosts, and one port or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    hosts: Hosts,
    port: Option<u16>,
}

/// Why a text is not a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a rule is HOST:PORT, where HOST is a name, *.NAME, an address, a network such as 10.0.0.0/8 or [2001:db8::]/32, or *, \
     and PORT is a number or *"
)]
pub struct RuleError;

/// What clients may name: what at least one rule allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowList {
    rules: Vec<Rule>,
}

impl Rule {
    /// Reads a rule that may leave the port out: then it is about all ports.
    ///
    /// # Errors
    /// [`RuleError`].
    pub(super) fn with_or_without_port(text: &str) -> Result<Self, RuleError> {
        // First without: an address of IPv6 may end in what looks like a port.
        text.parse().map(|hosts| Self { hosts, port: None }).or_else(|_| text.parse())
    }

    /// Whether it is about a target as it was named: addresses are compared with addresses only.
    pub(super) fn names(&self, target: &Target) -> bool {
        let of_host = match (&self.hosts, &target.host) {
            (Hosts::All, _) => true,
            (Hosts::Network(network, bits), Host::Address(address)) => agree(*network, address.to_canonical(), *bits),
            (hosts, Host::Name(name)) => hosts.has_name(name),
            _ => false,
        };
        of_host && self.port.is_none_or(|port| port == target.port)
    }
}

impl Hosts {
    /// Whether a name is this one, or one under it.
    fn has_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        match self {
            Self::Name(known) => known.trim_end_matches('.') == name,
            Self::Under(end) => name.ends_with(end.trim_end_matches('.')),
            Self::All | Self::Network(..) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (hosts, port) = text.rsplit_once(':').ok_or(RuleError)?;
        let port = match port {
            "*" => None,
            number => Some(number.parse().ok().filter(|&port| port != 0).ok_or(RuleError)?),
        };
        Ok(Self { hosts: hosts.parse()?, port })
    }
}

impl FromStr for Hosts {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::All);
        }
        if let Some(name) = text.strip_prefix("*.") {
            return match name.parse() {
                Ok(Host::Name(name)) => Ok(Self::Under(format!(".{name}").into())),
                _ => Err(RuleError),
            };
        }
        let (host, bits) = match text.split_once('/') {
            Some((host, bits)) => (host, Some(bits.parse::<u8>().map_err(|_| RuleError)?)),
            None => (text, None),
        };
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => Host::Address(IpAddr::V6(inner.parse().map_err(|_| RuleError)?)),
            None => host.parse().map_err(|_| RuleError)?,
        };
        match (host, bits) {
            (Host::Name(name), None) => Ok(Self::Name(name)),
            (Host::Name(_), Some(_)) => Err(RuleError),
            (Host::Address(address), bits) => {
                let longest = if address.is_ipv6() { 128 } else { 32 };
                let bits = bits.unwrap_or(longest);
                if bits > longest { Err(RuleError) } else { Ok(Self::Network(address, bits)) }
            }
        }
    }
}

/// Whether two addresses are of one family and agree in the first `bits` bits.
fn agree(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let (a, b, width) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    // No bits at all: a shift by the whole width is not one.
    (a ^ b).checked_shr(width - u32::from(bits)).unwrap_or(0) == 0
}

/// Whether an address means a different host on each host that uses it: services that trust "this host only" listen there.
fn only_here(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let own = v4.is_loopback() || v4.is_unspecified() || v4.is_link_local();
            own || v4.is_multicast() || v4.is_broadcast() || v4 == METADATA_V4
        }
        IpAddr::V6(v6) => {
            let own = v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local();
            own || v6.is_multicast() || v6 == METADATA_V6
        }
    }
}

impl Default for AllowList {
    /// Everything but what only the server's own host can reach.
    fn default() -> Self {
        Self { rules: vec![Rule { hosts: Hosts::All, port: None }] }
    }
}

impl AllowList {
    /// Whether there is a rule about names, which needs clients that name their targets.
    pub fn has_names(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.hosts, Hosts::Name(_) | Hosts::Under(_)))
    }

    /// What at least one of `rules` allows.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Whether clients may reach an address without a name. Rules about names do not apply.
    pub fn allows(&self, address: SocketAddr) -> bool {
        let target = Target { host: Host::Address(address.ip().to_canonical()), port: address.port() };
        !self.admit(&target, vec![address]).is_empty()
    }

    /// The target's `addresses` that clients may be connected to. A rule about a name allows all addresses of the name;
    /// rules about addresses are compared with the addresses, whatever the name is.
    pub(super) fn admit(&self, target: &Target, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let rules = || self.rules.iter().filter(|rule| rule.port.is_none_or(|port| port == target.port));
        let by_name = |rule: &Rule| matches!(&target.host, Host::Name(name) if rule.hosts.has_name(name));
        if !rules().any(by_name) {
            addresses.retain(|address| {
                let address = address.ip().to_canonical();
                rules().any(|rule| match rule.hosts {
                    Hosts::All => !only_here(address),
                    Hosts::Network(network, bits) => agree(network, address, bits),
                    Hosts::Name(_) | Hosts::Under(_) => false,
                })
            });
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rules: &[&str]) -> AllowList {
        AllowList::new(rules.iter().map(|rule| rule.parse().expect("a rule")).collect())
    }

    /// Whether a client that names `target`, which has this address, is connected.
    fn admits(list: &AllowList, target: &str, address: &str) -> bool {
        let target: Target = target.parse().expect("a target");
        let address = SocketAddr::new(address.parse().expect("an address"), target.port);
        !list.admit(&target, vec![address]).is_empty()
    }

    #[test]
    fn by_default_all_is_allowed_but_the_servers_own_host() {
        let list = AllowList::default();
        assert!(admits(&list, "example.org:443", "192.0.2.1"));
        assert!(admits(&list, "10.0.0.1:22", "10.0.0.1"));
        assert!(admits(&list, "example.org:80", "fd00:ec2::253") && admits(&list, "example.org:80", "100.100.100.201"));
        assert!(admits(&self::list(&["[fd00:ec2::254]:80"]), "[fd00:ec2::254]:80", "fd00:ec2::254"), "a rule names it");
        let own = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "100.100.100.200",
            "fd00:ec2::254",
            "::ffff:100.100.100.200",
            "::1",
            "::",
            "fe80::1",
            "::ffff:127.0.0.1",
            "224.0.0.1",
            "ff02::1",
        ];
        for own in own {
            assert!(!admits(&list, "innocent.example:80", own), "{own}");
        }
    }

    #[test]
    fn names_are_allowed_as_the_client_says_them() {
        let list = list(&["example.org:443", "*.example.net:*"]);
        assert!(admits(&list, "EXAMPLE.org:443", "192.0.2.1"));
        assert!(admits(&list, "example.org.:443", "127.0.0.1"));
        assert!(!admits(&list, "example.org:80", "192.0.2.1"));
        assert!(!admits(&list, "sub.example.org:443", "192.0.2.1"));
        assert!(admits(&list, "a.b.example.net:1", "192.0.2.1"));
        assert!(!admits(&list, "example.net:1", "192.0.2.1"));
        assert!(!admits(&list, "badexample.net:1", "192.0.2.1"));
        assert!(!admits(&list, "192.0.2.1:443", "192.0.2.1"));
    }

    #[test]
    fn networks_are_held_against_what_a_name_stands_for() {
        let list = list(&["10.0.0.0/8:*", "[2001:db8::]/32:443", "127.0.0.1:8080"]);
        assert!(admits(&list, "inside.example:22", "10.255.0.1"));
        assert!(!admits(&list, "inside.example:22", "11.0.0.1"));
        assert!(admits(&list, "[2001:db8:1::1]:443", "2001:db8:1::1"));
        assert!(!admits(&list, "[2001:db9::1]:443", "2001:db9::1"));
        assert!(admits(&list, "localhost:8080", "127.0.0.1"));
        assert!(!admits(&list, "localhost:8081", "127.0.0.1"));
        assert!(admits(&list, "localhost:8080", "::ffff:127.0.0.1"));
        assert!(admits(&self::list(&["0.0.0.0/0:80"]), "127.0.0.1:80", "127.0.0.1"));
    }

    #[test]
    fn an_address_without_a_name_is_held_against_rules_with_addresses() {
        let allows = |list: &AllowList, address: &str| list.allows(address.parse().expect("an address"));
        for own in ["127.0.0.1:53", "[::ffff:127.0.0.1]:53", "169.254.169.254:80", "[fe80::1]:1", "255.255.255.255:9"] {
            assert!(!allows(&AllowList::default(), own), "{own}");
        }
        assert!(allows(&AllowList::default(), "192.0.2.1:443"));
        let list = list(&["example.org:443", "192.0.2.0/24:53"]);
        assert!(allows(&list, "192.0.2.9:53") && allows(&list, "[::ffff:192.0.2.9]:53"));
        assert!(!allows(&list, "192.0.2.9:443") && !allows(&list, "198.51.100.1:443"));
    }

    #[test]
    fn no_rules_allow_nothing_and_wrong_ones_are_refused() {
        assert!(!admits(&list(&[]), "192.0.2.1:80", "192.0.2.1"));
        for text in [
            "",
            "example.org",
            "example.org:0",
            "example.org:x",
            "10.0.0.0/33:1",
            "a.b/8:1",
            "*.1.2.3.4:1",
            "[::1:1",
            "*x:1",
        ] {
            assert_eq!(text.parse::<Rule>(), Err(RuleError), "{text}");
        }
    }
}
