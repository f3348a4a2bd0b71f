//! Puts received payload into the receive buffer, and its range into the sequence space of the subflow.

use super::state::Connection;
use super::subflow_order::{FACTOR, Piece};
use super::subflows::Handle;
use crate::event::{Event, TraceRecord};
use crate::receive_buffer::Inserted;
use crate::subflow::Subflow;
use crate::subflow::receiver::Placement;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::{Segment, SeqNumber};
use bytes::{Buf, Bytes};

impl Connection {
    /// In plain TCP, the stream and the sequence space of the subflow advance together.
    pub(super) fn place_unmapped(&mut self, now: Instant, handle: Handle, seq: SeqNumber, mut payload: Bytes) {
        let next = self.subflows[handle].receiver.next;
        let ahead = i64::from(seq.distance(next));
        let mut end = seq + payload.len() as u32;
        let position = i64::try_from(self.receiver.buffer.next()).unwrap_or(i64::MAX).saturating_add(ahead);
        let data_seq = match u64::try_from(position) {
            Ok(data_seq) => data_seq,
            Err(_) => {
                payload.advance(payload.len().min(position.unsigned_abs() as usize));
                0
            }
        };
        // Data beyond the window is dropped (RFC 9293, section 3.10.7.4).
        let room = self.receiver.buffer.right_edge().saturating_sub(data_seq);
        let excess = (payload.len() as u64).saturating_sub(room) as usize;
        if excess > 0 {
            payload.truncate(payload.len() - excess);
            end = end - excess as u32;
            self.subflows[handle].receiver.acknowledge_now();
            if payload.is_empty() {
                return;
            }
        }
        self.place_at_once(now, handle, (seq, end), data_seq, payload);
    }

    /// Puts bytes with a known position into the receive buffer. Only what it accepts is acknowledged on the subflow.
    #[inline(never)]
    pub(super) fn place(
        &mut self,
        now: Instant,
        handle: Handle,
        range: (SeqNumber, SeqNumber),
        data_seq: u64,
        payload: Bytes,
    ) {
        self.place_at_once(now, handle, range, data_seq, payload);
    }

    /// As [`Self::place`]; not a call of it, since each call moves the handle of the payload.
    #[inline(always)]
    fn place_at_once(
        &mut self,
        now: Instant,
        handle: Handle,
        range: (SeqNumber, SeqNumber),
        data_seq: u64,
        payload: Bytes,
    ) {
        let length = payload.len() as u64;
        let subflow = &mut self.subflows[handle];
        if range.1.after(subflow.receiver.next) && !subflow.receiver.has_place(range.0) {
            subflow.receiver.acknowledge_now();
            return;
        }
        if self.receiver.subflow_order.is_some() && self.waits_for_hole(handle, range.0) {
            return self.hold_behind_hole(now, handle, range, data_seq, payload);
        }
        let inserted = self.insert_at_once(now, handle, data_seq, payload);
        // Data that the application will not read resets the connection.
        let Some(subflow) = self.subflows.live_mut(handle) else { return };
        if inserted.dropped > 0 {
            // Not acknowledged anywhere: the peer sends it again, when there is space.
            subflow.receiver.acknowledge_now();
        } else {
            subflow.receiver.place(now, range.0, range.1, subflow.mss, &self.config.tcp);
            // If the buffer limits the peer, the peer should not wait for a delayed acknowledgement too; nor for that
            // of the first segment of a join, before which it may not send another.
            let first = range.0 == subflow.peer.initial + 1 && subflow.id() != SubflowId(0);
            if inserted.in_order_advance > length || self.receiver.buffer.is_tight() || first {
                subflow.receiver.acknowledge_now();
            }
            if self.partial.is_some() {
                self.record_placed(now, handle, range, data_seq);
                self.report_missing(handle);
            }
            if self.receiver.subflow_order.is_some() {
                self.release_in_order(now, handle);
            }
        }
    }

    /// Puts bytes into the receive buffer and notifies the application.
    #[inline(never)]
    pub(super) fn insert(&mut self, now: Instant, handle: Handle, data_seq: u64, payload: Bytes) -> Inserted {
        self.insert_at_once(now, handle, data_seq, payload)
    }

