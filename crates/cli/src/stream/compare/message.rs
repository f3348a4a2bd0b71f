//! A frame as a message in a stream of bytes.

use super::schedule::Frame;

/// Bytes before the payload: its length and the frame's number.
const HEADER: usize = 8;

/// The bytes of a frame.
pub fn of(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.length.to_be_bytes().to_vec();
    bytes.extend(frame.number.to_be_bytes());
    bytes.resize(HEADER + frame.length as usize, 0x5a);
    bytes
}

/// Finds messages in a stream without gaps.
#[derive(Debug, Default)]
pub struct Messages {
    waiting: Vec<u8>,
}

impl Messages {
    /// More bytes came; gives the numbers of the frames that are complete now.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u32> {
        self.waiting.extend_from_slice(bytes);
        let mut complete = Vec::new();
        while let Some((length, rest)) = self.waiting.split_first_chunk::<4>() {
            let Some((number, _)) = rest.split_first_chunk::<4>() else { break };
            let (length, number) = (u32::from_be_bytes(*length), u32::from_be_bytes(*number));
            let whole = HEADER + length as usize;
            if self.waiting.len() < whole {
                break;
            }
            complete.push(number);
            self.waiting.drain(..whole);
        }
        complete
    }
}
