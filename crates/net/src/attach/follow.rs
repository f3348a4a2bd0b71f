//! Hears of changes of the network over rtnetlink, and has stack and host adjusted to them.
//!
//! What a message says is not used: after each, the state is read and compared. So a message that is lost when the queue
//! is full costs nothing, and a burst of them is worth one look.

use super::HostError;
use crate::descriptor::watch;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Least time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// When to try again what did not succeed, if nothing is heard meanwhile.
const RETRY: Duration = Duration::from_secs(1);

/// What is listened to: links, addresses and routes.
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

/// A socket on which the kernel tells of changes.
pub(super) struct Watch {
    socket: AsyncFd<OwnedFd>,
}

impl Watch {
    /// Listens in the caller's namespace. To be called within a runtime.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS as u32))?;
        Ok(Self { socket: watch(socket)? })
    }

    /// Completes when something has changed, and forgets what.
    async fn changed(&self) -> io::Result<()> {
        let mut heard = false;
        while !heard {
            let mut guard = self.socket.readable().await?;
            let _would_block = guard.try_io(|socket| {
                let mut message = [0; 4_096];
                loop {
                    match recv(socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
                        // The queue ran over: something has changed.
                        Ok(_) | Err(Errno::ENOBUFS) => heard = true,
                        Err(error) => return Err::<(), _>(io::Error::from(error)),
                    }
                }
            });
        }
        Ok(())
    }
}

/// Has `adjust` called after each change, until it is aborted.
pub(super) async fn follow(watch: Watch, mut adjust: impl FnMut() -> Result<(), HostError>) {
    let mut failed = false;
    loop {
        let heard = watch.changed();
        let heard = if failed { tokio::time::timeout(RETRY, heard).await.unwrap_or(Ok(())) } else { heard.await };
        if heard.is_err() {
            return;
        }
        // What cannot be done now, e.g. because the interface is gone again, is tried again.
        failed = adjust().is_err();
        tokio::time::sleep(PAUSE).await;
    }
}
