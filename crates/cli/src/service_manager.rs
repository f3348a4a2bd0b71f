//! Notifies a service manager such as systemd that the program is ready or stopping (sd_notify(3)).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Time for what was set up on the host to be undone.
const UNDOING: Duration = Duration::from_secs(30);

/// Clients are served from now on.
pub fn ready() {
    tell("READY=1");
}

/// The program ends, which may take it as long as this beside what undoing takes. A service manager would kill it after a time of
/// its own (TimeoutStopSec, 90 s for systemd) that knows nothing of `--drain`.
pub fn stopping(within: Duration) {
    tell("STOPPING=1");
    tell(&format!("EXTEND_TIMEOUT_USEC={}", (within + UNDOING).as_micros()));
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
