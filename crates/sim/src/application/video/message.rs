//! The messages of a video: the schedule, the arrivals, and the payloads.

use super::super::pattern::{PATTERN_LENGTH, pattern};
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// A frame, or a part of one, that is written as one message. Its number is its index in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameToSend {
    /// Earliest time of writing, from the establishment of the connection.
    pub at: Duration,
    /// Play-out time, on the same clock.
    pub play_out: Duration,
    /// 0: never abandoned for lack of room; greater values are abandoned sooner.
    pub importance: u8,
    /// Lifetime after `at`, as passed to the sender's policy, if any.
    pub lifetime: Option<Duration>,
    /// Payload, without the message header.
    pub bytes: u32,
}

/// Frames in the order of writing; `at` does not decrease.
pub type Schedule = Arc<[FrameToSend]>;

/// A range of the stream that the sender has withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapRead {
    /// When it was read.
    pub at: Instant,
    /// Stream offset.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    pub reason: Reason,
}

/// When a message arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRead {
    /// Arrival of its first byte.
    pub arrived: Instant,
    /// When it could be read completely.
    pub read: Instant,
}

/// What the receiving application has read of a video.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VideoReceived {
    /// By number of the message; shorter than the schedule if the last messages are missing.
    pub messages: Vec<Option<MessageRead>>,
    /// Withdrawn ranges.
    pub gaps: Vec<GapRead>,
    /// The first message with a wrong payload, a duplicate number, or out of order.
    pub wrong: Option<u32>,
}

/// The payload of a message: a range of the pattern that depends on its number.
pub(super) fn payload(number: u32, length: u32) -> Bytes {
    // A prime, so that consecutive messages differ everywhere.
    let mut offset = u64::from(number) * 7919;
    let mut left = u64::from(length);
    let first = pattern(offset, left);
    if first.len() as u64 == left {
        return first;
    }
    let mut joined = BytesMut::with_capacity(length as usize);
    while left > 0 {
        let piece = pattern(offset % PATTERN_LENGTH, left);
        joined.extend_from_slice(&piece);
        (offset, left) = (offset + piece.len() as u64, left - piece.len() as u64);
    }
    joined.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_differ_from_message_to_message_and_may_be_longer_than_the_pattern() {
        assert_ne!(payload(1, 1000), payload(2, 1000));
        let long = payload(132, 2_000_000);
        assert_eq!(long.len(), 2_000_000);
        assert_eq!(long[PATTERN_LENGTH as usize..], long[..2_000_000 - PATTERN_LENGTH as usize]);
    }
}
