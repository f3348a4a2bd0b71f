//! Mappings of a subflow that cover more than the segment that carried them (RFC 8684, section 3.3.1).

use crate::sorted_ring::{Place, SortedRing};
use anabranch_wire::SeqNumber;

/// A mapping of subflow to data sequence numbers for later segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredMapping {
    /// First subflow sequence number.
    pub seq: SeqNumber,
    /// Length in bytes, without a DATA_FIN.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
}

impl StoredMapping {
    fn end(&self) -> SeqNumber {
        self.seq + self.length
    }

    /// Whether both map each byte to the same data sequence where they overlap.
    pub fn agrees(&self, other: &Self) -> bool {
        self.data_seq.wrapping_sub(other.data_seq) == self.seq.distance(other.seq) as u64
    }

    /// The mapping without its first `bytes`.
    fn skip(self, bytes: u32) -> Self {
        Self {
            seq: self.seq + bytes,
            length: self.length - bytes,
            data_seq: self.data_seq.wrapping_add(u64::from(bytes)),
        }
    }
}

/// Mappings in order of sequence numbers, not overlapping: of two that differ, the first one counts (RFC 8684, section
/// 3.3.1), and the other is ignored.
///
/// Insertion takes time that does not depend on the number stored, except for a mapping that covers many others.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    ring: SortedRing<StoredMapping>,
}

impl Mappings {
    pub fn clear(&mut self) {
        self.ring.clear();
    }

    #[inline]
    pub fn find(&self, seq: SeqNumber) -> Option<&StoredMapping> {
        if self.ring.is_empty() { None } else { self.find_stored(seq) }
    }

    #[inline(never)]
    fn find_stored(&self, seq: SeqNumber) -> Option<&StoredMapping> {
        let found = self.ring.at(self.ring.partition_point(|mapping| mapping.end().at_or_before(seq)))?;
        found.seq.at_or_before(seq).then_some(found)
    }

    /// Stores a mapping, and removes those before `next`, the byte expected next. Returns false if `most` are stored
    /// already. The mapping of `next` itself is always stored, and replaces the one furthest ahead: without it the
    /// subflow would stall for ever.
    pub fn store(&mut self, mapping: StoredMapping, next: SeqNumber, most: usize) -> bool {
        self.remove_before(next);
        if mapping.end().at_or_before(next) || mapping.length == 0 || self.contradicts(&mapping) {
            return true;
        }
        let place = self.ring.partition_point(|other| other.end().before(mapping.seq));
        if self.ring.at(place).is_some_and(|other| other.agrees(&mapping) && other.seq.at_or_before(mapping.seq)) {
            self.extend(place, mapping.end());
            return true;
        }
        while self.ring.len() >= most {
            if mapping.seq.after(next) || self.ring.pop_back().is_none() {
                return false;
            }
        }
        self.cut_out(mapping.seq, mapping.end());
        let place = self.ring.partition_point(|other| other.seq.before(mapping.seq));
        self.ring.insert(place, mapping);
        true
    }

    /// Whether a mapping puts a byte elsewhere than an earlier one does.
    #[inline]
    pub fn contradicts(&self, mapping: &StoredMapping) -> bool {
        !self.ring.is_empty() && self.contradicts_stored(mapping)
    }

    #[inline(never)]
    fn contradicts_stored(&self, mapping: &StoredMapping) -> bool {
        let first = self.ring.partition_point(|other| other.end().at_or_before(mapping.seq));
        let mut overlapping = self.ring.iter_from(first).take_while(|other| other.seq.before(mapping.end()));
        overlapping.any(|other| !other.agrees(mapping))
    }

    /// Removes the mappings before `next`, the byte expected next, and releases their memory if no other is left.
    pub fn remove_before(&mut self, next: SeqNumber) {
        while self.ring.front().is_some_and(|first| first.end().at_or_before(next)) {
            self.ring.pop_front();
        }
    }

    /// Extends the mapping at a place up to `end`, unless it is longer.
    fn extend(&mut self, place: Place, end: SeqNumber) {
        let Some(from) = self.ring.at(place).map(StoredMapping::end).filter(|from| from.before(end)) else { return };
        self.cut_out(from, end);
        if let Some(mapping) = self.ring.at_mut(place) {
            mapping.length = end - mapping.seq;
        }
    }

