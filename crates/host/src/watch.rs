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

/// Routes and rules. The last one has no name in libc: RTNLGRP_IPV6_RULE is 19.
const ROUTING: libc::c_int = libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE | libc::RTMGRP_IPV4_RULE | 1 << (19 - 1);

/// A socket for the kernel's notifications of changes.
pub struct Watch {
    socket: AsyncFd<OwnedFd>,
    /// The protocol number and the table of the routes watched; none: all messages count.
    routes: Option<(u8, u32)>,
}

impl Watch {
    /// Listens to all changes in the caller's namespace. Call this within a runtime.
    pub fn open() -> io::Result<Self> {
        Self::of(ALL, None)
    }

    /// Listens to changes of links and addresses, not of routes.
    pub fn interfaces() -> io::Result<Self> {
        Self::of(INTERFACES, None)
    }

    /// Listens to what others do to the routes of a protocol number in a table: routes of it that are removed, other
    /// routes that are set in the table, and all changes of rules.
    pub fn routing(protocol: u8, table: u32) -> io::Result<Self> {
        Self::of(ROUTING, Some((protocol, table)))
    }

    fn of(groups: libc::c_int, routes: Option<(u8, u32)>) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
        Ok(Self { socket: watch(socket)?, routes })
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
                        Ok(length) => heard |= concerns(self.routes, message.get(..length).unwrap_or_default()),
                        // The queue overflowed: something has changed.
                        Err(Errno::ENOBUFS) => heard = true,
                        Err(error) => return Err::<(), _>(io::Error::from(error)),
                    }
                }
            });
        }
        Ok(())
    }
}

/// Whether a message counts. Its type is at offset 4 of `struct nlmsghdr`; `struct rtmsg` follows with the table, up to
/// 255, at offset 4 and the protocol at 5 (rtnetlink(7)).
fn concerns(routes: Option<(u8, u32)>, message: &[u8]) -> bool {
    let Some((protocol, table)) = routes else { return true };
    let byte = |at: usize| message.get(at).copied().unwrap_or_default();
    let is_ours = byte(21) == protocol;
    match u16::from_ne_bytes([byte(4), byte(5)]) {
        libc::RTM_DELROUTE => is_ours,
        libc::RTM_NEWROUTE => !is_ours && (table > 255 || u32::from(byte(20)) == table),
        libc::RTM_NEWRULE | libc::RTM_DELRULE => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_do_to_our_routes_counts_and_what_we_do_does_not() {
        let message = |kind: u16, table, protocol| {
            let mut message = [0; 28];
            message[4..6].copy_from_slice(&kind.to_ne_bytes());
            (message[20], message[21]) = (table, protocol);
            concerns(Some((199, 198)), &message)
        };
        assert!(message(libc::RTM_DELROUTE, 198, 199) && !message(libc::RTM_DELROUTE, 254, 2));
        assert!(message(libc::RTM_NEWROUTE, 198, 3) && !message(libc::RTM_NEWROUTE, 254, 3));
        assert!(!message(libc::RTM_NEWROUTE, 198, 199));
        assert!(message(libc::RTM_DELRULE, 0, 0) && message(libc::RTM_NEWRULE, 0, 0));
        assert!(!message(libc::RTM_NEWLINK, 0, 0) && concerns(None, &[]));
    }
}
