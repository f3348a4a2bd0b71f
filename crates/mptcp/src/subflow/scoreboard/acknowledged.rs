//! Effects of an acknowledgement on the scoreboard: which records were delivered, and what that says about round trips
//! and reordering.

use super::board::Scoreboard;
use super::record::{Fate, Record};
use crate::stamp_clock::StampClock;
use crate::subflow::delivery::Departure;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{SackBlock, SackBlocks};
use bytes::Buf;

/// Effects of an acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// Bytes acknowledged cumulatively.
    pub cumulative: u64,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Round-trip time of the newest segment, if it was sent only once (Karn).
    pub rtt: Option<Duration>,
    /// The newest transmission among those delivered.
    pub newest: Option<Newest>,
    /// Time and end of the newest that was delivered for certain: of a segment sent again, the original may have been.
    pub certain: Option<(Instant, SeqNumber)>,
    /// Highest data sequence newly delivered.
    pub data_end: u64,
    /// Reordering: a record that was never retransmitted was newly acknowledged below an earlier selective
    /// acknowledgement.
    pub reordered: bool,
    /// A FIN was acknowledged cumulatively.
    pub fin: bool,
}

/// The most recently sent segment among those that an acknowledgement delivered.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    pub sent_at: Instant,
    /// Sequence number after its last byte.
    pub end: SeqNumber,
    /// State recorded when it was sent.
    pub departure: Departure,
}

/// What shows that the last transmission of a segment was delivered, and not an earlier one (RFC 8985, section 6.2, step
/// 2).
#[derive(Clone, Copy, Debug)]
pub struct Proofs {
    /// The shortest round trip: what is answered earlier than that is an earlier transmission.
    pub min_rtt: Duration,
    /// The timestamp echoed, and the clock that it is of: what was sent later is not answered.
    pub echo: Option<(u32, StampClock)>,
}

impl Proofs {
    /// Without timestamps, over a path of unknown length.
    #[cfg(test)]
    pub const NONE: Self = Self { min_rtt: Duration::ZERO, echo: None };

    fn show(&self, now: Instant, sent_at: Instant) -> bool {
        let answered = |(echo, clock): (u32, StampClock)| (echo.wrapping_sub(clock.stamp(sent_at)) as i32) >= 0;
        now.since(sent_at) >= self.min_rtt && self.echo.is_none_or(answered)
    }

    /// The same for what is acknowledged selectively: the timestamp is that of a segment before the hole (RFC 7323,
    /// section 4.3), and says nothing of it.
    fn beyond_a_hole(self) -> Self {
        Self { echo: None, ..self }
    }
}

impl Scoreboard {
    /// Handles an acknowledgement: everything before `ack`, and the SACK blocks above it (RFC 2018, RFC 6675). A block
    /// that begins at `ack` contradicts it and is ignored: if each such acknowledgement marked its bytes, to be
    /// unmarked as reneged, it would postpone and lengthen the timeout for ever. `proofs` tells of which retransmissions
    /// it is certain that they arrived.
    pub fn acknowledge(&mut self, now: Instant, ack: SeqNumber, sack: &SackBlocks, proofs: &Proofs) -> Acknowledged {
        let mut result = Acknowledged::default();
        let highest_before = self.highest_sacked;
        self.acknowledge_cumulatively(now, ack, proofs, &mut result);
        if !sack.is_empty() {
            let beyond = proofs.beyond_a_hole();
            let is_taken = |block: &SackBlock| block.start.after(ack) && block.end.after(block.start);
            let mut count = 0;
            for block in sack.as_slice().iter().filter(|block| is_taken(block)) {
                self.acknowledge_block(now, *block, (highest_before, &beyond), &mut result);
                count += 1;
            }
            self.previous.set(if count == sack.len() { *sack } else { sack.filtered(is_taken) });
        }
        if self.highest_sacked.is_some_and(|highest| highest.at_or_before(ack)) {
            self.highest_sacked = None;
            self.previous.clear();
        }
        if result.delivered > 0 {
            self.sampler.deliver(now, result.delivered, result.newest.map(|newest| newest.sent_at));
            // An idle subflow keeps no memory for records.
            self.shrink();
        }
        result
    }

