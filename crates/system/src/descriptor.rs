//! File descriptors in the runtime.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Registers a non-blocking descriptor with the runtime. Call this within a runtime.
///
/// # Errors
/// If registration fails.
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open while it lives and always the same descriptor; only the `AsyncFd` owns it.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register(descriptor) };
    Ok(watched?)
}

/// Raises the limit of descriptors to `wanted` or as far as possible. Returns the new limit. Each connection of a proxy
/// uses one descriptor.
///
/// # Errors
/// An error of the kernel.
pub fn allow(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    // Only privileged processes may exceed the hard limit.
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted.max(hard)).is_ok() {
        return Ok(wanted);
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
