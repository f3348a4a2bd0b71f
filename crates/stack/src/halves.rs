//! A connection shared by two tasks, one that reads and one that writes.

use super::stream::Stream;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The reading half of a [`Stream`].
pub struct ReadHalf {
    stream: Arc<Stream>,
}

/// The writing half of a [`Stream`]; dropping it ends our direction.
pub struct WriteHalf {
    stream: Arc<Stream>,
}

impl Stream {
    /// Splits the connection for two tasks. It is dropped with the second half; dropping the writing half closes our
    /// direction.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        let stream = Arc::new(self);
        (ReadHalf { stream: Arc::clone(&stream) }, WriteHalf { stream })
    }
}

impl Deref for ReadHalf {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl Deref for WriteHalf {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_read_bytes(context, buffer.remaining()).map_ok(|bytes| buffer.put_slice(&bytes))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write_copy(context, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        self.stream.close();
    }
}
