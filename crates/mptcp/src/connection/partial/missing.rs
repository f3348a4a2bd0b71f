//! Abandons missing data: the policy judges the first hole, and the DATA_ACK passes what it abandons.
//!
//! Only data in front of received data can be abandoned, since nothing is acknowledged that was not sent. Hence the end
//! of the stream is never abandoned: a DATA_FIN is no data behind the hole.

use super::assembler::Current;
use super::state::Gap;
use crate::connection::state::Connection;
use crate::connection::timer_table::Timer;
use crate::receive_buffer::Inserted;
use crate::record::Framing;
use anabranch_policy::reliability::{BufferState, Decision, Missing, Reason};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::message::HEADER;

/// Limit of unread gaps in an unframed stream; above it nothing more is abandoned.
const MAX_GAPS: usize = 4_096;

/// Number of messages behind the hole among which a complete one with an earlier play-out time is searched.
const LOOK_AHEAD: usize = 64;

impl Connection {
    /// Data was put into the receive buffer at `data_seq`, when `expected` was the next offset.
    pub(in crate::connection) fn record_inserted(
        &mut self,
        now: Instant,
        (data_seq, length): (u64, u64),
        expected: u64,
        inserted: &mut Inserted,
    ) {
        let Some(partial) = self.partial.as_mut() else { return };
        // A position from the peer may be any number.
        let late = partial.missing.remove(data_seq, data_seq.saturating_add(length).min(expected));
        partial.late_bytes += late;
        inserted.duplicate -= late.min(inserted.duplicate);
        if inserted.out_of_order > 0 {
            self.look_ahead(now, data_seq, data_seq + length);
        }
        if inserted.in_order_advance > 0 {
            self.take_in_records(now);
        }
        self.judge_missing(now);
    }

    /// Records data beyond the hole.
    fn look_ahead(&mut self, now: Instant, start: u64, end: u64) {
        let highest = self.receiver.buffer.highest();
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.terms.receiver) else { return };
        partial.ahead.record_highest(now, highest.unwrap_or(end));
        if partial.framing == Framing::Messages {
            let known = partial.assembler.known_to().max(partial.ahead.known_to(start, self.receiver.buffer.most()));
            if known >= end {
                return; // in the middle of a message
            }
            // A header may be split across segments.
            let (from, bytes) = self.receiver.buffer.held_around(start.max(known), end, HEADER - 1);
            let payload = usize::try_from(known.saturating_sub(from)).unwrap_or(usize::MAX);
            let Some(bytes) = bytes.get(payload..) else { return };
            for seen in partial.ahead.look_for_headers(now, from.max(known), bytes) {
                partial.clock.observe(now, Duration::from_micros(seen.header.play_out));
            }
        }
    }

    /// Asks the policy about the first hole, and about the next one when it is gone.
    pub(in crate::connection) fn judge_missing(&mut self, now: Instant) {
        self.timers.stop(Timer::Missing);
        self.judge_holes(now);
        self.skip_on_subflows(now);
        self.judge_written(now);
        self.send_hello(now);
    }

    fn judge_holes(&mut self, now: Instant) {
        while self.may_abandon()
            && let Some((start, end)) = self.receiver.buffer.first_gap()
        {
            let Some(partial) = self.partial.as_ref() else { return };
            let framed = partial.framing == Framing::Messages;
            if (framed && !partial.assembler.is_settled()) || partial.gaps.len() >= MAX_GAPS {
                return; // the reader is the cause, not the network
            }
            let current = if framed { partial.assembler.current() } else { Current::Unknown };
            let (to, reason) = match current {
                // The rest of a message that is abandoned already.
                Current::Abandoned(message_end, reason) => (Some(message_end), reason),
                Current::Unknown | Current::Known(..) if self.withdrawn_by_peer(start).is_some() => {
                    (self.withdrawn_by_peer(start), Reason::Withdrawn)
                }
                Current::Unknown | Current::Known(..) => {
                    let missing = self.describe_missing((start, end), current);
                    let Some(partial) = self.partial.as_mut() else { return };
                    let message_end = if let Current::Known(_, end) = current { Some(end) } else { None };
                    match partial.policy.abandon(now, &missing) {
                        Decision::Abandon(reason) => (message_end, reason),
                        Decision::Wait { until } => {
                            // A policy that answers with a time in the past is asked again when more data has arrived.
                            self.timers.set(Timer::Missing, if until > now { until } else { Instant::NEVER });
                            return;
                        }
                    }
                }
            };
            self.abandon_range(now, (start, to.map_or(end, |to| to.min(end))), reason);
        }
    }

    /// The end of the range that the peer withdrew, if it did. The last byte of a message is never withdrawn, so the
    /// next byte belongs to the same message, and is useless without the rest.
    pub(super) fn withdrawn_by_peer(&self, data_seq: u64) -> Option<u64> {
        let partial = self.partial.as_deref()?;
        let useless = u64::from(partial.framing == Framing::Messages);
        let covers = |range: &&(u64, u64)| (range.0..range.1).contains(&data_seq);
        partial.notices.peer_withdrawn.iter().find(covers).map(|range| range.1.saturating_add(useless))
    }

    fn describe_missing(&mut self, (start, end): (u64, u64), current: Current) -> Missing {
        let known = if let Current::Known(header, _) = current { Some(header) } else { None };
        let receive = &self.receiver.buffer;
        let later = self.partial.as_mut().and_then(|partial| {
            let first = partial.ahead.earliest_whole(end, LOOK_AHEAD, |start, end| receive.has(start, end))?;
            partial.clock.at(Duration::from_micros(first))
        });
        let ahead = self.partial.as_ref().map(|partial| (&partial.ahead, partial.clock));
        let held_back = self.partial.as_ref().map_or(0, |partial| partial.assembler.end() - partial.assembler.start());
        let highest = self.receiver.buffer.highest().unwrap_or(end);
        Missing {
            data_seq: start,
            length: end - start,
            since: ahead.and_then(|(ahead, _)| ahead.since(start)).unwrap_or(Instant::ZERO),
            importance: known.map(|header| header.importance),
            play_out: known
                .and_then(|header| ahead.and_then(|(_, clock)| clock.at(Duration::from_micros(header.play_out)))),
            later_play_out: later,
            buffer: BufferState {
                size: self.receiver.buffer.size(),
                held: self.receiver.buffer.out_of_order() + held_back,
                room: self.receiver.buffer.right_edge().saturating_sub(highest),
            },
            round_trip: self.longest_round_trip(),
        }
    }

    /// Abandons `start..to`, where `start` is expected next and something at or after `to` has arrived.
    pub(super) fn abandon_range(&mut self, now: Instant, (start, to): (u64, u64), reason: Reason) {
        let Some(partial) = self.partial.as_mut() else { return };
        let skipped = self.receiver.buffer.skip_to(to);
        debug_assert_eq!((start + skipped, skipped > 0), (to, true));
        partial.missing.push(start, start + skipped);
        self.report_abandoned(start, skipped, reason);
        let Some(partial) = self.partial.as_mut() else { return };
        match partial.framing {
            Framing::Messages => partial.assembler.skip(now, skipped, reason),
            Framing::Bytes => {
                partial.abandoned.count(reason, 1, skipped);
                partial.gaps.push_back(Gap { offset: start, length: skipped, reason });
            }
        }
        if self.life.discarded() {
            return self.abort(now); // the application will not read what follows the gap
        }
        self.take_in_records(now);
        // The sender should learn of it at once, on the fastest path.
        self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
        self.output.pending = true;
    }
}
