//! Lets the acknowledgement of a subflow skip abandoned data ([`Level::Subflow`]), and turns that off if it does harm.
//!
//! A sender that does not know of this takes acknowledged data for delivered. Hence it must have detected the loss
//! before, or its congestion control would never react to it: by selective acknowledgements, three duplicates and a
//! round trip, or after two round trips. Only a limited share of the received data is skipped, at most once per round
//! trip. Timestamps make that detection certain: a segment has arrived that echoes our timestamp of a later
//! acknowledgement than the third duplicate, or than the first, if the peer sent it half a round trip after its first
//! such segment (RACK waits for a quarter, RFC 8985, section 6.2). The acknowledgement that skips the gap echoes the
//! timestamp of that segment; an older one would show the sender that the original segment had arrived, and it would
//! undo its reaction to the loss (RFC 3522, section 3.2; as Linux and this engine do). A gap of a subflow is skipped
//! only when the stream is in order, or abandoned, up to all data received behind it: what the gap holds is then
//! useless. If a subflow is reset soon after, or stalls while others do not, or keeps retransmitting what was skipped,
//! skipping is off for this connection.

use super::side::{DUPLICATES, MAX_REPEATS, Side, is_later};
use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::connection::timer_table::Timer;
use crate::stamp_clock::StampClock;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::reliability::Level;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Segment, SeqNumber};

/// A reset within this time after a skip is attributed to it.
const SUSPECT: Duration = Duration::from_secs(10);

/// Bytes received on other subflows after which a silent subflow counts as stalled.
const STALLED_AFTER: u64 = 64 * 1024;

/// Limit of recorded skipped ranges.
const MAX_SKIPPED: usize = 16;

impl Connection {
    fn skips(&self) -> bool {
        let wants = |partial: &super::Partial| partial.terms.level == Level::Subflow && !partial.skips.skipping_is_off;
        self.partial.as_deref().is_some_and(wants) && self.may_abandon()
    }

    /// A data segment arrived on a subflow: evaluates its timestamps.
    pub(in crate::connection) fn record_stamps(&mut self, handle: Handle, segment: &Segment) {
        let Some(partial) = self.partial.as_mut() else { return };
        let subflow = &self.subflows[handle];
        let half = (subflow.receiver.round_trip.max(subflow.rtt.smoothed()).as_millis() / 2) as u32;
        let (Some(side), Some(stamps)) = (partial.skips.sides.get_mut(subflow.id()), segment.options.timestamps) else {
            return;
        };
        let echoes_more = |told: Option<u32>| told.is_some_and(|told| is_later(stamps.echo, told));
        if echoes_more(side.told) {
            let heard = *side.heard.get_or_insert(stamps.value);
            if echoes_more(side.told_thrice) || is_later(stamps.value, heard.wrapping_add(half)) {
                side.acted = Some(stamps.value);
            }
        }
    }

    /// A segment was placed on a subflow; it begins at `data_seq` in the stream.
    pub(in crate::connection) fn record_placed(
        &mut self,
        now: Instant,
        handle: Handle,
        (start, end): (SeqNumber, SeqNumber),
        data_seq: u64,
    ) {
        if !self.skips() {
            return;
        }
        let Some(partial) = self.partial.as_mut() else { return };
        let subflow = &mut self.subflows[handle];
        let stamp =
            StampClock { offset: self.identity.stamp_offset, drift: self.config.tcp.timestamp_drift }.stamp(now);
        let (id, next, length) = (subflow.id(), subflow.receiver.next, u64::from(end - start));
        if partial.skips.sides.get(id).is_none() {
            partial.skips.sides.insert(id, Side::new());
        }
        let mut stalled = false;
        for (other, side) in partial.skips.sides.iter_mut() {
            if other == id {
                side.note((now, stamp), (start, end), next, data_seq + length);
                if side.skipped.iter().any(|skipped| start.before(skipped.1) && end.after(skipped.0)) {
                    // Skipped data is no duplicate, and must not be reported as one.
                    subflow.receiver.forget_duplicate();
                }
            } else if let (Some(bytes), Some(at)) = (&mut side.elsewhere, side.last_skip) {
                *bytes += length;
                stalled |= *bytes > STALLED_AFTER && now.since(at) > Duration::from_secs(1);
            }
        }
        partial.skips.skipping_is_off |= stalled;
        self.skip_on_subflows(now);
    }

