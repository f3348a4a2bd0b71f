//! Owns the pieces of data that arrived out of order.
//!
//! Most pieces arrive behind the last one and leave at the front. With paths of different delays they also arrive in
//! the middle, hence a [`SortedRing`].

use crate::sorted_ring::{Place, SortedRing};
use bytes::{Buf, Bytes};

/// Overhead charged for each piece: its entry, its allocation, and a part of the packet that it keeps alive.
const PIECE_OVERHEAD: u64 = 256;
/// Shorter pieces are copied, so that they do not keep a packet alive.
const COPIED: usize = 256;
/// Within a budget of this size all are, since the packets would take many times the budget.
const SMALL_BUDGET: u64 = 16 * 1024;
/// A piece shorter than this is appended to the one that it continues ...
const JOINED: usize = 512;
/// ... if together they are not longer than this.
const JOINED_TOTAL: usize = 2048;

#[derive(Debug)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Result of [`OutOfOrder::insert`], in bytes.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) new: u64,
    pub(super) duplicate: u64,
    pub(super) dropped: u64,
}

/// Pieces by offset, not empty, not overlapping.
#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    pieces: SortedRing<Piece>,
    bytes: u64,
}

impl OutOfOrder {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.start)
    }

    pub(super) fn last_end(&self) -> Option<u64> {
        self.pieces.back().map(Piece::end)
    }

    pub(super) fn has(&self, start: u64, end: u64) -> bool {
        let first = self.pieces.partition_point(|piece| piece.end() <= start);
        let mut here = start;
        for piece in self.pieces.iter_from(first) {
            if piece.start > here || here >= end {
                break;
            }
            here = piece.end();
        }
        here >= end
    }

    /// The bytes from `more` before `start` to `more` after `end`, as far as they are contiguous, and the first offset.
    pub(super) fn around(&self, start: u64, end: u64, more: u64) -> (u64, Vec<u8>) {
        let (from, to) = (start.saturating_sub(more), end.saturating_add(more));
        let first = self.pieces.partition_point(|piece| piece.end() <= from);
        let (mut begins, mut bytes) = (from, Vec::new());
        for piece in self.pieces.iter_from(first) {
            if piece.start >= to {
                break;
            }
            if piece.start > begins + bytes.len() as u64 {
                if piece.start >= end {
                    break;
                }
                begins = piece.start;
                bytes.clear();
            }
            let skipped = (begins + bytes.len() as u64).saturating_sub(piece.start) as usize;
            let length = (to.min(piece.end()) - piece.start) as usize;
            bytes.extend_from_slice(piece.bytes.get(skipped..length).unwrap_or_default());
        }
        (begins, bytes)
    }

    /// Bytes and overhead of all pieces.
    pub(super) fn charge(&self) -> u64 {
        self.bytes + self.pieces.len() as u64 * PIECE_OVERHEAD
    }

    pub(super) fn pop_first(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.bytes.len() as u64;
        Some(piece.bytes)
    }

    /// Removes what begins at `offset` or behind it.
    pub(super) fn forget_from(&mut self, offset: u64) {
        while let Some(last) = self.pieces.back_mut().filter(|last| last.end() > offset) {
            let kept = offset.saturating_sub(last.start);
            self.bytes -= last.bytes.len() as u64 - kept;
            last.bytes.truncate(kept as usize);
            if kept == 0 {
                self.pieces.pop_back();
            }
        }
    }

    /// Stores the missing part of `data`, as long as the charge stays within `budget`.
    pub(super) fn insert(&mut self, mut offset: u64, mut data: Bytes, budget: u64) -> Stored {
        let mut stored = Stored::default();
        let mut place = match self.pieces.back() {
            Some(last) if last.start > offset => self.pieces.partition_point(|piece| piece.start <= offset),
            _ => self.pieces.end(),
        };
        let before = self.pieces.before(place).and_then(|before| self.pieces.at(before));
        let covered = before.map_or(0, |piece| piece.end().saturating_sub(offset));
        skip(&mut offset, &mut data, covered, &mut stored);
        while !data.is_empty() {
            let length = data.len() as u64;
            let room = self.pieces.at(place).map_or(length, |after| length.min(after.start - offset));
            if room > 0 {
                match self.place(place, offset, data.split_to(room as usize), budget) {
                    Placed::NewPiece(at) => {
                        place = self.pieces.after(at);
                        stored.new += room;
                    }
                    Placed::Joined => stored.new += room,
                    Placed::NoRoom => stored.dropped += room,
                }
                offset += room;
            }
            let covered = self.pieces.at(place).map_or(0, |after| after.bytes.len() as u64);
            skip(&mut offset, &mut data, covered, &mut stored);
            place = self.pieces.after(place);
        }
        stored
    }

    /// Stores a piece that overlaps none before the piece at `place`.
    fn place(&mut self, place: Place, start: u64, bytes: Bytes, budget: u64) -> Placed {
        let length = bytes.len() as u64;
        let charge = self.charge();
        let before = self.pieces.before(place).and_then(|before| self.pieces.at_mut(before));
        if let Some(before) = before
            && before.end() == start
            && bytes.len() < JOINED
            && before.bytes.len() + bytes.len() <= JOINED_TOTAL
            && charge + length <= budget
        {
            before.bytes = [before.bytes.as_ref(), bytes.as_ref()].concat().into();
            self.bytes += length;
            return Placed::Joined;
        }
        if charge + length + PIECE_OVERHEAD > budget {
            return Placed::NoRoom;
        }
        let bytes = if bytes.len() < COPIED || budget <= SMALL_BUDGET { Bytes::copy_from_slice(&bytes) } else { bytes };
        self.bytes += length;
        Placed::NewPiece(self.pieces.insert(place, Piece { start, bytes }))
    }
}

