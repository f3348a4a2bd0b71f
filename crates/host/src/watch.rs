//! Watches changes of the network over rtnetlink.
//!
//! The content of messages is not used: after each, the state is read and compared. So a message lost from a full queue
//! does no harm, and a burst of messages needs one look.

use anabranch_system::watch;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Links and addresses.
const INTERFACES: libc::c_int = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;

/// Links, addresses and routes.
const ALL: libc::c_int = INTERFACES | libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;

/// A socket for the kernel's notifications of changes.
pub struct Watch {
    socket: AsyncFd<OwnedFd>,
}

impl Watch {
    /// Listens to all changes in the caller's namespace. Call this within a runtime.
    pub fn open() -> io::Result<Self> {
        Self::of(ALL)
    }

    /// Listens to changes of links and addresses, not of routes.
    pub fn interfaces() -> io::Result<Self> {
        Self::of(INTERFACES)
    }

    fn of(groups: libc::c_int) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
        Ok(Self { socket: watch(socket)? })
    }

    /// Completes when something has changed; discards the pending messages.
    pub async fn changed(&self) -> io::Result<()> {
        let mut heard = false;
        while !heard {
            let mut guard = self.socket.readable().await?;
            let _would_block = guard.try_io(|socket| {
                let mut message = [0; 4_096];
                loop {
                    match recv(socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
                        // The queue overflowed: something has changed.
                        Ok(_) | Err(Errno::ENOBUFS) => heard = true,
                        Err(error) => return Err::<(), _>(io::Error::from(error)),
                    }
                }
            });
        }
        Ok(())
    }
}
