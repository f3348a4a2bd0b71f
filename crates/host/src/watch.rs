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

/// The last one has no name in libc: RTNLGRP_IPV6_RULE is 19.
const RULES: libc::c_int = libc::RTMGRP_IPV4_RULE | 1 << (19 - 1);

/// Whether interfaces forward, and how strictly they look at sources: RTNLGRP_IPV4_NETCONF is 24, RTNLGRP_IPV6_NETCONF 25.
const SETTINGS: libc::c_int = 1 << (24 - 1) | 1 << (25 - 1);

/// A change of such a setting (RTM_NEWNETCONF).
const NEW_SETTING: u16 = 80;

/// Routes, rules and settings.
const ROUTING: libc::c_int = libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE | RULES | SETTINGS;

/// A socket for the kernel's notifications of changes.
pub struct Watch {
    socket: AsyncFd<OwnedFd>,
    filter: Filter,
}

/// Which messages count.
#[derive(Clone, Copy)]
enum Filter {
    All,
    /// What others do to the routes of this protocol number in this table, and rules and settings.
    Routes {
        protocol: u8,
        table: u32,
    },
    /// Default routes but for those of this protocol number.
    DefaultRoutes {
        but: u8,
    },
}

impl Watch {
    /// Listens to changes of links, addresses and routes in the caller's namespace. Call this within a runtime.
    pub fn open() -> io::Result<Self> {
        Self::of(ALL, Filter::All)
    }

    /// Listens to changes of links, addresses, routes and rules.
    pub fn with_rules() -> io::Result<Self> {
        Self::of(ALL | RULES, Filter::All)
    }

    /// Listens to changes of links and addresses, not of routes.
    pub fn interfaces() -> io::Result<Self> {
        Self::of(INTERFACES, Filter::All)
    }

    /// Listens to what others do to the routes of a protocol number in a table: routes of it that are removed, other
    /// routes that are set in the table, and all changes of rules and of whether interfaces forward.
    pub fn routing(protocol: u8, table: u32) -> io::Result<Self> {
        Self::of(ROUTING, Filter::Routes { protocol, table })
    }

    /// Listens to changes of default routes, in any table, but for those of a protocol number.
    pub fn default_routes(but: u8) -> io::Result<Self> {
        Self::of(libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE, Filter::DefaultRoutes { but })
    }

    fn of(groups: libc::c_int, filter: Filter) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
        Ok(Self { socket: watch(socket)?, filter })
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
                        Ok(length) => heard |= concerns(self.filter, message.get(..length).unwrap_or_default()),
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

/// Whether a message counts. Its type is at offset 4 of `struct nlmsghdr`; `struct rtmsg` follows with the prefix length at
/// offset 1, the table, up to 255, at 4 and the protocol at 5 (rtnetlink(7)).
fn concerns(filter: Filter, message: &[u8]) -> bool {
    let byte = |at: usize| message.get(at).copied().unwrap_or_default();
    let kind = u16::from_ne_bytes([byte(4), byte(5)]);
    match (filter, kind) {
        (Filter::All, _) => true,
        (Filter::Routes { protocol, .. }, libc::RTM_DELROUTE) => byte(21) == protocol,
        (Filter::Routes { protocol, table }, libc::RTM_NEWROUTE) => {
            byte(21) != protocol && (table > 255 || u32::from(byte(20)) == table)
        }
        (Filter::Routes { .. }, libc::RTM_NEWRULE | libc::RTM_DELRULE | NEW_SETTING) => true,
        (Filter::DefaultRoutes { but }, libc::RTM_NEWROUTE | libc::RTM_DELROUTE) => byte(17) == 0 && byte(21) != but,
        (Filter::Routes { .. } | Filter::DefaultRoutes { .. }, _) => false,
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
            concerns(Filter::Routes { protocol: 199, table: 198 }, &message)
        };
        assert!(message(libc::RTM_DELROUTE, 198, 199) && !message(libc::RTM_DELROUTE, 254, 2));
        assert!(message(libc::RTM_NEWROUTE, 198, 3) && !message(libc::RTM_NEWROUTE, 254, 3));
        assert!(!message(libc::RTM_NEWROUTE, 198, 199));
        assert!(message(libc::RTM_DELRULE, 0, 0) && message(libc::RTM_NEWRULE, 0, 0) && message(NEW_SETTING, 0, 0));
        assert!(!message(libc::RTM_NEWLINK, 0, 0) && concerns(Filter::All, &[]));
    }

    #[test]
    fn default_routes_count_but_for_those_of_one_protocol() {
        let message = |kind: u16, length, protocol| {
            let mut message = [0; 28];
            message[4..6].copy_from_slice(&kind.to_ne_bytes());
            (message[17], message[21]) = (length, protocol);
            concerns(Filter::DefaultRoutes { but: 199 }, &message)
        };
        assert!(message(libc::RTM_DELROUTE, 0, 3) && message(libc::RTM_NEWROUTE, 0, 9));
        assert!(!message(libc::RTM_DELROUTE, 0, 199) && !message(libc::RTM_NEWROUTE, 24, 3));
        assert!(!message(libc::RTM_NEWRULE, 0, 3) && !message(libc::RTM_NEWLINK, 0, 3));
    }
}
