//! Where a client wants to be connected to, as text and as SOCKS5 has it on the wire (RFC 1928, section 5).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Longest name of a host, bytes (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// A host, by address or by a name that is still to be resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// Its address.
    Address(IpAddr),
    /// Its name: letters, digits, `-`, `_` and dots.
    Name(Box<str>),
}

/// A host and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, not 0.
    pub port: u16,
}

/// Why something does not name a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// No port, or none from 1 to 65535.
    #[error("the host needs a port from 1 to 65535, as in example.org:443")]
    Port,
    /// The host is neither an address nor a name.
    #[error("the host is neither an address nor a name; an IPv6 address needs brackets, as in [2001:db8::1]:443")]
    Host,
    /// The type of address is unknown (SOCKS5).
    #[error("the type of address is unknown")]
    AddressType,
}

impl FromStr for Host {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || text.len() > LONGEST_NAME || text.starts_with(['-', '.']) || !text.chars().all(allowed) {
            return Err(TargetError::Host);
        }
        Ok(Self::Name(text.to_ascii_lowercase().into()))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `HOST:PORT`, an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::Port)?;
        let port = port.parse().ok().filter(|&port| port != 0).ok_or(TargetError::Port)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => Host::Address(IpAddr::V6(inner.parse().map_err(|_| TargetError::Host)?)),
            None => host.parse()?,
        };
        Ok(Self { host, port })
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Address(address.ip()), port: address.port() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// Takes `N` bytes from the front.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(first)
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    take(rest, N)?.try_into().ok()
}

impl Target {
    /// Appends type of address, address and port (RFC 1928, section 5).
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.host {
            Host::Address(IpAddr::V4(address)) => {
                out.push(IPV4);
                out.extend_from_slice(&address.octets());
            }
            Host::Address(IpAddr::V6(address)) => {
                out.push(IPV6);
                out.extend_from_slice(&address.octets());
            }
            Host::Name(name) => {
                out.push(NAME);
                // 253 at most.
                out.push(name.len() as u8);
                out.extend_from_slice(name.as_bytes());
            }
        }
        out.extend_from_slice(&self.port.to_be_bytes());
    }

    /// Reads what [`Self::encode`] writes from the front of `input`, and says how long it was; none if there is more to come.
    ///
    /// # Errors
    /// [`TargetError`], as soon as no continuation can make it right.
    pub fn decode(input: &[u8]) -> Result<Option<(Self, usize)>, TargetError> {
        let mut rest = input;
        let Some([kind]) = take_array(&mut rest) else { return Ok(None) };
        let host = match kind {
            IPV4 => take_array(&mut rest).map(|octets: [u8; 4]| Host::Address(Ipv4Addr::from(octets).into())),
            IPV6 => take_array(&mut rest).map(|octets: [u8; 16]| Host::Address(Ipv6Addr::from(octets).into())),
            NAME => {
                let Some([length]) = take_array(&mut rest) else { return Ok(None) };
                match take(&mut rest, usize::from(length)) {
                    Some(name) => Some(core::str::from_utf8(name).map_err(|_| TargetError::Host)?.parse()?),
                    None => None,
                }
            }
            _ => return Err(TargetError::AddressType),
        };
        let (Some(host), Some(port)) = (host, take_array(&mut rest)) else { return Ok(None) };
        match u16::from_be_bytes(port) {
            0 => Err(TargetError::Port),
            port => Ok(Some((Self { host, port }, input.len() - rest.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().expect("a target")
    }

    #[test]
    fn hosts_are_addresses_or_names() {
        assert_eq!(target("192.0.2.1:80"), Target::from(SocketAddr::from(([192, 0, 2, 1], 80))));
        assert_eq!(target("[2001:db8::1]:443").to_string(), "[2001:db8::1]:443");
        assert_eq!(target("Example.ORG:1").to_string(), "example.org:1");
        assert_eq!(target("a_b-c.d.:65535").port, 65535);
    }

    #[test]
    fn what_is_no_target_is_refused_with_the_reason() {
        for text in ["", "example.org", "example.org:", "example.org:0", "example.org:65536", "example.org:http"] {
            assert_eq!(text.parse::<Target>(), Err(TargetError::Port), "{text}");
        }
        for text in
            [":80", "[::1:80", "[192.0.2.1]:80", "a b:80", "-a:80", ".:80", "ex\u{e4}mple:80", "a/b:80", "a:b:80"]
        {
            assert_eq!(text.parse::<Target>(), Err(TargetError::Host), "{text}");
        }
        assert_eq!(format!("{}:80", "a".repeat(254)).parse::<Target>(), Err(TargetError::Host));
        assert!(format!("{}:80", "a".repeat(253)).parse::<Target>().is_ok());
    }

    #[test]
    fn every_beginning_of_a_target_asks_for_more_and_the_whole_is_read_back() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "example.org:8080"] {
            let mut bytes = Vec::new();
            target(text).encode(&mut bytes);
            for length in 0..bytes.len() {
                assert_eq!(Target::decode(&bytes[..length]), Ok(None), "{text}, {length} bytes");
            }
            let length = bytes.len();
            bytes.extend_from_slice(b"and more");
            assert_eq!(Target::decode(&bytes), Ok(Some((target(text), length))));
        }
    }

    #[test]
    fn wrong_types_names_and_ports_are_refused_on_the_wire() {
        assert_eq!(Target::decode(&[2]), Err(TargetError::AddressType));
        assert_eq!(Target::decode(&[NAME, 0, 0, 80]), Err(TargetError::Host));
        assert_eq!(Target::decode(&[NAME, 1, 0xff, 0, 80]), Err(TargetError::Host));
        assert_eq!(Target::decode(&[NAME, 3, b'a', b'\r', b'\n', 0, 80]), Err(TargetError::Host));
        assert_eq!(Target::decode(&[IPV4, 192, 0, 2, 1, 0, 0]), Err(TargetError::Port));
    }

    #[test]
    fn an_address_that_is_sent_as_a_name_is_an_address() {
        let mut bytes = vec![NAME, 9];
        bytes.extend_from_slice(b"127.0.0.1\x00\x50");
        let (read, _) = Target::decode(&bytes).expect("well formed").expect("whole");
        assert_eq!(read, target("127.0.0.1:80"));
    }
}
