//! Maps the bytes of a subflow to the stream (RFC 8684, section 3.3.1).
//!
//! In memory, data sequences are 64-bit offsets from the first byte of the stream. On the wire they are numbers from a
//! random start, with 64 or 32 bits.

use super::checksum::Verification;
use super::numbers::EXPECTED_NEXT;
use super::resolved::Resolved;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::FallbackCause;
use crate::subflow::Subflow;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::{Segment, SeqNumber};
use bytes::{Buf, Bytes};

/// Consecutive segments without a mapping that show that the path strips options.
const MAX_UNMAPPED: u8 = 32;

/// The length with which an infinite mapping is stored: at least that of any window.
const ENDLESS: u32 = 1 << 30;

impl Connection {
    /// A DSS on a segment without payload: a DATA_FIN, or a mapping for later segments.
    pub(super) fn handle_mapping_alone(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let Some(mapping) = self.mapping_of(handle, segment).filter(|mapping| !mapping.is_empty_end()) else { return };
        if mapping.is_infinite() {
            return self.obey_infinite_mapping(now, handle, &mapping, segment);
        }
        if self.breaks_checksum_agreement(now, handle, &mapping) {
            return;
        }
        if mapping.length > 0 && mapping.wire.subflow_seq != 0 {
            self.store(handle, &mapping);
        }
        // Last, since the end of the stream closes subflows.
        if mapping.data_fin && self.is_verified_alone(&mapping) {
            self.take_data_fin(now, handle, &mapping);
        }
    }

    /// Closes the subflow if a checksum is present that was not negotiated, or vice versa (RFC 8684, section 3.3).
    fn breaks_checksum_agreement(&mut self, now: Instant, handle: Handle, mapping: &Resolved) -> bool {
        let breaks = mapping.wire.checksum.is_some() != self.association.checksum;
        if breaks {
            self.reset_subflow(now, handle, CloseReason::ProtocolError, super::packets::REASON_MPTCP);
        }
        breaks
    }

    /// An infinite mapping: the peer has fallen back (RFC 8684, section 3.7).
    fn obey_infinite_mapping(&mut self, now: Instant, handle: Handle, mapping: &Resolved, segment: &Segment) {
        if self.leaves_out_data(handle, mapping, segment) {
            self.reset_subflow(now, handle, CloseReason::ProtocolError, super::packets::REASON_MPTCP);
        } else {
            let repeats = self.repeats_data(handle, mapping, segment);
            self.fall_back_from(now, handle, segment.seq, FallbackCause::Peer);
            if repeats && self.association.protocol == super::Protocol::Tcp {
                self.store(handle, &Resolved { length: ENDLESS, ..*mapping });
            }
        }
    }

    /// Whether an infinite mapping on the next byte of the subflow continues the stream before its next byte. What has
    /// arrived is not read again then.
    fn repeats_data(&self, handle: Handle, mapping: &Resolved, segment: &Segment) -> bool {
        let ahead = i64::from(segment.seq.distance(mapping.seq));
        segment.seq == self.subflows[handle].receiver.next
            && mapping.data_seq.wrapping_add_signed(ahead) < self.receiver.buffer.next()
    }

    /// Whether an infinite mapping of the next byte of the subflow continues the stream beyond its next byte. Nothing
    /// would bring what is between, and the application would read a stream that only looks complete.
    fn leaves_out_data(&self, handle: Handle, mapping: &Resolved, segment: &Segment) -> bool {
        let subflow = &self.subflows[handle];
        let is_next = mapping.seq == segment.seq && segment.seq == subflow.receiver.next;
        let held = self.receiver.pending_mappings.of(subflow.id()).next().is_some();
        self.association.protocol == super::Protocol::Multipath
            && is_next
            && !held
            && !self.misses_abandoned_data()
            && mapping.data_seq > self.receiver.buffer.next()
    }

