//! DSS checksums (RFC 8684, section 3.3.1): holds the parts of a mapping until it is complete, then verifies it.

use super::resolved::Resolved;
use crate::keys::Derived;
use anabranch_policy::ids::SubflowId;
use anabranch_wire::mptcp::Mapping;
use anabranch_wire::{Checksum, SeqNumber};
use bytes::Bytes;

/// Limit of incomplete mappings of all subflows: 4 MB of 64 kB each.
const MAX_PENDING: usize = 64;

/// Shorter parts are copied, so that they do not keep a packet alive.
const COPIED: usize = 256;

/// Limit of parts of a mapping. Above it adjacent parts are copied together.
const MAX_PARTS: usize = 256;

/// Result for a segment under a checksum.
#[derive(Debug)]
pub(super) enum Verification {
    /// Parts of its mapping are missing.
    Incomplete,
    /// Dropped: there is no space for it, or it contradicts an earlier part.
    Refused,
    /// The mapping is complete and valid: its parts with their positions in the stream.
    Passed(Vec<(u64, Bytes)>),
    /// The mapping is complete and invalid.
    Failed(Vec<(u64, Bytes)>),
}

/// Incomplete mappings.
#[derive(Debug, Default)]
pub(super) struct PendingMappings {
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    subflow: SubflowId,
    mapping: Resolved,
    /// By position in the mapping, in order, not overlapping.
    parts: Vec<(u32, Bytes)>,
}

impl PendingMappings {
    /// The mapping of an earlier segment that covers `seq`.
    pub fn find(&self, subflow: SubflowId, seq: SeqNumber) -> Option<Resolved> {
        let covers = |m: &Resolved| seq.at_or_after(m.seq) && seq.before(m.seq + m.length);
        self.pending.iter().find(|p| p.subflow == subflow && covers(&p.mapping)).map(|pending| pending.mapping)
    }

    /// Whether a subflow has incomplete mappings.
    #[inline]
    pub fn has_some_of(&self, subflow: SubflowId) -> bool {
        self.pending.iter().any(|pending| pending.subflow == subflow)
    }

    /// The incomplete mappings of a subflow.
    pub fn of(&self, subflow: SubflowId) -> impl Iterator<Item = Resolved> {
        self.pending.iter().filter(move |pending| pending.subflow == subflow).map(|pending| pending.mapping)
    }

    /// Checksums are off after a fallback: returns the unverified parts of a subflow, with their positions in the
    /// stream.
    pub fn release(&mut self, subflow: SubflowId) -> Vec<(u64, Bytes)> {
        let of_subflow = |pending: &mut Pending| pending.subflow == subflow;
        self.pending.extract_if(.., of_subflow).flat_map(|pending| placed(&pending.mapping, pending.parts)).collect()
    }

    /// Removes the mappings of a subflow.
    pub fn forget(&mut self, subflow: SubflowId) {
        self.pending.retain(|pending| pending.subflow != subflow);
    }

    /// Adds the payload at `seq` under `mapping`; `next` is the next byte expected on the subflow.
    pub fn take_in(
        &mut self,
        subflow: SubflowId,
        next: SeqNumber,
        mapping: &Resolved,
        seq: SeqNumber,
        payload: Bytes,
        peer: &Derived,
    ) -> Verification {
        let offset = seq.distance(mapping.seq);
        let (Ok(offset), Some(_)) = (u32::try_from(offset), mapping.wire.checksum) else {
            return Verification::Refused;
        };
        if offset == 0 && payload.len() as u32 == mapping.length {
            return verify(mapping, vec![(0, payload)], peer);
        }
        let ahead = |old: &Resolved| (old.seq + old.length).after(next);
        self.pending.retain(|old| old.subflow != subflow || ahead(&old.mapping));
        let at = self.pending.iter().position(|p| p.subflow == subflow && p.mapping.seq == mapping.seq);
        let at = match at {
            Some(at) => at,
            None if self.pending.len() < MAX_PENDING => {
                self.pending.push(Pending { subflow, mapping: *mapping, parts: Vec::new() });
                self.pending.len() - 1
            }
            None => return Verification::Refused,
        };
        let Some(pending) = self.pending.get_mut(at) else { return Verification::Refused };
        if pending.mapping.length != mapping.length || !pending.add(offset, payload) {
            return Verification::Refused;
        }
        if !pending.is_complete() {
            return Verification::Incomplete;
        }
        let parts = self.pending.swap_remove(at).parts;
        verify(mapping, parts, peer)
    }
}

impl Pending {
    /// Adds the missing ranges of a part: retransmissions may have other borders, and what is acknowledged does not
    /// come again. Returns false if there is no space.
    fn add(&mut self, mut offset: u32, mut payload: Bytes) -> bool {
        if u64::from(offset) + payload.len() as u64 > u64::from(self.mapping.length) {
            return false;
        }
        while !payload.is_empty() {
            let at = self.parts.partition_point(|(start, _)| *start <= offset);
            let before = at.checked_sub(1).and_then(|before| self.parts.get(before));
            let known = before.map_or(0, |(start, bytes)| (start + bytes.len() as u32).saturating_sub(offset));
            let _ = payload.split_to(payload.len().min(known as usize));
            offset += known;
            let gap = self.parts.get(at).map_or(payload.len(), |(start, _)| start.saturating_sub(offset) as usize);
            let missing = payload.split_to(payload.len().min(gap));
            if !missing.is_empty() && !self.insert(offset, missing.clone()) {
                return false;
            }
            offset += missing.len() as u32;
        }
        true
    }