    /// Skips the first gap of each subflow where that is due, and arms a timer where it will be.
    pub(in crate::connection) fn skip_on_subflows(&mut self, now: Instant) {
        if !self.skips() {
            return;
        }
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            let due = self.skip_due(handle);
            if due <= now {
                self.skip(now, handle);
            } else {
                self.timers.set_by(Timer::Missing, due);
            }
            next = self.subflows.after(handle);
        }
    }

    /// When the first gap of a subflow may be skipped; never if nothing known so far allows it.
    fn skip_due(&self, handle: Handle) -> Instant {
        let Some(partial) = self.partial.as_deref() else { return Instant::NEVER };
        let subflow = &self.subflows[handle];
        let side = partial.skips.sides.get(subflow.id());
        let Some((side, (gap, since))) = side.and_then(|side| Some((side, side.gap?))) else { return Instant::NEVER };
        let Some((start, end)) = subflow.receiver.first_gap().filter(|first| first.0 == gap) else {
            return Instant::NEVER;
        };
        let useless =
            side.beyond <= self.receiver.buffer.next() && partial.missing.overlap(side.in_order, side.beyond) > 0;
        let skipped = side.skipped_bytes + u64::from(end - start);
        let allowed = partial.terms.most_skipped * subflow.counters.bytes_received as f64;
        if !useless || skipped as f64 > allowed || !subflow.state.can_receive() {
            return Instant::NEVER;
        }
        let round_trip = subflow.receiver.round_trip.max(subflow.rtt.smoothed()).max(Duration::from_millis(1));
        let seen = side.duplicates >= DUPLICATES;
        // Without selective acknowledgements the sender learns only from duplicates. Not earlier than a round trip
        // after the last skip, when this gap became the first.
        match (subflow.negotiated.timestamps, seen, subflow.negotiated.sack) {
            (true, ..) if side.acted.is_none() => Instant::NEVER,
            (_, true, _) => since + round_trip,
            (_, false, true) => since + round_trip * 2,
            (_, false, false) => Instant::NEVER,
        }
    }

    fn skip(&mut self, now: Instant, handle: Handle) {
        let Some(partial) = self.partial.as_mut() else { return };
        let subflow = &mut self.subflows[handle];
        let (Some(side), Some(skipped)) = (partial.skips.sides.get_mut(subflow.id()), subflow.receiver.skip_gap())
        else {
            return;
        };
        if let Some(stamp) = side.acted.filter(|stamp| is_later(*stamp, subflow.receiver.timestamp)) {
            subflow.receiver.timestamp = stamp;
            subflow.receiver.timestamp_at = now;
        }
        side.forget_what_was_told();
        side.skipped_bytes += u64::from(skipped.1 - skipped.0);
        side.last_skip = Some(now);
        side.elsewhere = Some(0);
        side.gap = subflow.receiver.has_gap().then_some((subflow.receiver.next, now));
        side.duplicates = 0;
        side.repeats = 0;
        side.skipped.push_back(skipped);
        if side.skipped.len() > MAX_SKIPPED {
            side.skipped.pop_front();
        }
        partial.skips.skipped_bytes += u64::from(skipped.1 - skipped.0);
        self.output.pending = true;
        let (id, next) = (subflow.id(), subflow.receiver.next);
        self.receiver.subflow_order.iter_mut().for_each(|order| order.release(id, next));
    }

    /// A segment was unacceptable: it may be skipped data.
    pub(in crate::connection) fn record_late_on_subflow(&mut self, handle: Handle, segment: &Segment) {
        if self.partial.is_none() {
            return;
        }
        let data_seq = self.mapped_to(handle, segment);
        let Some(partial) = self.partial.as_mut() else { return };
        let subflow = &mut self.subflows[handle];
        let Some(side) = partial.skips.sides.get_mut(subflow.id()) else { return };
        let (start, end) = (segment.seq, segment.seq + segment.payload.len() as u32);
        let is_it = |skipped: &(SeqNumber, SeqNumber)| start.before(skipped.1) && end.after(skipped.0);
        if !side.skipped.iter().any(is_it) {
            return;
        }
        subflow.receiver.forget_duplicate();
        side.repeats += 1;
        if let Some(data_seq) = data_seq {
            let data_end = data_seq.saturating_add(segment.payload.len() as u64);
            partial.late_bytes += partial.missing.remove(data_seq, data_end);
        }
        partial.skips.skipping_is_off |= side.repeats > MAX_REPEATS;
    }

    /// A subflow was removed.
    pub(in crate::connection) fn record_subflow_gone(&mut self, id: SubflowId, why: CloseReason) {
        let Some(partial) = self.partial.as_mut() else { return };
        partial.notices.reported_until.remove(id);
        partial.asked_until.remove(id);
        let Some(side) = partial.skips.sides.remove(id) else { return };
        let last = self.subflows.iter().map(|subflow| subflow.last_heard()).max().unwrap_or(Instant::ZERO);
        let suspect = side.last_skip.is_some_and(|at| last.since(at) < SUSPECT);
        partial.skips.skipping_is_off |= suspect && why == CloseReason::Reset;
    }
}
