//! Splits records that are longer than the path MTU allows.

use super::board::Scoreboard;
use super::record::{Fate, Joined, Place, Record};
use anabranch_wire::SeqNumber;
use std::collections::VecDeque;

impl Scoreboard {
    /// Splits undelivered records into records of at most `most` bytes, sent or not. Parts of a shared mapping stay
    /// under it. Others get their own mapping: what was sent under the old one was too long to arrive.
    pub fn split_longer(&mut self, most: u32) {
        let most = (most as usize).max(1);
        let long = |record: &Record| record.payload.len() > most && record.fate != Fate::Sacked;
        if !self.records.iter().any(long) {
            return;
        }
        let (whole, sent) = (core::mem::take(&mut self.records), self.sent);
        self.sent = 0;
        for (at, record) in whole.into_iter().enumerate() {
            let before = self.records.len();
            if long(&record) {
                cut(record, most, most, &mut self.records)
            } else {
                self.records.push_back(record)
            }
            if at < sent {
                self.sent += self.records.len() - before;
            }
        }
        // Record numbers have changed.
        (self.lost_hint, self.unshared_hint) = (self.first, self.first);
        self.watch_all();
    }

    /// Cuts the first record that waits to be sent after `first` bytes, and what is left of it into records of at most `most`.
    /// Returns whether it was longer than `first`.
    pub fn split_next(&mut self, first: u32, most: u32) -> bool {
        let long = |record: &Record| record.payload.len() > first as usize;
        if first == 0 || !self.records.get(self.sent).is_some_and(long) {
            return false;
        }
        let mut behind = self.records.split_off(self.sent);
        if let Some(record) = behind.pop_front() {
            cut(record, first as usize, (most as usize).max(1), &mut self.records);
        }
        self.records.append(&mut behind);
        // Numbers have changed.
        (self.lost_hint, self.unshared_hint) = (self.first, self.first);
        true
    }

    /// Marks records in flight longer than `most` bytes as lost; returns their bytes.
    pub fn mark_longer_lost(&mut self, most: u32) -> u64 {
        let (mut bytes, mut first) = (0, None);
        for (at, record) in self.records.iter_mut().take(self.sent).enumerate() {
            if record.fate == Fate::InFlight && record.payload.len() > most as usize {
                record.fate = Fate::Lost;
                bytes += u64::from(record.length);
                first = first.or(Some(at));
            }
        }
        self.count_lost(bytes, first);
        bytes
    }

    /// Marks the record in flight that ends at `end` as lost; returns its bytes.
    pub fn mark_lost_before(&mut self, end: SeqNumber) -> u64 {
        let Some(at) = self.place_before(end) else { return 0 };
        let Some(record) = self.records.get_mut(at).filter(|record| record.fate == Fate::InFlight) else { return 0 };
        record.fate = Fate::Lost;
        let bytes = u64::from(record.length);
        self.count_lost(bytes, Some(at));
        bytes
    }

    /// State of the record that ends at `end`; none if there is none.
    pub fn fate_before(&self, end: SeqNumber) -> Option<Fate> {
        self.place_before(end).and_then(|at| self.records.get(at)).map(|record| record.fate)
    }

    /// Index of the record that ends at `end`.
    fn place_before(&self, end: SeqNumber) -> Option<usize> {
        let at = self.records.partition_point(|record| record.seq.before(end)).checked_sub(1)?;
        self.records.get(at).filter(|record| record.end() == end).map(|_| at)
    }
}

