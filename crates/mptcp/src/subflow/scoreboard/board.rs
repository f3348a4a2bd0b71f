//! The queue of records: assigned, sent, retransmitted and taken back.

use super::record::{Departing, Fate, Place, Record};
use crate::event::SendKind;
use crate::rare_queue::RareQueue;
use crate::subflow::delivery::{DeliverySampler, Departure, LossReport};
use crate::subflow::rare_blocks::RareBlocks;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;
use std::collections::VecDeque;

/// The records of a subflow.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    pub(super) records: VecDeque<Record>,
    /// Number of the first record, counted from the beginning of the subflow, so that hints stay valid when records are
    /// removed at the front.
    pub(super) first: u64,
    /// Number of records sent.
    pub(super) sent: usize,
    pub(super) in_flight: u64,
    pub(super) queued: u64,
    pub(super) lost: u64,
    pub(super) sacked: u64,
    /// No record before this number is lost.
    pub(super) lost_hint: u64,
    /// No record before this number is in flight and was sent only once.
    pub(super) original_hint: u64,
    /// No record before this number is a candidate for reinjection.
    pub(super) unshared_hint: u64,
    /// Retransmissions in order of time: record number and time.
    pub(super) retransmissions: RareQueue<(u64, Instant)>,
    /// SACK blocks of the last acknowledgement, which have been walked.
    pub(super) previous: RareBlocks,
    /// Highest sequence number selectively acknowledged.
    pub(super) highest_sacked: Option<SeqNumber>,
    pub(super) shares_mappings: bool,
    pub sampler: DeliverySampler,
    /// Segments marked lost, if congestion control asks for them.
    pub losses: LossReport,
}

impl Scoreboard {
    /// Appends an unsent record.
    #[inline]
    pub fn push(&mut self, seq: SeqNumber, data_seq: u64, payload: Bytes, fin: bool, origin: SendKind) {
        let length = payload.len() as u32 + u32::from(fin);
        self.queued += payload.len() as u64;
        self.records.push_back(Record {
            seq,
            length,
            data_seq,
            payload,
            sent_at: Instant::ZERO,
            fate: Fate::Unsent,
            retransmitted: false,
            fin,
            reinjected: false,
            origin,
            joined: None,
            place: Place::default(),
            departure: Departure::default(),
        });
    }

