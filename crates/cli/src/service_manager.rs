//! Notifies a service manager such as systemd that the program is ready or stopping (sd_notify(3)).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Clients are served from now on.
pub fn ready() {
    tell("READY=1");
}

pub fn stopping() {
    tell("STOPPING=1");
}

/// Does nothing without a service manager.
fn tell(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let name = name.as_encoded_bytes();
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => std::str::from_utf8(name).map_err(std::io::Error::other).and_then(SocketAddr::from_pathname),
    };
    let told = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    // Failures do not affect the service.
    let _ = told;
}
