//! Values of options that several commands have.

use anabranch_policy::time::Duration;
use anabranch_settings::quantity;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

/// Parses whole seconds, with a unit or without.
pub fn seconds(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let second = Duration::from_secs(1).as_nanos();
    let of_time = |time: Duration| time.as_nanos().is_multiple_of(second).then_some(time.as_nanos() / second);
    let seconds = text.trim().parse().ok().or_else(|| quantity::parse(text).ok().and_then(of_time));
    seconds.filter(|seconds| range.contains(seconds)).ok_or_else(|| {
        format!("whole seconds from {} to {} are possible, such as 600 or \"10 min\"", range.start(), range.end())
    })
}

/// Parses `[ADDRESS:]PORT`. A port alone is one of 127.0.0.1.
pub fn listener(text: &str) -> Result<SocketAddr, String> {
    match text.parse() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text.parse().map_err(|_| format!("'{text}' is neither a port nor ADDRESS:PORT")),
    }
}

/// Parses a port to listen on.
pub fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            Err("a port alone is expected, from 1 to 65535: the addresses are those of the uplinks".to_owned())
        }
        _ => Err("a port is expected, from 1 to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_a_unit_or_none() {
        let read = |text| seconds(text, 1..=7_200);
        for (text, expected) in [("1", 1), ("7200", 7_200), (" 30 ", 30), ("2h", 7_200), ("10 min", 600), ("1e3 ms", 1)]
        {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for wrong in ["0", "7201", "-1", "1.5", "1500 ms", "3 h", "2 hours", "", "1..2 s"] {
            let message = "whole seconds from 1 to 7200 are possible, such as 600 or \"10 min\"";
            assert_eq!(read(wrong), Err(message.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn a_port_is_one_without_an_address() {
        assert_eq!((port("1"), port("65535")), (Ok(1), Ok(65_535)));
        for wrong in ["10.1.1.2:5004", "[::1]:5004"] {
            assert!(port(wrong).is_err_and(|message| message.starts_with("a port alone is expected")), "{wrong}");
        }
        for wrong in ["", "0", "65536", "-1", "http", "2001:db8::x"] {
            assert_eq!(port(wrong), Err("a port is expected, from 1 to 65535".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn a_listener_is_a_port_of_this_host_or_an_address_with_a_port() {
        assert_eq!(listener("1080"), Ok(SocketAddr::from(([127, 0, 0, 1], 1080))));
        assert_eq!(listener("[::1]:80").map(|address| address.to_string()), Ok("[::1]:80".to_owned()));
        for wrong in ["", "70000", "localhost:1080", "127.0.0.1"] {
            assert_eq!(listener(wrong), Err(format!("'{wrong}' is neither a port nor ADDRESS:PORT")));
        }
    }
}