/// Cuts a record after `first` bytes, and then after every `most`.
fn cut(record: Record, first: usize, most: usize, pieces: &mut VecDeque<Record>) {
    let mut rest = record.payload.clone();
    let (total, mut offset) = (rest.len(), 0);
    while !rest.is_empty() {
        let payload = rest.split_to(rest.len().min(if offset == 0 { first } else { most }));
        let length = payload.len();
        let joined = record.joined.map(|joined| Joined {
            before: joined.before + offset as u16,
            after: joined.after + (total - offset - length) as u16,
            data_fin: joined.data_fin,
        });
        let mut piece = record.clone();
        piece.seq += offset as u32;
        piece.data_seq += offset as u64;
        piece.length = length as u32;
        piece.payload = payload;
        piece.joined = joined;
        piece.place = Place { number: 0, ..record.place };
        pieces.push_back(piece);
        offset += length;
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, Joined, Record, Scoreboard, SeqNumber};
    use crate::event::SendKind;
    use crate::subflow::scoreboard::Proofs;
    use anabranch_policy::time::{Duration, Instant};
    use anabranch_wire::tcp::{SackBlock, SackBlocks};
    use bytes::Bytes;

    fn lengths(board: &Scoreboard) -> Vec<(u32, u64, usize)> {
        board.records().map(|record| (record.seq.0, record.data_seq, record.payload.len())).collect()
    }

    /// Three records of ten bytes, two of them sent.
    fn board() -> Scoreboard {
        let mut board = Scoreboard::default();
        for at in 0..3 {
            let payload = Bytes::from_static(b"0123456789");
            board.push(SeqNumber(100 + 10 * at), 10 * u64::from(at), payload, false, SendKind::New);
        }
        board.send_next(Instant::ZERO);
        board.send_next(Instant::ZERO);
        board
    }

    #[test]
    fn what_is_too_long_is_cut_whether_sent_or_not_and_counts_as_before() {
        let mut board = board();
        board.split_longer(4);
        let parts = |seq: u32, data_seq| [(seq, data_seq, 4), (seq + 4, data_seq + 4, 4), (seq + 8, data_seq + 8, 2)];
        assert_eq!(lengths(&board), [parts(100, 0), parts(110, 10), parts(120, 20)].concat());
        assert_eq!((board.sent_records(), board.in_flight(), board.queued()), (6, 20, 10));
        assert_eq!(board.mark_all_lost(), 20);
        let again: Vec<Bytes> =
            (0..6).map(|_| board.retransmit_next(Instant::ZERO).map(|record| record.payload).unwrap()).collect();
        assert_eq!(again.concat(), b"01234567890123456789");
        let acked = board.acknowledge(
            Instant::ZERO + Duration::from_millis(1),
            SeqNumber(114),
            &SackBlocks::new(),
            &Proofs::NONE,
        );
        assert_eq!((acked.cumulative, board.in_flight()), (14, 6));
    }

    #[test]
    fn what_waits_is_cut_at_the_window_and_then_at_the_segment_size() {
        let mut board = board();
        assert!(!board.split_next(10, 4));
        assert!(board.split_next(3, 4));
        assert_eq!(lengths(&board)[2..], [(120, 20, 3), (123, 23, 4), (127, 27, 3)]);
        assert_eq!((board.sent_records(), board.in_flight(), board.queued()), (2, 20, 10));
    }

    #[test]
    fn what_the_peer_has_stays_whole() {
        let mut board = board();
        let mut sack = SackBlocks::new();
        sack.push(SackBlock { start: SeqNumber(110), end: SeqNumber(120) });
        board.acknowledge(Instant::ZERO, SeqNumber(100), &sack, &Proofs::NONE);
        board.split_longer(5);
        assert_eq!(lengths(&board), [(100, 0, 5), (105, 5, 5), (110, 10, 10), (120, 20, 5), (125, 25, 5)]);
        assert_eq!((board.sacked(), board.fate_before(SeqNumber(120))), (10, Some(Fate::Sacked)));
    }

    #[test]
    fn parts_of_a_shared_mapping_stay_under_it() {
        let mut board = board();
        board.assigned_mut().for_each(|record| {
            record.joined = Some(Joined {
                before: (record.seq.0 - 100) as u16,
                after: (110 - record.seq.0) as u16,
                data_fin: true,
            });
        });
        board.split_longer(6);
        let around = |record: &Record| record.joined.map(|j| (j.before, record.payload.len(), j.after, j.data_fin));
        let shared: Vec<_> = board.sent().map(around).collect();
        let parts = [(0, 6, 14, true), (6, 4, 10, true), (10, 6, 4, true), (16, 4, 0, true)];
        assert_eq!(shared, parts.map(Some));
        // A record acknowledged in part keeps its position in the mapping.
        board.acknowledge(Instant::ZERO, SeqNumber(102), &SackBlocks::new(), &Proofs::NONE);
        assert_eq!(board.sent().next().and_then(around), Some((2, 4, 14, true)));
    }
}
