//! Descriptors in the runtime's hands.

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
