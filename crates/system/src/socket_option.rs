//! Socket options that libraries lack.

use nix::errno::Errno;
use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};

/// Reads a socket option. Returns the number of bytes written to `value`.
///
/// # Errors
/// An error of the kernel.
pub fn socket_option(socket: RawFd, level: i32, name: i32, value: &mut [u8]) -> Result<usize, Errno> {
    let mut length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has that many.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::getsockopt(socket, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(outcome)?;
    Ok((length as usize).min(value.len()))
}

/// Makes the kernel distribute datagrams over `count` UDP sockets that share an address with SO_REUSEPORT. The four
/// bytes at `offset` of the payload, modulo `count`, are the index of the socket in the order of binding. Shorter
/// datagrams go to the first.
///
/// # Errors
/// An error of the kernel.
pub fn steer_by_word(socket: impl AsFd, offset: usize, count: u32) -> io::Result<()> {
    let code = |code: u32| u16::try_from(code).unwrap_or(u16::MAX);
    let step = |of: u32, k: u32| libc::sock_filter { code: code(of), jt: 0, jf: 0, k };
    let offset = u32::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, count.max(1)),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (socket, length) = (socket.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    let value = (&raw const program).cast();
    // SAFETY: the kernel reads `length` bytes at `value` and the instructions to which these point; all outlive the
    // call.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, value, length) };
    Errno::result(outcome)?;
    Ok(())
}
