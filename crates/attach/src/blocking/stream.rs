//! Blocking connections and listeners.

use super::background::Background;
use super::park;
use anabranch_mptcp::CloseCause;
use anabranch_stack::PathChange;
use core::net::SocketAddr;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A connection, with a byte stream in each direction. Dropping it closes it. [`Self::stream`] has the non-blocking
/// operations of [`anabranch_stack::Stream`].
///
/// As with a `std` socket, `&Stream` reads and writes too: one thread may read while another writes.
pub struct Stream {
    stream: anabranch_stack::Stream,
    /// For reading and for writing.
    timeouts: Mutex<(Option<Duration>, Option<Duration>)>,
    /// The event loop must outlive it.
    _background: Arc<Background>,
}

impl Stream {
    pub(super) fn new(stream: anabranch_stack::Stream, background: Arc<Background>) -> Self {
        Self { stream, timeouts: Mutex::new((None, None)), _background: background }
    }

    fn timeouts(&self) -> (Option<Duration>, Option<Duration>) {
        *self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the timeout of reading, after which it fails with [`io::ErrorKind::TimedOut`]. `None` disables it.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner).0 = timeout;
    }

    /// Sets the timeout of writing, likewise.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner).1 = timeout;
    }

    /// Closes our direction after the written data; reading continues.
    pub fn shutdown(&self) {
        self.stream.close();
    }

    /// Closes our direction and waits at most `timeout` until the peer has received everything and closed its own.
    /// Returns how the connection ended, `None` if it has not. A stream that is dropped instead is closed too, while
    /// the stack exists.
    pub fn finish(self, timeout: Option<Duration>) -> Option<CloseCause> {
        self.stream.close();
        park::run(timeout, self.stream.closed())
    }

    /// The peer's address when the connection was opened.
    pub fn peer_address(&self) -> SocketAddr {
        self.stream.peer_address()
    }

    /// The next change of its paths; `None` after the end, or after `timeout`.
    pub fn path_change(&self, timeout: Option<Duration>) -> Option<PathChange> {
        park::run(timeout, self.stream.path_change()).flatten()
    }

    /// The asynchronous stream, for paths, counters, priority, aborting, and other non-blocking operations.
    pub fn stream(&self) -> &anabranch_stack::Stream {
        &self.stream
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let reading = poll_fn(|context| self.stream.poll_read_bytes(context, buffer.len()));
        let bytes = park::run(self.timeouts().0, reading).unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
        if let Some(place) = buffer.get_mut(..bytes.len()) {
            place.copy_from_slice(&bytes);
        }
        Ok(bytes.len())
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let writing = poll_fn(|context| self.stream.poll_write_copy(context, bytes));
        park::run(self.timeouts().1, writing).unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Nothing is buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A listening port. Dropping it frees the port and aborts connections not yet accepted.
pub struct Listener {
    listener: anabranch_stack::Listener,
    background: Arc<Background>,
}

impl Listener {
    pub(super) fn new(listener: anabranch_stack::Listener, background: Arc<Background>) -> Self {
        Self { listener, background }
    }

    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Waits at most `timeout` for the next connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]; [`io::ErrorKind::NotConnected`] once the stack has been shut down.
    pub fn accept(&self, timeout: Option<Duration>) -> io::Result<Stream> {
        let next = park::run(timeout, self.listener.accept()).ok_or(io::ErrorKind::TimedOut)?;
        Ok(Stream::new(next.ok_or(io::ErrorKind::NotConnected)?, Arc::clone(&self.background)))
    }
}
