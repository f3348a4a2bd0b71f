//! What was given to a subflow and is not acknowledged yet: where each segment is, and what an acknowledgement changes.
//!
//! Records lie in sequence order in one queue: first those sent, then those that wait for the window. A sent record is
//! in flight, selectively acknowledged, or lost; retransmission puts a lost one in flight again. All walks are
//! amortised: an acknowledgement costs what it newly acknowledges, not what is outstanding.

mod train;

use super::delivery::{DeliverySampler, Departure, LossReport};
use crate::event::SendKind;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
pub use train::{Joined, Place};

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Waits for the window.
    Unsent,
    /// Sent, and not heard of.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Deemed lost, to be sent again.
    Lost,
}

/// A segment's worth of data on a subflow.
#[derive(Clone, Debug)]
pub struct Record {
    /// First sequence number.
    pub seq: SeqNumber,
    /// Length in sequence space; a FIN counts one.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
    /// The bytes, kept until the subflow acknowledges them: the peer needs them here even if they were
    /// acknowledged at data level (RFC 8684, section 3.3.6).
    pub payload: Bytes,
    /// When it was sent last.
    pub sent_at: Instant,
    /// Where it is.
    pub fate: Fate,
    /// It was sent more than once.
    pub retransmitted: bool,
    /// It is a FIN.
    pub fin: bool,
    /// It was handed to other subflows.
    pub reinjected: bool,
    /// Why it was given to this subflow.
    pub origin: SendKind,
    /// It shares a mapping with others, which must not change any more: it is sent, also again, under that one.
    pub joined: Option<Joined>,
    /// Its place in a train of records under one mapping.
    pub place: Place,
    /// What was known when it was sent last, for the delivery rate.
    departure: Departure,
}

impl Record {
    /// The sequence number after the last.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
    /// The data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data_seq + self.payload.len() as u64
    }
}

/// What an acknowledgement changed.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// Bytes acknowledged cumulatively.
    pub cumulative: u64,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Round-trip time of the newest segment, if it was sent only once (Karn).
    pub rtt: Option<Duration>,
    /// The newest transmission among those delivered: when it was sent, where it ends, whether it was a retransmission.
    pub newest: Option<Newest>,
    /// End of the highest data newly delivered.
    pub data_end: u64,
    /// Something was newly acknowledged that lies below an earlier selective acknowledgement and was never
    /// retransmitted: the network reorders.
    pub reordered: bool,
    /// A FIN was acknowledged cumulatively.
    pub fin: bool,
}

/// The most recently sent segment among those that an acknowledgement delivered.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    /// When it was sent.
    pub sent_at: Instant,
    /// Where it ends.
    pub end: SeqNumber,
    /// Whether it had been sent before.
    pub retransmitted: bool,
    /// What was known when it was sent.
    pub departure: Departure,
}

/// The records of one subflow.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    records: VecDeque<Record>,
    /// Number of the first record, counted from the beginning of the subflow: hints survive removals at the front.
    first: u64,
    /// Records that have been sent.
    sent: usize,
    in_flight: u64,
    queued: u64,
    lost: u64,
    sacked: u64,
    /// No record before this number is lost.
    lost_hint: u64,
    /// No record before this number is in flight and was sent only once.
    original_hint: u64,
    /// No record before this number is worth giving to another subflow.
    unshared_hint: u64,
    /// Retransmissions in order of time: record number and when.
    retransmissions: VecDeque<(u64, Instant)>,
    /// Blocks of the last acknowledgement: what was walked already.
    previous: SackBlocks,
    /// Highest sequence number selectively acknowledged.
    highest_sacked: Option<SeqNumber>,
    has_trains: bool,
    /// What was delivered, and how fast.
    pub sampler: DeliverySampler,
    /// What was marked lost, for who wants to know of each.
    pub losses: LossReport,
}

