//! The state of partial reliability, and of streams that are framed.

use super::ahead::Ahead;
use super::assembler::Assembler;
use super::ranges::Ranges;
use super::withdrawn::Written;
use crate::record::Framing;
use crate::stats::{Abandoned, ConnectionStats};
use anabranch_policy::ids::SubflowMap;
use anabranch_policy::reliability::{PlayOutClock, Reason, Reliability, Terms};
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::notice::WorstPath;
use std::collections::VecDeque;

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageError {
    /// The connection carries bytes.
    NotFramed,
    /// It never fits: longer than the send buffer, or a play-out time that the header cannot say.
    TooLong,
}

/// A gap in a stream that is not framed.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Gap {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) reason: Reason,
}

/// The state of it.
pub(in crate::connection) struct Partial {
    pub(super) framing: Framing,
    pub(super) policy: Box<dyn Reliability>,
    pub(super) terms: Terms,
    pub(super) clock: PlayOutClock,
    /// Messages of the peer's, where the stream is framed.
    pub(super) assembler: Assembler,
    /// Gaps in what waits to be read, where it is not.
    pub(super) gaps: VecDeque<Gap>,
    /// What is known beyond the first hole.
    pub(super) ahead: Ahead,
    /// What was given up and has not come after all.
    pub(super) missing: Ranges,
    /// Bytes that came after they had been given up.
    pub(super) late_bytes: u64,
    /// What is known of subflows where acknowledgements go over what was given up, and whether that is over.
    pub(super) sides: SubflowMap<super::side::Side>,
    pub(super) skips_no_more: bool,
    /// Bytes that acknowledgements of subflows went over.
    pub(super) skipped_bytes: u64,
    /// The peer knows of notices, and that we do.
    pub(super) peer_knows: bool,
    pub(super) peer_heard: bool,
    /// The peer sends elsewhere what it is told is missing; up to where it was told of each subflow.
    pub(super) peer_repairs: bool,
    pub(super) told_until: SubflowMap<SeqNumber>,
    /// Up to where the scheduler was asked what goes twice.
    pub(super) asked_until: SubflowMap<SeqNumber>,
    pub(super) hellos: u32,
    pub(super) hello_at: Instant,
    /// Bytes that we gave up, as the peer is told; that the peer did, as it told us last, and in all.
    pub(super) told_total: u32,
    pub(super) peer_total: u32,
    pub(super) peer_abandoned: u64,
    pub(super) peer_worst: Option<WorstPath>,
    /// What the peer will not send (again).
    pub(super) peer_withdrawn: Vec<(u64, u64)>,
    /// Messages of ours that may be withdrawn, and what of those that were the peer has not gone over yet, in the stream's order.
    pub(super) written: VecDeque<Written>,
    pub(super) withdrawn: VecDeque<(u64, u64)>,
    /// Where the DATA_ACK has stood before such a stretch, and since when, though the peer has what lies behind.
    pub(super) stands: Option<(u64, Instant)>,
    /// It stood there for too long: the peer does not hear what is withdrawn.
    pub(super) peer_is_deaf: bool,
    pub(super) withdrawn_messages: u64,
    pub(super) withdrawn_bytes: u64,
    pub(super) judge_written_at: Instant,
    /// The number of our next message.
    pub(super) next_number: u32,
    /// What was given up of a stream that is not framed.
    pub(super) abandoned: Abandoned,
}

impl std::fmt::Debug for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Partial").field("framing", &self.framing).field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Partial {
    /// None for a stream of bytes of which nothing is given up.
    pub fn of(framing: Framing, policy: Box<dyn Reliability>) -> Option<Box<Self>> {
        let terms = policy.terms();
        (framing == Framing::Messages || terms != Terms::FULL).then(|| {
            Box::new(Self {
                framing,
                policy,
                terms,
                clock: PlayOutClock::new(terms.latency),
                assembler: Assembler::new(0),
                gaps: VecDeque::new(),
                ahead: Ahead::default(),
                missing: Ranges::default(),
                late_bytes: 0,
                sides: SubflowMap::new(),
                skips_no_more: false,
                skipped_bytes: 0,
                peer_knows: false,
                peer_heard: false,
                peer_repairs: false,
                told_until: SubflowMap::new(),
                asked_until: SubflowMap::new(),
                hellos: 0,
                hello_at: Instant::ZERO,
                told_total: 0,
                peer_total: 0,
                peer_abandoned: 0,
                peer_worst: None,
                peer_withdrawn: Vec::new(),
                written: VecDeque::new(),
                withdrawn: VecDeque::new(),
                stands: None,
                peer_is_deaf: false,
                withdrawn_messages: 0,
                withdrawn_bytes: 0,
                judge_written_at: Instant::NEVER,
                next_number: 0,
                abandoned: Abandoned::default(),
            })
        })
    }

    /// Whether anything is given up, at either end.
    pub fn gives_up(&self) -> bool {
        self.terms != Terms::FULL
    }

    /// What was given up so far goes into the counters, and out of what was delivered.
    pub fn report(&self, stats: &mut ConnectionStats) {
        stats.abandoned = match self.framing {
            Framing::Messages => self.assembler.abandoned(),
            Framing::Bytes => self.abandoned,
        };
        stats.bytes_delivered = stats.bytes_delivered.saturating_sub(stats.abandoned.total().bytes);
        stats.late_bytes_received = self.late_bytes;
        stats.skipped_bytes = self.skipped_bytes;
        stats.skips_no_more = self.skips_no_more;
        stats.messages_withdrawn = self.withdrawn_messages;
        stats.bytes_withdrawn = self.withdrawn_bytes;
        // A notice may overtake the DATA_ACK, or lie.
        stats.bytes_abandoned_by_peer = self.peer_abandoned.min(stats.bytes_acked);
    }

    /// When messages are to be played.
    pub fn clock(&self) -> PlayOutClock {
        self.clock
    }

    pub(super) fn has_record(&self) -> bool {
        self.assembler.is_ready() || !self.gaps.is_empty()
    }
}
