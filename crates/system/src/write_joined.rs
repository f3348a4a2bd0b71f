//! Writes one packet from several slices.

use nix::libc::{self, iovec};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};

/// Writes the slices as one packet. Returns whether it was accepted. Slices adjacent in memory, as the payloads of a
/// GSO packet mostly are, are joined; there may be at most `MOST` after that. Many short slices take the kernel about
/// twice as long to copy.
pub fn write_joined<const MOST: usize>(descriptor: &OwnedFd, pieces: &[IoSlice<'_>]) -> bool {
    let nothing = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut joined = [nothing; MOST];
    let mut count = 0_usize;
    for piece in pieces {
        let (base, length) = (piece.as_ptr().cast_mut(), piece.len());
        let last = count.checked_sub(1).and_then(|last| joined.get_mut(last));
        match last.filter(|last| last.iov_base.cast::<u8>().wrapping_add(last.iov_len) == base) {
            Some(last) => last.iov_len += length,
            None => {
                let Some(place) = joined.get_mut(count) else { return false };
                *place = iovec { iov_base: base.cast(), iov_len: length };
                count += 1;
            }
        }
    }
    // SAFETY: the first `count` entries are initialised; all bytes that they refer to lie in the slices, which outlive
    // the call, and the kernel only reads them.
    #[allow(unsafe_code)]
    let written = unsafe { libc::writev(descriptor.as_raw_fd(), joined.as_ptr(), count as i32) };
    written >= 0
}