    /// The stream ends after the mapping.
    fn take_data_fin(&mut self, now: Instant, handle: Handle, mapping: &Resolved) {
        let end = mapping.data_seq.wrapping_add(u64::from(mapping.length));
        // An impossible end is ignored like any number out of the window (RFC 8684, section 3.8): data up to it has been
        // sent. One before the beginning is beyond the window, too.
        let possible = end <= self.receiver.buffer.right_edge();
        if possible && self.receiver.buffer.set_end(end).is_ok() {
            self.subflows.live_mut(handle).into_iter().for_each(|subflow| subflow.receiver.acknowledge_now());
            self.acknowledge_end_everywhere();
        }
        self.take_in_records(now);
        self.announce_end();
        self.finish_if_done(now);
    }

    /// The path of the DATA_FIN may be dead in the other direction. Linux answers on every subflow, too.
    fn acknowledge_end_everywhere(&mut self) {
        if self.receiver.buffer.at_end() {
            let open = |subflow: &&mut Subflow| subflow.handshake.confirmed && subflow.state.can_receive();
            self.subflows.iter_mut().filter(open).for_each(|subflow| subflow.receiver.acknowledge_now());
        }
    }

    /// Payload on a subflow of an MPTCP connection.
    pub(super) fn place_mapped(&mut self, now: Instant, handle: Handle, segment: &Segment, payload: Bytes) {
        let own = self.mapping_of(handle, segment);
        if let Some(mapping) = own.filter(Resolved::is_infinite) {
            self.obey_infinite_mapping(now, handle, &mapping, segment);
            // The subflow may have been closed instead.
            if self.association.protocol == super::Protocol::Tcp && self.subflows.has(handle) {
                self.place_plain(now, handle, segment, payload);
            }
            return;
        }
        if own.is_some_and(|mapping| self.breaks_checksum_agreement(now, handle, &mapping)) {
            return;
        }
        if self.association.checksum {
            return self.place_all_checked(now, handle, own, segment.seq, payload);
        }
        let Some(mapping) = own else { return self.place_by_stored(now, handle, segment.seq, payload) };
        let whole = segment.seq == mapping.seq
            && payload.len() as u32 == mapping.length
            && !self.subflows[handle].mappings.contradicts(&mapping.to_store());
        self.subflows[handle].liveness.unmapped = 0;
        if whole {
            self.place(now, handle, Subflow::range_of(segment.seq, &payload), mapping.data_seq, payload);
        } else if self.store(handle, &mapping) {
            self.place_by_stored(now, handle, segment.seq, payload);
        } else {
            // If it were acknowledged it would not come again, and segments that rely on its mapping could not be
            // placed.
            self.subflows[handle].receiver.acknowledge_now();
        }
        if mapping.data_fin {
            self.take_data_fin(now, handle, &mapping);
        }
    }

    /// Payload in plain TCP. A peer that does not know of our fallback still sends mappings, and may send data again at
    /// new sequence numbers of the subflow. Its infinite mapping shows how the stream continues.
    pub(super) fn place_plain(&mut self, now: Instant, handle: Handle, segment: &Segment, mut payload: Bytes) {
        let told = if self.association.fallback.heeds_mappings() { self.mapping_of(handle, segment) } else { None };
        let hole = self.association.fallback.behind_hole().is_some() && self.has_hole(handle, segment.seq, told);
        let counts = |mapping: &Resolved| self.association.fallback.was_failure() || (hole && !mapping.is_infinite());
        if let Some(mapping) = told.filter(counts) {
            let length = if mapping.is_infinite() { ENDLESS } else { mapping.length };
            self.store(handle, &Resolved { length, ..mapping });
        }
        let mut seq = segment.seq;
        self.cut_at_fin(handle, seq, &mut payload);
        while !payload.is_empty() {
            let Some(subflow) = self.subflows.live(handle) else { return };
            let Some(mapping) = subflow.mappings.find(seq).copied() else {
                // The mapping of what came before is forgotten, that of the rest may be known.
                if self.association.fallback.heeds_mappings() && self.skip_old(handle, &mut seq, &mut payload) {
                    continue;
                }
                if hole && seq != self.subflows[handle].receiver.next {
                    return self.subflows[handle].receiver.acknowledge_now();
                }
                return self.place_unmapped(now, handle, seq, payload);
            };
            let skipped = seq - mapping.seq;
            let part = payload.split_to(payload.len().min((mapping.length - skipped) as usize));
            let range = Subflow::range_of(seq, &part);
            seq = range.1;
            self.place(now, handle, range, mapping.data_seq.wrapping_add(u64::from(skipped)), part);
        }
    }

