//! Records for applications that write messages, or whose stream may have gaps: pieces of the stream with their
//! offsets.

use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MessageHeader;
use bytes::Bytes;

/// Whether the stream is bytes or messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    #[default]
    Bytes,
    /// Messages with headers ([`anabranch_wire::message`]), in both directions. Nagle's algorithm is off at the start.
    Messages,
}

/// Options of a message to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageOptions {
    /// 0: never abandoned for lack of buffer space. Messages of higher values are abandoned first.
    pub importance: u8,
    /// Play-out time, from the beginning of the stream; in whole microseconds, less than 2^48.
    pub play_out: Duration,
    /// Time after which the message is useless; none: the policy decides. Used only by senders that withdraw messages.
    pub lifetime: Option<Duration>,
}

/// A piece of the stream. Records come in the order of their offsets, each begins where the previous one ended, and
/// together they cover the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Bytes of an unframed stream.
    Bytes {
        /// Data sequence of the first byte, from 0 at the beginning of the stream.
        offset: u64,
        bytes: Bytes,
    },
    /// A whole message.
    Message {
        /// Data sequence of the header.
        offset: u64,
        header: MessageHeader,
        payload: Bytes,
        /// Arrival of the first byte.
        arrived: Instant,
    },
    /// Abandoned bytes, which will not be delivered. Where messages are written, they are whole messages.
    Gap {
        /// Data sequence of the first byte.
        offset: u64,
        /// In bytes.
        length: u64,
        reason: Reason,
    },
}

impl Record {
    /// Data sequence of the first byte.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Bytes { offset, .. } | Self::Message { offset, .. } | Self::Gap { offset, .. } => *offset,
        }
    }

    /// Length in bytes; the header of a message counts.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::Message { payload, .. } => (anabranch_wire::message::HEADER + payload.len()) as u64,
            Self::Gap { length, .. } => *length,
        }
    }

    /// Data sequence after the last byte.
    pub fn end(&self) -> u64 {
        self.offset() + self.length()
    }
}