impl Scoreboard {
    /// Adds a record that waits to be sent.
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
    /// Whether there is no record at all.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
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
    pub fn given_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let given = self.sent + self.bound();
        self.records.iter_mut().take(given)
    }
    /// The records that were sent and lie in a range of sequence numbers, oldest first, to change what others know of them.
    pub fn sent_between(&mut self, start: SeqNumber, end: SeqNumber) -> impl Iterator<Item = &mut Record> {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        self.records.range_mut(from..self.sent).take_while(move |record| record.end().at_or_before(end))
    }
    /// All records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
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

    /// The oldest record that was sent, has not arrived and was not given to another subflow, of the data from `una` on.
    pub fn next_unshared(&mut self, una: u64) -> Option<&mut Record> {
        let from = (self.unshared_hint.saturating_sub(self.first) as usize).min(self.sent);
        let worth = |record: &Record| {
            let arrived = record.fate == Fate::Sacked || record.data_end() <= una;
            // A copy is not copied in turn: the two would never end.
            let copy = record.origin == SendKind::Duplicate;
            !arrived && !copy && !record.reinjected && !record.payload.is_empty()
        };
        let passed = self.records.range(from..self.sent).position(worth).unwrap_or(self.sent - from);
        self.unshared_hint = self.first + (from + passed) as u64;
        if from + passed == self.sent { None } else { self.records.get_mut(from + passed) }
    }

    /// Whether a record, sent or not, holds the byte at `data_seq`; gives the length of the data from there to its end.
    pub fn holds(&self, data_seq: u64) -> Option<u64> {
        let holder = self.records.iter().find(|r| (r.data_seq..r.data_end()).contains(&data_seq))?;
        Some(holder.data_end() - data_seq)
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

    /// Forgets all records that have not been sent, but those that are bound by a mapping. Gives where the first began and
    /// whether a FIN was among them.
    pub fn drop_unsent(&mut self) -> Option<(SeqNumber, bool)> {
        let kept = self.sent + self.bound();
        let first = self.records.get(kept)?.seq;
        let fin = self.records.back().is_some_and(|record| record.fin);
        self.queued -= self.records.range(kept..).map(|record| record.payload.len() as u64).sum::<u64>();
        self.records.truncate(kept);
        Some((first, fin))
    }

    /// Takes out what waits to be sent and is useless, by its stretch of the stream; what waits behind it moves up. A FIN stays,
    /// and so does everything where mappings go ahead of records. Gives the sequence number behind the last record.
    pub fn drop_useless(&mut self, is_useless: impl Fn(u64, u64) -> bool) -> Option<SeqNumber> {
        let useless = |record: &Record| !record.fin && is_useless(record.data_seq, record.data_end());
        if self.has_trains || !self.records.range(self.sent..).any(useless) {
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
    pub fn send_next(&mut self, now: Instant) -> Option<Record> {
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
        Some(record.clone())
    }

    /// The first lost record, if any.
    pub fn next_lost(&mut self) -> Option<&Record> {
        let at = self.position_of_lost()?;
        self.records.get(at)
    }

    /// The first lost record goes out again.
    pub fn retransmit_next(&mut self, now: Instant) -> Option<Record> {
        let at = self.position_of_lost()?;
        self.lost_hint = self.first + at as u64 + 1;
        self.retransmit_at(at, now)
    }

    /// The last record that was sent goes out again, as a probe (RFC 8985, section 7.3).
    pub fn retransmit_last(&mut self, now: Instant) -> Option<Record> {
        let at = self.records.iter().take(self.sent).rposition(|record| record.fate != Fate::Sacked)?;
        self.retransmit_at(at, now)
    }

    fn retransmit_at(&mut self, at: usize, now: Instant) -> Option<Record> {
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
        Some(record.clone())
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

    /// Takes an acknowledgement in: everything before `ack`, and the blocks above it (RFC 2018, RFC 6675).
    pub fn acknowledge(&mut self, now: Instant, ack: SeqNumber, sack: &SackBlocks) -> Acknowledged {
        let mut result = Acknowledged::default();
        let highest_before = self.highest_sacked;
        self.acknowledge_cumulatively(now, ack, &mut result);
        if !sack.is_empty() {
            for block in sack.as_slice() {
                if block.start.at_or_after(ack) && block.end.after(block.start) {
                    self.acknowledge_block(now, *block, highest_before, &mut result);
                }
            }
            self.previous = *sack;
        }
        if self.highest_sacked.is_some_and(|highest| highest.at_or_before(ack)) {
            self.highest_sacked = None;
            self.previous = SackBlocks::new();
        }
        if result.delivered > 0 {
            self.sampler.deliver(now, result.delivered, result.newest.map(|newest| newest.sent_at));
            // A subflow that waits for its application or its peer keeps no room for records.
            self.shrink();
        }
        result
    }

    fn acknowledge_cumulatively(&mut self, now: Instant, ack: SeqNumber, result: &mut Acknowledged) {
        while self.sent > 0 {
            let Some(front) = self.records.front_mut() else { break };
            if front.end().after(ack) {
                let part = ack.distance(front.seq);
                if part > 0 {
                    let part = (part as u32).min(front.payload.len() as u32);
                    Self::trim_front(front, part);
                    Self::uncount(front.fate, part, &mut self.in_flight, &mut self.lost, &mut self.sacked);
                    result.cumulative += u64::from(part);
                    result.delivered += u64::from(part);
                }
                break;
            }
            let Some(record) = self.records.pop_front() else { break };
            self.first += 1;
            self.sent -= 1;
            Self::uncount(record.fate, record.length, &mut self.in_flight, &mut self.lost, &mut self.sacked);
            result.cumulative += u64::from(record.length);
            result.fin |= record.fin;
            if record.fate != Fate::Sacked {
                let highest = self.highest_sacked;
                Self::deliver(&record, now, highest, result);
            }
        }
    }

    fn trim_front(record: &mut Record, part: u32) {
        record.seq += part;
        record.length -= part;
        record.data_seq += u64::from(part);
        record.payload.advance(part as usize);
        // The mapping stays where it was.
        record.joined.iter_mut().for_each(|joined| joined.before += part as u16);
    }

    fn uncount(fate: Fate, length: u32, in_flight: &mut u64, lost: &mut u64, sacked: &mut u64) {
        let length = u64::from(length);
        match fate {
            Fate::InFlight => *in_flight -= length,
            Fate::Lost => *lost -= length,
            Fate::Sacked => *sacked -= length,
            Fate::Unsent => {}
        }
    }

    /// Counts a record that the peer is now known to have.
    fn deliver(record: &Record, now: Instant, highest_before: Option<SeqNumber>, result: &mut Acknowledged) {
        result.delivered += u64::from(record.length);
        result.data_end = result.data_end.max(record.data_end());
        if !record.retransmitted && highest_before.is_some_and(|highest| record.end().before(highest)) {
            result.reordered = true;
        }
        let newer = result.newest.is_none_or(|newest| {
            newest.sent_at < record.sent_at || (newest.sent_at == record.sent_at && record.end().after(newest.end))
        });
        if newer {
            result.newest = Some(Newest {
                sent_at: record.sent_at,
                end: record.end(),
                retransmitted: record.retransmitted,
                departure: record.departure,
            });
            // What was sent before a retransmission and only once may have arrived long ago, and its acknowledgement been lost.
            result.rtt = (!record.retransmitted).then(|| now.since(record.sent_at));
        }
    }

    /// Marks what a block covers; what the same block covered in the last acknowledgement is not walked again.
    fn acknowledge_block(
        &mut self,
        now: Instant,
        block: SackBlock,
        highest_before: Option<SeqNumber>,
        result: &mut Acknowledged,
    ) {
        let touches = |old: &&SackBlock| old.start.at_or_before(block.end) && old.end.at_or_after(block.start);
        match self.previous.as_slice().iter().find(touches).copied() {
            Some(old) => {
                if block.start.before(old.start) {
                    self.mark_sacked(now, block.start, old.start, highest_before, result);
                }
                if block.end.after(old.end) {
                    self.mark_sacked(now, old.end, block.end, highest_before, result);
                }
            }
            None => self.mark_sacked(now, block.start, block.end, highest_before, result),
        }
    }

    fn mark_sacked(
        &mut self,
        now: Instant,
        start: SeqNumber,
        end: SeqNumber,
        highest_before: Option<SeqNumber>,
        result: &mut Acknowledged,
    ) {
        let from = self.records.partition_point(|record| record.seq.before(start)).min(self.sent);
        for record in self.records.range_mut(from..self.sent) {
            if record.end().after(end) {
                break;
            }
            if record.fate == Fate::Sacked {
                continue;
            }
            Self::uncount(record.fate, record.length, &mut self.in_flight, &mut self.lost, &mut self.sacked);
            record.fate = Fate::Sacked;
            self.sacked += u64::from(record.length);
            if self.highest_sacked.is_none_or(|highest| record.end().after(highest)) {
                self.highest_sacked = Some(record.end());
            }
            Self::deliver(record, now, highest_before, result);
        }
    }

    /// Marks as lost every record in flight for which `is_lost` says so; stops at the first of each kind (sent once,
    /// retransmitted) for which it does not, since both are walked in order of time. Gives the bytes marked and the
    /// earliest transmission that was spared.
    pub fn mark_lost_in_time_order(&mut self, is_lost: impl Fn(Instant, SeqNumber) -> bool) -> (u64, Option<Instant>) {
        let (lost_once, spared_once) = self.mark_originals(&is_lost);
        let (lost_again, spared_again) = self.mark_retransmissions(&is_lost);
        let spared = match (spared_once, spared_again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        (lost_once + lost_again, spared)
    }

    fn mark_originals(&mut self, is_lost: &impl Fn(Instant, SeqNumber) -> bool) -> (u64, Option<Instant>) {
        let from = (self.original_hint.saturating_sub(self.first) as usize).min(self.sent);
        let (mut at, mut bytes, mut spared) = (from, 0, None);
        let mut first_lost = None;
        for record in self.records.range_mut(from..self.sent) {
            if record.fate == Fate::InFlight && !record.retransmitted {
                if !is_lost(record.sent_at, record.end()) {
                    spared = Some(record.sent_at);
                    break;
                }
                record.fate = Fate::Lost;
                bytes += u64::from(record.length);
                first_lost = first_lost.or(Some(at));
                self.losses.note(record.length, &record.departure, self.sampler.lost() + bytes);
            }
            at += 1;
        }
        self.original_hint = self.first + at as u64;
        self.count_lost(bytes, first_lost);
        (bytes, spared)
    }

    fn mark_retransmissions(&mut self, is_lost: &impl Fn(Instant, SeqNumber) -> bool) -> (u64, Option<Instant>) {
        let mut total = 0;
        while let Some(&(number, sent_at)) = self.retransmissions.front() {
            let at = number.checked_sub(self.first).map(|at| at as usize).filter(|at| *at < self.sent);
            let record = at.and_then(|at| self.records.get_mut(at));
            if let Some(record) = record.filter(|r| r.fate == Fate::InFlight && r.sent_at == sent_at) {
                if !is_lost(sent_at, record.end()) {
                    return (total, Some(sent_at));
                }
                record.fate = Fate::Lost;
                let length = u64::from(record.length);
                total += length;
                self.losses.note(record.length, &record.departure, self.sampler.lost() + length);
                self.count_lost(length, at);
            }
            self.retransmissions.pop_front();
        }
        (total, None)
    }

    /// Marks the oldest unacknowledged record as lost (RFC 6582, for peers without SACK).
    pub fn mark_first_lost(&mut self) -> u64 {
        match self.records.front_mut() {
            Some(record) if record.fate == Fate::InFlight => {
                record.fate = Fate::Lost;
                let length = u64::from(record.length);
                self.losses.note(record.length, &record.departure, self.sampler.lost() + length);
                self.count_lost(length, Some(0));
                length
            }
            _ => 0,
        }
    }

    /// Marks everything in flight as lost (the retransmission timer ran out).
    pub fn mark_all_lost(&mut self) -> u64 {
        let mut bytes = 0;
        for record in self.records.iter_mut().take(self.sent) {
            if record.fate == Fate::InFlight {
                record.fate = Fate::Lost;
                bytes += u64::from(record.length);
                self.losses.note(record.length, &record.departure, self.sampler.lost() + bytes);
            }
        }
        self.retransmissions.clear();
        self.count_lost(bytes, Some(0));
        bytes
    }

    /// Forgets selective acknowledgements: the peer dropped what it had acknowledged (RFC 2018, section 8).
    pub fn forget_sacks(&mut self) {
        for record in self.records.iter_mut().take(self.sent) {
            if record.fate == Fate::Sacked {
                record.fate = Fate::InFlight;
                self.in_flight += u64::from(record.length);
                self.sacked -= u64::from(record.length);
            }
        }
        self.highest_sacked = None;
        self.previous = SackBlocks::new();
        self.watch_all();
    }

    /// The losses were an error: what is marked lost is in flight after all.
    pub fn unmark_lost(&mut self) {
        for record in self.records.iter_mut().take(self.sent) {
            if record.fate == Fate::Lost {
                record.fate = Fate::InFlight;
                self.in_flight += u64::from(record.length);
                self.lost -= u64::from(record.length);
            }
        }
        self.watch_all();
    }

    /// Whatever is in flight may be lost again: both walks in order of time begin anew.
    fn watch_all(&mut self) {
        self.original_hint = self.first;
        self.retransmissions.clear();
        for (number, record) in (self.first..).zip(self.records.iter().take(self.sent)) {
            if record.fate == Fate::InFlight && record.retransmitted {
                self.retransmissions.push_back((number, record.sent_at));
            }
        }
        self.retransmissions.make_contiguous().sort_by_key(|(number, sent_at)| (*sent_at, *number));
    }

    /// Whether the oldest record is marked as selectively acknowledged: only a peer that reneged leaves it so.
    pub fn first_is_sacked(&self) -> bool {
        self.records.front().is_some_and(|record| record.fate == Fate::Sacked)
    }

    /// Releases memory that an idle subflow does not need.
    pub fn shrink(&mut self) {
        if self.records.is_empty() && self.records.capacity() > 0 {
            self.records = VecDeque::new();
            self.retransmissions = VecDeque::new();
        }
    }

    fn count_lost(&mut self, bytes: u64, first: Option<usize>) {
        self.in_flight -= bytes;
        self.lost += bytes;
        self.sampler.lose(bytes);
        if let (true, Some(at)) = (bytes > 0, first) {
            self.lost_hint = self.lost_hint.min(self.first + at as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, SackBlocks, Scoreboard, SendKind, SeqNumber};
    use anabranch_policy::time::{Duration, Instant};

    #[test]
    fn what_was_lost_twice_and_pardoned_can_be_lost_again() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut board = Scoreboard::default();
        board.push(SeqNumber(10), 0, Bytes::from_static(b"lost"), false, SendKind::New);
        board.send_next(at(0));
        assert_eq!(board.mark_first_lost(), 4);
        board.retransmit_next(at(100));
        assert_eq!(board.mark_lost_in_time_order(|_, _| true), (4, None));
        board.unmark_lost();
        assert_eq!((board.lost(), board.in_flight()), (0, 4));
        assert_eq!(board.mark_lost_in_time_order(|sent_at, _| sent_at == at(100)), (4, None));
    }

    #[test]
    fn what_a_retransmission_has_acknowledged_with_it_gives_no_round_trip() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut board = Scoreboard::default();
        for (seq, data_seq) in [(10, 0), (14, 4), (18, 8)] {
            board.push(SeqNumber(seq), data_seq, Bytes::from_static(b"data"), false, SendKind::New);
            board.send_next(at(data_seq));
        }
        assert_eq!(board.acknowledge(at(50), SeqNumber(14), &SackBlocks::new()).rtt, Some(Duration::from_millis(50)));
        // The second may have arrived long ago.
        board.retransmit_last(at(1_000));
        assert_eq!(board.acknowledge(at(1_050), SeqNumber(22), &SackBlocks::new()).rtt, None);
    }

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
