//! The messages of a video: what is to be sent, what was read, and their payloads.

use super::super::pattern::{PATTERN_LENGTH, pattern};
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// A frame, or a part of one, that is written as a message of its own. Its number is its place in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameToSend {
    /// When it is there to be written, from the moment at which the connection is established.
    pub at: Duration,
    /// When it is to be played, on the same clock.
    pub play_out: Duration,
    /// 0: never abandoned for lack of room; the larger, the sooner.
    pub importance: u8,
    /// Its lifetime after `at`, as the sender's policy gets it; none: the policy gets none.
    pub lifetime: Option<Duration>,
    /// Payload, without the header of a message.
    pub bytes: u32,
}

/// Frames in the order in which they are written; `at` does not fall.
pub type Schedule = Arc<[FrameToSend]>;

/// A range of the stream that will not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapRead {
    /// When it was read.
    pub at: Instant,
    /// Its place in the stream.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Why.
    pub reason: Reason,
}

/// When a message came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRead {
    /// When its first byte arrived.
    pub arrived: Instant,
    /// When it could be read whole.
    pub read: Instant,
}

/// What the receiving application saw of a video.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VideoReceived {
    /// When each message came, by its number; shorter than the schedule if the last did not.
    pub messages: Vec<Option<MessageRead>>,
    /// What was abandoned.
    pub gaps: Vec<GapRead>,
    /// The first message whose payload is not what was written, if there is one; or one that came twice or out of order.
    pub wrong: Option<u32>,
}

/// The payload of a message: a range of the pattern that depends on its number.
pub(super) fn payload(number: u32, length: u32) -> Bytes {
    // A prime, so that neighbours differ everywhere.
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
