//! One connection that carries a live stream: messages, or bare bytes, written at one end and read as records at the other,
//! over our stack or the kernel's sockets.
//!
//! Over the kernel's sockets nothing is ever abandoned: messages lie in the stream behind their headers, as any program could
//! write them ([`anabranch_wire::message`]), and a peer with our stack can abandon them by itself.

use crate::{Door, Host, Link, PathReading, PerfError};
use anabranch_mptcp::stats::ConnectionStats;
use anabranch_mptcp::{Framing, MessageOptions, Record};
use anabranch_policy::time::Instant;
use anabranch_system::Clock;
use anabranch_wire::message::HEADER;
use anabranch_wire::{MessageHeader, ParseError};
use bytes::{Buf, Bytes, BytesMut};
use core::net::SocketAddr;
use std::future::poll_fn;
use std::io;
use tokio::task::JoinSet;

/// Bytes that are read of a socket at a time.
const READ: usize = 64 * 1024;
/// Bytes of the longest message that is taken from a socket: a header can be anything.
const LONGEST: u32 = 16 << 20;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// There is no answer.
    #[error("no connection to {remote}: {error}")]
    Connect {
        /// The peer.
        remote: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The port cannot be listened on.
    #[error("cannot listen on port {port}: {error}")]
    Listen {
        /// Where.
        port: u16,
        /// The error.
        error: io::Error,
    },
}

/// A port that is listened on.
pub struct MessagePort {
    door: Door,
    framing: Framing,
}