    /// Bytes of sequence space sent and neither acknowledged nor lost.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Unsent payload in bytes.
    pub fn queued(&self) -> u64 {
        self.queued
    }
    /// Bytes lost and to be retransmitted.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Bytes selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Whether nothing is outstanding.
    pub fn is_idle(&self) -> bool {
        self.sent == 0
    }
    /// Whether nothing is outstanding, and no loss remains to be reported.
    pub fn is_at_rest(&self) -> bool {
        self.records.is_empty() && self.highest_sacked.is_none() && self.losses.is_empty()
    }
    /// Number of records sent and not acknowledged cumulatively.
    pub fn sent_records(&self) -> usize {
        self.sent
    }
    /// The sent records, oldest first.
    pub fn sent(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().take(self.sent)
    }
    /// The records that are sent or bound to a mapping, oldest first.
    pub fn assigned_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let assigned = self.sent + self.bound();
        self.records.iter_mut().take(assigned)
    }
    /// The sent records in a range of sequence numbers, oldest first.
    pub fn sent_between(&mut self, start: SeqNumber, end: SeqNumber) -> impl Iterator<Item = &mut Record> {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        self.records.range_mut(from..self.sent).take_while(move |record| record.end().at_or_before(end))
    }
    /// The sent records from a sequence number on, oldest first.
    pub fn sent_from(&self, start: SeqNumber) -> impl Iterator<Item = &Record> {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        self.records.range(from..self.sent)
    }
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.records.len() > self.sent
    }
    pub fn next_unsent(&self) -> Option<&Record> {
        self.records.get(self.sent)
    }

    /// Data sequence of the oldest record, sent or not.
    pub fn first_data_seq(&self) -> Option<u64> {
        self.records.front().map(|record| record.data_seq)
    }

    /// Since when none of the outstanding data was acknowledged, cumulatively or selectively.
    pub fn silent_since(&self) -> Instant {
        self.sampler.delivered_at()
    }

    /// Latest transmission time of the oldest record that has not been delivered.
    pub fn oldest_sent_at(&self) -> Option<Instant> {
        self.sent().find(|record| record.fate != Fate::Sacked).map(|record| record.sent_at)
    }

    /// The oldest sent record that was neither delivered nor reinjected, of data from `una` on.
    pub fn next_unshared(&mut self, una: u64) -> Option<&mut Record> {
        let from = (self.unshared_hint.saturating_sub(self.first) as usize).min(self.sent);
        let passed =
            self.records.range(from..self.sent).position(|record| record.is_alone(una)).unwrap_or(self.sent - from);
        self.unshared_hint = self.first + (from + passed) as u64;
        if from + passed == self.sent { None } else { self.records.get_mut(from + passed) }
    }

    /// Whether a record, sent or not, contains `data_seq`; returns the length of its data from there on.
    pub fn holds(&self, data_seq: u64) -> Option<u64> {
        let sender = self.records.iter().find(|r| (r.data_seq..r.data_end()).contains(&data_seq))?;
        Some(sender.data_end() - data_seq)
    }

    /// Removes and returns the last unsent record, except a FIN or a record bound to a mapping.
    pub fn take_unsent(&mut self) -> Option<Record> {
        let stays = |record: &Record| record.fin || record.joined.is_some();
        if self.records.len() <= self.sent || self.records.back().is_some_and(stays) {
            return None;
        }
        let record = self.records.pop_back()?;
        self.queued -= record.payload.len() as u64;
        Some(record)
    }

    /// Removes all unsent records, except those bound to a mapping. Returns the sequence number of the first, and
    /// whether a FIN was among them.
    pub fn drop_unsent(&mut self) -> Option<(SeqNumber, bool)> {
        let kept = self.sent + self.bound();
        let first = self.records.get(kept)?.seq;
        let fin = self.records.back().is_some_and(|record| record.fin);
        self.queued -= self.records.range(kept..).map(|record| record.payload.len() as u64).sum::<u64>();
        self.records.truncate(kept);
        Some((first, fin))
    }

    /// Removes unsent records that are useless by their range of the stream; later ones move up. A FIN stays, and so
    /// does everything if records share mappings. Returns the sequence number after the last record.
    pub fn drop_useless(&mut self, is_useless: impl Fn(u64, u64) -> bool) -> Option<SeqNumber> {
        let useless = |record: &Record| !record.fin && is_useless(record.data_seq, record.data_end());
        if self.shares_mappings || !self.records.range(self.sent..).any(useless) {
            return None;
        }
        let kept = self.sent + self.bound();
        let mut seq = self.records.get(kept)?.seq;
        for mut record in self.records.split_off(kept) {
            if useless(&record) {
                self.queued -= record.payload.len() as u64;
                continue;
            }
            record.seq = seq;
            seq = record.end();
            self.records.push_back(record);
        }
        Some(seq)
    }

    /// Marks the first unsent record as sent.
    #[inline(always)]
    pub fn send_next(&mut self, now: Instant) -> Option<Departing> {
        if self.sent == 0 {
            self.sampler.begin(now);
        }
        let record = self.records.get_mut(self.sent)?;
        record.sent_at = now;
        record.fate = Fate::InFlight;
        record.departure = self.sampler.depart(self.in_flight, record.length);
        self.in_flight += u64::from(record.length);
        self.queued -= record.payload.len() as u64;
        self.sent += 1;
        Some(record.departing())
    }

    /// The first lost record.
    pub fn next_lost(&mut self) -> Option<&Record> {
        let at = self.position_of_lost()?;
        self.records.get(at)
    }

    /// Marks the first lost record as retransmitted.
    pub fn retransmit_next(&mut self, now: Instant) -> Option<Departing> {
        let at = self.position_of_lost()?;
        self.lost_hint = self.first + at as u64 + 1;
        self.retransmit_at(at, now)
    }

    /// Marks the last sent record as retransmitted, as a tail loss probe (RFC 8985, section 7.3).
    pub fn retransmit_last(&mut self, now: Instant) -> Option<Departing> {
        let at = self.records.iter().take(self.sent).rposition(|record| record.fate != Fate::Sacked)?;
        self.retransmit_at(at, now)
    }

    /// Marks the first record as retransmitted, as the probe of a silent subflow.
    pub fn retransmit_first(&mut self, now: Instant) -> Option<Departing> {
        let at = self.records.iter().take(self.sent).position(|record| record.fate != Fate::Sacked)?;
        self.retransmit_at(at, now)
    }

    fn retransmit_at(&mut self, at: usize, now: Instant) -> Option<Departing> {
        let number = self.first + at as u64;
        let record = self.records.get_mut(at)?;
        record.departure = self.sampler.depart(self.in_flight, record.length);
        if record.fate == Fate::Lost {
            self.lost -= u64::from(record.length);
            self.in_flight += u64::from(record.length);
        }
        record.fate = Fate::InFlight;
        record.sent_at = now;
        record.retransmitted = true;
        self.retransmissions.push_back((number, now));
        Some(record.departing())
    }

    fn position_of_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_hint.saturating_sub(self.first) as usize;
        let at =
            self.records.range(from.min(self.sent)..self.sent).position(|record| record.fate == Fate::Lost)? + from;
        self.lost_hint = self.first + at as u64;
        Some(at)
    }

    /// Number of unsent records that are bound to a mapping already sent.
    pub(super) fn bound(&self) -> usize {
        self.records.range(self.sent..).take_while(|record| record.joined.is_some()).count()
    }

    /// Releases memory of an idle subflow.
    pub fn shrink(&mut self) {
        if self.records.is_empty() && self.records.capacity() > 0 {
            self.records = VecDeque::new();
            self.retransmissions = RareQueue::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Fate, Instant, Record, Scoreboard, SendKind, SeqNumber};

    #[test]
    fn dropping_what_was_never_sent_tells_where_it_began_and_whether_a_fin_was_among_it() {
        let mut board = Scoreboard::default();
        assert_eq!(board.drop_unsent(), None);
        board.push(SeqNumber(10), 0, Bytes::from_static(b"sent"), false, SendKind::New);
        board.send_next(Instant::ZERO);
        assert_eq!(board.drop_unsent(), None);
        board.push(SeqNumber(14), 4, Bytes::from_static(b"not"), false, SendKind::Duplicate);
        board.push(SeqNumber(17), 7, Bytes::new(), true, SendKind::New);
        assert_eq!(board.drop_unsent(), Some((SeqNumber(14), true)));
        assert_eq!((board.queued(), board.sent_records()), (0, 1));
        assert!(board.next_unsent().is_none());
    }

    #[test]
    fn what_was_never_sent_is_not_offered_for_reinjection() {
        let mut board = Scoreboard::default();
        board.push(SeqNumber(10), 0, Bytes::from_static(b"sent"), false, SendKind::New);
        board.send_next(Instant::ZERO);
        board.push(SeqNumber(14), 4, Bytes::from_static(b"not"), false, SendKind::New);
        assert_eq!(board.next_unshared(0).map(|record| record.data_seq), Some(0));
        assert!(board.next_unshared(4).is_none());
    }

    #[test]
    fn a_board_is_at_rest_without_records_selective_acknowledgements_and_losses_to_report() {
        let mut board = Scoreboard::default();
        assert!(board.is_at_rest() && board.is_idle() && !board.has_unsent());
        board.push(SeqNumber(10), 0, Bytes::from_static(b"data"), false, SendKind::New);
        assert!(!board.is_at_rest() && board.is_idle() && board.has_unsent());
        board.send_next(Instant::ZERO);
        assert!(!board.is_at_rest() && !board.is_idle() && !board.has_unsent());
    }

    #[test]
    fn an_idle_board_gives_its_memory_back() {
        let mut board = Scoreboard::default();
        board.push(SeqNumber(10), 0, Bytes::from_static(b"data"), false, SendKind::New);
        board.shrink();
        assert!(board.next_unsent().is_some(), "it is not idle");
        board.drop_unsent();
        assert!(board.records.capacity() > 0);
        board.shrink();
        assert_eq!(board.records.capacity(), 0);
    }

    #[test]
    fn the_first_record_that_was_not_acknowledged_selectively_is_sent_again_and_counts_as_in_flight() {
        let mut board = Scoreboard::default();
        for number in 0..3 {
            board.push(
                SeqNumber(10 + 4 * number),
                u64::from(4 * number),
                Bytes::from_static(b"data"),
                false,
                SendKind::New,
            );
            board.send_next(Instant::ZERO);
        }
        assert_eq!(board.mark_all_lost(), 12);
        assert_eq!((board.in_flight(), board.lost()), (0, 12));
        let again = board.retransmit_first(Instant::ZERO).unwrap();
        assert_eq!((again.seq, again.retransmitted), (SeqNumber(10), true));
        assert_eq!((board.in_flight(), board.lost()), (4, 8));
        assert_eq!(board.retransmit_first(Instant::ZERO).map(|again| again.seq), Some(SeqNumber(10)));
        assert_eq!((board.in_flight(), board.lost()), (4, 8), "it was in flight already");
        let between = |board: &mut Scoreboard, start: u32, end: u32| {
            board.sent_between(SeqNumber(start), SeqNumber(end)).map(|record| record.seq.0).collect::<Vec<_>>()
        };
        assert_eq!(between(&mut board, 10, 18), [10, 14]);
        assert_eq!(between(&mut board, 11, 21), [14], "parts do not count");
        assert_eq!(board.sent_from(SeqNumber(14)).map(|record| record.seq.0).collect::<Vec<_>>(), [14, 18]);
    }

    #[test]
    fn a_record_alone_may_deliver_its_data_unless_it_arrived_is_a_duplicate_or_was_reinjected() {
        let is_alone = |una: u64, change: fn(&mut Record)| {
            let mut board = Scoreboard::default();
            board.push(SeqNumber(10), 100, Bytes::from_static(b"data"), false, SendKind::New);
            let record = board.records.front_mut().unwrap();
            change(record);
            record.is_alone(una)
        };
        assert!(is_alone(0, |_| {}) && is_alone(103, |_| {}) && !is_alone(104, |_| {}));
        assert!(is_alone(0, |record| record.fate = Fate::Lost) && !is_alone(0, |record| record.fate = Fate::Sacked));
        assert!(!is_alone(0, |record| record.origin = SendKind::Duplicate));
        assert!(!is_alone(0, |record| record.reinjected = true));
        assert!(!is_alone(0, |record| record.payload = Bytes::new()));
    }
}
