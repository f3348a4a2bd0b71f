//! What the application does with a connection.

use super::error::OperationError;
use super::state::Endpoint;
use crate::connection::{Connection, MessageError};
use crate::record::{MessageOptions, Record};
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::reliability::PlayOutClock;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;

impl Endpoint {
    /// Takes as much of `data` as the send buffer holds; returns the bytes taken. [`crate::Event::Writable`] follows a short write.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`], [`OperationError::Ended`], or
    /// [`OperationError::WrongFraming`] where messages are written.
    pub fn write(&mut self, now: Instant, id: ConnectionId, data: Bytes) -> Result<usize, OperationError> {
        let connection = self.open_for_writing(id)?;
        if !connection.takes_bytes() {
            return Err(OperationError::WrongFraming);
        }
        let taken = connection.write(data);
        self.settle(now, id);
        Ok(taken)
    }

    /// Takes a whole message and returns its number; none if the send buffer has no room for it now:
    /// [`crate::Event::Writable`] follows. Its header goes into the stream before it ([`anabranch_wire::message`]).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`], [`OperationError::SendClosed`] after [`Self::close`], [`OperationError::Ended`],
    /// [`OperationError::WrongFraming`] unless [`crate::ConnectionConfig::framing`] says messages, and
    /// [`OperationError::MessageTooLong`].
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

    /// How many bytes [`Self::write`] would take now; none if there is no such connection.
    pub fn room(&self, id: ConnectionId) -> Option<u64> {
        self.connections.get(id).map(Connection::room)
    }

    /// The next bytes in order, at most `max`; none if there are none now. Where something was given up it gives none any
    /// more, and none at all where messages are written: [`Self::read_record`] reads those, [`Self::read_stops`] tells.
    #[inline(always)]
    pub fn read(&mut self, now: Instant, id: ConnectionId, max: usize) -> Option<Bytes> {
        let connection = self.connections.get_mut(id)?;
        let bytes = connection.read(now, max);
        if !connection.is_at_rest() {
            self.settle(now, id);
        }
        bytes
    }

    /// Whether [`Self::read`] may give something now: false saves asking it, and is told for less.
    pub fn is_readable(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(Connection::is_readable)
    }

    /// The next record: bytes, a message, or a gap. In a stream of bytes of which nothing is given up it is
    /// [`Self::read`], with the offset.
    pub fn read_record(&mut self, now: Instant, id: ConnectionId) -> Option<Record> {
        let record = self.connections.get_mut(id)?.read_record(now);
        self.settle(now, id);
        record
    }

    /// Whether [`Self::read`] gives nothing now that time will change: a gap comes next, or messages.
    pub fn read_stops(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(Connection::read_stops)
    }

    /// When messages of the peer's are to be played ([`PlayOutClock`]); none where there are no messages.
    pub fn play_out_clock(&self, id: ConnectionId) -> Option<PlayOutClock> {
        self.connections.get(id)?.play_out_clock()
    }

    /// Which path the peer called its worst when it gave something up last, and how much longer its forward delay was than the
    /// least; none if it never did, or does not measure them (path manager `one_way_delay` at its end).
    pub fn worst_path_of_peer(&self, id: ConnectionId) -> Option<(SubflowId, Duration)> {
        self.connections.get(id)?.worst_path_of_peer()
    }

    /// No more will be written: DATA_FIN and FIN follow the last byte. Reading goes on.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.close(now);
        self.settle(now, id);
        Ok(())
    }

    /// The application is done with both directions: as [`Self::close`], but nobody will read. What waits unread, or
    /// comes, resets the connection (RFC 1122, section 4.2.2.13), and the peer's FIN is awaited for
    /// [`crate::TcpConfig::fin_wait_2`] only.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn discard(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.discard(now);
        self.settle(now, id);
        Ok(())
    }

    /// The application will not ask for a connection again of which it has heard how it ended: in TIME-WAIT there is then less
    /// left of it, and nothing to be asked.
    pub fn forget(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.closed().is_some()) {
            connection.leave();
            self.settle(now, id);
        }
    }

    /// Holds small segments back while data is in flight, or not ([`crate::TcpConfig::nagle`] says how it begins).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_nagle(&mut self, now: Instant, id: ConnectionId, on: bool) -> Result<(), OperationError> {
        self.open(id)?.set_nagle(on);
        self.settle(now, id);
        Ok(())
    }

    /// Changes the application's priority, 1 (highest) to 6; others are brought into that range. Policies see it from now on.
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn set_priority(&mut self, id: ConnectionId, priority: u8) -> Result<(), OperationError> {
        self.open(id)?.set_priority(priority);
        Ok(())
    }

    /// Tells policies for how long the peer's player can go on with what it has, so that a scheduler such as
    /// `deadline_reinjection` can see to it that it does not run dry; it counts down by itself until it is told anew. None:
    /// it is not known, as at the start.
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

    /// Ends the connection at once (MP_FASTCLOSE or RST).
    ///
    /// # Errors
    /// [`OperationError::NoConnection`].
    pub fn abort(&mut self, now: Instant, id: ConnectionId) -> Result<(), OperationError> {
        self.open(id)?.abort(now);
        self.settle(now, id);
        Ok(())
    }
}
