//! The queue of records: what is pushed, sent, sent again and taken back.

use super::record::{Departing, Fate, Place, Record};
use crate::event::SendKind;
use crate::rare_queue::RareQueue;
use crate::subflow::delivery::{DeliverySampler, Departure, LossReport};
use crate::subflow::rare_blocks::RareBlocks;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;
use std::collections::VecDeque;

/// The records of one subflow.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    pub(super) records: VecDeque<Record>,
    /// Number of the first record, counted from the beginning of the subflow: hints survive removals at the front.
    pub(super) first: u64,
    /// Records that have been sent.
    pub(super) sent: usize,
    pub(super) in_flight: u64,
    pub(super) queued: u64,
    pub(super) lost: u64,
    pub(super) sacked: u64,
    /// No record before this number is lost.
    pub(super) lost_hint: u64,
    /// No record before this number is in flight and was sent only once.
    pub(super) original_hint: u64,
    /// No record before this number is worth giving to another subflow.
    pub(super) unshared_hint: u64,
    /// Retransmissions in order of time: record number and when.
    pub(super) retransmissions: RareQueue<(u64, Instant)>,
    /// Blocks of the last acknowledgement: what was walked already.
    pub(super) previous: RareBlocks,
    /// Highest sequence number selectively acknowledged.
    pub(super) highest_sacked: Option<SeqNumber>,
    pub(super) shares_mappings: bool,
    /// What was delivered, and how fast.
    pub sampler: DeliverySampler,
    /// What was marked lost, for who wants to know of each.
    pub losses: LossReport,
}

impl Scoreboard {
    /// Adds a record that waits to be sent.
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

    /// Sent and neither acknowledged nor lost, bytes of sequence space.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Waiting to be sent, bytes of payload.
    pub fn queued(&self) -> u64 {
        self.queued
    }
    /// Lost and waiting to be sent again.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Whether nothing that was sent is unacknowledged.
    pub fn is_idle(&self) -> bool {
        self.sent == 0
    }
    /// Whether nothing is outstanding, and nothing that was is still to be reported.
    pub fn is_at_rest(&self) -> bool {
        self.records.is_empty() && self.highest_sacked.is_none() && self.losses.is_empty()
    }
    /// How many records have been sent and not acknowledged cumulatively.
    pub fn sent_records(&self) -> usize {
        self.sent
    }
    /// The records that were sent, oldest first.
    pub fn sent(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().take(self.sent)
    }
    /// The records that were sent, or are bound to be, oldest first, to change what others know of them.
    pub fn assigned_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let given = self.sent + self.bound();
        self.records.iter_mut().take(given)
    }
    /// The records that were sent and lie in a range of sequence numbers, oldest first, to change what others know of them.
    pub fn sent_between(&mut self, start: SeqNumber, end: SeqNumber) -> impl Iterator<Item = &mut Record> {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        self.records.range_mut(from..self.sent).take_while(move |record| record.end().at_or_before(end))
    }
    /// The records that were sent, from a sequence number on, oldest first.
    pub fn sent_from(&self, start: SeqNumber) -> impl Iterator<Item = &Record> {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        self.records.range(from..self.sent)
    }
    /// All records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }
    /// Whether some record waits to be sent.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.records.len() > self.sent
    }
    /// The first record that waits to be sent.
    pub fn next_unsent(&self) -> Option<&Record> {
        self.records.get(self.sent)
    }

    /// Data sequence of the oldest record, sent or not.
    pub fn first_data_seq(&self) -> Option<u64> {
        self.records.front().map(|record| record.data_seq)
    }

    /// Since when nothing that is outstanding was acknowledged, cumulatively or selectively.
    pub fn silent_since(&self) -> Instant {
        self.sampler.delivered_at()
    }

    /// When the oldest record that has not arrived was sent last.
    pub fn oldest_sent_at(&self) -> Option<Instant> {
        self.sent().find(|record| record.fate != Fate::Sacked).map(|record| record.sent_at)
    }

    /// The oldest record that was sent, has not arrived and was not given to another subflow, of the data from `una` on.
    pub fn next_unshared(&mut self, una: u64) -> Option<&mut Record> {
        let from = (self.unshared_hint.saturating_sub(self.first) as usize).min(self.sent);
        let passed =
            self.records.range(from..self.sent).position(|record| record.is_alone(una)).unwrap_or(self.sent - from);
        self.unshared_hint = self.first + (from + passed) as u64;
        if from + passed == self.sent { None } else { self.records.get_mut(from + passed) }
    }

    /// Whether a record, sent or not, holds the byte at `data_seq`; returns the length of the data from there to its end.
    pub fn holds(&self, data_seq: u64) -> Option<u64> {
        let sender = self.records.iter().find(|r| (r.data_seq..r.data_end()).contains(&data_seq))?;
        Some(sender.data_end() - data_seq)
    }

    /// Takes back what waits to be sent, last first; a FIN stays, and what is bound by a mapping.
    pub fn take_unsent(&mut self) -> Option<Record> {
        let stays = |record: &Record| record.fin || record.joined.is_some();
        if self.records.len() <= self.sent || self.records.back().is_some_and(stays) {
            return None;
        }
        let record = self.records.pop_back()?;
        self.queued -= record.payload.len() as u64;
        Some(record)
    }

    /// Forgets all records that have not been sent, but those that are bound by a mapping. Returns where the first began and
    /// whether a FIN was among them.
    pub fn drop_unsent(&mut self) -> Option<(SeqNumber, bool)> {
        let kept = self.sent + self.bound();
        let first = self.records.get(kept)?.seq;
        let fin = self.records.back().is_some_and(|record| record.fin);
        self.queued -= self.records.range(kept..).map(|record| record.payload.len() as u64).sum::<u64>();
        self.records.truncate(kept);
        Some((first, fin))
    }

    /// Takes out what waits to be sent and is useless, by its range of the stream; what waits behind it moves up. A FIN stays,
    /// and so does everything where mappings go ahead of records. Returns the sequence number behind the last record.
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

    /// The first unsent record goes out now.
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

    /// The first lost record, if any.
    pub fn next_lost(&mut self) -> Option<&Record> {
        let at = self.position_of_lost()?;
        self.records.get(at)
    }

    /// The first lost record goes out again.
    pub fn retransmit_next(&mut self, now: Instant) -> Option<Departing> {
        let at = self.position_of_lost()?;
        self.lost_hint = self.first + at as u64 + 1;
        self.retransmit_at(at, now)
    }

    /// The last record that was sent goes out again, as a probe (RFC 8985, section 7.3).
    pub fn retransmit_last(&mut self, now: Instant) -> Option<Departing> {
        let at = self.records.iter().take(self.sent).rposition(|record| record.fate != Fate::Sacked)?;
        self.retransmit_at(at, now)
    }

    /// The first record goes out again, as the probe of a subflow that was silent.
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

    /// How many records have not been sent, and must be: their mapping is out.
    pub(super) fn bound(&self) -> usize {
        self.records.range(self.sent..).take_while(|record| record.joined.is_some()).count()
    }

    /// Releases memory that an idle subflow does not need.
    pub fn shrink(&mut self) {
        if self.records.is_empty() && self.records.capacity() > 0 {
            self.records = VecDeque::new();
            self.retransmissions = RareQueue::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Instant, Scoreboard, SendKind, SeqNumber};

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
}
