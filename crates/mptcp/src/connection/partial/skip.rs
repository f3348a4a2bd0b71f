//! How a subflow's acknowledgement goes over what was given up ([`Level::Subflow`]), and what keeps that from doing harm.
//!
//! A sender that knows nothing of it takes what is acknowledged for delivered. So it must have seen the loss before, or its
//! congestion control never would: selective acknowledgements, three duplicates and a round trip, or two round trips; at most
//! a share of what comes in, and once a round trip. With timestamps that is certain: a segment has come which echoes
//! what we stamped on a later acknowledgement than the third duplicate, or than the first if that segment was stamped half a
//! round trip after the first of the kind (RACK waits for a quarter, RFC 8985, section 6.2). The acknowledgement that goes over the gap echoes that
//! segment's stamp; an older one would tell the sender that the lost segment had come after all, and it would take back what it
//! did about the loss (RFC 3522, section 3.2; Linux and this engine do). The gap of a subflow is skipped only when the stream is in order, or given
//! up, as far as anything that came behind it: whatever the gap holds is then of no use. If a subflow is reset soon after,
//! or falls silent while others are not, or goes on sending what was skipped, it is never done again on this connection.

use super::side::{DUPLICATES, MAX_REPEATS, Side, is_later};
use crate::connection::stamp_clock::StampClock;
use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::connection::timer_table::Timer;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::reliability::Level;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Segment, SeqNumber};

/// A reset so long after a skip is laid to it.
const SUSPECT: Duration = Duration::from_secs(10);

/// So much on other subflows while one says nothing after a skip: it has stalled.
const STALLED_AFTER: u64 = 64 * 1024;

/// Skipped ranges that are remembered.
const MAX_SKIPPED: usize = 16;

impl Connection {
    fn skips(&self) -> bool {
        let wants = |partial: &super::Partial| partial.terms.level == Level::Subflow && !partial.skips.skips_no_more;
        self.partial.as_deref().is_some_and(wants) && self.may_give_up()
    }

    /// A segment with data came in on a subflow: what its timestamps say.
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

    /// A segment found its place on a subflow; it begins at `data_seq` in the stream.
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
                    // What was skipped did not come twice, and must not be reported so.
                    subflow.receiver.forget_duplicate();
                }
            } else if let (Some(bytes), Some(at)) = (&mut side.elsewhere, side.last_skip) {
                *bytes += length;
                stalled |= *bytes > STALLED_AFTER && now.since(at) > Duration::from_secs(1);
            }
        }
        partial.skips.skips_no_more |= stalled;
        self.skip_on_subflows(now);
    }

    /// Skips the first gap of each subflow where that is due; where it will be, sees to it that it is asked again.
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

    /// When the first gap of a subflow may be skipped; never if nothing that is known makes it so.
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
        // Without selective acknowledgements the duplicates are all that the sender hears.
        // No earlier than a round trip after the last one: then this gap became the first.
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

    /// A segment was not acceptable: perhaps it is what was skipped.
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
        partial.skips.skips_no_more |= side.repeats > MAX_REPEATS;
    }

    /// A subflow ended.
    pub(in crate::connection) fn record_subflow_gone(&mut self, id: SubflowId, why: CloseReason) {
        let Some(partial) = self.partial.as_mut() else { return };
        partial.notices.told_until.remove(id);
        partial.asked_until.remove(id);
        let Some(side) = partial.skips.sides.remove(id) else { return };
        let last = self.subflows.iter().map(|subflow| subflow.last_heard()).max().unwrap_or(Instant::ZERO);
        let suspect = side.last_skip.is_some_and(|at| last.since(at) < SUSPECT);
        partial.skips.skips_no_more |= suspect && why == CloseReason::Reset;
    }
}