    #[inline(always)]
    fn insert_at_once(&mut self, now: Instant, handle: Handle, data_seq: u64, payload: Bytes) -> Inserted {
        let (length, expected) = (payload.len() as u32, self.receiver.buffer.next());
        if self.has_no_memory_for(data_seq.saturating_add(u64::from(length))) {
            return self.receiver.buffer.refuse(u64::from(length));
        }
        let mut inserted = self.receiver.buffer.insert(now, data_seq, payload);
        if self.partial.is_some() {
            self.record_inserted(now, (data_seq, u64::from(length)), expected, &mut inserted);
        }
        self.report_memory();
        self.stats.duplicate_bytes_received += inserted.duplicate;
        let fresh = u64::from(length).saturating_sub(inserted.duplicate + inserted.dropped);
        if let Some(subflow) = self.subflows.live_mut(handle) {
            subflow.counters.bytes_received += fresh;
        }
        let advanced = inserted.in_order_advance > 0;
        if self.output.traces() {
            self.record_arrived(handle, (data_seq, length), expected, advanced);
        }
        if advanced && self.life.discarded() {
            self.abort(now);
        } else if advanced && !self.life.readable_announced && self.has_something_to_read() {
            self.life.readable_announced = true;
            self.output.notify(Event::Readable(self.id));
        }
        inserted
    }

    #[inline(never)]
    fn record_arrived(&mut self, handle: Handle, (data_seq, length): (u64, u32), expected: u64, advanced: bool) {
        let Some(subflow) = self.subflows.live(handle).map(Subflow::id) else { return };
        let connection = self.id;
        self.output.record(TraceRecord::Arrived { connection, subflow, data_seq, length, expected });
        if advanced {
            self.output.record(TraceRecord::Delivered { connection, data_seq: self.receiver.buffer.next() });
        }
    }

    /// The round trip measured by a receiver (RFC 7323 echoes), for the automatic buffer.
    pub(super) fn record_receive_round_trip(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let stamp = self.stamp(now);
        let Some(stamps) = segment.options.timestamps.filter(|stamps| stamps.echo != 0) else { return };
        let millis = stamp.wrapping_sub(stamps.echo);
        let subflow = &mut self.subflows[handle];
        if !subflow.negotiated.timestamps || millis >= 60_000 {
            return;
        }
        let sample = Duration::from_millis(u64::from(millis.max(1)));
        let old = subflow.receiver.round_trip;
        subflow.receiver.round_trip = if old.is_zero() { sample } else { old - old / 8 + sample / 8 };
        let longest = self.subflows.iter().map(|s| s.receiver.round_trip.max(s.rtt.smoothed())).max();
        self.receiver.buffer.set_round_trip(longest.unwrap_or_default());
    }

    /// Whether a range of a subflow must wait until all data before it has arrived.
    pub(super) fn waits_for_hole(&self, handle: Handle, start: SeqNumber) -> bool {
        self.subflows.live(handle).is_some_and(|subflow| start.after(subflow.receiver.next))
    }

    /// Holds payload behind a hole of its subflow; its range is acknowledged selectively.
    pub(super) fn hold_behind_hole(
        &mut self,
        now: Instant,
        handle: Handle,
        (start, end): (SeqNumber, SeqNumber),
        data_seq: u64,
        bytes: Bytes,
    ) {
        let limit = self.receiver.buffer.size().saturating_mul(FACTOR);
        let Some(order) = self.receiver.subflow_order.as_mut() else { return };
        let subflow = &mut self.subflows[handle];
        let piece = Piece { seq: start, data_seq, bytes };
        match order.make_room(subflow.id(), &piece, limit) {
            Ok(dropped) => dropped.into_iter().for_each(|from| subflow.receiver.forget_from(from)),
            Err(()) => return subflow.receiver.acknowledge_now(),
        }
        let placement = subflow.receiver.place(now, start, end, subflow.mss, &self.config.tcp);
        if placement == Placement::OutOfOrder {
            order.hold(subflow.id(), piece);
        }
        if self.partial.is_some() {
            self.record_placed(now, handle, (start, end), data_seq);
            self.report_missing(handle);
        }
    }

