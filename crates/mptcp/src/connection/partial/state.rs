//! State of partial reliability, and of framed streams.

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

/// Why a message was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageError {
    /// The connection carries bytes.
    NotFramed,
    /// It is longer than the send buffer, or its play-out time does not fit the header.
    TooLong,
}

/// A gap in an unframed stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Gap {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) reason: Reason,
}

/// Messages and abandoned data of a connection.
pub(in crate::connection) struct Partial {
    pub(super) framing: Framing,
    pub(super) policy: Box<dyn Reliability>,
    pub(super) terms: Terms,
    pub(super) clock: PlayOutClock,
    /// Assembles the peer's messages in a framed stream.
    pub(super) assembler: Assembler,
    /// Unread gaps in an unframed stream.
    pub(super) gaps: VecDeque<Gap>,
    /// State beyond the first hole.
    pub(super) ahead: Ahead,
    /// Abandoned ranges that did not arrive later.
    pub(super) missing: Ranges,
    /// Bytes that arrived after they had been abandoned.
    pub(super) late_bytes: u64,
    /// State of skipping on subflows.
    pub(super) skips: Skips,
    /// State of the notices.
    pub(super) notices: NoticeExchange,
    /// Messages withdrawn by us.
    pub(super) withdrawals: Withdrawals,
    /// Up to where the scheduler was asked about duplicates, by subflow.
    pub(super) asked_until: SubflowMap<SeqNumber>,
    pub(super) next_number: u32,
    /// Data abandoned in an unframed stream.
    pub(super) abandoned: Abandoned,
}

impl std::fmt::Debug for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Partial").field("framing", &self.framing).field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Partial {
    /// None for a stream of bytes without abandoned data.
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

    /// Whether either end may abandon or withdraw data.
    pub fn abandons(&self) -> bool {
        self.terms != Terms::FULL
    }

    /// Adds the abandoned data to the counters, and removes it from the delivered bytes.
    pub fn report(&self, stats: &mut ConnectionStats) {
        stats.abandoned = match self.framing {
            Framing::Messages => self.assembler.abandoned(),
            Framing::Bytes => self.abandoned,
        };
        stats.bytes_delivered = stats.bytes_delivered.saturating_sub(stats.abandoned.total().bytes);
        stats.late_bytes_received = self.late_bytes;
        stats.skipped_bytes = self.skips.skipped_bytes;
        stats.skipping_is_off = self.skips.skipping_is_off;
        stats.messages_withdrawn = self.withdrawals.withdrawn_messages;
        stats.bytes_withdrawn = self.withdrawals.withdrawn_bytes;
        // A notice may overtake the DATA_ACK, or be forged.
        stats.bytes_abandoned_by_peer = self.notices.peer_abandoned.min(stats.bytes_acked);
    }

    pub fn clock(&self) -> PlayOutClock {
        self.clock
    }

    pub(super) fn has_record(&self) -> bool {
        self.assembler.is_ready() || !self.gaps.is_empty()
    }
}
