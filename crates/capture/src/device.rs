//! The TUN device that packets are read from.

use anabranch_stack::device::{TunConfig, open_tun_with_offloads};
use std::io;
use std::os::fd::OwnedFd;

/// MTU of the device in bytes of IP: a full UDP packet fits, sealed, into a packet that every path carries.
pub const MTU: u16 = anabranch_datagram::INSIDE_MTU;

/// Creates a TUN device of [`MTU`] for [`super::Capture::new`] in the caller's namespace. It disappears when its last
/// descriptor is closed. The caller sets addresses and routes.
///
/// # Errors
/// The kernel's error: [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, [`io::ErrorKind::NotFound`] without TUN.
pub fn open_device(name: &str) -> io::Result<OwnedFd> {
    open_tun_with_offloads(&TunConfig::new(name, MTU))
}
