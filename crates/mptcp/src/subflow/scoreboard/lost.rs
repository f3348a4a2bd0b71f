//! Marks records as lost, or in flight after all.

use super::board::Scoreboard;
use super::record::Fate;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;

impl Scoreboard {
    /// Marks as lost each record in flight for which `is_lost` is true; of each kind (sent once, retransmitted) it
    /// stops at the first for which it is false, since both are walked in order of time. Returns the bytes marked, and
    /// the earliest transmission not marked.
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
        // By index: most acknowledgements look at a single record, and iterators over a ring are slow to start.
        while at < self.sent
            && let Some(record) = self.records.get_mut(at)
        {
            if record.fate == Fate::InFlight && !record.retransmitted {
                if !is_lost(record.sent_at, record.end()) {
                    spared = Some(record.sent_at);
                    break;
                }
                record.fate = Fate::Lost;
                bytes += u64::from(record.length);
                first_lost = first_lost.or(Some(at));
                let (length, departure) = (record.length, record.departure);
                if !self.is_without_mapping(at) {
                    self.losses.note(length, &departure, self.sampler.lost() + bytes);
                }
            }
            at += 1;
        }
        self.original_hint = self.first + at as u64;
        self.count_lost(bytes, first_lost);
        (bytes, spared)
    }

    /// Whether the segment with the mapping of this record was lost. Receivers do not acknowledge data without a mapping,
    /// so this one may have arrived: it is no loss of the path's that is known.
    fn is_without_mapping(&self, at: usize) -> bool {
        let number =
            self.records.get(at).filter(|record| record.joined.is_some()).map_or(0, |record| record.place.number);
        let head =
            at.checked_sub(usize::from(number)).filter(|head| *head < at).and_then(|head| self.records.get(head));
        head.is_some_and(|head| head.fate == Fate::Lost || head.retransmitted)
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

    /// Marks everything in flight as lost (retransmission timeout).
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

    /// Clears selective acknowledgements: the peer reneged (RFC 2018, section 8).
    pub fn forget_sacks(&mut self) {
        for record in self.records.iter_mut().take(self.sent) {
            if record.fate == Fate::Sacked {
                record.fate = Fate::InFlight;
                self.in_flight += u64::from(record.length);
                self.sacked -= u64::from(record.length);
            }
        }
        self.highest_sacked = None;
        self.previous.clear();
        self.watch_all();
    }

    /// The recovery was spurious: lost records are in flight.
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

    /// Records in flight may be lost again: restarts both walks.
    pub(super) fn watch_all(&mut self) {
        self.original_hint = self.first;
        self.retransmissions.clear();
        for (number, record) in (self.first..).zip(self.records.iter().take(self.sent)) {
            if record.fate == Fate::InFlight && record.retransmitted {
                self.retransmissions.push_back((number, record.sent_at));
            }
        }
        self.retransmissions.as_mut_slice().sort_by_key(|(number, sent_at)| (*sent_at, *number));
    }

    pub(super) fn count_lost(&mut self, bytes: u64, first: Option<usize>) {
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
    use super::{Fate, Instant, Scoreboard, SeqNumber};
    use crate::event::SendKind;
    use crate::subflow::delivery::LossReport;
    use bytes::Bytes;

    #[test]
    fn of_what_a_timeout_gives_up_each_segment_is_reported_with_the_losses_before_it() {
        let mut board = Scoreboard { losses: LossReport::new(true), ..Scoreboard::default() };
        for at in 0..3 {
            board.push(SeqNumber(10 + 4 * at), u64::from(4 * at), Bytes::from_static(b"lost"), false, SendKind::New);
            board.send_next(Instant::ZERO);
        }
        assert_eq!(board.mark_all_lost(), 12);
        let reported: Vec<_> = board.losses.take().iter().map(|lost| (lost.length, lost.total_lost)).collect();
        assert_eq!(reported, [(4, 4), (4, 8), (4, 12)]);
    }

    #[test]
    fn what_shares_a_mapping_that_was_lost_is_not_reported_as_lost_itself() {
        let mapped_together = || {
            let mut board = Scoreboard { losses: LossReport::new(true), ..Scoreboard::default() };
            for at in 0..4_u32 {
                let place = board.next_place(u64::from(4 * at), 0, 16);
                board.push(
                    SeqNumber(10 + 4 * at),
                    u64::from(4 * at),
                    Bytes::from_static(b"lost"),
                    false,
                    SendKind::New,
                );
                board.set_place(place);
            }
            for _ in 0..4 {
                board.send_next(Instant::ZERO);
                board.bind_to_mapping(|_| false);
            }
            board
        };
        let reported =
            |board: &mut Scoreboard| board.losses.take().iter().map(|lost| lost.total_lost).collect::<Vec<_>>();
        let mut board = mapped_together();
        assert_eq!(board.mark_lost_in_time_order(|_, _| true), (16, None));
        assert_eq!(reported(&mut board), [4]);
        // Here the first has arrived, and so its mapping.
        let mut board = mapped_together();
        board.records[0].fate = Fate::Sacked;
        assert_eq!(board.mark_lost_in_time_order(|_, _| true), (12, None));
        assert_eq!(reported(&mut board), [4, 8, 12]);
    }

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
    fn of_what_is_overdue_each_segment_is_reported_with_all_losses_before_it() {
        let mut board = Scoreboard { losses: LossReport::new(true), ..Scoreboard::default() };
        for at in 0..3 {
            board.push(SeqNumber(10 + 4 * at), u64::from(4 * at), Bytes::from_static(b"lost"), false, SendKind::New);
            board.send_next(Instant::ZERO);
        }
        assert_eq!(board.mark_first_lost(), 4);
        assert_eq!(board.mark_lost_in_time_order(|_, _| true), (8, None));
        let reported: Vec<_> = board.losses.take().iter().map(|lost| (lost.length, lost.total_lost)).collect();
        assert_eq!(reported, [(4, 4), (4, 8), (4, 12)]);
    }

    #[test]
    fn after_a_pardon_what_was_retransmitted_and_is_in_flight_is_watched_in_the_order_of_its_retransmissions() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut board = Scoreboard::default();
        for number in 0..4 {
            let seq = SeqNumber(10 + 4 * number);
            board.push(seq, u64::from(4 * number), Bytes::from_static(b"lost"), false, SendKind::New);
            board.send_next(at(0));
        }
        // The first two are retransmitted; of the others, which were not, one is lost.
        board.mark_all_lost();
        for millis in [200, 100] {
            board.retransmit_next(at(millis));
        }
        board.unmark_lost();
        board.watch_all();
        let watched = board.retransmissions.as_mut_slice().to_vec();
        assert_eq!(watched, [(board.first + 1, at(100)), (board.first, at(200))]);
    }
}