    fn insert(&mut self, offset: u32, payload: Bytes) -> bool {
        if self.parts.len() >= MAX_PARTS {
            self.join_neighbours();
        }
        let place = self.parts.len() < MAX_PARTS;
        if place {
            let at = self.parts.partition_point(|(start, _)| *start < offset);
            let payload = if payload.len() < COPIED { Bytes::copy_from_slice(&payload) } else { payload };
            self.parts.insert(at, (offset, payload));
        }
        place
    }

    /// Copies adjacent parts together: a long mapping of short segments would have too many.
    fn join_neighbours(&mut self) {
        let touches = |(start, bytes): &(u32, Bytes), next: &(u32, Bytes)| *start + bytes.len() as u32 == next.0;
        if !self.parts.windows(2).any(|pair| matches!(pair, [one, next] if touches(one, next))) {
            return;
        }
        let mut joined: Vec<(u32, Vec<u8>)> = Vec::new();
        for (start, bytes) in self.parts.drain(..) {
            match joined.last_mut() {
                Some((first, held)) if *first + held.len() as u32 == start => held.extend_from_slice(&bytes),
                _ => joined.push((start, bytes.to_vec())),
            }
        }
        self.parts.extend(joined.into_iter().map(|(start, bytes)| (start, Bytes::from(bytes))));
    }

    fn is_complete(&self) -> bool {
        self.parts.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() == u64::from(self.mapping.length)
    }
}

/// Whether the checksum of a mapping, if it has one, is valid. One's complement has two zeros, either of which may be
/// on the wire, so the sum is checked, not the number compared.
pub(super) fn is_right<'a>(mapping: &Mapping, data_seq: u64, payload: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut checksum = Checksum::new();
    payload.into_iter().for_each(|piece| checksum.add_bytes(piece));
    checksum.add_dss_pseudo_header(data_seq, mapping.subflow_seq, mapping.length);
    mapping.checksum.is_none_or(|sent| {
        checksum.add_u16(sent);
        checksum.is_valid()
    })
}

fn verify(mapping: &Resolved, parts: Vec<(u32, Bytes)>, peer: &Derived) -> Verification {
    let data_seq = peer.data_seq(mapping.data_seq);
    let slices = parts.iter().map(|(_, bytes)| bytes.as_ref());
    let right = is_right(&mapping.wire, data_seq, slices);
    let placed = placed(mapping, parts).collect();
    if right { Verification::Passed(placed) } else { Verification::Failed(placed) }
}

/// The parts of a mapping with their positions in the stream.
fn placed(mapping: &Resolved, parts: Vec<(u32, Bytes)>) -> impl Iterator<Item = (u64, Bytes)> + use<> {
    let first = mapping.data_seq;
    parts.into_iter().map(move |(offset, bytes)| (first.wrapping_add(u64::from(offset)), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::mptcp::DataSequence;

    #[test]
    fn a_short_part_that_waits_does_not_keep_its_packet() {
        let mut pending = PendingMappings::default();
        let peer = Derived { token: 0, initial_data_seq: 0 };
        let wire = Mapping { data_seq: DataSequence::Long(1), subflow_seq: 1, length: 1_000, checksum: Some(0) };
        let mapping = Resolved { seq: SeqNumber(1), length: 1_000, data_seq: 0, wire, data_fin: false };
        let mut is_kept = |at: u32, length: usize| {
            let packet = Bytes::from(vec![0; 1_500]);
            let (seq, payload) = (SeqNumber(1 + at), packet.slice(40..40 + length));
            pending.take_in(SubflowId(0), SeqNumber(1), &mapping, seq, payload, &peer);
            !packet.is_unique()
        };
        assert_eq!([(10, 1), (20, 255), (300, 256)].map(|(at, length)| is_kept(at, length)), [false, false, true]);
    }

    #[test]
    fn what_a_subflow_was_bringing_is_forgotten_and_that_of_others_is_not() {
        let mut pending = PendingMappings::default();
        let peer = Derived { token: 0, initial_data_seq: 0 };
        let wire = Mapping { data_seq: DataSequence::Long(1), subflow_seq: 1, length: 20, checksum: Some(0) };
        let mapping = Resolved { seq: SeqNumber(1), length: 20, data_seq: 0, wire, data_fin: false };
        for subflow in [SubflowId(1), SubflowId(2)] {
            let half = Bytes::from_static(b"0123456789");
            let verified = pending.take_in(subflow, SeqNumber(1), &mapping, SeqNumber(1), half, &peer);
            assert!(matches!(verified, Verification::Incomplete), "{verified:?}");
        }
        pending.forget(SubflowId(1));
        let found = [1, 2].map(|id| pending.find(SubflowId(id), SeqNumber(20)).is_some());
        assert_eq!(found, [false, true]);
        assert!(pending.find(SubflowId(2), SeqNumber(21)).is_none());
        assert!(pending.release(SubflowId(1)).is_empty());
        assert_eq!(pending.release(SubflowId(2)), [(0, Bytes::from_static(b"0123456789"))]);
    }
}