    /// Whether the hole behind which plain TCP began is still there. What is missing may have been sent with mappings,
    /// perhaps a second time, so the place of what follows without one is known only when that is there.
    fn has_hole(&mut self, handle: Handle, seq: SeqNumber, told: Option<Resolved>) -> bool {
        let Some(known) = self.association.fallback.behind_hole() else { return false };
        let begin = if told.is_some_and(|mapping| mapping.is_infinite()) { known.min(seq) } else { known };
        let hole = self.subflows[handle].receiver.next.before(begin);
        self.association.fallback.begin_behind_hole(hole.then_some(begin));
        hole
    }

    fn place_after_fallback(&mut self, now: Instant, handle: Handle, seq: SeqNumber, payload: Bytes) {
        // The subflow may have been closed instead.
        if self.association.protocol == super::Protocol::Tcp && self.subflows.has(handle) {
            self.place_unmapped(now, handle, seq, payload);
        }
    }

    /// Payload under checksums: each part under the mapping that covers it, of this segment or an earlier one.
    fn place_all_checked(
        &mut self,
        now: Instant,
        handle: Handle,
        own: Option<Resolved>,
        mut seq: SeqNumber,
        mut payload: Bytes,
    ) {
        let id = self.subflows[handle].id();
        while !payload.is_empty() && self.subflows.has(handle) {
            if self.association.protocol == super::Protocol::Tcp {
                return self.place_after_fallback(now, handle, seq, payload);
            }
            let known = self.receiver.pending_mappings.find(id, seq);
            let covers = |m: &Resolved| seq.at_or_after(m.seq) && seq.before(m.seq + m.length);
            // A mapping is fixed once it was processed (RFC 8684, section 3.3.1).
            let agrees = |m: &Resolved| known.is_none_or(|known| m.to_store().agrees(&known.to_store()));
            let Some(mapping) = own.filter(|m| covers(m) && agrees(m)).or(known) else {
                if self.skip_old(handle, &mut seq, &mut payload) {
                    continue;
                }
                return self.record_unmapped(now, handle, seq, payload);
            };
            let left = (mapping.length - (seq - mapping.seq)) as usize;
            let part = payload.split_to(payload.len().min(left));
            let start = seq;
            seq += part.len() as u32;
            self.place_checked(now, handle, &mapping, start, part);
        }
    }

    /// With DSS checksums, bytes reach the stream only when their mapping is complete and valid. The subflow
    /// acknowledges them at once, since a mapping may be longer than its window.
    fn place_checked(&mut self, now: Instant, handle: Handle, mapping: &Resolved, seq: SeqNumber, payload: Bytes) {
        let subflow = &mut self.subflows[handle];
        subflow.liveness.unmapped = 0;
        let (id, next, range) = (subflow.id(), subflow.receiver.next, Subflow::range_of(seq, &payload));
        if subflow.range_is_old(seq, &payload) {
            subflow.receiver.place(now, range.0, range.1, subflow.mss, &self.config.tcp);
            return;
        }
        // Data beyond the window is neither accepted nor acknowledged: if the connection fell back before there is
        // space, it would not come again.
        let data_end = mapping.data_seq.wrapping_add(u64::from(range.1 - mapping.seq));
        if data_end > self.receiver.buffer.right_edge() {
            subflow.receiver.acknowledge_now();
            return;
        }
        let verification =
            self.receiver.pending_mappings.take_in(id, next, mapping, seq, payload, &self.identity.remote);
        if !matches!(verification, Verification::Refused) {
            subflow.receiver.place(now, range.0, range.1, subflow.mss, &self.config.tcp);
        }
        match verification {
            Verification::Incomplete | Verification::Refused => {}
            Verification::Failed(parts) => self.checksum_failed(now, handle, mapping, parts),
            Verification::Passed(parts) => {
                for (data_seq, bytes) in parts {
                    let seq = mapping.seq + data_seq.wrapping_sub(mapping.data_seq) as u32;
                    self.insert_in_order(now, handle, seq, (data_seq, bytes));
                }
                self.release_in_order(now, handle);
                if mapping.data_fin {
                    self.take_data_fin(now, handle, mapping);
                }
            }
        }
    }

