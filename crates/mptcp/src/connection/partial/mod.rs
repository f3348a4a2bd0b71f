//! Messages, and what is given up: the state of connections that have either, and their records.

mod ahead;
mod assembler;
mod elsewhere;
mod missing;
mod notices;
mod ranges;
mod skip;
mod twice;
mod withdraw;

use super::{Connection, Protocol};
use crate::event::Event;
use crate::record::{Framing, MessageOptions, Record};
use crate::stats::{Abandoned, ConnectionStats};
use ahead::Ahead;
use anabranch_policy::ids::SubflowMap;
use anabranch_policy::reliability::{PlayOutClock, Reason, Reliability, Terms};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use anabranch_wire::message::{HEADER, MessageHeader};
use anabranch_wire::mptcp::notice::WorstPath;
use assembler::Assembler;
use bytes::Bytes;
use ranges::Ranges;
use std::collections::VecDeque;
use withdraw::Written;

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
struct Gap {
    offset: u64,
    length: u64,
    reason: Reason,
}

/// The state of it.
pub(super) struct Partial {
    framing: Framing,
    policy: Box<dyn Reliability>,
    terms: Terms,
    clock: PlayOutClock,
    /// Messages of the peer's, where the stream is framed.
    assembler: Assembler,
    /// Gaps in what waits to be read, where it is not.
    gaps: VecDeque<Gap>,
    /// What is known beyond the first hole.
    ahead: Ahead,
    /// What was given up and has not come after all.
    missing: Ranges,
    /// Bytes that came after they had been given up.
    late_bytes: u64,
    /// What is known of subflows where acknowledgements go over what was given up, and whether that is over.
    sides: SubflowMap<skip::Side>,
    skips_no_more: bool,
    /// Bytes that acknowledgements of subflows went over.
    skipped_bytes: u64,
    /// The peer knows of notices, and that we do.
    peer_knows: bool,
    peer_heard: bool,
    /// The peer sends elsewhere what it is told is missing; up to where it was told of each subflow.
    peer_repairs: bool,
    told_until: SubflowMap<SeqNumber>,
    /// Up to where the scheduler was asked what goes twice.
    asked_until: SubflowMap<SeqNumber>,
    hellos: u32,
    hello_at: Instant,
    /// Bytes that we gave up, as the peer is told; that the peer did, as it told us last, and in all.
    told_total: u32,
    peer_total: u32,
    peer_abandoned: u64,
    peer_worst: Option<WorstPath>,
    /// What the peer will not send (again).
    peer_withdrawn: Vec<(u64, u64)>,
    /// Messages of ours that may be withdrawn, and what of those that were the peer has not gone over yet, in the stream's order.
    written: VecDeque<Written>,
    withdrawn: VecDeque<(u64, u64)>,
    /// Where the DATA_ACK has stood before such a stretch, and since when, though the peer has what lies behind.
    stands: Option<(u64, Instant)>,
    /// It stood there for too long: the peer does not hear what is withdrawn.
    peer_is_deaf: bool,
    withdrawn_messages: u64,
    withdrawn_bytes: u64,
    judge_written_at: Instant,
    /// The number of our next message.
    next_number: u32,
    /// What was given up of a stream that is not framed.
    abandoned: Abandoned,
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

    fn has_record(&self) -> bool {
        self.assembler.is_ready() || !self.gaps.is_empty()
    }
}

