//! Reads messages and gaps, and records when each could be read.

use super::message::{GapRead, MessageRead, VideoReceived, payload};
use anabranch_mptcp::{Endpoint, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::time::Instant;

/// Limit of message numbers, against corrupt headers.
const MOST_MESSAGES: usize = 10_000_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct VideoReceiver {
    total: u64,
    received: VideoReceived,
}

impl VideoReceiver {
    /// Payload bytes of complete messages.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
    pub(crate) fn received(&self) -> &VideoReceived {
        &self.received
    }
    /// Reads everything available.
    pub(crate) fn read(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        while let Some(record) = endpoint.read_record(now, id) {
            match record {
                Record::Message { header, payload: bytes, arrived, .. } => {
                    self.total += bytes.len() as u64;
                    self.note(MessageRead { arrived, read: now }, header.number, &bytes);
                }
                Record::Gap { offset, length, reason } => {
                    self.received.gaps.push(GapRead { at: now, offset, length, reason });
                }
                // A stream of messages has no bytes outside of messages.
                Record::Bytes { .. } => self.received.wrong = self.received.wrong.or(Some(u32::MAX)),
            }
        }
    }
    fn note(&mut self, seen: MessageRead, number: u32, bytes: &[u8]) {
        let place = number as usize;
        let next = self.received.messages.len();
        if place < next || place >= MOST_MESSAGES || bytes != payload(number, bytes.len() as u32) {
            self.received.wrong = self.received.wrong.or(Some(number));
            return;
        }
        self.received.messages.resize(place, None);
        self.received.messages.push(Some(seen));
    }
}
