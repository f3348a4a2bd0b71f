//! The multipath side of a client's connection: a stream of ours as it is, or with a server's records on it.

use super::keys::{Keys, Name};
use super::noise::{self, Initiator, MESSAGE, Message, Opened, Records, SEALED};
use anabranch_stack::{Slots, Stream};
use bytes::{Buf as _, Bytes, BytesMut};
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

/// Slots for reads from sockets.
pub(super) fn slots() -> Slots {
    Slots::new(SEALED)
}

/// Most bytes taken from the stream at once.
const READ: usize = 64 * 1024;
/// What is read in pieces smaller than this is copied to a buffer of its own size, so that a few bytes that wait do not
/// hold a large buffer.
const COPIED: usize = 16 * 1024;

/// First byte of a request: connect to the server's fixed target.
pub(super) const SERVERS_OWN: u8 = 0;
/// First byte of a request: connect to the target that follows.
pub(super) const NAMED: u8 = 1;
/// The answer to a request that succeeded; otherwise it is REP of SOCKS5 ([`super::Failure::socks_reply`]).
pub(super) const CONNECTED: u8 = 0;

/// The multipath side of a client's connection.
pub(super) enum Far {
    /// Bytes as they are.
    Plain(Stream),
    /// Encrypted records.
    Sealed(Sealed),
}

/// A stream with records on it.
pub(super) struct Sealed {
    stream: Stream,
    records: Records,
    /// The beginning of a record.
    input: BytesMut,
}

/// Malformed records: somebody without the key wrote them.
fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// An end of the stream without its record: somebody on the way cut it off, or the peer was gone before it was complete.
fn cut_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Whether the stream is not what the peer wrote, as far as can be known.
pub(super) fn is_tampered(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Authenticates to a server that must prove the key too: `initiator` made `message`, of which the first `sent` bytes
/// have been sent.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it does not, which includes that it closes or resets at this point. Others if the path is lost.
pub(super) async fn initiate(
    mut stream: Stream,
    initiator: Initiator,
    message: &Message,
    sent: usize,
) -> io::Result<Far> {
    let unproven = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    stream.write_all(message.get(sent..).unwrap_or_default()).await?;
    let mut answer = [0; MESSAGE];
    stream.read_exact(&mut answer).await.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::ErrorKind::PermissionDenied.into(),
        _ => error,
    })?;
    let records = initiator.finish(&answer).map_err(unproven)?;
    Ok(Far::Sealed(Sealed { stream, records, input: BytesMut::new() }))
}

/// Authenticates a client by one of the keys; returns its name.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it does not.
pub(super) async fn respond(mut stream: Stream, keys: &Keys) -> io::Result<(Far, Name)> {
    let mut message = [0; MESSAGE];
    stream.read_exact(&mut message).await?;
    // Trying a wrong key takes a few hashes.
    let mut fitting = keys.iter().filter_map(|(name, key)| Some((name, noise::respond(key, &message).ok()?)));
    let found = fitting.next();
    match found {
        Some((name, (answer, records))) => {
            stream.write_all(&answer).await?;
            Ok((Far::Sealed(Sealed { stream, records, input: BytesMut::new() }), name.clone()))
        }
        None => {
            // All failures look the same to the client.
            stream.abort();
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl Far {
    pub(super) fn stream(&self) -> &Stream {
        match self {
            Self::Plain(stream) | Self::Sealed(Sealed { stream, .. }) => stream,
        }
    }

    pub(super) fn stream_mut(&mut self) -> &mut Stream {
        match self {
            Self::Plain(stream) | Self::Sealed(Sealed { stream, .. }) => stream,
        }
    }

    /// The next bytes; empty at the end.
    pub(super) fn poll_read_bytes(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        match self {
            Self::Plain(stream) => stream.poll_read_bytes(context, READ),
            Self::Sealed(sealed) => sealed.poll_read_bytes(context),
        }
    }

    /// The wire form of these bytes.
    pub(super) fn wrap(&mut self, bytes: Bytes) -> Bytes {
        match self {
            Self::Plain(_) => bytes,
            Self::Sealed(Sealed { records, .. }) => {
                let mut sealed = BytesMut::new();
                records.seal(&bytes, &mut sealed);
                sealed.freeze()
            }
        }
    }

    /// Lets `read` fill a slot, once; returns the number of bytes read, and their wire form. They are encrypted in
    /// place.
    pub(super) fn wrap_read(
        &mut self,
        slots: &Slots,
        read: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<(usize, Bytes)> {
        let mut slot = slots.take();
        let (length, end) = match self {
            Self::Plain(_) => {
                let length = read(&mut [IoSliceMut::new(&mut slot.bytes)])?;
                (length, length)
            }
            Self::Sealed(Sealed { records, .. }) => {
                let length = read(&mut Records::places(&mut slot.bytes))?;
                (length, records.seal_places(&mut slot.bytes, length))
            }
        };
        if length >= COPIED {
            return Ok((length, slot.share(0..end)));
        }
        Ok((length, Bytes::copy_from_slice(slot.bytes.get(..end).unwrap_or_default())))
    }

    /// The wire form of the end of the stream.
    pub(super) fn wrap_end(&mut self) -> Bytes {
        match self {
            Self::Plain(_) => Bytes::new(),
            Self::Sealed(Sealed { records, .. }) => {
                let mut sealed = BytesMut::new();
                records.seal_end(&mut sealed);
                sealed.freeze()
            }
        }
    }

    /// Writes from the front of `pending` until nothing is left.
    pub(super) fn poll_write(&self, context: &mut Context<'_>, pending: &mut Bytes) -> Poll<io::Result<()>> {
        while !pending.is_empty() {
            let taken = ready!(self.stream().poll_write_bytes(context, pending.clone()))?;
            pending.advance(taken);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends our direction.
    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) | Self::Sealed(Sealed { stream, .. }) => Pin::new(stream).poll_shutdown(context),
        }
    }

    /// [`Self::poll_read_bytes`] as a future.
    pub(super) async fn read_bytes(&mut self) -> io::Result<Bytes> {
        poll_fn(|context| self.poll_read_bytes(context)).await
    }

    /// Writes all of `bytes`, wrapped.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut pending = self.wrap(Bytes::copy_from_slice(bytes));
        poll_fn(|context| self.poll_write(context, &mut pending)).await
    }

    /// Writes all of `bytes`, wrapped, and then the end.
    pub(super) async fn finish(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).await?;
        let mut pending = self.wrap_end();
        poll_fn(|context| self.poll_write(context, &mut pending)).await?;
        poll_fn(|context| self.poll_shutdown(context)).await
    }
}

impl Sealed {
    fn poll_read_bytes(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            match self.records.open(&mut self.input).map_err(|_| malformed())? {
                Opened::Bytes(bytes) => return Poll::Ready(Ok(bytes)),
                Opened::End => return Poll::Ready(Ok(Bytes::new())),
                Opened::More => {}
            }
            if self.input.is_empty() {
                // An idle connection holds no buffer.
                self.input = BytesMut::new();
            }
            let more = ready!(self.stream.poll_read_bytes(context, READ))?;
            if more.is_empty() {
                // The stream ends without the record that must end it.
                return Poll::Ready(Err(cut_off()));
            }
            self.input.extend_from_slice(&more);
        }
    }
}