    /// Holds a part of a verified mapping if it lies behind a hole; otherwise passes it to the data level.
    pub(super) fn insert_in_order(
        &mut self,
        now: Instant,
        handle: Handle,
        seq: SeqNumber,
        (data_seq, bytes): (u64, Bytes),
    ) {
        let end = seq + bytes.len() as u32;
        if self.receiver.subflow_order.is_none() || !self.waits_for_hole(handle, end) {
            self.insert(now, handle, data_seq, bytes);
        } else if let (Some(order), Some(subflow)) = (self.receiver.subflow_order.as_mut(), self.subflows.live(handle))
        {
            order.hold(subflow.id(), Piece { seq, data_seq, bytes });
        }
    }

    /// Passes data to the data level that waited for holes of a subflow which are now filled.
    pub(super) fn release_in_order(&mut self, now: Instant, handle: Handle) {
        let (Some(order), Some(subflow)) = (self.receiver.subflow_order.as_mut(), self.subflows.live(handle)) else {
            return;
        };
        for piece in order.take_ready(subflow.id(), subflow.receiver.next) {
            self.insert(now, handle, piece.data_seq, piece.bytes);
        }
    }

    /// Passes data to the data level that waited for holes which were abandoned. Returns whether there was any.
    #[inline]
    pub(super) fn insert_released(&mut self, now: Instant) -> bool {
        self.receiver.subflow_order.is_some() && self.insert_all_released(now)
    }

    #[inline(never)]
    fn insert_all_released(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((id, piece)) = self.receiver.subflow_order.as_mut().and_then(|order| order.pop_released()) {
            if let Some(handle) = self.subflows.handle_of(id) {
                self.insert(now, handle, piece.data_seq, piece.bytes);
                any = true;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use anabranch_wire::tcp::Timestamps;

    #[test]
    fn a_receiver_measures_the_round_trip_by_the_stamps_that_it_gets_back() {
        let measured = |samples: &[(u64, u32)], agreed: bool| {
            let mut connection = connected(config(), 1);
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].negotiated.timestamps = agreed;
            let zero = connection.stamp(Instant::ZERO);
            for (millis, before) in samples {
                let now = Instant::ZERO + Duration::from_millis(*millis);
                let mut segment = Segment::default();
                let echo = zero.wrapping_add(*millis as u32).wrapping_sub(*before);
                segment.options.timestamps = Some(Timestamps { value: 7, echo });
                connection.record_receive_round_trip(now, handle, &segment);
            }
            connection.subflows[handle].receiver.round_trip
        };
        let millis = Duration::from_millis;
        assert_eq!(measured(&[(100_000, 80)], true), millis(80));
        assert_eq!(measured(&[(100_000, 80), (100_001, 160)], true), millis(90), "7/8 of 80 and 1/8 of 160");
        assert_eq!(measured(&[(100_000, 0)], true), millis(1));
        assert_eq!(measured(&[(100_000, 59_999)], true), millis(59_999));
        assert_eq!(measured(&[(100_000, 60_000)], true), Duration::ZERO, "nothing takes a minute");
        assert_eq!(measured(&[(100_000, 80)], false), Duration::ZERO);
        assert_eq!(measured(&[(100_000, 100_000)], true), Duration::ZERO);
    }

    #[test]
    fn what_arrives_is_counted_once_and_what_comes_again_apart() {
        let mut connection = connected(config(), 1);
        connection.receiver.offer_window();
        let handle = connection.subflows.first_handle().unwrap();
        let mut arrive = |at: u64, length: usize| {
            connection.insert_at_once(Instant::ZERO, handle, at, Bytes::from(vec![0; length]));
            (connection.subflows[handle].counters.bytes_received, connection.stats.duplicate_bytes_received)
        };
        assert_eq!(arrive(0, 10), (10, 0));
        assert_eq!(arrive(5, 10), (15, 5));
        assert_eq!(arrive(0, 15), (15, 20));
    }
}
