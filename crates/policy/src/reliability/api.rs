//! Questions to a reliability policy, and its answers.

use crate::time::{Duration, Instant};
use crate::view::SubflowView;
use core::fmt;

/// Why data was abandoned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Its play-out time had come, or was about to.
    Expired,
    /// The receive buffer was blocked.
    Blocked,
    /// A later message, which had arrived, was due.
    Overtaken,
    /// The sender withdrew it.
    Withdrawn,
    /// It is no part of a message that can be delivered: it is where a header should be, the stream ended within it, or
    /// it is longer than the receive buffer can become.
    Unframed,
}

impl Reason {
    pub const ALL: [Self; 5] = [Self::Expired, Self::Blocked, Self::Overtaken, Self::Withdrawn, Self::Unframed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Blocked => "blocked",
            Self::Overtaken => "overtaken",
            Self::Withdrawn => "withdrawn",
            Self::Unframed => "unframed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// State of the receive buffer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferState {
    pub size: u64,
    /// Data behind the hole: out of order, and of the message that contains the hole.
    pub held: u64,
    /// Space left before the hole is filled: from the last byte received to the edge of the advertised window. If it is
    /// less than a segment, the buffer is blocked.
    pub room: u64,
}

/// Missing data that later data waits for: the first hole in the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// Data sequence of its first byte.
    pub data_seq: u64,
    /// In bytes, up to the first byte received behind it.
    pub length: u64,
    /// Since when later data has waited for it.
    pub since: Instant,
    /// The importance of its message; none if unknown: the stream is not framed, or the header is missing too.
    pub importance: Option<u8>,
    /// When that message is played ([`super::PlayOutClock`]), if known.
    pub play_out: Option<Instant>,
    /// When the first of the complete later messages is played; none if there is none.
    pub later_play_out: Option<Instant>,
    pub buffer: BufferState,
    /// The longest smoothed round trip of the subflows.
    pub round_trip: Duration,
}

/// The decision on missing data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Wait; ask again at that time, or when more data has arrived. [`Instant::NEVER`]: only when more data has
    /// arrived.
    Wait { until: Instant },
    /// Abandon the message of the data, or the data itself in an unframed stream.
    Abandon(Reason),
}

/// Importance of data that everything else depends on (I frames): never abandoned for lack of space.
pub const ESSENTIAL: u8 = 0;
/// Importance of data that something depends on (P frames).
pub const DEPENDED_ON: u8 = 128;
/// Importance of data that nothing depends on (B frames): abandoned first.
pub const EXPENDABLE: u8 = 255;

/// A message of ours that the peer has not acknowledged completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    pub importance: u8,
    /// In bytes, header included.
    pub length: u64,
    /// Bytes of it assigned to subflows.
    pub assigned: u64,
    /// Bytes of it known to be lost and not yet retransmitted.
    pub lost: u64,
    /// When it was written.
    pub written: Instant,
    /// When it becomes useless, by the application; none if it did not say.
    pub expires: Option<Instant>,
    /// The minimum smoothed round trip of the subflows.
    pub round_trip: Duration,
}

impl Outstanding {
    /// Bytes not assigned to a subflow.
    pub const fn left(&self) -> u64 {
        self.length.saturating_sub(self.assigned)
    }
}

/// The decision on an outstanding message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Keep it; ask again at that time.
    Keep {
        /// [`Instant::NEVER`] if time alone changes nothing.
        until: Instant,
    },
    Withdraw,
}

/// Which acknowledgements skip abandoned data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Only the DATA_ACK skips the hole; the subflow continues until its bytes have arrived, which are dropped.
    Data,
    /// The acknowledgement of the subflow skips it too, within limits.
    Subflow,
}

/// What the sender withdraws together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// The missing bytes.
    Bytes,
    /// The message that contains them.
    Message,
}

/// Which parts of partial reliability a policy uses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// The receiver abandons data: [`Reliability::abandon`] is called.
    pub receiver: bool,
    /// The sender withdraws data: [`Reliability::withdraw`] is called. What is withdrawn together.
    pub sender: Option<Unit>,
    pub latency: Duration,
    pub level: Level,
    /// At [`Level::Subflow`]: limit of the skipped bytes, as a share of the bytes received on the subflow.
    pub most_skipped: f64,
}

impl Terms {
    /// Nothing is abandoned.
    pub const FULL: Self =
        Self { receiver: false, sender: None, latency: Duration::ZERO, level: Level::Data, most_skipped: 0.0 };
}

/// Decides which data is abandoned.
pub trait Reliability: Send {
    /// Which parts it uses; queried once, when a connection begins.
    fn terms(&self) -> Terms {
        Terms::FULL
    }

    /// Whether the receiver abandons the missing data now. Called when it is found missing, when more data has arrived,
    /// and at the time of the last answer.
    fn abandon(&mut self, _now: Instant, _missing: &Missing) -> Decision {
        Decision::Wait { until: Instant::NEVER }
    }

    /// Whether the sender withdraws a message now. Called when a part of it is to be sent or is found lost, and at the
    /// time of the last answer.
    fn withdraw(&mut self, _now: Instant, _message: &Outstanding) -> Verdict {
        Verdict::Keep { until: Instant::NEVER }
    }

    /// The last moment at which a part of a message can be sent on a path as fast as the fastest and be in time; none
    /// without a deadline. Schedulers see it ([`crate::scheduler::Chunk::time_left`]).
    fn last_moment(&self, _written: Instant, _expires: Option<Instant>) -> Option<Instant> {
        None
    }

    /// Whether the sender sends the first of these messages, which are in stream order and wait as far as they are not
    /// assigned; otherwise it is withdrawn. Called once for each message, when it is its turn.
    fn begin(&mut self, _now: Instant, _waiting: &[Outstanding], _paths: &[SubflowView]) -> bool {
        true
    }
}
