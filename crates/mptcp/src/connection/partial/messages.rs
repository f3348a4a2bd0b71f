//! Writes messages and reads records.

use super::state::{Gap, MessageError};
use super::written::Written;
use crate::connection::state::Connection;
use crate::record::{Framing, MessageOptions, Record};
use anabranch_policy::time::Instant;
use anabranch_wire::message::{HEADER, MessageHeader};
use bytes::Bytes;

impl Connection {
    /// Writes a whole message, or none of it if there is no space now ([`crate::Event::Writable`] follows). Returns its
    /// number.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn write_message(
        &mut self,
        now: Instant,
        payload: Bytes,
        options: &MessageOptions,
    ) -> Result<Option<u32>, MessageError> {
        self.grow_for_message(payload.len() as u64 + HEADER as u64);
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.framing == Framing::Messages) else {
            return Err(MessageError::NotFramed);
        };
        let length = u32::try_from(payload.len()).map_err(|_| MessageError::TooLong)?;
        let whole = u64::from(length) + HEADER as u64;
        let (number, importance) = (partial.next_number, options.importance);
        let header = MessageHeader { number, importance, length, play_out: options.play_out.as_micros() };
        let header = header.encode().map_err(|_| MessageError::TooLong)?;
        if whole > self.sender.buffer.limit() {
            return Err(MessageError::TooLong);
        }
        if whole > self.sender.buffer.space() {
            self.life.write_was_short = true;
            return Ok(None);
        }
        partial.next_number = number.wrapping_add(1);
        if partial.terms.sender.is_some() {
            let start = self.sender.buffer.end();
            let expires = options.lifetime.map(|lifetime| now + lifetime);
            let message =
                Written { start, end: start + whole, importance, at: now, expires, withdrawn: false, begun: false };
            partial.withdrawals.written.push_back(message);
            partial.withdrawals.judge_written_at = now;
        }
        self.sender.buffer.write(Bytes::copy_from_slice(&header));
        self.sender.buffer.write(payload);
        self.life.write_was_short = false;
        self.output.pending = true;
        self.judge_missing(now);
        self.insert_released(now);
        Ok(Some(number))
    }

    /// The next record.
    pub fn read_record(&mut self, now: Instant) -> Option<Record> {
        let offset = self.receiver.buffer.read_offset();
        let Some(partial) = self.partial.as_mut() else {
            return self.read(now, usize::MAX).map(|bytes| Record::Bytes { offset, bytes });
        };
        let record = match partial.framing {
            Framing::Messages => partial.assembler.next_record(now)?,
            Framing::Bytes => match partial.gaps.front().copied().filter(|gap| gap.offset == offset) {
                Some(Gap { offset, length, reason }) => {
                    partial.gaps.pop_front();
                    Record::Gap { offset, length, reason }
                }
                None => return self.read(now, usize::MAX).map(|bytes| Record::Bytes { offset, bytes }),
            },
        };
        let allowed = self.receive_buffer_allowed();
        self.receiver.buffer.record_read(now, record.end(), allowed);
        // Parsing may have waited for the reader.
        self.take_in_records(now);
        self.judge_missing(now);
        self.insert_released(now);
        self.after_read(now);
        Some(record)
    }
}