    /// Removes the mappings of the bytes from `start` to `end`.
    fn cut_out(&mut self, start: SeqNumber, end: SeqNumber) {
        let mut place = self.ring.partition_point(|mapping| mapping.end().at_or_before(start));
        if let Some(first) = self.ring.at(place).copied().filter(|first| first.seq.before(start)) {
            self.ring.at_mut(place).into_iter().for_each(|first| first.length = start - first.seq);
            place = self.ring.after(place);
            if first.end().after(end) {
                self.ring.insert(place, first.skip(end - first.seq));
                return;
            }
        }
        while let Some(next) = self.ring.at(place).copied().filter(|next| next.seq.before(end)) {
            if next.end().after(end) {
                self.ring.at_mut(place).into_iter().for_each(|mapping| *mapping = next.skip(end - next.seq));
                return;
            }
            self.ring.remove(place);
            place = self.ring.partition_point(|mapping| mapping.end().at_or_before(start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mappings, SeqNumber, StoredMapping};

    fn mapping(seq: u32, length: u32, data_seq: u64) -> StoredMapping {
        StoredMapping { seq: SeqNumber(seq), length, data_seq }
    }

    fn all(mappings: &Mappings) -> Vec<(u32, u32, u64)> {
        mappings.ring.iter().map(|m| (m.seq.0, m.length, m.data_seq)).collect()
    }

    #[test]
    fn those_that_agree_become_one() {
        let mut mappings = Mappings::default();
        for (seq, length, data_seq) in [(100, 50, 1_000), (150, 50, 1_050), (120, 60, 1_020), (300, 10, 1_200)] {
            assert!(mappings.store(mapping(seq, length, data_seq), SeqNumber(50), 8));
        }
        assert_eq!(all(&mappings), [(100, 100, 1_000), (300, 10, 1_200)]);
        // Stops at a mapping that differs, and covers one that agrees.
        assert!(mappings.store(mapping(180, 130, 1_080), SeqNumber(50), 8));
        assert_eq!(all(&mappings), [(100, 210, 1_000)]);
        assert_eq!(mappings.find(SeqNumber(309)), Some(&mapping(100, 210, 1_000)));
        assert_eq!((mappings.find(SeqNumber(310)), mappings.find(SeqNumber(99))), (None, None));
    }

    #[test]
    fn of_those_that_differ_the_first_counts_and_the_other_is_ignored() {
        let mut mappings = Mappings::default();
        assert!(mappings.store(mapping(100, 100, 1_000), SeqNumber(0), 8));
        for (seq, length, data_seq) in [(120, 10, 5_000), (100, 100, 1_001), (90, 11, 9_000), (199, 9, 7_000)] {
            assert!(mappings.store(mapping(seq, length, data_seq), SeqNumber(0), 8));
            assert_eq!(all(&mappings), [(100, 100, 1_000)]);
        }
        // Those beside it overlap nothing.
        assert!(mappings.store(mapping(90, 10, 9_000), SeqNumber(0), 8));
        assert!(mappings.store(mapping(200, 9, 7_000), SeqNumber(0), 8));
        assert_eq!(all(&mappings), [(90, 10, 9_000), (100, 100, 1_000), (200, 9, 7_000)]);
        // Of received bytes nothing is known any more.
        assert!(mappings.store(mapping(150, 59, 2_000), SeqNumber(209), 8));
        assert_eq!(all(&mappings), []);
    }

    #[test]
    fn what_lies_behind_is_forgotten_and_the_number_is_bounded_but_for_the_next() {
        let mut mappings = Mappings::default();
        for n in 1..=4 {
            assert!(mappings.store(mapping(n * 100, 10, u64::from(n) * 7_000), SeqNumber(100), 4));
        }
        assert!(!mappings.store(mapping(600, 10, 1), SeqNumber(50), 4));
        assert!(mappings.store(mapping(50, 10, 2), SeqNumber(50), 4));
        assert_eq!(all(&mappings), [(50, 10, 2), (100, 10, 7_000), (200, 10, 14_000), (300, 10, 21_000)]);
        assert!(mappings.store(mapping(305, 1, 21_005), SeqNumber(210), 4));
        assert_eq!(all(&mappings), [(300, 10, 21_000)]);
        // Mappings of bytes received before are removed.
        assert!(mappings.store(mapping(100, 50, 3), SeqNumber(210), 4));
        assert_eq!(all(&mappings), [(300, 10, 21_000)]);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut mappings = Mappings::default();
        assert!(mappings.store(mapping(u32::MAX - 9, 20, 100), SeqNumber(u32::MAX - 20), 4));
        assert!(mappings.store(mapping(10, 20, 120), SeqNumber(u32::MAX - 20), 4));
        assert_eq!(all(&mappings), [(u32::MAX - 9, 40, 100)]);
        assert_eq!(mappings.find(SeqNumber(3)).map(|m| m.data_seq), Some(100));
    }
}
