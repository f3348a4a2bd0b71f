//! Applications at the two ends of a connection: what they write and when, how they read, and what they check.

mod pattern;
mod reader;
mod video;
mod writer;

pub use pattern::{PATTERN_LENGTH, pattern};
pub(crate) use reader::Reader;
pub use reader::{Checked, Reading, Verify};
pub use video::{FrameToSend, GapRead, MessageRead, Schedule, VideoReceived};
pub(crate) use writer::Writer;
pub use writer::{Pace, Sending};

use bytes::Bytes;

/// The applications of a connection. An end that writes nothing closes when the other end has closed.
#[derive(Clone, Debug)]
pub struct Application {
    pub client_sends: Sending,
    pub server_sends: Sending,
    pub client_reads: Reading,
    pub server_reads: Reading,
}

impl Application {
    /// The client sends; the server reads everything at once.
    pub fn upload(sending: Sending) -> Self {
        Self {
            client_sends: sending,
            server_sends: Sending::Nothing,
            client_reads: Reading::default(),
            server_reads: Reading::default(),
        }
    }
    /// The server sends as soon as it has accepted the connection; the client reads everything at once.
    pub fn download(sending: Sending) -> Self {
        Self { client_sends: Sending::Nothing, server_sends: sending, ..Self::upload(Sending::Nothing) }
    }
    /// The client sends a video as messages, and the server records the arrival of each.
    pub fn video(frames: Schedule) -> Self {
        let server_reads = Reading { records: true, ..Reading::default() };
        Self { server_reads, ..Self::upload(Sending::Video(frames)) }
    }
    /// The client sends a file, and the server computes its SHA-256.
    pub fn file(contents: Bytes) -> Self {
        let server_reads = Reading { verify: Verify::Sha256, ..Reading::default() };
        Self { server_reads, ..Self::upload(Sending::File(contents)) }
    }
    /// The server sends a file, and the client takes the digest of what it reads.
    pub fn file_to_client(contents: Bytes) -> Self {
        let client_reads = Reading { verify: Verify::Sha256, ..Reading::default() };
        Self { client_reads, ..Self::download(Sending::File(contents)) }
    }
    /// The client sends `count` requests of `request` bytes, one after the other, and reads `response` bytes each time.
    pub fn requests(request: u64, response: u64, think: anabranch_policy::time::Duration, count: u64) -> Self {
        Self {
            client_sends: Sending::Requests { size: request, response, think, count },
            server_sends: Sending::Responses { request, size: response },
            ..Self::upload(Sending::Nothing)
        }
    }
    /// Both ends record when they have read each message of `size` bytes.
    #[must_use]
    pub fn in_messages(mut self, size: u64) -> Self {
        self.client_reads.message = Some(size);
        self.server_reads.message = Some(size);
        self
    }
    /// Both ends compare what they read with the pattern.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.client_reads.verify = Verify::Pattern;
        self.server_reads.verify = Verify::Pattern;
        self
    }
}
