//! Reassembles programs' datagrams from pieces; incomplete ones are dropped after a timeout.

use crate::datagram::{Datagram, LARGEST_PAYLOAD};
use crate::format::{Data, Piece};
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Reassembly timeout.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most datagrams in reassembly.
const MOST: usize = 256;
/// Most bytes in reassembly.
const MOST_BYTES: usize = 1 << 20;

/// A datagram or a piece of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The payload is only that of this piece.
    pub datagram: Datagram,
    /// The piece, and the sequence number of the datagram's first piece.
    pub piece: Option<(u32, Piece)>,
}

impl Part {
    pub fn new(data: &Data, payload: &[u8]) -> Self {
        let &Data { kind, inside, outside, sequence, piece, .. } = data;
        let datagram = Datagram { kind, inside, outside, payload: Bytes::copy_from_slice(payload) };
        let piece = piece.map(|piece| (sequence.wrapping_sub(piece.index.into()), piece));
        Self { datagram, piece }
    }
}

/// A datagram in reassembly.
#[derive(Debug)]
struct Partial {
    began: Instant,
    pieces: Vec<Option<Bytes>>,
    missing: usize,
    bytes: usize,
}

/// The reassembly buffer.
#[derive(Debug, Default)]
pub struct Assembly {
    /// Keyed by the sequence number of the first piece.
    partial: BTreeMap<u32, Partial>,
    bytes: usize,
    /// Datagrams dropped incomplete.
    pub unfinished: u64,
}

impl Assembly {
    /// Adds an arrival. Returns a complete datagram.
    pub fn take(&mut self, now: Instant, part: Part) -> Option<Datagram> {
        let Part { datagram, piece } = part;
        let Some((first, Piece { index, count })) = piece else { return Some(datagram) };
        let (index, count) = (usize::from(index), usize::from(count));
        let fresh = || Partial { began: now, pieces: vec![None; count], missing: count, bytes: 0 };
        let partial = self.partial.entry(first).or_insert_with(fresh);
        let length = datagram.payload.len();
        // A different count means that the sequence number has wrapped: the older datagram is dropped.
        let same = partial.pieces.len() == count && partial.bytes + length <= LARGEST_PAYLOAD;
        let Some(place) = partial.pieces.get_mut(index).filter(|place| same && place.is_none()) else {
            self.forget(first);
            return None;
        };
        *place = Some(datagram.payload.clone());
        partial.missing -= 1;
        partial.bytes += length;
        self.bytes += length;
        if partial.missing == 0 {
            let whole = self.partial.remove(&first)?;
            self.bytes -= whole.bytes;
            let payload = whole.pieces.into_iter().flatten().collect::<Vec<_>>().concat().into();
            return Some(Datagram { payload, ..datagram });
        }
        while self.bytes > MOST_BYTES || self.partial.len() > MOST {
            self.forget_oldest();
        }
        None
    }

    /// Drops all pieces, after the peer has restarted.
    pub fn restart(&mut self) {
        *self = Self { unfinished: self.unfinished + self.partial.len() as u64, ..Self::default() };
    }

    /// Drops datagrams whose timeout has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.partial.values().any(|partial| partial.began + PATIENCE <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.partial.iter().min_by_key(|(_, partial)| partial.began).map(|(first, _)| *first);
        oldest.into_iter().for_each(|first| self.forget(first));
    }

    fn forget(&mut self, first: u32) {
        if let Some(partial) = self.partial.remove(&first) {
            self.bytes -= partial.bytes;
            self.unfinished += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::Kind;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A piece of the datagram whose first piece has the number `first`.
    fn piece(first: u32, index: u8, count: u8, payload: &[u8]) -> Part {
        let address = "10.0.0.1:1".parse().expect("an address");
        let payload = Bytes::copy_from_slice(payload);
        let datagram = Datagram { kind: Kind::Udp, inside: address, outside: address, payload };
        Part { datagram, piece: Some((first, Piece { index, count })) }
    }

    fn payload(whole: Option<Datagram>) -> Option<Vec<u8>> {
        whole.map(|datagram| datagram.payload.to_vec())
    }

    #[test]
    fn pieces_in_any_order_make_the_datagram_and_none_is_kept() {
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut assembly = Assembly::default();
            let mut whole = None;
            for index in order {
                assert_eq!(whole, None);
                whole = assembly.take(at(0), piece(u32::MAX, index, 3, &[index; 2]));
            }
            assert_eq!(payload(whole), Some(vec![0, 0, 1, 1, 2, 2]));
            assert_eq!((assembly.bytes, assembly.partial.len(), assembly.unfinished), (0, 0, 0));
        }
    }

    #[test]
    fn what_contradicts_itself_or_is_too_long_is_forgotten() {
        let mut assembly = Assembly::default();
        assembly.take(at(0), piece(5, 0, 2, b"a"));
        assert_eq!(assembly.take(at(0), piece(5, 0, 2, b"a")), None);
        assembly.take(at(0), piece(6, 0, 2, b"a"));
        assert_eq!(assembly.take(at(0), piece(6, 2, 3, b"a")), None);
        assembly.take(at(0), piece(7, 0, 2, &vec![0; 65_535]));
        assert_eq!(assembly.take(at(0), piece(7, 1, 2, b"a")), None);
        assert_eq!((assembly.bytes, assembly.partial.len(), assembly.unfinished), (0, 0, 3));
    }

    #[test]
    fn what_waits_is_bounded_in_number_bytes_and_time() {
        let mut assembly = Assembly::default();
        for first in 0..300 {
            assembly.take(at(u64::from(first)), piece(first, 0, 2, b"a"));
        }
        assert_eq!((assembly.partial.len(), assembly.partial.keys().next()), (MOST, Some(&44)));
        assembly.handle_timeout(at(44 + 3_000));
        assert_eq!(assembly.partial.len(), MOST - 1);
        let mut assembly = Assembly::default();
        for first in 0..100 {
            assembly.take(at(0), piece(first, 0, 2, &[0; 60_000]));
        }
        assert_eq!((assembly.partial.len(), assembly.bytes), (17, 17 * 60_000));
    }
}
