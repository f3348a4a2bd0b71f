//! Between sequence spaces: which bytes of the stream a subflow's bytes are (RFC 8684, section 3.3.1).
//!
//! Inside, data sequences are 64-bit offsets from the first byte of the stream; on the wire they are numbers from a
//! random start, whole or cut to 32 bits.

use super::Connection;
use super::checksum::{Verification, is_right};
use super::close::REASON_MIDDLEBOX;
use super::resolved::Resolved;
use crate::event::FallbackCause;
use crate::subflow::{StoredMapping, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{CapableKeys, DataAck, DataSequence, Mapping};
use anabranch_wire::{Segment, SeqNumber};
use bytes::Bytes;

/// Most mappings that wait for their bytes on a subflow, beside one for the byte expected next.
const MAX_STORED: usize = 512;

/// Segments in a row without a mapping after which the path is taken to strip options.
const MAX_UNMAPPED: u8 = 32;

/// As how many of them one counts that holds the byte expected next: nothing on the subflow goes on without it, and a peer with
/// little to say sends it again once per timeout.
const EXPECTED_NEXT: u8 = 8;

impl Connection {
    /// The data sequence number on the wire of an offset of ours.
    pub(super) fn wire_data_seq(&self, offset: u64) -> u64 {
        self.identity.local.data_seq(offset)
    }

    /// What we acknowledge at data level, in the size that the peer can take.
    pub(super) fn wire_data_ack(&self) -> DataAck {
        let offset = self.receiver.buffer.next() + u64::from(self.receiver.buffer.at_end());
        let number = self.identity.remote.data_seq(offset);
        if self.association.long_data_ack { DataAck::Long(number) } else { DataAck::Short(number as u32) }
    }

    /// The offset of ours that a DATA_ACK names. Short ones are resolved near what is outstanding; one that lies before
    /// the beginning of the stream counts as its beginning.
    pub(super) fn data_ack_offset(&self, ack: DataAck) -> u64 {
        let base = self.identity.local.data_seq(0);
        let near = self.sender.una();
        match ack {
            DataAck::Long(number) => {
                let offset = number.wrapping_sub(base);
                if offset > u64::MAX / 2 { 0 } else { offset }
            }
            DataAck::Short(number) => near_offset(near, number.wrapping_sub(base as u32)),
        }
    }

    /// The offset of the peer's that a mapping begins at.
    fn data_seq_offset(&self, data_seq: DataSequence) -> u64 {
        let base = self.identity.remote.data_seq(0);
        match data_seq {
            DataSequence::Long(number) => number.wrapping_sub(base),
            DataSequence::Short(number) => near_offset(self.receiver.buffer.next(), number.wrapping_sub(base as u32)),
        }
    }

    /// Where the payload of a segment begins in the stream, by the mapping that it carries in DSS.
    pub(super) fn mapped_to(&self, index: usize, segment: &Segment) -> Option<u64> {
        let mapping = segment.options.dss.as_ref()?.mapping?;
        let begins = self.subflows.get(index)?.peer_initial + mapping.subflow_seq;
        let ahead = i64::from(segment.seq.distance(begins));
        self.data_seq_offset(mapping.data_seq).checked_add_signed(ahead)
    }

    /// The mapping that a segment carries, in DSS or in MP_CAPABLE with data.
    fn mapping_of(&mut self, subflow_initial: SeqNumber, segment: &Segment) -> Option<Resolved> {
        if let Some(dss) = &segment.options.dss {
            let wire = dss.mapping?;
            self.association.long_data_ack |= matches!(wire.data_seq, DataSequence::Long(_));
            return Some(Resolved {
                seq: subflow_initial + wire.subflow_seq,
                length: u32::from(wire.length).saturating_sub(u32::from(dss.data_fin)),
                data_seq: self.data_seq_offset(wire.data_seq),
                wire,
                data_fin: dss.data_fin,
            });
        }
        let capable = segment.options.mptcp.iter().find_map(super::handshake::usable_capable)?;
        let CapableKeys::BothWithData { length, checksum, .. } = capable.1 else { return None };
        // The number that it implies is the peer's initial one, with all its 64 bits (Linux takes it so too).
        self.association.long_data_ack = true;
        let data_seq = DataSequence::Long(self.identity.remote.data_seq(0));
        Some(Resolved {
            seq: subflow_initial + 1,
            length: u32::from(length),
            data_seq: 0,
            wire: Mapping { data_seq, subflow_seq: 1, length, checksum },
            data_fin: false,
        })
    }

    /// A DSS on a segment without payload: a DATA_FIN, or a mapping for bytes to come.
    pub(super) fn handle_mapping_alone(&mut self, now: Instant, index: usize, segment: &Segment) {
        let Some(initial) = self.subflows.get(index).map(|subflow| subflow.peer_initial) else { return };
        let Some(mapping) = self.mapping_of(initial, segment) else { return };
        if self.is_infinite(now, index, &mapping) || self.breaks_checksum_agreement(now, index, &mapping) {
            return;
        }
        if mapping.length > 0 && mapping.wire.subflow_seq != 0 {
            self.store(index, &mapping);
        }
        // Last, since the end of the stream closes subflows: places move.
        if mapping.data_fin && self.is_verified_alone(&mapping) {
            self.take_data_fin(now, index, &mapping);
        }
    }

    /// The checksum of a DATA_FIN without data covers its pseudo-header only (RFC 8684, section 3.3.3).
    fn is_verified_alone(&self, mapping: &Resolved) -> bool {
        let number = self.identity.remote.data_seq(mapping.data_seq);
        mapping.length > 0 || is_right(&mapping.wire, number, [])
    }

    /// A checksum that was not agreed on, or none where one was, closes the subflow (RFC 8684, section 3.3).
    fn breaks_checksum_agreement(&mut self, now: Instant, index: usize, mapping: &Resolved) -> bool {
        let breaks = mapping.wire.checksum.is_some() != self.association.checksum;
        if breaks {
            self.reset_subflow(now, index, CloseReason::ProtocolError, super::close::REASON_MPTCP);
        }
        breaks
    }

    /// An infinite mapping: the peer has fallen back (RFC 8684, section 3.7).
    fn is_infinite(&mut self, now: Instant, index: usize, mapping: &Resolved) -> bool {
        let infinite = mapping.wire.length == 0 && !mapping.data_fin;
        if infinite {
            self.fall_back_or_reset(now, index, FallbackCause::Peer);
        }
        infinite
    }

    /// The stream ends behind the mapping.
    fn take_data_fin(&mut self, now: Instant, index: usize, mapping: &Resolved) {
        let end = mapping.data_seq.wrapping_add(u64::from(mapping.length));
        // An impossible end is ignored, as any number out of the window is (RFC 8684, section 3.8): one before the beginning.
        let before = end > u64::MAX / 2;
        if !before && self.receiver.buffer.set_end(end).is_ok() {
            self.subflows.get_mut(index).into_iter().for_each(|subflow| subflow.receiver.acknowledge_now());
            self.acknowledge_end_everywhere();
        }
        self.take_in_records(now);
        self.announce_end();
        self.finish_if_done(now);
    }

    /// The path that DATA_FIN came on may be dead the other way; Linux answers on every subflow, too.
    fn acknowledge_end_everywhere(&mut self) {
        if self.receiver.buffer.at_end() {
            let open = |subflow: &&mut Subflow| subflow.confirmed && subflow.state.can_receive();
            self.subflows.iter_mut().filter(open).for_each(|subflow| subflow.receiver.acknowledge_now());
        }
    }

    /// Payload on a subflow of an MPTCP connection.
    pub(super) fn place_mapped(&mut self, now: Instant, index: usize, segment: &Segment, payload: Bytes) {
        let Some(initial) = self.subflows.get(index).map(|subflow| subflow.peer_initial) else { return };
        let own = self.mapping_of(initial, segment);
        if let Some(mapping) = own
            && self.is_infinite(now, index, &mapping)
        {
            return self.place_after_fallback(now, segment.seq, payload);
        }
        if own.is_some_and(|mapping| self.breaks_checksum_agreement(now, index, &mapping)) {
            return;
        }
        if self.association.checksum {
            return self.place_all_checked(now, index, own, segment.seq, payload);
        }
        let Some(mapping) = own else { return self.place_by_stored(now, index, segment.seq, payload) };
        let whole = segment.seq == mapping.seq && payload.len() as u32 == mapping.length;
        self.subflows.get_mut(index).into_iter().for_each(|subflow| subflow.unmapped = 0);
        if whole {
            self.place(now, index, Subflow::range_of(segment.seq, &payload), mapping.data_seq, payload);
        } else if self.store(index, &mapping) {
            self.place_by_stored(now, index, segment.seq, payload);
        } else {
            // Acknowledged, it would not come again, and what relies on it never had a place.
            self.subflows.get_mut(index).into_iter().for_each(|subflow| subflow.receiver.acknowledge_now());
        }
        if mapping.data_fin {
            self.take_data_fin(now, index, &mapping);
        }
    }

    /// Payload in plain TCP. A peer that has not heard of our fallback still says where it belongs, and sends data again
    /// under new numbers of the subflow.
    pub(super) fn place_plain(&mut self, now: Instant, index: usize, segment: &Segment, payload: Bytes) {
        let Some(initial) = self.subflows.get(index).map(|subflow| subflow.peer_initial) else { return };
        let mapping =
            if self.association.fallback.unheard.is_some() { self.mapping_of(initial, segment) } else { None };
        match mapping.filter(|mapping| segment.seq == mapping.seq && payload.len() as u32 == mapping.length) {
            Some(mapping) => {
                self.place(now, index, Subflow::range_of(segment.seq, &payload), mapping.data_seq, payload);
            }
            None => self.place_unmapped(now, index, segment.seq, payload),
        }
    }

    fn place_after_fallback(&mut self, now: Instant, seq: SeqNumber, payload: Bytes) {
        // The subflow may have been closed instead.
        if self.association.protocol == super::Protocol::Tcp && self.subflows.len() == 1 {
            self.place_unmapped(now, 0, seq, payload);
        }
    }

    /// Payload under checksums: each part under the mapping that covers it, its segment's own or one that came before.
    fn place_all_checked(
        &mut self,
        now: Instant,
        index: usize,
        own: Option<Resolved>,
        mut seq: SeqNumber,
        mut payload: Bytes,
    ) {
        let Some(id) = self.subflows.get(index).map(Subflow::id) else { return };
        while !payload.is_empty() && self.index_of(id) == Some(index) {
            if self.association.protocol == super::Protocol::Tcp {
                return self.place_after_fallback(now, seq, payload);
            }
            let covers = |m: &Resolved| seq.at_or_after(m.seq) && seq.before(m.seq + m.length);
            let Some(mapping) = own.filter(covers).or_else(|| self.receiver.pending_mappings.find(id, seq)) else {
                return self.note_unmapped(now, index, seq, payload);
            };
            let left = (mapping.length - (seq - mapping.seq)) as usize;
            let part = payload.split_to(payload.len().min(left));
            let start = seq;
            seq += part.len() as u32;
            self.place_checked(now, index, &mapping, start, part);
        }
    }

    /// With DSS checksums, bytes reach the stream only when their whole mapping is here and right. The subflow
    /// acknowledges them at once: a mapping may be longer than its window.
    fn place_checked(&mut self, now: Instant, index: usize, mapping: &Resolved, seq: SeqNumber, payload: Bytes) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        subflow.unmapped = 0;
        let (id, next, range) = (subflow.id(), subflow.receiver.next, Subflow::range_of(seq, &payload));
        if subflow.range_is_old(seq, &payload) {
            subflow.receiver.place(now, range.0, range.1, subflow.mss, &self.config.tcp);
            return;
        }
        let verification =
            self.receiver.pending_mappings.take_in(id, next, mapping, seq, payload, &self.identity.remote);
        if !matches!(verification, Verification::Refused) {
            subflow.receiver.place(now, range.0, range.1, subflow.mss, &self.config.tcp);
        }
        match verification {
            Verification::Incomplete | Verification::Refused => {}
            Verification::Failed(parts) => self.checksum_failed(now, index, mapping, parts),
            Verification::Passed(parts) => {
                for (data_seq, bytes) in parts {
                    let seq = mapping.seq + data_seq.wrapping_sub(mapping.data_seq) as u32;
                    self.insert_in_order(now, index, seq, (data_seq, bytes));
                }
                self.release_in_order(now, index);
                if mapping.data_fin {
                    self.take_data_fin(now, index, mapping);
                }
            }
        }
    }

    /// Remembers a mapping for segments that come without one. Gives false if there is no room, though never to that
    /// of the byte expected next: the subflow would wait for it for good. Behind a missing byte a window of mappings may
    /// arrive; those of which all bytes are here have done their work.
    fn store(&mut self, index: usize, mapping: &Resolved) -> bool {
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        let stored = StoredMapping { seq: mapping.seq, length: mapping.length, data_seq: mapping.data_seq };
        let next = subflow.receiver.next;
        subflow.mappings.retain(|old| (old.seq + old.length).after(next));
        if subflow.mappings.contains(&stored) {
            return true;
        }
        if subflow.mappings.len() >= MAX_STORED {
            let receiver = &subflow.receiver;
            subflow.mappings.retain(|old| !receiver.has(old.seq, old.seq + old.length));
        }
        let is_next = stored.seq.at_or_before(next) && (stored.seq + stored.length).after(next);
        let room = subflow.mappings.len() < MAX_STORED;
        if is_next && !room {
            subflow.mappings.retain(|old| old.seq.after(next));
        }
        if is_next || room {
            subflow.mappings.push_back(stored);
        }
        is_next || room
    }

    /// Payload that relies on mappings stored before, possibly several.
    fn place_by_stored(&mut self, now: Instant, index: usize, mut seq: SeqNumber, mut payload: Bytes) {
        while !payload.is_empty() {
            let Some(subflow) = self.subflows.get_mut(index) else { return };
            let covers = |m: &&StoredMapping| seq.at_or_after(m.seq) && seq.before(m.seq + m.length);
            let Some(mapping) = subflow.mappings.iter().rev().find(covers).copied() else {
                return self.note_unmapped(now, index, seq, payload);
            };
            let skipped = seq - mapping.seq;
            let part = payload.split_to(payload.len().min((mapping.length - skipped) as usize));
            let range = Subflow::range_of(seq, &part);
            seq = range.1;
            self.place(now, index, range, mapping.data_seq.wrapping_add(u64::from(skipped)), part);
        }
    }

    /// Bytes that nothing maps are not taken; the peer sends them again. Options that never come mean a middlebox
    /// (RFC 8684, section 3.7).
    fn note_unmapped(&mut self, now: Instant, index: usize, seq: SeqNumber, payload: Bytes) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        if subflow.range_is_old(seq, &payload) {
            subflow.receiver.acknowledge_now();
            return;
        }
        // The mapping of what lies behind a gap may be in the gap.
        let beyond_gap = seq.after(subflow.receiver.next);
        subflow.unmapped += if beyond_gap { u8::from(subflow.unmapped > 0) } else { EXPECTED_NEXT };
        let gives_up = subflow.unmapped >= MAX_UNMAPPED;
        let first_data = self.receiver.buffer.next() == 0 && self.receiver.buffer.out_of_order() == 0;
        if first_data && self.is_initial(index) && !self.association.dss_sent {
            self.fall_back_or_reset(now, index, FallbackCause::NoMapping);
            self.place_after_fallback(now, seq, payload);
        } else if gives_up {
            // The peer has seen our DSS and goes on repeating data at data level: in a stream taken as plain TCP those
            // bytes would appear twice.
            self.reset_subflow(now, index, CloseReason::ProtocolError, REASON_MIDDLEBOX);
        }
    }
}

