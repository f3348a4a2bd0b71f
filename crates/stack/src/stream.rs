//! A connection as an application uses it.

use super::connection::{PathChange, wait};
use super::error::{ConnectError, closed};
use super::report::PathReport;
use super::state::{Handle, State};
use anabranch_mptcp::OperationError;
use anabranch_mptcp::Protocol;
use anabranch_mptcp::stats::{ConnectionStats, ReceiveState};
use anabranch_mptcp::{CloseCause, ConnectionInfo, FallbackCause, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use bytes::Bytes;
use core::net::SocketAddr;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The error of plain reads where there are records.
const READ_STOPS: &str = "what comes next is not plain bytes: a gap or a message, to be read as a record";

/// A connection: a stream of bytes in each direction. Dropping it closes it as `close` does a socket: written data
/// still arrives, and then the end; data that the peer sends later, or that is unread, resets the connection. With
/// [`Self::set_abort_on_drop`] it resets it at once.
///
/// All operations take `&self`. At any time one task each may wait to read, to write, for path changes and for the end.
pub struct Stream {
    shared: Handle,
    id: ConnectionId,
    remote: SocketAddr,
    aborts_on_drop: bool,
}

impl Stream {
    pub(super) fn new(shared: Handle, id: ConnectionId, remote: SocketAddr) -> Self {
        Self { shared, id, remote, aborts_on_drop: false }
    }

    /// Completes after the handshake, and returns which of the peer's addresses answered.
    pub(super) async fn established(&mut self) -> Result<(), ConnectError> {
        self.remote = poll_fn(|context| {
            let mut state = self.shared.lock();
            let shut_down = state.shut_down;
            let Some(connection) = state.connection(self.id).filter(|_| !shut_down) else {
                return Poll::Ready(Err(ConnectError::ShutDown));
            };
            if connection.established {
                return Poll::Ready(Ok(state.endpoint.remote(self.id).unwrap_or(self.remote)));
            }
            if let Some(cause) = connection.closed {
                return Poll::Ready(Err(ConnectError::Ended(cause)));
            }
            wait(&mut connection.reader, context);
            Poll::Pending
        })
        .await?;
        Ok(())
    }

    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The peer's address of the initial subflow.
    pub fn peer_address(&self) -> SocketAddr {
        self.remote
    }

    /// [`Self::peer_address`], or where the datagrams come from if the peer is a client inside UDP.
    pub fn peer_source(&self) -> SocketAddr {
        self.shared.lock().source_of(self.remote)
    }

    /// The next bytes without a copy, at most `max`; empty at the end of the stream. An error at a gap, and on a
    /// connection with messages: use [`Self::read_record`] for those.
    pub fn poll_read_bytes(&self, context: &mut Context<'_>, max: usize) -> Poll<io::Result<Bytes>> {
        if max == 0 {
            return Poll::Ready(Ok(Bytes::new()));
        }
        let mut state = self.shared.lock();
        let now = state.now();
        if let Some(bytes) = state.endpoint.read(now, self.id, max).filter(|bytes| !bytes.is_empty()) {
            state.wake_driver();
            return Poll::Ready(Ok(bytes));
        }
        if state.endpoint.read_stops(self.id) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, READ_STOPS)));
        }
        let Some(connection) = state.connection(self.id) else { return Poll::Ready(Ok(Bytes::new())) };
        match connection.closed {
            _ if connection.ended => Poll::Ready(Ok(Bytes::new())),
            Some(CloseCause::Finished) => Poll::Ready(Ok(Bytes::new())),
            Some(cause) => Poll::Ready(Err(closed(cause))),
            None => {
                wait(&mut connection.reader, context);
                // The end of the stream may have been reached: its event follows.
                state.wake_driver();
                Poll::Pending
            }
        }
    }

    /// The next record: bytes, a message, or a gap of abandoned data; none at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn read_record(&self) -> io::Result<Option<Record>> {
        poll_fn(|context| self.poll_read_record(context)).await
    }

    /// The same by polling.
    pub fn poll_read_record(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<Record>>> {
        let mut state = self.shared.lock();
        let now = state.now();
        if let Some(record) = state.endpoint.read_record(now, self.id) {
            state.wake_driver();
            return Poll::Ready(Ok(Some(record)));
        }
        let Some(connection) = state.connection(self.id) else { return Poll::Ready(Ok(None)) };
        match connection.closed {
            _ if connection.ended => Poll::Ready(Ok(None)),
            Some(CloseCause::Finished) => Poll::Ready(Ok(None)),
            Some(cause) => Poll::Ready(Err(closed(cause))),
            None => {
                wait(&mut connection.reader, context);
                // As in `poll_read_bytes`.
                state.wake_driver();
                Poll::Pending
            }
        }
    }

    /// Writes a whole message once there is space for it; returns its number.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] after [`Self::close`]; [`io::ErrorKind::InvalidInput`] if it never fits, or the
    /// connection carries bytes; and if the connection has ended.
    pub async fn write_message(&self, payload: Bytes, options: &MessageOptions) -> io::Result<u32> {
        poll_fn(|context| self.poll_write_message(context, &payload, options)).await
    }

    /// The same by polling: the message is written only when this is ready.
    pub fn poll_write_message(
        &self,
        context: &mut Context<'_>,
        payload: &Bytes,
        options: &MessageOptions,
    ) -> Poll<io::Result<u32>> {
        let mut state = self.shared.lock();
        let now = state.now();
        self.moves(&mut state)?;
        match state.endpoint.write_message(now, self.id, payload.clone(), options) {
            Ok(None) => {
                state.connection(self.id).into_iter().for_each(|connection| wait(&mut connection.writer, context));
                Poll::Pending
            }
            Ok(Some(number)) => {
                state.wake_driver();
                Poll::Ready(Ok(number))
            }
            Err(error) => Poll::Ready(Err(self.write_refused(&mut state, error))),
        }
    }

    /// Writes bytes without a copy; returns how many were written.
    pub fn poll_write_bytes(&self, context: &mut Context<'_>, bytes: Bytes) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.shared.lock();
        let now = state.now();
        self.moves(&mut state)?;
        match state.endpoint.write(now, self.id, bytes) {
            Ok(0) => {
                state.connection(self.id).into_iter().for_each(|connection| wait(&mut connection.writer, context));
                Poll::Pending
            }
            Ok(taken) => {
                state.wake_driver();
                Poll::Ready(Ok(taken))
            }
            Err(error) => Poll::Ready(Err(self.write_refused(&mut state, error))),
        }
    }

    /// An error if written data would not be sent.
    fn moves(&self, state: &mut State) -> io::Result<()> {
        if !state.shut_down {
            return Ok(());
        }
        let cause = state.connection(self.id).and_then(|connection| connection.closed);
        Err(closed(cause.unwrap_or(CloseCause::Aborted)))
    }

    fn write_refused(&self, state: &mut State, error: OperationError) -> io::Error {
        match error {
            OperationError::SendClosed => io::ErrorKind::BrokenPipe.into(),
            OperationError::Ended(cause) => closed(cause),
            OperationError::WrongFraming | OperationError::MessageTooLong => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            _no_connection => {
                let cause = state.connection(self.id).and_then(|connection| connection.closed);
                closed(cause.unwrap_or(CloseCause::Finished))
            }
        }
    }

    /// Writes a copy of bytes; returns how many were written.
    pub fn poll_write_copy(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // Avoids a copy of what does not fit; a write of nothing still registers the task.
        let room = self.shared.lock().endpoint.room(self.id).unwrap_or_default();
        let copy = self.shared.copy(bytes, usize::try_from(room).unwrap_or(usize::MAX).max(1));
        self.poll_write_bytes(context, copy)
    }

    /// Switches Nagle's algorithm off or on.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        let mut state = self.shared.lock();
        let now = state.now();
        let outcome = state.endpoint.set_nagle(now, self.id, !on);
        state.wake_driver();
        outcome.map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error))
    }

    /// Lifts the limit of [`anabranch_mptcp::ConnectionConfig::receive_buffer_at_first`].
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn open_receive_buffer(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        let now = state.now();
        let outcome = state.endpoint.open_receive_buffer(now, self.id);
        state.wake_driver();
        outcome.map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error))
    }

    /// Sets the application's priority, from 1 (highest) to 6, for policies that use it; other values are clamped.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn set_priority(&self, priority: u8) -> io::Result<()> {
        let outcome = self.shared.lock().endpoint.set_priority(self.id, priority);
        outcome.map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error))
    }

    /// Tells policies for how long the peer's player can continue with its buffered data, which counts down by itself.
    /// None: unknown, the initial state.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn set_play_out_left(&self, left: Option<std::time::Duration>) -> io::Result<()> {
        let left = left.map(|left| Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)));
        let mut state = self.shared.lock();
        let now = state.now();
        let outcome = state.endpoint.set_play_out_left(now, self.id, left);
        state.wake_driver();
        outcome.map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error))
    }

    /// Closes our direction after the written data; reading continues.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        let now = state.now();
        // A repeated close has no effect.
        let _ = state.endpoint.close(now, self.id);
        state.wake_driver();
    }

    /// Ends the connection immediately; data in flight is lost, and the peer is reset.
    pub fn abort(&self) {
        let mut state = self.shared.lock();
        let now = state.now();
        // It may have ended by now.
        let _ = state.endpoint.abort(now, self.id);
        state.wake_driver();
    }

    /// Whether dropping it is [`Self::abort`], as it is of a socket whose SO_LINGER is zero: a peer that does not close its
    /// direction then keeps nothing of the connection alive.
    pub fn set_abort_on_drop(&mut self, on: bool) {
        self.aborts_on_drop = on;
    }

    /// MPTCP or plain TCP; none after the end.
    pub fn protocol(&self) -> Option<Protocol> {
        self.shared.lock().endpoint.protocol(self.id)
    }

    /// The stack's clock, which timestamps records.
    pub fn now(&self) -> Instant {
        self.shared.lock().now()
    }

    /// State of the connection and its subflows; none after the end. It locks the stack and visits each subflow: call
    /// it a few times per second, not for each read.
    pub fn info(&self) -> Option<ConnectionInfo> {
        let state = self.shared.lock();
        state.endpoint.info(state.now(), self.id)
    }

    /// Counters; none after the end.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.shared.lock().endpoint.stats(self.id)
    }

    /// The sending side; none after the end.
    pub fn view(&self) -> Option<ConnectionView> {
        let state = self.shared.lock();
        state.endpoint.connection_view(state.now(), self.id)
    }

    /// The subflows, in order of id.
    pub fn subflows(&self) -> Vec<SubflowView> {
        let state = self.shared.lock();
        state.endpoint.subflow_views(state.now(), self.id)
    }

    /// The paths with addresses and counters, in order of subflow id.
    pub fn paths(&self) -> Vec<PathReport> {
        self.shared.lock().path_reports(self.id)
    }

    /// Why it fell back to plain TCP, if it did.
    pub fn fallback(&self) -> Option<FallbackCause> {
        self.shared.lock().fallback_of(self.id)
    }

    /// Local address and port of the first open subflow; none after the end.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.shared.lock().endpoint.subflow_reports(self.id).first().map(|subflow| subflow.local)
    }

    /// The receiving side; none after the end.
    pub fn receive_state(&self) -> Option<ReceiveState> {
        self.shared.lock().endpoint.receive_state(self.id)
    }

    /// The next change of its paths, beginning with the first subflow; none after the end. At most 64 are queued,
    /// further ones are dropped and counted.
    pub async fn path_change(&self) -> Option<PathChange> {
        poll_fn(|context| self.poll_path_change(context)).await
    }

    /// The same by polling.
    pub fn poll_path_change(&self, context: &mut Context<'_>) -> Poll<Option<PathChange>> {
        match self.shared.lock().connection(self.id) {
            Some(connection) => connection.poll_path_change(context),
            None => Poll::Ready(None),
        }
    }

    /// Completes when the connection has ended, and returns the cause.
    pub async fn closed(&self) -> CloseCause {
        poll_fn(|context| self.poll_closed(context)).await
    }

    /// Ready when the connection has ended; see [`Self::closed`].
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<CloseCause> {
        let mut state = self.shared.lock();
        let Some(connection) = state.connection(self.id) else { return Poll::Ready(CloseCause::Finished) };
        match connection.closed {
            Some(cause) => Poll::Ready(cause),
            None => {
                wait(&mut connection.closer, context);
                Poll::Pending
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_bytes(context, buffer.remaining()).map_ok(|bytes| buffer.put_slice(&bytes))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_copy(context, buffer)
    }

    /// There is no buffer to flush.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes our direction; reading goes on.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.aborts_on_drop {
            self.abort();
        }
        self.shared.lock().forget(self.id);
    }
}