impl MessagePort {
    /// Listens at all addresses. Our stack's connections are framed as the host's settings say, and those of the kernel as
    /// `framing` does: it should be the same.
    ///
    /// # Errors
    /// [`MessagesError::Listen`].
    pub fn open(host: &Host, port: u16, framing: Framing) -> Result<Self, MessagesError> {
        use core::net::{Ipv4Addr, Ipv6Addr};
        let listen = |address| host.listen(SocketAddr::new(address, port));
        // A host without IPv6 has no address for both families.
        let door = listen(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| listen(Ipv4Addr::UNSPECIFIED.into()));
        match door {
            Ok(door) => Ok(Self { door, framing }),
            Err(PerfError::Listen { error, .. }) => Err(MessagesError::Listen { port, error }),
            Err(error) => Err(MessagesError::Listen { port, error: io::Error::other(error) }),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// If the port is gone.
    pub async fn accept(&self) -> io::Result<Messages> {
        Ok(Messages::new(self.door.accept().await?, self.framing))
    }
}

/// The connection.
pub struct Messages {
    link: Link,
    framing: Framing,
    clock: Clock,
    /// The number of the next message that is written to a socket.
    number: u32,
    /// What was read of a socket and not handed over.
    waiting: BytesMut,
    /// When the first of it came.
    since: Instant,
    /// Its place in the stream.
    offset: u64,
    /// What keeps the port of the kernel's that it came in by.
    turning_away: JoinSet<()>,
}

impl Messages {
    fn new(link: Link, framing: Framing) -> Self {
        link.set_nodelay();
        let clock = Clock::new();
        Self {
            link,
            framing,
            clock,
            number: 0,
            waiting: BytesMut::new(),
            since: Instant::ZERO,
            offset: 0,
            turning_away: JoinSet::new(),
        }
    }

    /// Opens it; about `framing` see [`MessagePort::open`].
    ///
    /// # Errors
    /// [`MessagesError::Connect`].
    pub async fn connect(host: &Host, remote: SocketAddr, framing: Framing) -> Result<Self, MessagesError> {
        match host.connect(remote).await {
            Ok(link) => Ok(Self::new(link, framing)),
            Err(PerfError::Connect { remote, error }) => Err(MessagesError::Connect { remote, error }),
            Err(error) => Err(MessagesError::Connect { remote, error: io::Error::other(error) }),
        }
    }

    /// Nobody else comes in by the port. The kernel takes a connection's further subflows (RFC 8684, section 3.2) only while its port
    /// has a listener: there the port stays as long as the connection, and other connections are refused.
    pub fn turn_others_away(&mut self, port: MessagePort) {
        if let Door::Kernel(_) = port.door {
            self.turning_away.spawn(async move { while port.door.accept().await.is_ok() {} });
        }
    }

    /// The peer.
    pub fn peer(&self) -> SocketAddr {
        self.link.peer()
    }

    /// The clock by which records say when they arrived.
    pub fn now(&self) -> Instant {
        match &self.link {
            Link::Ours(stream) => stream.now(),
            Link::Kernel(_) => self.clock.now(),
        }
    }

    /// `mptcp` or `tcp`, and why it is not more than it is.
    pub fn protocol(&self) -> (&'static str, Option<String>) {
        self.link.protocol()
    }

    /// The paths now.
    pub fn paths(&self) -> Vec<PathReading> {
        self.link.reading().paths
    }

    /// What our stack counted; none over the kernel's sockets, and after the end.
    pub fn stats(&self) -> Option<ConnectionStats> {
        match &self.link {
            Link::Ours(stream) => stream.stats(),
            Link::Kernel(_) => None,
        }
    }

    /// Writes a message, whole, once there is room for it; bare bytes in a stream that is not framed.
    ///
    /// # Errors
    /// If the connection has ended, or if the message is longer than any that can be taken.
    pub async fn write(&mut self, payload: Bytes, options: &MessageOptions) -> io::Result<()> {
        match (&self.link, self.framing) {
            (_, Framing::Bytes) => self.link.write_all(payload).await,
            (Link::Ours(stream), Framing::Messages) => stream.write_message(payload, options).await.map(drop),
            (Link::Kernel(_), Framing::Messages) => {
                let header = MessageHeader {
                    number: self.number,
                    importance: options.importance,
                    length: u32::try_from(payload.len()).map_err(io::Error::other)?,
                    play_out: options.play_out.as_nanos() / 1_000,
                };
                let header = header.encode().map_err(io::Error::other)?;
                self.number = self.number.wrapping_add(1);
                // One write, so that a message does not leave as two segments.
                let mut message = BytesMut::with_capacity(HEADER + payload.len());
                message.extend_from_slice(&header);
                message.extend_from_slice(&payload);
                self.link.write_all(message.freeze()).await
            }
        }
    }

    /// The next record; none at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke; [`io::ErrorKind::InvalidData`] if a socket's stream is not framed as it should be.
    pub async fn read(&mut self) -> io::Result<Option<Record>> {
        match &self.link {
            Link::Ours(stream) => stream.read_record().await,
            Link::Kernel(_) => self.read_socket().await,
        }
    }

    async fn read_socket(&mut self) -> io::Result<Option<Record>> {
        loop {
            if let Some(record) = self.take()? {
                return Ok(Some(record));
            }
            let Link::Kernel(link) = &self.link else { return Ok(None) };
            let mut block = vec![0; READ];
            let length = poll_fn(|context| link.poll_read(context, &mut block)).await?;
            if length == 0 {
                return Ok(None);
            }
            if self.waiting.is_empty() {
                self.since = self.clock.now();
            }
            self.waiting.extend_from_slice(block.get(..length).unwrap_or_default());
        }
    }

    /// A record of what was read, if one is whole.
    fn take(&mut self) -> io::Result<Option<Record>> {
        let (offset, arrived) = (self.offset, self.since);
        if self.waiting.is_empty() {
            return Ok(None);
        }
        if self.framing == Framing::Bytes {
            let bytes = self.waiting.split().freeze();
            self.offset += bytes.len() as u64;
            return Ok(Some(Record::Bytes { offset, bytes }));
        }
        let header = match MessageHeader::decode(&self.waiting) {
            Ok(header) if header.length <= LONGEST => header,
            Err(ParseError::Truncated) => return Ok(None),
            Ok(_) | Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, NOT_FRAMED)),
        };
        let whole = HEADER + header.length as usize;
        if self.waiting.len() < whole {
            return Ok(None);
        }
        let mut payload = self.waiting.split_to(whole).freeze();
        payload.advance(HEADER);
        self.offset += whole as u64;
        // The rest came with the last of it, as far as a reader of a socket can tell.
        self.since = self.clock.now();
        Ok(Some(Record::Message { offset, header, payload, arrived }))
    }

    /// Says that nothing more is written, and waits until the peer has ended, too.
    pub async fn finish(&mut self) {
        self.link.shutdown();
        while let Ok(Some(_)) = self.read().await {}
    }

    /// Ends it at once.
    pub fn abort(&self) {
        self.link.abort();
    }

    /// Ends our direction, without waiting.
    pub fn close(&self) {
        self.link.shutdown();
    }
}

/// What a stream is that should be made of messages and is not.
pub(crate) const NOT_FRAMED: &str = "what comes in is not framed in messages";
