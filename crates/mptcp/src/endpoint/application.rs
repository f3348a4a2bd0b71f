//! Operations of the application on a connection.

use super::error::OperationError;
use super::state::Endpoint;
use crate::connection::{Connection, MessageError};
use crate::record::{MessageOptions, Record};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::reliability::PlayOutClock;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;

impl Endpoint {
    /// Writes as much of `data` as fits into the send buffer; returns the number of bytes. [`crate::Event::Writable`]
    /// follows a short write.
    ///
    /// # Errors [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`],
    /// [`OperationError::Ended`], or [`OperationError::WrongFraming`] on a connection with messages.
    pub fn write(&mut self, now: Instant, id: ConnectionId, data: Bytes) -> Result<usize, OperationError> {
        let connection = self.open_for_writing(id)?;
        if !connection.takes_bytes() {
            return Err(OperationError::WrongFraming);
        }
        let taken = connection.write(data);
        self.settle(now, id);
        Ok(taken)
    }

    /// Writes a whole message and returns its number; none if the send buffer has no space for it:
    /// [`crate::Event::Writable`] follows. The message's header precedes it in the stream
    /// ([`anabranch_wire::message`]).
    ///
    /// # Errors [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`],
    /// [`OperationError::Ended`], [`OperationError::WrongFraming`] on a connection without messages
    /// ([`crate::ConnectionConfig::framing`]), and [`OperationError::MessageTooLong`].
    pub fn write_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        payload: Bytes,
        options: &MessageOptions,
    ) -> Result<Option<u32>, OperationError> {
        let connection = self.open_for_writing(id)?;
        let taken = connection.write_message(now, payload, options).map_err(|error| match error {
            MessageError::NotFramed => OperationError::WrongFraming,
            MessageError::TooLong => OperationError::MessageTooLong,
        })?;
        self.settle(now, id);
        Ok(taken)
    }

    /// Bytes that [`Self::write`] would accept; none if the connection does not exist.
    pub fn room(&self, id: ConnectionId) -> Option<u64> {
        self.connections.get(id).map(Connection::room)
    }

    /// The next bytes in order, at most `max`; none if nothing is readable. Returns none at a gap, and on a connection
    /// with messages: use [`Self::read_record`] for those. [`Self::read_stops`] tells them apart.
    #[inline(always)]
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Bytes> {
        let connection = self.connections.get_mut(id)?;
        let bytes = connection.read(now, max);
        if !connection.is_at_rest() {
            self.settle(now, id);
        }
        bytes
    }

    /// Whether [`Self::read`] may return data. Cheaper than a call of it.
    pub fn is_readable(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(Connection::is_readable)
    }

    /// The next record: bytes, a message, or a gap. In a stream of bytes without gaps it is [`Self::read`] with the
    /// offset.
    pub fn read_record(&mut self, now: Instant, id: ConnectionId) -> Option<Record> {
        let record = self.connections.get_mut(id)?.read_record(now);
        self.settle(now, id);
        record
    }

    /// Whether [`Self::read`] can no longer return data: the next record is a gap or a message.
    pub fn read_stops(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(Connection::read_stops)
    }

    /// The play-out clock of the peer's messages ([`PlayOutClock`]); none without messages.
    pub fn play_out_clock(&self, id: ConnectionId) -> Option<PlayOutClock> {
        self.connections.get(id)?.play_out_clock()
    }

    /// The slowest path according to the peer's last notice of abandoned data, and by how much its one-way delay
    /// exceeds the minimum; none without such a notice, or if the peer does not measure delays (path manager
    /// `one_way_delay` at its end).
    pub fn worst_path_of_peer(&self, id: ConnectionId) -> Option<(SubflowId, Duration)> {
        self.connections.get(id)?.worst_path_of_peer()
    }

    /// Closes the sending direction: DATA_FIN and FIN follow the last byte. Reading continues.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.close(now);
        self.settle(now, id);
        Ok(())
    }

    /// Closes both directions. As [`Self::close`], but unread or later data resets the connection (RFC 1122, section
    /// 4.2.2.13), and the wait for the peer's FIN is limited to [`crate::TcpConfig::fin_wait_2`].
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn discard(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.discard(now);
        self.settle(now, id);
        Ok(())
    }

    /// The application will not query a closed connection again. In TIME-WAIT it then takes less memory, and its state
    /// can no longer be queried.
    pub fn forget(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.closed().is_some()) {
            connection.leave();
            self.settle(now, id);
        }
    }

    /// Switches Nagle's algorithm on or off (initially as in [`crate::TcpConfig::nagle`]).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_nagle(&mut self, now: Instant, id: ConnectionId, on: bool) -> Result<(), OperationError> {
        self.open(id)?.set_nagle(on);
        self.settle(now, id);
        Ok(())
    }

    /// The application knows the peer: the receive buffer is no longer held to
    /// [`crate::ConnectionConfig::receive_buffer_at_first`]. Without such a limit nothing changes.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn open_receive_buffer(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.open_receive_buffer();
        self.settle(now, id);
        Ok(())
    }

    /// Sets the application's priority for the policies, from 1 (highest) to 6. Other values are clamped.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_priority(&mut self, id: ConnectionId, priority: u8) -> Result<(), OperationError> {
        self.open(id)?.set_priority(priority);
        Ok(())
    }

    /// Tells the policies for how long the peer's player can continue with its buffered data, which counts down by
    /// itself. A scheduler such as `deadline_reinjection` uses it. None: unknown, the initial state.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_play_out_left(
        &mut self,
        now: Instant,
        id: ConnectionId,
        left: Option<Duration>,
    ) -> Result<(), OperationError> {
        self.open(id)?.set_play_out_left(now, left);
        self.settle(now, id);
        Ok(())
    }

    /// Ends the connection immediately (MP_FASTCLOSE or RST).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn abort(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.abort(now);
        self.settle(now, id);
        Ok(())
    }
}