/// The 64-bit offset nearest to `near` whose lower 32 bits are `low`; 0 if that would be negative.
pub(super) fn near_offset(near: u64, low: u32) -> u64 {
    let ahead = i64::from(low.wrapping_sub(near as u32) as i32);
    u64::try_from(i64::try_from(near).unwrap_or(i64::MAX).saturating_add(ahead)).unwrap_or(0)
}

impl Subflow {
    /// The sequence range of bytes that begin at `seq`.
    fn range_of(seq: SeqNumber, payload: &Bytes) -> (SeqNumber, SeqNumber) {
        (seq, seq + payload.len() as u32)
    }

    /// Whether all of it lies before the next expected byte.
    fn range_is_old(&self, seq: SeqNumber, payload: &Bytes) -> bool {
        Self::range_of(seq, payload).1.at_or_before(self.receiver.next)
    }
}

#[cfg(test)]
mod tests {
    use super::near_offset;

    #[test]
    fn short_numbers_resolve_to_the_nearest_long_one() {
        assert_eq!(near_offset(0, 5), 5);
        assert_eq!(near_offset(10, 5), 5);
        assert_eq!(near_offset(0x1_0000_0000, 0xffff_fff0), 0xffff_fff0);
        assert_eq!(near_offset(0xffff_fff0, 0x10), 0x1_0000_0010);
        assert_eq!(near_offset(3, 0xffff_fff0), 0);
    }
}