impl Connection {
    /// Takes a message whole, or not at all if there is no room now ([`Event::Writable`] follows). Gives its number.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn write_message(
        &mut self,
        now: Instant,
        payload: Bytes,
        options: &MessageOptions,
    ) -> Result<Option<u32>, MessageError> {
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.framing == Framing::Messages) else {
            return Err(MessageError::NotFramed);
        };
        let length = u32::try_from(payload.len()).map_err(|_| MessageError::TooLong)?;
        let whole = u64::from(length) + HEADER as u64;
        let (number, importance) = (partial.next_number, options.importance);
        let header = MessageHeader { number, importance, length, play_out: options.play_out.as_micros() };
        let header = header.encode().map_err(|_| MessageError::TooLong)?;
        if whole > self.sender.buffer.limit() {
            return Err(MessageError::TooLong);
        }
        if whole > self.sender.buffer.space() {
            self.life.write_was_short = true;
            return Ok(None);
        }
        partial.next_number = number.wrapping_add(1);
        if partial.terms.sender.is_some() {
            let start = self.sender.buffer.end();
            let expires = options.lifetime.map(|lifetime| now + lifetime);
            let message =
                Written { start, end: start + whole, importance, at: now, expires, withdrawn: false, begun: false };
            partial.written.push_back(message);
            partial.judge_written_at = now;
        }
        self.sender.buffer.write(Bytes::copy_from_slice(&header));
        self.sender.buffer.write(payload);
        self.life.write_was_short = false;
        self.output.pending = true;
        self.judge_missing(now);
        self.insert_released(now);
        Ok(Some(number))
    }

    /// When messages of the peer's are to be played.
    pub fn play_out_clock(&self) -> Option<PlayOutClock> {
        self.partial.as_ref().filter(|partial| partial.framing == Framing::Messages).map(|partial| partial.clock())
    }

    /// Whether plain writes are taken.
    pub fn takes_bytes(&self) -> bool {
        self.partial.as_ref().is_none_or(|partial| partial.framing == Framing::Bytes)
    }

    /// Whether a plain read would stop here for good: at a gap, or because there are messages.
    pub fn read_stops(&self) -> bool {
        let stops = |partial: &Partial| match partial.framing {
            Framing::Messages => true,
            Framing::Bytes => partial.gaps.front().is_some_and(|gap| gap.offset == self.receiver.buffer.read_offset()),
        };
        self.partial.as_deref().is_some_and(stops)
    }

    /// The next record.
    pub fn read_record(&mut self, now: Instant) -> Option<Record> {
        let offset = self.receiver.buffer.read_offset();
        let Some(partial) = self.partial.as_mut() else {
            return self.read(now, usize::MAX).map(|bytes| Record::Bytes { offset, bytes });
        };
        let record = match partial.framing {
            Framing::Messages => partial.assembler.next_record(now)?,
            Framing::Bytes => match partial.gaps.front().copied().filter(|gap| gap.offset == offset) {
                Some(Gap { offset, length, reason }) => {
                    partial.gaps.pop_front();
                    Record::Gap { offset, length, reason }
                }
                None => return self.read(now, usize::MAX).map(|bytes| Record::Bytes { offset, bytes }),
            },
        };
        self.receiver.buffer.note_read(now, record.end());
        // The reader may have been what held it back.
        self.take_in_records(now);
        self.judge_missing(now);
        self.insert_released(now);
        self.after_read(now);
        Some(record)
    }

    /// How much a plain read may give, so that it stops at a gap.
    pub(super) fn readable_until_gap(&self, max: usize) -> usize {
        let Some(partial) = &self.partial else { return max };
        match (partial.framing, partial.gaps.front()) {
            (Framing::Messages, _) => 0,
            (Framing::Bytes, None) => max,
            (Framing::Bytes, Some(gap)) => {
                let left = gap.offset.saturating_sub(self.receiver.buffer.read_offset());
                usize::try_from(left).unwrap_or(usize::MAX).min(max)
            }
        }
    }

    /// Whether the application can read something.
    pub(super) fn has_something_to_read(&self) -> bool {
        match &self.partial {
            Some(partial) if partial.framing == Framing::Messages => partial.has_record(),
            Some(_) | None => self.receiver.buffer.readable() > 0,
        }
    }

    /// What has come in order is taken apart, and the application told of it.
    pub(super) fn take_in_records(&mut self, now: Instant) {
        let Some(partial) = self.partial.as_mut() else { return };
        if partial.framing == Framing::Messages {
            partial.assembler.set_longest(self.receiver.buffer.most());
            while let Some(bytes) = self.receiver.buffer.take() {
                partial.assembler.take(now, bytes);
            }
            if self.receiver.buffer.at_end() {
                partial.assembler.finish(now);
            }
            // The buffer must hold it, or it would never be whole.
            let is_next = partial.assembler.start() == self.receiver.buffer.read_offset();
            if let Some(wanted) = partial.assembler.wanted().filter(|_| is_next)
                && self.receiver.buffer.make_room_for(wanted)
            {
                self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
                self.output.pending = true;
            }
        }
        self.note_messages();
        if self.has_something_to_read() && !self.life.readable_announced {
            self.life.readable_announced = true;
            self.output.notify(Event::Readable(self.id));
        }
    }

    /// The clock hears of messages that began to arrive, and those that came ahead of a hole get their time.
    fn note_messages(&mut self) {
        let Some(partial) = self.partial.as_mut() else { return };
        for (arrived, header) in partial.assembler.take_met() {
            partial.clock.observe(arrived, Duration::from_micros(header.play_out));
        }
        while let Some(seen) = partial.ahead.pop_before(self.receiver.buffer.next()) {
            partial.assembler.note_arrival(seen.offset, seen.arrived);
        }
    }

    /// Whether something was given up that has not come after all.
    pub(super) fn misses_what_was_given_up(&self) -> bool {
        self.partial.as_deref().is_some_and(|partial| partial.missing.overlap(0, u64::MAX) > 0)
    }

    /// Whether the receiver may give up now: MPTCP is spoken, and mappings need not be whole to be believed.
    pub(super) fn may_give_up(&self) -> bool {
        let honours = |partial: &Partial| partial.terms.receiver || (partial.gives_up() && partial.peer_knows);
        let wants = self.partial.as_deref().is_some_and(honours);
        wants
            && self.association.protocol == Protocol::Multipath
            && !self.association.checksum
            && self.life.closed.is_none()
    }
}
