//! Records for the reader, and whether data may be abandoned.

use super::state::Partial;
use crate::connection::association::Protocol;
use crate::connection::state::Connection;
use crate::event::Event;
use crate::record::Framing;
use anabranch_policy::reliability::PlayOutClock;
use anabranch_policy::time::{Duration, Instant};

impl Connection {
    /// The play-out clock of the peer's messages.
    pub fn play_out_clock(&self) -> Option<PlayOutClock> {
        self.partial.as_ref().filter(|partial| partial.framing == Framing::Messages).map(|partial| partial.clock())
    }

    /// Whether plain writes are allowed.
    pub fn takes_bytes(&self) -> bool {
        self.partial.as_ref().is_none_or(|partial| partial.framing == Framing::Bytes)
    }

    /// Whether a plain read can return no more data: a gap is next, or the stream is framed.
    pub fn read_stops(&self) -> bool {
        let stops = |partial: &Partial| match partial.framing {
            Framing::Messages => true,
            Framing::Bytes => partial.gaps.front().is_some_and(|gap| gap.offset == self.receiver.buffer.read_offset()),
        };
        self.partial.as_deref().is_some_and(stops)
    }

    /// Bytes that a plain read may return before the next gap.
    pub(in crate::connection) fn readable_until_gap(&self, max: usize) -> usize {
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

    pub(in crate::connection) fn has_something_to_read(&self) -> bool {
        match &self.partial {
            Some(partial) if partial.framing == Framing::Messages => partial.has_record(),
            Some(_) | None => self.receiver.buffer.readable() > 0,
        }
    }

    /// Parses what has arrived in order, and notifies the application.
    pub(in crate::connection) fn take_in_records(&mut self, now: Instant) {
        let Some(partial) = self.partial.as_mut() else { return };
        if partial.framing == Framing::Messages {
            partial.assembler.set_longest(self.receiver.buffer.most());
            while let Some(bytes) = self.receiver.buffer.take() {
                partial.assembler.take(now, bytes);
            }
            if self.receiver.buffer.at_end() {
                partial.assembler.finish(now);
            }
            // The buffer must hold it as a whole, or it could never be complete.
            let is_next = partial.assembler.start() == self.receiver.buffer.read_offset();
            if let Some(wanted) = partial.assembler.wanted().filter(|_| is_next)
                && self.receiver.buffer.make_room_for(wanted)
            {
                self.subflows.iter_mut().filter(|s| s.state.can_receive()).for_each(|s| s.receiver.acknowledge_now());
                self.output.pending = true;
            }
        }
        self.record_messages();
        if self.has_something_to_read() && !self.life.readable_announced {
            self.life.readable_announced = true;
            self.output.notify(Event::Readable(self.id));
        }
    }

    /// Reports the arrival of messages to the play-out clock, and corrects that of messages that arrived behind a hole.
    fn record_messages(&mut self) {
        let Some(partial) = self.partial.as_mut() else { return };
        for (arrived, header) in partial.assembler.take_met() {
            partial.clock.observe(arrived, Duration::from_micros(header.play_out));
        }
        while let Some(seen) = partial.ahead.pop_before(self.receiver.buffer.next()) {
            partial.assembler.record_arrival(seen.offset, seen.arrived);
        }
    }

    /// Whether abandoned data is still missing.
    pub(in crate::connection) fn misses_abandoned_data(&self) -> bool {
        self.partial.as_deref().is_some_and(|partial| partial.missing.overlap(0, u64::MAX) > 0)
    }

    /// Whether the receiver may abandon data now: the protocol is MPTCP, and mappings have no checksum, for which they
    /// must be complete.
    pub(in crate::connection) fn may_abandon(&self) -> bool {
        let honours = |partial: &Partial| partial.terms.receiver || (partial.abandons() && partial.notices.peer_knows);
        let wants = self.partial.as_deref().is_some_and(honours);
        wants
            && self.association.protocol == Protocol::Multipath
            && !self.association.checksum
            && self.life.closed.is_none()
    }
}