    /// Payload that relies on stored mappings, possibly several.
    fn place_by_stored(&mut self, now: Instant, handle: Handle, mut seq: SeqNumber, mut payload: Bytes) {
        while !payload.is_empty() {
            let Some(subflow) = self.subflows.live(handle) else { return };
            let Some(mapping) = subflow.mappings.find(seq).copied() else {
                if self.skip_old(handle, &mut seq, &mut payload) {
                    continue;
                }
                return self.record_unmapped(now, handle, seq, payload);
            };
            let skipped = seq - mapping.seq;
            let part = payload.split_to(payload.len().min((mapping.length - skipped) as usize));
            let range = Subflow::range_of(seq, &part);
            seq = range.1;
            self.place(now, handle, range, mapping.data_seq.wrapping_add(u64::from(skipped)), part);
        }
    }

    /// Removes the part of a payload that was received before and whose mapping is gone. Without an acknowledgement the
    /// peer would send the same segment for ever.
    fn skip_old(&mut self, handle: Handle, seq: &mut SeqNumber, payload: &mut Bytes) -> bool {
        let receiver = &mut self.subflows[handle].receiver;
        let next = receiver.next;
        if seq.at_or_after(next) || (*seq + payload.len() as u32).at_or_before(next) {
            return false;
        }
        payload.advance((next - *seq) as usize);
        receiver.record_duplicate(*seq, next);
        receiver.acknowledge_now();
        *seq = next;
        true
    }

