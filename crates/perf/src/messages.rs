//! A connection for a live stream over our stack or the kernel's sockets: messages or bare bytes are written at one end
//! and read as records at the other.
//!
//! Over the kernel's sockets nothing is abandoned: messages follow their headers in the stream, as any program could
//! write them ([`anabranch_wire::message`]). A receiver with our stack can still abandon them.

use crate::{Door, Host, Link, PathReading, PerfError};
use anabranch_mptcp::stats::ConnectionStats;
use anabranch_mptcp::{Framing, MessageOptions, Record};
use anabranch_policy::time::Instant;
use anabranch_stack::ConnectError;
use anabranch_system::Clock;
use anabranch_wire::message::HEADER;
use anabranch_wire::{MessageHeader, ParseError};
use bytes::{Buf, Bytes, BytesMut};
use core::net::SocketAddr;
use std::future::poll_fn;
use std::io;
use tokio::task::JoinSet;

/// Most bytes read from a socket in one call.
const READ: usize = 64 * 1024;
/// Bytes of the longest message accepted from a socket, since the header is untrusted.
const LONGEST: u32 = 16 << 20;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// The peer does not answer.
    #[error("no connection to {remote}: {error}")]
    Connect {
        /// The peer.
        remote: SocketAddr,
        error: io::Error,
    },
    /// The port cannot be used for listening.
    #[error("cannot listen on port {port}: {error}")]
    Listen {
        /// The port.
        port: u16,
        error: io::Error,
    },
}

/// A listening port.
pub struct MessagePort {
    door: Door,
    framing: Framing,
}

impl MessagePort {
    /// Listens at all addresses. The host's settings define the framing of our stack's connections, `framing` that of
    /// the kernel's; they should be equal.
    ///
    /// # Errors
    /// [`MessagesError::Listen`].
    pub fn open(host: &Host, port: u16, framing: Framing) -> Result<Self, MessagesError> {
        use core::net::{Ipv4Addr, Ipv6Addr};
        let listen = |address| host.listen(SocketAddr::new(address, port));
        // A host without IPv6 has no dual-stack address.
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

pub struct Messages {
    link: Link,
    /// The protocol at the start, which our stack does not know after the end.
    spoken: &'static str,
    framing: Framing,
    clock: Clock,
    /// The number of the next message written to a socket.
    number: u32,
    /// Bytes read from a socket and not yet returned.
    waiting: BytesMut,
    /// When the first of them arrived.
    since: Instant,
    /// Its offset in the stream.
    offset: u64,
    /// Keeps the kernel's listening port open.
    turning_away: JoinSet<()>,
}

impl Messages {
    fn new(link: Link, framing: Framing) -> Self {
        link.set_nodelay();
        let clock = Clock::new();
        let (spoken, _) = link.protocol();
        Self {
            link,
            spoken,
            framing,
            clock,
            number: 0,
            waiting: BytesMut::new(),
            since: Instant::ZERO,
            offset: 0,
            turning_away: JoinSet::new(),
        }
    }

    /// Opens a connection; see [`MessagePort::open`] for `framing`.
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

    /// Refuses further connections on the port. The kernel accepts further subflows of a connection (RFC 8684, section
    /// 3.2) only while its port has a listener, so the port stays open during the connection.
    pub fn turn_others_away(&mut self, port: MessagePort) {
        if let Door::Kernel(_) = port.door {
            self.turning_away.spawn(async move { while port.door.accept().await.is_ok() {} });
        }
    }

    pub fn peer(&self) -> SocketAddr {
        self.link.peer()
    }

    /// The clock of the records' arrival times.
    pub fn now(&self) -> Instant {
        match &self.link {
            Link::Ours(stream) => stream.now(),
            Link::Kernel(_) => self.clock.now(),
        }
    }

    /// `mptcp` or `tcp`, and the reason for a fallback.
    pub fn protocol(&self) -> (&'static str, Option<String>) {
        match &self.link {
            Link::Ours(stream) if stream.protocol().is_none() && stream.fallback().is_none() => (self.spoken, None),
            _ => self.link.protocol(),
        }
    }

    /// The current paths.
    pub fn paths(&self) -> Vec<PathReading> {
        self.link.reading().paths
    }

    /// The counters of our stack; `None` over the kernel's sockets and after the end.
    pub fn stats(&self) -> Option<ConnectionStats> {
        match &self.link {
            Link::Ours(stream) => stream.stats(),
            Link::Kernel(_) => None,
        }
    }

    /// Writes a complete message once there is room for it; on an unframed stream only the payload.
    ///
    /// # Errors
    /// If the connection has ended, or the message exceeds the largest accepted length.
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
                // A single write, so that a message is not sent as two segments.
                let mut message = BytesMut::with_capacity(HEADER + payload.len());
                message.extend_from_slice(&header);
                message.extend_from_slice(&payload);
                self.link.write_all(message.freeze()).await
            }
        }
    }

    /// The next record; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the connection failed; [`io::ErrorKind::InvalidData`] if the framing of a socket's stream is invalid.
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
            if length == 0 && self.waiting.is_empty() {
                return Ok(None);
            }
            if length == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, CUT_OFF));
            }
            if self.waiting.is_empty() {
                self.since = self.clock.now();
            }
            self.waiting.extend_from_slice(block.get(..length).unwrap_or_default());
        }
    }

    /// Returns a record if a complete one has been read.
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
        // A reader of a socket can only tell that the rest arrived with the last read.
        self.since = self.clock.now();
        Ok(Some(Record::Message { offset, header, payload, arrived }))
    }

    /// Waits until the peer has closed its direction, and discards what it sends.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn closed_by_peer(&mut self) -> io::Result<()> {
        while self.read().await?.is_some() {}
        Ok(())
    }

    /// Completes when the connection is gone, for an end that only writes; what the peer sends is discarded. A peer that
    /// reads messages closes its direction only when it leaves, one that reads bytes may do so at any time.
    pub async fn gone(&self) -> io::Error {
        let link = match &self.link {
            Link::Ours(stream) => return io::Error::from(ConnectError::Ended(stream.closed().await)),
            Link::Kernel(link) => link,
        };
        let mut scratch = [0; 512];
        loop {
            match poll_fn(|context| link.poll_read(context, &mut scratch)).await {
                Ok(0) if self.framing == Framing::Bytes => return std::future::pending().await,
                Ok(0) => return io::ErrorKind::ConnectionReset.into(),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    /// Bytes that the peer has not acknowledged; none over the kernel's sockets, which send them after we have gone.
    pub fn unacknowledged(&self) -> Option<u64> {
        match &self.link {
            Link::Ours(stream) => stream.info().map(|info| info.write_seq.saturating_sub(info.snd_una)),
            Link::Kernel(_) => None,
        }
    }

    /// Aborts the connection.
    pub fn abort(&self) {
        self.link.abort();
    }

    /// Closes our direction without waiting.
    pub fn close(&self) {
        self.link.shutdown();
    }
}

/// The error for a stream that ended within a message.
const CUT_OFF: &str = "the connection ended before the stream did";
/// The error for a stream without valid message headers.
pub(crate) const NOT_FRAMED: &str = "what comes in is not framed in messages";
