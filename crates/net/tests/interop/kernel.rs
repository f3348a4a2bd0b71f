//! The kernel's end: what it must have, how it is set up, and its sockets.

use anabranch_net::namespace::Namespace;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// What this machine lacks for these tests, if anything.
pub fn missing() -> Option<String> {
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return Some("the kernel has no MPTCP".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has no TUN".to_owned());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("there is no program `ip` (iproute2)".to_owned());
    }
    Namespace::new().err().map(|error| format!("no network namespaces, are we root? ({error})"))
}

/// Runs `ip WORDS` in the calling thread's namespace.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A socket of the kernel's MPTCP.
pub fn mptcp_socket(address: SocketAddr) -> Socket {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP)).expect("the kernel has MPTCP")
}
