//! Descriptors in the runtime's hands.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Lets the runtime watch a non-blocking descriptor. To be called within a runtime.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open as long as it lives and always the same descriptor; nobody but the `AsyncFd` has it.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register(descriptor) };
    Ok(watched?)
}

/// Lets the process have as many descriptors as it may, and says how many that are: a proxy's connections take one each.
///
/// # Errors
/// What the kernel says.
pub fn allow_many() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}
