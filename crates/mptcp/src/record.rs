//! What an application reads where data may be given up, or where messages are written: records with their place in the
//! stream, never joined over a gap in silence.

use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MessageHeader;
use bytes::Bytes;

/// What the stream is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// Bytes.
    #[default]
    Bytes,
    /// Messages, each behind a header ([`anabranch_wire::message`]), both ways. Nagle's algorithm begins switched off.
    Messages,
}

/// What can be said of a message that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageOptions {
    /// 0: never to be given up for lack of room; the larger, the sooner.
    pub importance: u8,
    /// When it is to be played, from the stream's beginning; in whole microseconds, less than 2^48 of them.
    pub play_out: Duration,
    /// How long it is of use to send it; none: as the policy says. Only senders that withdraw ask.
    pub lifetime: Option<Duration>,
}

/// A piece of the stream. Records come in the order of their offsets; each begins where the one before ended, and together
/// they are the stream up to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Bytes of a stream that is not framed.
    Bytes {
        /// Data sequence of the first, from 0 at the beginning of the stream.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// A whole message.
    Message {
        /// Data sequence of its header.
        offset: u64,
        /// Its header.
        header: MessageHeader,
        /// Its payload.
        payload: Bytes,
        /// When its first byte arrived.
        arrived: Instant,
    },
    /// Bytes that were given up: whole messages, where messages are written. They will not come any more.
    Gap {
        /// Data sequence of the first.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Why.
        reason: Reason,
    },
}

impl Record {
    /// Data sequence of its first byte.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Bytes { offset, .. } | Self::Message { offset, .. } | Self::Gap { offset, .. } => *offset,
        }
    }

    /// How much of the stream it is, bytes; the header of a message counts.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::Message { payload, .. } => (anabranch_wire::message::HEADER + payload.len()) as u64,
            Self::Gap { length, .. } => *length,
        }
    }

    /// Data sequence after its last byte.
    pub fn end(&self) -> u64 {
        self.offset() + self.length()
    }
}
