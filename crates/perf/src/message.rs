//! Control messages between the two ends of a measurement: a short header before JSON, with a version and a bounded length.
//!
//! A frame is `ANBRPERF`, a version (16 bits), a length (32 bits, both big-endian), and that many bytes of JSON. The
//! client opens a control connection and one connection per stream. Each starts with a frame from the client; on a
//! stream, payload follows.

use super::link::Link;
use super::plan::Plan;
use super::report::{About, Interval, Side};
use serde::{Deserialize, Serialize};
use std::io;

/// The version of the protocol.
pub const VERSION: u16 = 1;
/// Most bytes of JSON that a server accepts from an untrusted client.
pub(super) const SHORT: u32 = 4 * 1024;
/// Most bytes of JSON that a client accepts.
pub(super) const LONG: u32 = 8 * 1024 * 1024;

const MAGIC: &[u8; 8] = b"ANBRPERF";
const HEADER: usize = 14;

/// A control message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Message {
    /// From the client, first on the control connection: the requested test.
    Test { plan: Plan, about: About },
    /// From the server: the name of the session for the streams.
    Accepted { session: String, about: About },
    /// From the server: the reason for a refusal.
    Refused { reason: String },
    /// From the client, first on a stream.
    Stream { session: String, stream: u32 },
    /// From the server: all streams have arrived.
    Ready,
    /// From the client: the test starts.
    Start,
    /// From the server while it sends.
    Interval { interval: Interval },
    /// From the client: its measurements are complete.
    Finished,
    /// From the client: the test ends here, and it wants the results until now.
    Stop,
    /// From the server at the end: its side of each direction.
    Results { up: Option<Side>, down: Option<Side> },
}

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum MessageError {
    /// Not a frame.
    #[error("not a frame of this protocol")]
    NotOurs,
    /// Another version.
    #[error("protocol version {0} instead of {VERSION}")]
    Version(u16),
    /// The frame's length exceeds the limit.
    #[error("a frame of {0} bytes")]
    TooLong(u32),
    /// The frame contains no valid message.
    #[error("a frame without a message")]
    Malformed,
    /// The connection ended early.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// Encodes a message.
pub(super) fn encode(message: &Message) -> Vec<u8> {
    let json = serde_json::to_vec(message).unwrap_or_default();
    let mut frame = Vec::with_capacity(HEADER + json.len());
    frame.extend_from_slice(MAGIC);
    frame.extend_from_slice(&VERSION.to_be_bytes());
    frame.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(&json);
    frame
}

/// The length of the JSON after a header.
fn length_of(header: &[u8; HEADER], limit: u32) -> Result<u32, MessageError> {
    let [magic @ .., v0, v1, l0, l1, l2, l3] = header;
    if magic != MAGIC {
        return Err(MessageError::NotOurs);
    }
    let (version, length) = (u16::from_be_bytes([*v0, *v1]), u32::from_be_bytes([*l0, *l1, *l2, *l3]));
    if version != VERSION {
        return Err(MessageError::Version(version));
    }
    if length > limit {
        return Err(MessageError::TooLong(length));
    }
    Ok(length)
}

pub(super) async fn write(link: &Link, message: &Message) -> io::Result<()> {
    link.write_all(encode(message).into()).await
}

/// Reads a message of at most `limit` bytes.
pub(super) async fn read(link: &Link, limit: u32) -> Result<Message, MessageError> {
    let mut header = [0; HEADER];
    link.read_exact(&mut header).await?;
    let mut json = vec![0; length_of(&header, limit)? as usize];
    link.read_exact(&mut json).await?;
    serde_json::from_slice(&json).map_err(|_| MessageError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(magic: &[u8; 8], version: u16, length: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(magic);
        header[8..10].copy_from_slice(&version.to_be_bytes());
        header[10..].copy_from_slice(&length.to_be_bytes());
        header
    }

    #[test]
    fn a_frame_that_is_not_ours_or_of_another_version_or_too_long_is_told_apart() {
        assert!(matches!(length_of(&header(b"GET / HT", 1, 2), SHORT), Err(MessageError::NotOurs)));
        assert!(matches!(length_of(&header(MAGIC, 7, 2), SHORT), Err(MessageError::Version(7))));
        assert!(matches!(length_of(&header(MAGIC, 1, SHORT + 1), SHORT), Err(MessageError::TooLong(4097))));
        assert_eq!(length_of(&header(MAGIC, 1, SHORT), SHORT).unwrap(), 4096);
    }

    #[test]
    fn a_message_is_framed_with_its_length() {
        let frame = encode(&Message::Ready);
        assert_eq!(&frame[..HEADER], header(MAGIC, 1, 16));
        assert_eq!(&frame[HEADER..], br#"{"type":"ready"}"#);
    }
}
