//! The side of a connection that is not multipath: a socket of the kernel, or a stream of a stack in its place.

use super::far::Far;
use anabranch_stack::{Slots, Stream};
use bytes::{Buf as _, Bytes};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;

/// Pieces written in one call.
pub(super) const PIECES: usize = 64;

/// Operations of a relay on that side.
pub(super) trait Near: Unpin {
    /// Reads once; returns the number of bytes, 0 at the end, and what to send to the other side for them.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        far: &mut Far,
        slots: &Slots,
    ) -> Poll<io::Result<(usize, Bytes)>>;

    /// Writes once from the front of `pending`; returns the number of bytes.
    fn poll_write(&mut self, context: &mut Context<'_>, pending: &VecDeque<Bytes>) -> Poll<io::Result<usize>>;

    /// Ends our direction.
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Resets it, now or when it is dropped.
    fn reset(&self);
}

impl Near for TcpStream {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        far: &mut Far,
        slots: &Slots,
    ) -> Poll<io::Result<(usize, Bytes)>> {
        loop {
            ready!(self.poll_read_ready(context))?;
            match far.wrap_read(slots, |places| self.try_read_vectored(places)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, pending: &VecDeque<Bytes>) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_write_ready(context))?;
            let mut slices = [IoSlice::new(&[]); PIECES];
            let pieces = slices.iter_mut().zip(pending).map(|(slice, bytes)| *slice = IoSlice::new(bytes)).count();
            match self.try_write_vectored(slices.get(..pieces).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(context)
    }

    fn reset(&self) {
        // A socket that is gone needs no reset.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

impl Near for Stream {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        far: &mut Far,
        slots: &Slots,
    ) -> Poll<io::Result<(usize, Bytes)>> {
        let read = far.wrap_read(slots, |places| fill(self, context, places));
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, pending: &VecDeque<Bytes>) -> Poll<io::Result<usize>> {
        let mut written = 0;
        for bytes in pending {
            match self.poll_write_bytes(context, bytes.clone()) {
                Poll::Ready(Ok(taken)) => {
                    written += taken;
                    if taken < bytes.len() {
                        break;
                    }
                }
                // Written bytes are reported first; the error occurs again.
                _ if written > 0 => break,
                other => return other,
            }
        }
        Poll::Ready(Ok(written))
    }

    fn poll_shutdown(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }

    fn reset(&self) {
        self.abort();
    }
}

/// Copies available data into the places, in order, each filled before the next.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if there is nothing, and what the stream says.
fn fill(stream: &Stream, context: &mut Context<'_>, places: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let mut filled = 0;
    for place in places {
        let mut room = &mut place[..];
        while !room.is_empty() {
            match stream.poll_read_bytes(context, room.len()) {
                Poll::Ready(Ok(mut bytes)) if !bytes.is_empty() => {
                    let length = bytes.len().min(room.len());
                    let (part, rest) = room.split_at_mut(length);
                    bytes.copy_to_slice(part);
                    filled += length;
                    room = rest;
                }
                // Data is passed on first; the end or the error occurs again.
                _ if filled > 0 => return Ok(filled),
                Poll::Ready(Ok(_end)) => return Ok(0),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
    Ok(filled)
}
