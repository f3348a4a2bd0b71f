//! File descriptors: in the runtime, their limit, and those of files that may be pipes.

use nix::libc::{EMFILE, ENFILE, O_NONBLOCK};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// Registers a non-blocking descriptor with the runtime, for reading. Call this within a runtime.
///
/// # Errors
/// If registration fails.
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open while it lives and always the same descriptor; only the `AsyncFd` owns it.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(watched?)
}

/// Ready when there may be something to read.
///
/// # Errors
/// [`io::ErrorKind::NotConnected`] if the descriptor's device is gone.
pub fn poll_readable<'a>(
    descriptor: &'a AsyncFd<OwnedFd>,
    context: &mut Context<'_>,
) -> Poll<io::Result<AsyncFdReadyGuard<'a, OwnedFd>>> {
    if let ready @ Poll::Ready(_) = descriptor.poll_read_ready(context) {
        return ready;
    }
    // The kernel reports a device that is gone by EPOLLERR alone, which counts as closed for writing and not as readable.
    let _closed = ready!(descriptor.poll_write_ready(context))?;
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

/// Whether a descriptor was not opened because this process or the host may open no more files (errno(3), EMFILE and ENFILE).
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Opens a file for reading without waiting for a writer, if it is a FIFO (fifo(7)). Where nothing has come yet, reading it is
/// [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// As [`File::open`].
pub fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)
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
