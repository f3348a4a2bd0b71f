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
        let bytes = if bytes.len() < COPIED { Bytes::copy_from_slice(&bytes) } else { bytes };
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
