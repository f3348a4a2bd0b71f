//! What a reliability policy is asked, and what it answers.

use crate::time::{Duration, Instant};
use crate::view::SubflowView;
use core::fmt;

/// Why data was given up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Its time to be played had come, or was about to.
    Expired,
    /// The receive buffer was blocked, and something had to go.
    Blocked,
    /// The time to play a later message, which is here, had come.
    Overtaken,
    /// The sender withdrew it.
    Withdrawn,
    /// It belongs to no message that can be handed over: it stands where a header should, the stream ended in the midst of
    /// it, or it is longer than the receive buffer can be.
    Unframed,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Expired, Self::Blocked, Self::Overtaken, Self::Withdrawn, Self::Unframed];

    /// Its name.
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

/// The receive buffer, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferState {
    /// Its size.
    pub size: u64,
    /// What waits behind the hole: out of order, and of the message that the hole is in.
    pub held: u64,
    /// How much more can come before the hole is filled: from the last byte that is here to the edge of the window that the
    /// peer was told. Below a segment it is blocked.
    pub room: u64,
}

/// Missing data that later data waits for: the first hole in the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// Data sequence of its first byte.
    pub data_seq: u64,
    /// Bytes, up to the first that is here.
    pub length: u64,
    /// Since when later data has been waiting for it.
    pub since: Instant,
    /// The importance of the message that it is part of; none if that is not known: the stream is not framed, or the header
    /// is missing too.
    pub importance: Option<u8>,
    /// When that message is to be played ([`super::PlayOutClock`]), if that is known.
    pub play_out: Option<Instant>,
    /// When the first of the later messages that are here whole is to be played; none if there is none.
    pub later_play_out: Option<Instant>,
    /// The receive buffer.
    pub buffer: BufferState,
    /// The longest smoothed round trip of the subflows.
    pub round_trip: Duration,
}

/// What to do about missing data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Wait; ask again then, or when more data has come. [`Instant::NEVER`]: only when more has come.
    Wait {
        /// When.
        until: Instant,
    },
    /// Give up the message that the data is part of, or the data itself in a stream that is not framed.
    GiveUp(Reason),
}

/// The importance of what all else depends on (I frames): never given up for lack of room.
pub const ESSENTIAL: u8 = 0;
/// The importance of what something depends on (P frames).
pub const DEPENDED_ON: u8 = 128;
/// The importance of what nothing depends on (B frames): given up first.
pub const EXPENDABLE: u8 = 255;

/// A message of ours that the peer has not acknowledged whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Its importance.
    pub importance: u8,
    /// Bytes, its header included.
    pub length: u64,
    /// How many of them have been given to a subflow.
    pub given: u64,
    /// How many of them are known to be lost and wait to be sent again.
    pub lost: u64,
    /// When it was written.
    pub written: Instant,
    /// Until when it is of use after the application's word; none if it did not say.
    pub expires: Option<Instant>,
    /// The least smoothed round trip of the subflows.
    pub round_trip: Duration,
}

impl Outstanding {
    /// Bytes that have not been given to a subflow.
    pub const fn left(&self) -> u64 {
        self.length.saturating_sub(self.given)
    }
}

/// What to do about an outstanding message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Keep it; ask again then.
    Keep {
        /// When; [`Instant::NEVER`] if time alone changes nothing.
        until: Instant,
    },
    /// Withdraw it.
    Withdraw,
}

/// How far an acknowledgement goes over what the receiver gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The data level only: the DATA_ACK goes over the hole; the subflow goes on until its bytes have come, and those are
    /// dropped.
    Data,
    /// The subflow's acknowledgement goes over it too, within bounds.
    Subflow,
}

/// How much of the stream is given up together at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// The bytes that are missing.
    Bytes,
    /// The message that they are part of.
    Message,
}

/// What a policy does at all: what the engine need not do for those that do not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// The receiver gives up: [`Reliability::give_up`] is to be asked.
    pub receiver: bool,
    /// The sender withdraws: [`Reliability::withdraw`] is to be asked. What is withdrawn together.
    pub sender: Option<Unit>,
    /// The latency of the play-out.
    pub latency: Duration,
    /// How far acknowledgements go.
    pub level: Level,
    /// At [`Level::Subflow`]: the most that acknowledgements may go over, as a share of the bytes that came in on the subflow.
    pub most_skipped: f64,
}

impl Terms {
    /// Nothing is given up.
    pub const FULL: Self =
        Self { receiver: false, sender: None, latency: Duration::ZERO, level: Level::Data, most_skipped: 0.0 };
}

/// Decides what is given up.
pub trait Reliability: Send {
    /// What it does at all; asked once, when a connection begins.
    fn terms(&self) -> Terms {
        Terms::FULL
    }

    /// Whether the receiver gives the missing data up now. Asked when it is found missing, when more data has come, and at
    /// the time that the last answer named.
    fn give_up(&mut self, _now: Instant, _missing: &Missing) -> Decision {
        Decision::Wait { until: Instant::NEVER }
    }

    /// Whether the sender withdraws a message now. Asked when something of it is to be sent or found lost, and at the time that
    /// the last answer named.
    fn withdraw(&mut self, _now: Instant, _message: &Outstanding) -> Verdict {
        Verdict::Keep { until: Instant::NEVER }
    }

    /// The last moment at which something of a message can leave on a path as quick as the quickest and be in time; none if there
    /// is none. Schedulers hear of it ([`crate::scheduler::Chunk::time_left`]).
    fn last_moment(&self, _written: Instant, _expires: Option<Instant>) -> Option<Instant> {
        None
    }

    /// Whether the sender begins to send the first of these messages, which stand in the order of the stream and wait as far as
    /// they were not given to a subflow; what is not begun is withdrawn. Asked once of each, when its turn has come.
    fn begin(&mut self, _now: Instant, _waiting: &[Outstanding], _paths: &[SubflowView]) -> bool {
        true
    }
}
