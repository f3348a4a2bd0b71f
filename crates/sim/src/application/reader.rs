//! How an application reads: at once or at a limited rate, and what it checks.

use super::pattern;
use super::video::{VideoReceived, VideoReceiver};
use anabranch_mptcp::Endpoint;
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use sha2::{Digest, Sha256};

/// What is checked of the bytes that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Only their number.
    #[default]
    Count,
    /// Equality with the pattern of bulk transfers.
    Pattern,
    /// Their SHA-256 is computed.
    Sha256,
}

/// How an application reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Limit of the rate, in reads of 16 kB; `None`: everything is read at once.
    pub rate: Option<Rate>,
    pub verify: Verify,
    /// Message size in bytes: record when each message has been read.
    pub message: Option<u64>,
    /// The stream consists of messages with headers: record when each has been read, and the gaps. `rate` and `verify`
    /// are ignored.
    pub records: bool,
}

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    Not,
    /// All bytes match the pattern.
    Pattern,
    /// A byte at or after this stream offset differs from the pattern.
    Wrong {
        /// Offset of the piece with the difference.
        from: u64,
    },
    /// SHA-256 of the bytes so far.
    Sha256([u8; 32]),
}

/// Bytes per read with a limited rate.
const PIECE: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Reader {
    rate: Option<Rate>,
    check: Check,
    total: u64,
    /// Next read with a limited rate; `NEVER`: at the next notification of data.
    wake: Instant,
    /// Earliest next read.
    not_before: Instant,
    /// Message size in bytes, if messages are recorded.
    message: Option<u64>,
    /// When the last byte of each was read.
    pub(crate) messages: Vec<Instant>,
    video: Option<Box<VideoReceiver>>,
}

#[derive(Clone, Debug)]
enum Check {
    Count,
    Pattern { wrong: Option<u64> },
    Sha256(Box<Sha256>),
}

impl Reader {
    pub(crate) fn new(reading: &Reading) -> Self {
        let check = match reading.verify {
            Verify::Count => Check::Count,
            Verify::Pattern => Check::Pattern { wrong: None },
            Verify::Sha256 => Check::Sha256(Box::new(Sha256::new())),
        };
        Self {
            rate: reading.rate,
            check,
            total: 0,
            wake: Instant::NEVER,
            not_before: Instant::ZERO,
            message: reading.message.filter(|size| *size > 0),
            messages: Vec::new(),
            video: reading.records.then(Box::default),
        }
    }
    pub(crate) fn timer(&self) -> Instant {
        self.wake
    }
    pub(crate) fn total(&self) -> u64 {
        self.video.as_ref().map_or(self.total, |video| video.total())
    }
    /// The messages of a video that have arrived.
    pub(crate) fn video(&self) -> Option<&VideoReceived> {
        self.video.as_ref().map(|video| video.received())
    }
    pub(crate) fn checked(&self) -> Checked {
        match &self.check {
            Check::Count => Checked::Not,
            Check::Pattern { wrong: None } => Checked::Pattern,
            Check::Pattern { wrong: Some(from) } => Checked::Wrong { from: *from },
            Check::Sha256(hash) => Checked::Sha256((**hash).clone().finalize().into()),
        }
    }
    /// Reads what its rate allows.
    #[inline(always)]
    pub(crate) fn read(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if self.video.is_some() || self.rate.is_some() {
            return self.read_otherwise(now, endpoint, id);
        }
        while let Some(bytes) = endpoint.read(now, id, usize::MAX) {
            self.take(now, &bytes);
            if !endpoint.is_readable(id) {
                break;
            }
        }
    }
    /// Reads a video, or at a limited rate.
    #[inline(never)]
    fn read_otherwise(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        if let Some(video) = &mut self.video {
            return video.read(now, endpoint, id);
        }
        let Some(rate) = self.rate else { return };
        if now < self.not_before {
            self.wake = self.not_before;
            return;
        }
        self.wake = Instant::NEVER;
        let mut read = 0;
        while read < PIECE {
            let Some(bytes) = endpoint.read(now, id, PIECE - read) else { break };
            read += bytes.len();
            self.take(now, &bytes);
        }
        if read > 0 {
            self.not_before = now + rate.time_for(read as u64);
            self.wake = self.not_before;
        }
    }
    #[inline]
    fn take(&mut self, now: Instant, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if !matches!(self.check, Check::Count) || self.message.is_some() {
            self.look_at(now, bytes);
        }
    }
    /// Checks the bytes just read, and records the messages that they complete.
    #[inline(never)]
    fn look_at(&mut self, now: Instant, bytes: &[u8]) {
        let from = self.total - bytes.len() as u64;
        match &mut self.check {
            Check::Count => {}
            Check::Pattern { wrong } => {
                if wrong.is_none() && !pattern::matches(from, bytes) {
                    *wrong = Some(from);
                }
            }
            Check::Sha256(hash) => hash.update(bytes),
        }
        if let Some(size) = self.message {
            self.messages.resize((self.total / size) as usize, now);
        }
    }
}
