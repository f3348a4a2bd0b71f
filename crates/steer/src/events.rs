//! Events of the family `mptcp_pm` (linux/mptcp_pm.h), which the kernel sends of all connections in the namespace.
//!
//! There is none when the kernel's own path manager opens a subflow, only when it is established. Addresses of
//! [`Event::SubflowClosed`] may be unspecified, and it may come twice.

use crate::attributes::{address_at, attribute, be16_at, u8_at, u16_at, u32_at};
use crate::generic;
use crate::netlink::messages;
use crate::path_manager::{KernelPathManager, to_io};
use anabranch_steering::event::Event;
use anabranch_steering::sample::{Endpoints, Token};
use anabranch_system::watch;
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_GENERIC;
use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{MsgFlags, recv, setsockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Types of events.
const CREATED: u8 = 1;
const ESTABLISHED: u8 = 2;
const CLOSED: u8 = 3;
const ANNOUNCED: u8 = 6;
const REMOVED: u8 = 7;
const SUBFLOW_ESTABLISHED: u8 = 10;
const SUBFLOW_CLOSED: u8 = 11;
const SUBFLOW_PRIORITY: u8 = 13;

/// Attributes of events.
const TOKEN: u16 = 1;
const LOCAL_ID: u16 = 3;
const REMOTE_ID: u16 = 4;
const LOCAL_IPV4: u16 = 5;
const LOCAL_IPV6: u16 = 6;
const REMOTE_IPV4: u16 = 7;
const REMOTE_IPV6: u16 = 8;
const LOCAL_PORT: u16 = 9;
const REMOTE_PORT: u16 = 10;
const BACKUP: u16 = 11;
const ERROR: u16 = 12;
const FLAGS: u16 = 13;
const SERVER_SIDE: u16 = 18;

/// Flags: the peer allows no further joins to the address of the first subflow; we are the server (since 6.17).
const DENIES_JOINS: u16 = 1;
const IS_SERVER: u16 = 2;

/// Most bytes in the socket's queue. An event takes less than 1 kB there.
const QUEUE: usize = 4 << 20;

/// Longest datagram of events.
const DATAGRAM: usize = 8_192;

/// The events of a namespace's connections, in the order in which they come.
pub struct Events {
    /// Owns the descriptor of which `watched` has a duplicate.
    _socket: Socket,
    watched: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
}

impl Events {
    /// Listens in the caller's namespace. Call this within a runtime.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN; ENOENT if the kernel has no such events (before 5.12).
    pub fn open(path_manager: &KernelPathManager) -> io::Result<Self> {
        Self::with_queue(path_manager, QUEUE)
    }

    /// The same with a queue of about so many bytes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn with_queue(path_manager: &KernelPathManager, queue: usize) -> io::Result<Self> {
        let group = path_manager.events().ok_or_else(|| io::Error::from(Errno::ENOENT))?;
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        // Without the right to more it has what the host allows.
        let _ = setsockopt(&socket, RcvBufForce, &queue);
        socket.add_membership(group)?;
        let watched = watch(socket.as_fd().try_clone_to_owned()?)?;
        Ok(Self { _socket: socket, watched, buffer: vec![0; DATAGRAM] })
    }

    /// Waits for events and adds them to `events`. If the queue overflowed, [`Event::Overrun`] is among them.
    ///
    /// # Errors
    /// An error of the kernel.
    pub async fn next(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            let mut guard = self.watched.readable().await?;
            if !drain(self.watched.as_raw_fd(), &mut self.buffer, events)? {
                guard.clear_ready();
            }
            if !events.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Most datagrams that are read at once, so that samples are not late.
const BATCH: usize = 256;

/// Reads what has come. Returns whether more may be there.
fn drain(descriptor: i32, buffer: &mut [u8], events: &mut Vec<Event>) -> io::Result<bool> {
    for _ in 0..BATCH {
        match recv(descriptor, buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => {
                let datagram = buffer.get(..length).unwrap_or_default();
                events.extend(messages(datagram).filter_map(|message| read_event(message.content)));
            }
            Err(Errno::ENOBUFS) => events.push(Event::Overrun),
            Err(Errno::EAGAIN) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// The error of opening the family's socket, for a user.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the kernel has no MPTCP.
pub fn open_path_manager() -> io::Result<KernelPathManager> {
    KernelPathManager::open().map_err(to_io)
}

/// Reads an event. `None` if it is of another kind or lacks what it must have.
pub fn read_event(content: &[u8]) -> Option<Event> {
    let kind = u8_at(content, 0)?;
    let attributes = Reader { bytes: content.get(generic::HEADER..)? };
    let token = Token(u32_at(attributes.get(TOKEN)?, 0)?);
    match kind {
        CREATED | ESTABLISHED | CLOSED => read_life(kind, token, &attributes),
        ANNOUNCED | REMOVED => read_address(kind, token, &attributes),
        SUBFLOW_ESTABLISHED | SUBFLOW_CLOSED | SUBFLOW_PRIORITY => read_of_subflow(kind, token, &attributes),
        _ => None,
    }
}

fn read_life(kind: u8, token: Token, attributes: &Reader<'_>) -> Option<Event> {
    let server = attributes.is_server();
    Some(match kind {
        CREATED => Event::Created { token, endpoints: attributes.endpoints()?, server },
        ESTABLISHED => {
            let remote_denies_joins = attributes.flags() & DENIES_JOINS != 0;
            Event::Established { token, endpoints: attributes.endpoints()?, server, remote_denies_joins }
        }
        _ => Event::Closed { token },
    })
}

fn read_address(kind: u8, token: Token, attributes: &Reader<'_>) -> Option<Event> {
    let remote_id = attributes.byte(REMOTE_ID)?;
    Some(match kind {
        ANNOUNCED => Event::Announced { token, remote_id, remote: attributes.remote()? },
        _ => Event::Removed { token, remote_id },
    })
}

fn read_of_subflow(kind: u8, token: Token, attributes: &Reader<'_>) -> Option<Event> {
    let endpoints = attributes.endpoints()?;
    let byte = |kind| attributes.byte(kind).unwrap_or_default();
    let backup = byte(BACKUP) != 0;
    Some(match kind {
        SUBFLOW_ESTABLISHED => {
            Event::SubflowEstablished { token, endpoints, local_id: byte(LOCAL_ID), remote_id: byte(REMOTE_ID), backup }
        }
        SUBFLOW_CLOSED => Event::SubflowClosed { token, endpoints, error: byte(ERROR).into() },
        _ => Event::SubflowPriority { token, endpoints, backup },
    })
}

/// The attributes of an event.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn get(&self, kind: u16) -> Option<&[u8]> {
        attribute(self.bytes, kind)
    }

    fn byte(&self, kind: u16) -> Option<u8> {
        u8_at(self.get(kind)?, 0)
    }

    fn flags(&self) -> u16 {
        self.get(FLAGS).and_then(|value| u16_at(value, 0)).unwrap_or_default()
    }

    fn is_server(&self) -> bool {
        self.byte(SERVER_SIDE).unwrap_or_default() != 0 || self.flags() & IS_SERVER != 0
    }

    fn remote(&self) -> Option<SocketAddr> {
        self.address(REMOTE_IPV4, REMOTE_IPV6, REMOTE_PORT)
    }

    fn endpoints(&self) -> Option<Endpoints> {
        let local = self.address(LOCAL_IPV4, LOCAL_IPV6, LOCAL_PORT)?;
        Some(Endpoints { local, remote: self.remote()? })
    }

    /// An address, and the port if there is one. Not every event says of which family it is.
    fn address(&self, ipv4: u16, ipv6: u16, port: u16) -> Option<SocketAddr> {
        let address = self.get(ipv4).and_then(|value| address_at(value, 0, false));
        let address = address.or_else(|| address_at(self.get(ipv6)?, 0, true))?;
        let port = self.get(port).and_then(|value| be16_at(value, 0)).unwrap_or_default();
        Some(SocketAddr::new(address, port))
    }
}
