//! File descriptors in the runtime.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Lets the runtime watch a non-blocking descriptor. To be called within a runtime.
///
/// # Errors
/// If the runtime cannot watch it.
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open as long as it lives and always the same descriptor; nobody but the `AsyncFd` has it.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register(descriptor) };
    Ok(watched?)
}

/// Lets the process have `wanted` descriptors, or as many as it may, and says how many that are: each connection of a
/// proxy takes one.
///
/// # Errors
/// What the kernel says.
pub fn allow(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    // Beyond the hard limit only the privileged may go.
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted.max(hard)).is_ok() {
        return Ok(wanted);
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