enum Placed {
    NewPiece(Place),
    Joined,
    NoRoom,
}

/// Skips the first `covered` bytes, which are duplicates.
fn skip(offset: &mut u64, data: &mut Bytes, covered: u64, stored: &mut Stored) {
    let count = covered.min(data.len() as u64);
    data.advance(count as usize);
    *offset += count;
    stored.duplicate += count;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of the pieces after these were inserted, each behind the one before.
    fn pieces(lengths: &[usize], budget: u64) -> Vec<usize> {
        let (mut pieces, mut end) = (OutOfOrder::default(), 1_000);
        for length in lengths {
            pieces.insert(end, Bytes::from(vec![7; *length]), budget);
            end += *length as u64;
        }
        assert_eq!(
            pieces.bytes(),
            pieces
                .pieces
                .iter_from(pieces.pieces.partition_point(|_| false))
                .map(|p| p.bytes.len() as u64)
                .sum::<u64>()
        );
        core::iter::from_fn(|| pieces.pop_first()).map(|bytes| bytes.len()).collect()
    }

    #[test]
    fn short_pieces_are_joined_up_to_a_size_and_longer_ones_are_not() {
        let room = 1 << 20;
        assert_eq!(pieces(&[10, 511], room), [521]);
        assert_eq!(pieces(&[10, 512], room), [10, 512], "not shorter than 512");
        assert_eq!(pieces(&[1_537, 511], room), [2_048]);
        assert_eq!(pieces(&[1_538, 511], room), [1_538, 511], "together more than 2,048");
    }

    #[test]
    fn each_piece_is_charged_its_bytes_and_256_more_and_what_exceeds_the_budget_is_dropped() {
        assert_eq!(pieces(&[600, 600], 2 * 856), [600, 600]);
        assert_eq!(pieces(&[600, 600], 2 * 856 - 1), [600]);
        assert_eq!(pieces(&[600, 100], 956), [700], "a joined one costs its bytes");
        assert_eq!(pieces(&[600, 100], 955), [600]);
        let mut stored = OutOfOrder::default();
        assert_eq!(stored.insert(5, Bytes::from(vec![0; 10]), 265).dropped, 10);
        assert_eq!((stored.insert(5, Bytes::from(vec![0; 10]), 266).new, stored.charge()), (10, 266));
    }

    #[test]
    fn a_piece_fills_the_holes_between_others_and_the_rest_of_it_is_duplicate() {
        let mut stored = OutOfOrder::default();
        stored.insert(100, Bytes::from(vec![1; 600]), 1 << 20);
        stored.insert(1_000, Bytes::from(vec![2; 600]), 1 << 20);
        let result = stored.insert(50, Bytes::from(vec![3; 2_000]), 1 << 20);
        assert_eq!((result.new, result.duplicate, result.dropped), (50 + 300 + 450, 1_200, 0));
        assert_eq!((stored.first(), stored.last_end()), (Some(50), Some(2_050)));
        assert!(stored.has(50, 2_050) && !stored.has(49, 60) && !stored.has(2_000, 2_051));
        let bytes: Vec<u8> = core::iter::from_fn(|| stored.pop_first()).flatten().collect();
        let runs = [(3, 50), (1, 600), (3, 300), (2, 600), (3, 450)];
        assert_eq!(bytes, runs.map(|(byte, count)| vec![byte; count]).concat());
        assert!(stored.is_empty() && stored.bytes() == 0);
    }

    #[test]
    fn the_bytes_around_a_range_are_those_that_touch_it() {
        let mut stored = OutOfOrder::default();
        for (start, byte) in [(100, 1), (1_000, 2), (2_000, 3)] {
            stored.insert(start, Bytes::from(vec![byte; 600]), 1 << 20);
        }
        assert_eq!(stored.around(1_100, 1_200, 50), (1_050, vec![2; 200]));
        assert_eq!(stored.around(1_100, 1_200, 5_000), (1_000, vec![2; 600]));
        assert_eq!(stored.around(1_600, 2_000, 10), (1_590, vec![2; 10]));
    }

    #[test]
    fn contiguous_pieces_around_a_range_are_one_run_of_bytes() {
        let mut stored = OutOfOrder::default();
        for (start, byte) in [(100, 1), (700, 2), (1_300, 3)] {
            stored.insert(start, Bytes::from(vec![byte; 600]), 1 << 20);
        }
        let all = [vec![1; 600], vec![2; 600], vec![3; 600]].concat();
        assert_eq!(stored.around(800, 900, 10_000), (100, all));
        assert_eq!(stored.around(650, 1_350, 20), (630, [vec![1; 70], vec![2; 600], vec![3; 70]].concat()));
    }
}
