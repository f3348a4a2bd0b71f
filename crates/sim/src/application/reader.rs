//! How an application reads: at once or at a limited rate, and what it checks.

use super::pattern;
use super::video::{VideoReceived, VideoReceiver};
use anabranch_mptcp::Endpoint;
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use sha2::{Digest, Sha256};

/// What is done with the bytes that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// They are counted.
    #[default]
    Count,
    /// They are compared with the pattern that bulk transfers send.
    Pattern,
    /// Their SHA-256 is worked out.
    Sha256,
}

/// How an application reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Not faster than this, 16 kB at a time; none: everything at once.
    pub rate: Option<Rate>,
    /// What is done with the bytes.
    pub verify: Verify,
    /// Note when each message of so many bytes has been read.
    pub message: Option<u64>,
    /// The stream is one of messages with headers: note when each has been read, and the gaps. Nothing else is done then.
    pub records: bool,
}

/// What a check found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// Nothing was checked.
    Not,
    /// All bytes are the pattern.
    Pattern,
    /// A byte at or after this place in the stream is not the pattern's.
    Wrong {
        /// Where the piece begins that has it.
        from: u64,
    },
    /// The SHA-256 of the bytes so far.
    Sha256([u8; 32]),
}

/// Bytes that an application with a limited rate reads at a time.
const PIECE: usize = 16 * 1024;

/// An application that reads.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    rate: Option<Rate>,
    check: Check,
    total: u64,
    /// When it reads next, if its rate is limited; never: when it hears that there is something.
    wake: Instant,
    /// It may not read before this.
    not_before: Instant,
    /// Bytes of a message, if they are noted.
    message: Option<u64>,
    /// When each was read to its last byte.
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
    /// When it wants to be called again.
    pub(crate) fn timer(&self) -> Instant {
        self.wake
    }
    /// Bytes read so far.
    pub(crate) fn total(&self) -> u64 {
        self.video.as_ref().map_or(self.total, |video| video.total())
    }
    /// What became of the messages of a video.
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
    /// Reads what it may.
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
    /// A video, or at a rate.
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
    /// Checks what was read last, and notes the messages that it ends.
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
