//! The state of partial reliability, and of streams that are framed.

use super::ahead::Ahead;
use super::assembler::Assembler;
use super::exchange::NoticeExchange;
use super::ranges::Ranges;
use super::side::Skips;
use super::written::Withdrawals;
use crate::record::Framing;
use crate::stats::{Abandoned, ConnectionStats};
use anabranch_policy::ids::SubflowMap;
use anabranch_policy::reliability::{PlayOutClock, Reason, Reliability, Terms};
use anabranch_wire::SeqNumber;
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

/// What a connection remembers of messages and of what is given up.
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
    /// Gaps of subflows that acknowledgements go over.
    pub(super) skips: Skips,
    /// Notices of both ends.
    pub(super) notices: NoticeExchange,
    /// What the sender withdraws.
    pub(super) withdrawals: Withdrawals,
    /// Up to where the scheduler was asked what goes twice.
    pub(super) asked_until: SubflowMap<SeqNumber>,
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
                skips: Skips::default(),
                notices: NoticeExchange::default(),
                withdrawals: Withdrawals::default(),
                asked_until: SubflowMap::new(),
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
        stats.skipped_bytes = self.skips.skipped_bytes;
        stats.skips_no_more = self.skips.skips_no_more;
        stats.messages_withdrawn = self.withdrawals.withdrawn_messages;
        stats.bytes_withdrawn = self.withdrawals.withdrawn_bytes;
        // A notice may overtake the DATA_ACK, or lie.
        stats.bytes_abandoned_by_peer = self.notices.peer_abandoned.min(stats.bytes_acked);
    }

    /// When messages are to be played.
    pub fn clock(&self) -> PlayOutClock {
        self.clock
    }

    pub(super) fn has_record(&self) -> bool {
        self.assembler.is_ready() || !self.gaps.is_empty()
    }
}
