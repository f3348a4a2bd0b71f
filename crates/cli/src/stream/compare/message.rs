//! A frame as a message for any socket.

use super::schedule::Frame;
use anabranch_wire::message::HEADER;
use anabranch_wire::{MessageHeader, ParseError};

/// Padding of frames.
const FILL: u8 = 0x5a;

/// Payload of a frame, of the frame's length.
pub fn payload(frame: &Frame) -> Vec<u8> {
    vec![FILL; frame.length as usize]
}

/// A frame as an encoded message.
pub fn of(frame: &Frame) -> Vec<u8> {
    let header = MessageHeader {
        number: frame.number,
        importance: frame.kind.importance(),
        length: frame.length,
        play_out: frame.at.as_micros() as u64,
    };
    // Play-out times overflow only after years.
    let mut bytes = header.encode().map(Vec::from).unwrap_or_default();
    bytes.extend(payload(frame));
    bytes
}

/// Parses messages of a stream without gaps.
#[derive(Debug, Default)]
pub struct Messages {
    waiting: Vec<u8>,
}

impl Messages {
    /// Handles received bytes; returns the indices of completed frames.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<u32>, ParseError> {
        self.waiting.extend_from_slice(bytes);
        let mut complete = Vec::new();
        loop {
            let header = match MessageHeader::decode(&self.waiting) {
                Err(ParseError::Truncated) => return Ok(complete),
                header => header?,
            };
            let whole = HEADER + header.length as usize;
            if self.waiting.len() < whole {
                return Ok(complete);
            }
            complete.push(header.number);
            self.waiting.drain(..whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::frames;
    use super::*;
    use anabranch_policy::rate::Rate;

    #[test]
    fn frames_are_found_again_however_the_stream_is_cut() {
        let frames = frames(5, Rate::from_bits_per_second(500_000));
        let stream: Vec<u8> = frames.iter().flat_map(of).collect();
        let mut messages = Messages::default();
        let found: Vec<u32> = stream.chunks(7).flat_map(|bytes| messages.take(bytes).expect("messages")).collect();
        assert_eq!(found, [0, 1, 2, 3, 4]);
        assert!(Messages::default().take(&[0; 100]).is_err());
    }
}