    /// Bytes without a mapping are dropped; the peer sends them again. Options that never arrive indicate a middlebox
    /// (RFC 8684, section 3.7).
    pub(super) fn record_unmapped(&mut self, now: Instant, handle: Handle, seq: SeqNumber, payload: Bytes) {
        let subflow = &mut self.subflows[handle];
        if subflow.range_is_old(seq, &payload) {
            subflow.receiver.acknowledge_now();
            return;
        }
        // The mapping of data behind a hole may be in the hole.
        let beyond_gap = seq.after(subflow.receiver.next);
        subflow.liveness.unmapped += if beyond_gap { u8::from(subflow.liveness.unmapped > 0) } else { EXPECTED_NEXT };
        let strips_options = subflow.liveness.unmapped >= MAX_UNMAPPED;
        let first_data = self.receiver.buffer.next() == 0 && self.receiver.buffer.out_of_order() == 0;
        if first_data && !beyond_gap && self.is_initial(handle) && !self.association.dss_sent {
            self.fall_back_or_reset(now, handle, FallbackCause::NoMapping);
            self.place_after_fallback(now, handle, seq, payload);
        } else if strips_options {
            // The peer has received our DSS and repeats data at data level. Taken as plain TCP, those bytes would be
            // duplicated in the stream.
            self.reset_for_middlebox(now, handle);
        } else if first_data && beyond_gap {
            self.subflows[handle].receiver.acknowledge_now(); // out of order (RFC 5681, section 4.2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};

    /// Whether the subflow is reset when so many unmapped segments came, each so far beyond the byte expected next.
    fn is_reset(ahead: &[u32]) -> bool {
        let mut connection = connected(config(), 1);
        connection.association.dss_sent = true;
        let handle = connection.subflows.first_handle().unwrap();
        for ahead in ahead {
            let seq = connection.subflows[handle].receiver.next + *ahead;
            connection.record_unmapped(Instant::ZERO, handle, seq, Bytes::from_static(b"data"));
            if !connection.subflows.has(handle) {
                return true;
            }
        }
        false
    }

    #[test]
    fn unmapped_data_ends_a_subflow_and_behind_a_hole_only_once_some_was_next() {
        // The mapping of data behind a hole may be in the hole.
        assert!(!is_reset(&[1; 100]));
        let needed = (1..).find(|count| is_reset(&vec![0; *count])).unwrap();
        assert_eq!(needed, usize::from(MAX_UNMAPPED.div_ceil(EXPECTED_NEXT)));
        let behind = usize::from(MAX_UNMAPPED - EXPECTED_NEXT);
        assert!(!is_reset(&[&[0], vec![1; behind - 1].as_slice()].concat()));
        assert!(is_reset(&[&[0], vec![1; behind].as_slice()].concat()));
    }

    #[test]
    fn unmapped_data_that_came_before_is_acknowledged_again() {
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        let next = connection.subflows[handle].receiver.next;
        connection.record_unmapped(Instant::ZERO, handle, next - 4, Bytes::from_static(b"data"));
        assert!(connection.subflows[handle].wants_acknowledgement(Instant::ZERO));
        assert_eq!(connection.subflows[handle].liveness.unmapped, 0);
    }

    #[test]
    fn what_was_received_before_is_cut_from_a_payload_and_acknowledged() {
        let cut = |before: u32, length: usize| {
            let mut connection = connected(config(), 1);
            let handle = connection.subflows.first_handle().unwrap();
            let next = connection.subflows[handle].receiver.next;
            let (mut seq, mut payload) = (next - before, Bytes::from(vec![0; length]));
            let is_cut = connection.skip_old(handle, &mut seq, &mut payload);
            assert_eq!(is_cut, connection.subflows[handle].wants_acknowledgement(Instant::ZERO));
            (is_cut, next.distance(seq), payload.len())
        };
        assert_eq!(cut(4, 10), (true, 0, 6));
        assert_eq!(cut(0, 10), (false, 0, 10));
        assert_eq!(cut(10, 10), (false, 10, 10), "all of it is old");
    }

    #[test]
    fn after_our_failure_the_mapping_of_the_peer_tells_where_its_stream_goes_on() {
        use anabranch_wire::mptcp::{DataSequence, Dss, Mapping};
        // "datamore" comes in two segments, of which the first has so many bytes and a mapping of this length.
        let readable = |failed: bool, length: u16, first: u32| {
            let mut connection = connected(config(), 1);
            connection.association.protocol = crate::connection::association::Protocol::Tcp;
            if failed {
                connection.association.fallback.fail(1);
            }
            let handle = connection.subflows.first_handle().unwrap();
            let subflow = &mut connection.subflows[handle];
            subflow.peer.initial = subflow.receiver.next - 1;
            let seq = subflow.receiver.next;
            // Six bytes came before: the subflow sends the first four of them again.
            connection.receiver.buffer.insert(Instant::ZERO, 0, Bytes::from_static(b"datamo"));
            let data_seq = DataSequence::Long(connection.identity.remote.data_seq(0));
            let mapping = Mapping { data_seq, subflow_seq: 1, length, checksum: None };
            let mut segment = Segment { seq, ..Segment::default() };
            segment.options.dss = Some(Dss { mapping: Some(mapping), ..Dss::default() });
            let (mapped, rest) = b"datamore".split_at(first as usize);
            connection.place_plain(Instant::ZERO, handle, &segment, Bytes::from_static(mapped));
            let bare = Segment { seq: seq + first, ..Segment::default() };
            connection.place_plain(Instant::ZERO, handle, &bare, Bytes::from_static(rest));
            connection.receiver.buffer.readable()
        };
        assert_eq!(readable(true, 0, 4), 8, "data and more");
        assert_eq!(readable(true, 4, 4), 10, "a mapping of what comes again is heeded, too, and ends where it says");
        assert_eq!(readable(true, 4, 2), 10, "it holds for the rest of its data and no more: datamo and more");
        assert_eq!(readable(false, 0, 4), 14, "nobody failed: it is plain TCP");
    }
}
