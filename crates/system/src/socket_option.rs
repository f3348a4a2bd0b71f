//! Socket options that libraries lack.

use nix::errno::Errno;
use nix::libc;
use std::os::fd::RawFd;

/// Asks for an option of a socket; returns how many bytes of `value` the kernel filled.
///
/// # Errors
/// What the kernel says.
pub fn socket_option(socket: RawFd, level: i32, name: i32, value: &mut [u8]) -> Result<usize, Errno> {
    let mut length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::getsockopt(socket, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(outcome)?;
    Ok((length as usize).min(value.len()))
}
