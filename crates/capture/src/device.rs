//! The device that packets are taken from.

use anabranch_stack::device::{TunConfig, open_tun_with_offloads};
use std::io;
use std::os::fd::OwnedFd;

/// Largest packet of the device, bytes of IP: one of UDP fits, sealed, into what every path carries.
pub const MTU: u16 = anabranch_datagram::INSIDE_MTU;

/// A new TUN device for [`super::Capture::new`] in the caller's namespace, of [`MTU`]; it is gone when its last descriptor is. Addresses
/// and routes are the caller's job.
///
/// # Errors
/// What the kernel says: [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, [`io::ErrorKind::NotFound`] without TUN.
pub fn open_device(name: &str) -> io::Result<OwnedFd> {
    open_tun_with_offloads(&TunConfig::new(name, MTU))
}