    fn acknowledge_cumulatively(&mut self, now: Instant, ack: SeqNumber, proofs: &Proofs, result: &mut Acknowledged) {
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
            Self::uncount(front.fate, front.length, &mut self.in_flight, &mut self.lost, &mut self.sacked);
            result.cumulative += u64::from(front.length);
            result.fin |= front.fin;
            if front.fate != Fate::Sacked {
                Self::deliver(front, now, (self.highest_sacked, proofs), result);
            }
            self.records.pop_front();
            self.first += 1;
            self.sent -= 1;
        }
    }

    fn trim_front(record: &mut Record, part: u32) {
        record.seq += part;
        record.length -= part;
        record.data_seq += u64::from(part);
        record.payload.advance(part as usize);
        // The mapping itself does not change.
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

    /// Counts a newly delivered record.
    fn deliver(
        record: &Record,
        now: Instant,
        (highest_before, proofs): (Option<SeqNumber>, &Proofs),
        result: &mut Acknowledged,
    ) {
        result.delivered += u64::from(record.length);
        result.data_end = result.data_end.max(record.data_end());
        if !record.retransmitted && highest_before.is_some_and(|highest| record.end().before(highest)) {
            result.reordered = true;
        }
        let newer = result.newest.is_none_or(|newest| {
            newest.sent_at < record.sent_at || (newest.sent_at == record.sent_at && record.end().after(newest.end))
        });
        if newer {
            result.newest = Some(Newest { sent_at: record.sent_at, end: record.end(), departure: record.departure });
            // A record sent once, before a retransmission, may have arrived long ago, with its acknowledgement lost.
            result.rtt = (!record.retransmitted).then(|| now.since(record.sent_at));
        }
        if !record.retransmitted || proofs.show(now, record.sent_at) {
            let this = (record.sent_at, record.end());
            let newer = |old: (Instant, SeqNumber)| old.0 < this.0 || (old.0 == this.0 && this.1.after(old.1));
            if result.certain.is_none_or(newer) {
                result.certain = Some(this);
            }
        }
    }

    /// Marks the records of a block. What the same block covered in the last acknowledgement is not walked again.
    fn acknowledge_block(
        &mut self,
        now: Instant,
        block: SackBlock,
        before: (Option<SeqNumber>, &Proofs),
        result: &mut Acknowledged,
    ) {
        let touches = |old: &&SackBlock| old.start.at_or_before(block.end) && old.end.at_or_after(block.start);
        match self.previous.as_slice().iter().find(touches).copied() {
            Some(old) => {
                if block.start.before(old.start) {
                    self.mark_sacked(now, block.start, old.start, before, result);
                }
                if block.end.after(old.end) {
                    self.mark_sacked(now, old.end, block.end, before, result);
                }
            }
            None => self.mark_sacked(now, block.start, block.end, before, result),
        }
    }

    fn mark_sacked(
        &mut self,
        now: Instant,
        start: SeqNumber,
        end: SeqNumber,
        before: (Option<SeqNumber>, &Proofs),
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
            Self::deliver(record, now, before, result);
        }
    }

    /// Whether the oldest record is marked as selectively acknowledged, which only a peer that reneged leaves so.
    pub fn first_is_sacked(&self) -> bool {
        self.records.front().is_some_and(|record| record.fate == Fate::Sacked)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, Proofs, SackBlock, SackBlocks, Scoreboard, SeqNumber};
    use crate::event::SendKind;
    use crate::stamp_clock::StampClock;
    use bytes::Bytes;

    #[test]
    fn what_a_retransmission_has_acknowledged_with_it_gives_no_round_trip() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut board = Scoreboard::default();
        for (seq, data_seq) in [(10, 0), (14, 4), (18, 8)] {
            board.push(SeqNumber(seq), data_seq, Bytes::from_static(b"data"), false, SendKind::New);
            board.send_next(at(data_seq));
        }
        assert_eq!(
            board.acknowledge(at(50), SeqNumber(14), &SackBlocks::new(), &Proofs::NONE).rtt,
            Some(Duration::from_millis(50))
        );
        // The second segment may have arrived long ago.
        board.retransmit_last(at(1_000));
        assert_eq!(board.acknowledge(at(1_050), SeqNumber(22), &SackBlocks::new(), &Proofs::NONE).rtt, None);
    }

    #[test]
    fn a_block_that_begins_at_the_acknowledgement_neither_delivers_nor_measures() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut board = Scoreboard::default();
        for seq in [10, 14, 18] {
            board.push(SeqNumber(seq), u64::from(seq), Bytes::from_static(b"data"), false, SendKind::New);
            board.send_next(at(0));
        }
        let mut blocks = SackBlocks::new();
        blocks.push(SackBlock { start: SeqNumber(10), end: SeqNumber(14) });
        for millis in [50, 10_000] {
            let acknowledged = board.acknowledge(at(millis), SeqNumber(10), &blocks, &Proofs::NONE);
            assert_eq!((acknowledged.delivered, acknowledged.rtt, board.sacked()), (0, None, 0));
        }
        // Nor does it hide a block that follows it.
        let mut blocks = SackBlocks::new();
        blocks.push(SackBlock { start: SeqNumber(14), end: SeqNumber(18) });
        assert_eq!(board.acknowledge(at(10_050), SeqNumber(10), &blocks, &Proofs::NONE).delivered, 4);
    }

    #[test]
    fn of_segments_sent_at_once_the_last_in_sequence_is_the_newest() {
        let newest = |marked: &[u32]| {
            let mut board = Scoreboard::default();
            for seq in [10, 14, 18] {
                board.push(SeqNumber(seq), u64::from(seq), Bytes::from_static(b"data"), false, SendKind::New);
                board.send_next(Instant::from_nanos(if seq == 18 { 5 } else { 7 }));
            }
            let mut blocks = SackBlocks::new();
            for seq in marked {
                blocks.push(SackBlock { start: SeqNumber(*seq), end: SeqNumber(*seq + 4) });
            }
            board
                .acknowledge(Instant::from_nanos(9), SeqNumber(10), &blocks, &Proofs::NONE)
                .newest
                .map(|newest| newest.end.0)
        };
        assert_eq!((newest(&[14]), newest(&[14, 18]), newest(&[18])), (Some(18), Some(18), Some(22)));
        let mut board = Scoreboard::default();
        for seq in [10, 14] {
            board.push(SeqNumber(seq), u64::from(seq), Bytes::from_static(b"data"), false, SendKind::New);
            board.send_next(Instant::ZERO);
        }
        let acknowledged = board.acknowledge(Instant::ZERO, SeqNumber(18), &SackBlocks::new(), &Proofs::NONE);
        assert_eq!(acknowledged.newest.map(|newest| newest.end), Some(SeqNumber(18)), "not the first of them");
    }

    #[test]
    fn of_what_was_sent_again_only_a_late_answer_that_echoes_it_shows_that_it_arrived() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        // Three segments at 0 ms, the last again at 100 ms, answered at 150 ms.
        let certain = |min_rtt: u64, echo: Option<u32>, selectively: bool| {
            let mut board = Scoreboard::default();
            for seq in [10, 14, 18] {
                board.push(SeqNumber(seq), u64::from(seq), Bytes::from_static(b"data"), false, SendKind::New);
                board.send_next(at(0));
            }
            let mut blocks = SackBlocks::new();
            if selectively {
                blocks.push(SackBlock { start: SeqNumber(14), end: SeqNumber(22) });
            }
            board.retransmit_last(at(100));
            let clock = StampClock { offset: 1_000, drift: 0 };
            let proofs = Proofs { min_rtt: Duration::from_millis(min_rtt), echo: echo.map(|echo| (echo, clock)) };
            let ack = SeqNumber(if selectively { 10 } else { 22 });
            board.acknowledge(at(150), ack, &blocks, &proofs).certain.map(|(sent_at, end)| (sent_at == at(100), end.0))
        };
        let (again, first) = (Some((true, 22)), Some((false, 18)));
        assert_eq!((certain(50, None, false), certain(51, None, false)), (again, first));
        assert_eq!((certain(0, Some(1_100), false), certain(0, Some(1_099), false)), (again, first));
        assert_eq!(certain(51, Some(1_100), false), first);
        // What arrives beyond a hole is not echoed.
        assert_eq!((certain(0, Some(1_000), true), certain(51, Some(1_100), true)), (again, first));
    }
}
