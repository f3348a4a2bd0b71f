//! Owns what a subflow received and must acknowledge: the next expected sequence number, the ranges beyond it, and the
//! state of delayed acknowledgements. The bytes are already at data level.

use super::rare_blocks::RareBlocks;
use crate::config::TcpConfig;
use crate::sorted_ring::{Place, SortedRing};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{SackBlock, SackBlocks};

/// Limit of ranges beyond the next expected byte; a segment that would add another is dropped. Enough for the losses in
/// a window of 1 Gbit/s and 600 ms. The receive buffer limits the bytes.
const MAX_RANGES: usize = 65_536;

/// When an acknowledgement is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckDue {
    No,
    /// At this time at the latest.
    By(Instant),
    Now,
}

/// Where a segment was placed in the sequence space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// All of it had been received before.
    Duplicate,
    /// It advanced the next expected sequence number.
    InOrder,
    /// It lies behind a hole.
    OutOfOrder,
    /// Dropped: there are too many holes.
    Refused,
}

/// The receiving side of a subflow.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next sequence number expected (RCV.NXT).
    pub next: SeqNumber,
    /// Received ranges beyond it, in order, not adjacent.
    ranges: SortedRing<SackBlock>,
    /// Ranges to report, the most recent first (RFC 2018, section 4).
    recent: RareBlocks,
    /// A duplicate to report once (RFC 2883).
    duplicate: Option<SackBlock>,
    pub due: AckDue,
    /// In-order bytes since the last acknowledgement was sent.
    unacknowledged: u32,
    /// Largest segment received, the size of a full segment.
    largest: u32,
    /// Timestamp to echo (TS.Recent, RFC 7323, section 4.3).
    pub timestamp: u32,
    /// When it was updated. It expires after 24 days (RFC 7323, section 5.5).
    pub timestamp_at: Instant,
    /// Acknowledgement number of the last segment sent (Last.ACK.sent).
    pub last_ack: SeqNumber,
    /// A congestion mark was received, and the peer has not confirmed our echo (RFC 3168, section 6.1.3).
    pub echo_congestion: bool,
    /// Round trip measured with echoed timestamps; zero before the first sample.
    pub round_trip: Duration,
}

impl Receiver {
    /// `next` is the peer's initial sequence number plus one.
    pub fn new(next: SeqNumber) -> Self {
        Self {
            next,
            ranges: SortedRing::default(),
            recent: RareBlocks::default(),
            duplicate: None,
            due: AckDue::No,
            unacknowledged: 0,
            largest: 536,
            timestamp: 0,
            timestamp_at: Instant::ZERO,
            last_ack: next,
            echo_congestion: false,
            round_trip: Duration::ZERO,
        }
    }

    /// The peer sends no segments longer than `most` bytes, which may be less than [`Self::new`] takes for a full one.
    pub fn limit_segments(&mut self, most: u32) {
        self.largest = self.largest.min(most.max(1));
    }

    /// Whether data behind a hole was received.
    pub fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Whether a segment from `start` could be placed: a cheap test before its payload is used.
    pub fn has_place(&self, start: SeqNumber) -> bool {
        start.at_or_before(self.next) || self.ranges.len() < MAX_RANGES
    }

    /// Places `start..end` and decides when to acknowledge it (RFC 5681, section 4.2). A segment counts as `full` bytes
    /// at most.
    #[inline]
    pub fn place(
        &mut self,
        now: Instant,
        start: SeqNumber,
        end: SeqNumber,
        full: u32,
        config: &TcpConfig,
    ) -> Placement {
        if start != self.next || !end.after(start) || !self.ranges.is_empty() {
            return self.place_anywhere(now, start, end, full, config);
        }
        self.next = end;
        self.delay_ack(now, end - start, full, config);
        Placement::InOrder
    }

    #[inline(never)]
    fn place_anywhere(
        &mut self,
        now: Instant,
        start: SeqNumber,
        end: SeqNumber,
        full: u32,
        config: &TcpConfig,
    ) -> Placement {
        if end.at_or_before(self.next) {
            self.duplicate = Some(SackBlock { start, end });
            self.due = AckDue::Now;
            return Placement::Duplicate;
        }
        if start.after(self.next) {
            return self.place_beyond_gap(start, end);
        }
        if start.before(self.next) {
            self.duplicate = Some(SackBlock { start, end: self.next });
            self.due = AckDue::Now;
        } else {
            self.duplicate = self.overlap(start, end).or(self.duplicate);
        }
        let length = end - self.next;
        self.next = end;
        if self.ranges.is_empty() {
            self.delay_ack(now, length, full, config);
        } else {
            self.absorb();
            self.due = AckDue::Now;
        }
        Placement::InOrder
    }

    /// Reports `start..end` as a duplicate if it was received before (RFC 2883, section 4).
    pub fn record_duplicate(&mut self, start: SeqNumber, end: SeqNumber) {
        if end.at_or_before(self.next) {
            self.duplicate = Some(SackBlock { start, end });
        }
    }

    /// Cancels the report of a duplicate.
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// The first hole: the byte expected next, and the first byte received beyond it.
    pub fn first_gap(&self) -> Option<(SeqNumber, SeqNumber)> {
        self.ranges.front().map(|range| (self.next, range.start))
    }

    /// The holes that are losses by RFC 6675 (IsLost, section 4: more than two full segments received behind them) and
    /// have not been reported, that is, end after `told`.
    pub fn lost_gaps(&self, told: Option<SeqNumber>) -> impl Iterator<Item = (SeqNumber, SeqNumber)> {
        let highest = self.ranges.back().map_or(self.next, |range| range.end);
        // An old number has no meaning, and may even compare as ahead.
        let from = told.filter(|told| told.after(self.next) && told.at_or_before(highest)).unwrap_or(self.next);
        let mut behind: u32 = self.ranges.iter().map(|range| range.end - range.start).sum();
        let mut start = self.next;
        let enough = self.largest.saturating_mul(2);
        let gaps = self.ranges.iter().map_while(move |range| {
            let (gap, lost) = ((start, range.start), behind > enough);
            behind -= range.end - range.start;
            start = range.end;
            lost.then_some(gap)
        });
        gaps.filter(move |gap| gap.0.at_or_after(from))
    }

    /// Counts the first hole as received; returns it.
    pub fn skip_gap(&mut self) -> Option<(SeqNumber, SeqNumber)> {
        let gap = self.first_gap()?;
        self.next = gap.1;
        self.absorb();
        self.due = AckDue::Now;
        Some(gap)
    }

    /// Removes received ranges from `from` on, beyond the first hole: the receiver dropped data after it had reported
    /// it (RFC 2018, section 8).
    pub fn forget_from(&mut self, from: SeqNumber) {
        while self.ranges.back().is_some_and(|range| range.start.at_or_after(from)) {
            self.ranges.pop_back();
        }
        if let Some(last) = self.ranges.back_mut() {
            last.end = last.end.min(from);
        }
        let mut recent = SackBlocks::new();
        for block in self.recent.as_slice().iter().filter(|block| block.start.before(from)) {
            recent.push(SackBlock { start: block.start, end: block.end.min(from) });
        }
        self.recent.set(recent);
    }

    /// Delays the acknowledgement, but acknowledges every second full-sized segment at once (RFC 9293, section
    /// 3.8.6.3). A shorter one behind a full one too, as Linux: to its sender the delay would look like the loss of the tail.
    fn delay_ack(&mut self, now: Instant, length: u32, full: u32, config: &TcpConfig) {
        // Longer ones were merged on the way, or have no mapping.
        self.largest = self.largest.max(length.min(full));
        self.unacknowledged = self.unacknowledged.saturating_add(length);
        let behind_another = self.due != AckDue::No && self.unacknowledged > self.largest;
        if behind_another || self.unacknowledged >= self.largest.saturating_mul(2) || config.delayed_ack.is_zero() {
            self.due = AckDue::Now;
        } else if self.due == AckDue::No {
            self.due = AckDue::By(now + config.delayed_ack);
        }
    }

    /// In-order data reached the first ranges: merges them.
    fn absorb(&mut self) {
        while let Some(range) = self.ranges.front().filter(|range| range.start.at_or_before(self.next)) {
            self.next = self.next.max(range.end);
            self.ranges.pop_front();
        }
        let next = self.next;
        self.keep_recent(|block| block.end.after(next));
    }

    fn place_beyond_gap(&mut self, start: SeqNumber, end: SeqNumber) -> Placement {
        self.due = AckDue::Now;
        let mut merged = SackBlock { start, end };
        let place = self.ranges.partition_point(|range| range.end.before(start));
        match self.ranges.at(place).copied().filter(|range| range.start.at_or_before(end)) {
            None if self.ranges.len() >= MAX_RANGES => return Placement::Refused,
            None => _ = self.ranges.insert(place, merged),
            Some(range) if range.start.at_or_before(start) && range.end.at_or_after(end) => {
                self.duplicate = Some(merged);
                self.report(range);
                return Placement::Duplicate;
            }
            Some(range) => {
                self.duplicate = self.overlap(start, end).or(self.duplicate);
                merged = SackBlock { start: start.min(range.start), end: self.join_behind(place, end.max(range.end)) };
                self.ranges.at_mut(place).into_iter().for_each(|range| *range = merged);
            }
        }
        self.report(merged);
        Placement::OutOfOrder
    }

    /// The first part of `start..end` that has arrived beyond the gap (RFC 2883, section 4.2).
    fn overlap(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        let place = self.ranges.partition_point(|range| range.end.at_or_before(start));
        let range = self.ranges.at(place)?;
        let both = SackBlock { start: start.max(range.start), end: end.min(range.end) };
        both.start.before(both.end).then_some(both)
    }

    /// Removes the ranges after a place that begin at `end` or before; returns the end of the last.
    fn join_behind(&mut self, place: Place, mut end: SeqNumber) -> SeqNumber {
        loop {
            let behind = self.ranges.after(place);
            match self.ranges.at(behind) {
                Some(range) if range.start.at_or_before(end) => end = end.max(range.end),
                Some(_) | None => return end,
            }
            self.ranges.remove(behind);
        }
    }

    fn report(&mut self, block: SackBlock) {
        let mut recent = SackBlocks::new();
        recent.push(block);
        for old in self.recent.as_slice() {
            if old.end.before(block.start) || old.start.after(block.end) {
                recent.push(*old);
            }
        }
        self.recent.set(recent);
    }

    fn keep_recent(&mut self, keep: impl Fn(&SackBlock) -> bool) {
        let mut recent = SackBlocks::new();
        for block in self.recent.as_slice().iter().filter(|block| keep(block)) {
            recent.push(*block);
        }
        self.recent.set(recent);
    }

    /// At most `most` SACK blocks: first the duplicate, then the most recent ranges.
    pub fn sack_blocks(&self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        for block in self.duplicate.iter().chain(self.recent.as_slice()).take(most) {
            blocks.push(*block);
        }
        blocks
    }

    pub fn wants_sack(&self) -> bool {
        self.duplicate.is_some() || !self.recent.is_empty()
    }

    /// An acknowledgement was sent; `with_sack` if it carried all SACK blocks. Without them an acknowledgement stays
    /// due, on a bare segment with space for the blocks.
    pub fn acknowledged(&mut self, with_sack: bool) {
        self.last_ack = self.next;
        if with_sack {
            self.due = AckDue::No;
            self.unacknowledged = 0;
            self.duplicate = None;
        }
    }

    pub fn acknowledge_now(&mut self) {
        self.due = AckDue::Now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(n: u32) -> SeqNumber {
        SeqNumber(n)
    }
    fn place(receiver: &mut Receiver, start: u32, end: u32) -> Placement {
        receiver.place(Instant::ZERO, seq(start), seq(end), 1_500, &TcpConfig::default())
    }
    fn blocks(receiver: &Receiver) -> Vec<(u32, u32)> {
        receiver.sack_blocks(4).as_slice().iter().map(|block| (block.start.0, block.end.0)).collect()
    }

    #[test]
    fn every_second_full_sized_segment_is_acknowledged_at_once() {
        let mut receiver = Receiver::new(seq(0));
        assert_eq!(place(&mut receiver, 0, 1000), Placement::InOrder);
        assert_eq!(receiver.due, AckDue::By(Instant::ZERO + TcpConfig::default().delayed_ack));
        assert_eq!(place(&mut receiver, 1000, 2000), Placement::InOrder);
        assert_eq!(receiver.due, AckDue::Now);
    }

    #[test]
    fn a_short_segment_behind_a_full_sized_one_is_acknowledged_at_once() {
        let mut receiver = Receiver::new(seq(0));
        place(&mut receiver, 0, 1000);
        assert_eq!(receiver.due, AckDue::By(Instant::ZERO + TcpConfig::default().delayed_ack));
        assert_eq!(place(&mut receiver, 1000, 1200), Placement::InOrder);
        assert_eq!(receiver.due, AckDue::Now);
    }

    #[test]
    fn segments_put_together_on_the_way_are_acknowledged_at_once() {
        let mut receiver = Receiver::new(seq(0));
        assert_eq!(place(&mut receiver, 0, 60_000), Placement::InOrder);
        assert_eq!(receiver.due, AckDue::Now);
        receiver.acknowledged(true);
        // Every second of 1,500 bytes is acknowledged, one of 60,000 is not taken for two.
        assert_eq!(place(&mut receiver, 60_000, 63_000), Placement::InOrder);
        assert_eq!(receiver.due, AckDue::Now);
    }

    #[test]
    fn the_most_recent_block_comes_first_and_neighbours_merge() {
        let mut receiver = Receiver::new(seq(0));
        place(&mut receiver, 100, 200);
        place(&mut receiver, 300, 400);
        place(&mut receiver, 500, 600);
        assert_eq!(blocks(&receiver), [(500, 600), (300, 400), (100, 200)]);
        assert_eq!(place(&mut receiver, 200, 300), Placement::OutOfOrder);
        assert_eq!(blocks(&receiver), [(100, 400), (500, 600)]);
    }

    #[test]
    fn a_filled_gap_moves_the_edge_over_all_it_reaches() {
        let mut receiver = Receiver::new(seq(0));
        place(&mut receiver, 100, 200);
        place(&mut receiver, 300, 400);
        assert_eq!(place(&mut receiver, 0, 100), Placement::InOrder);
        assert_eq!((receiver.next, receiver.due), (seq(200), AckDue::Now));
        assert_eq!(blocks(&receiver), [(300, 400)]);
    }

    #[test]
    fn a_gap_is_skipped_up_to_the_first_byte_that_is_here_and_no_further_than_what_follows_it() {
        let mut receiver = Receiver::new(seq(0));
        assert_eq!(receiver.skip_gap(), None);
        place(&mut receiver, 100, 101);
        place(&mut receiver, 300, 400);
        assert_eq!(receiver.skip_gap(), Some((seq(0), seq(100))));
        assert_eq!((receiver.next, receiver.first_gap()), (seq(101), Some((seq(101), seq(300)))));
        assert_eq!((blocks(&receiver), receiver.due), (vec![(300, 400)], AckDue::Now));
        assert_eq!(receiver.skip_gap(), Some((seq(101), seq(300))));
        assert_eq!((receiver.next, receiver.has_gap()), (seq(400), false));
    }

    #[test]
    fn a_gap_is_lost_when_more_than_two_segments_are_behind_it_and_is_told_of_once() {
        let mut receiver = Receiver::new(seq(0));
        place(&mut receiver, 0, 1000);
        let lost = |receiver: &Receiver, told: Option<u32>| -> Vec<(u32, u32)> {
            receiver.lost_gaps(told.map(seq)).map(|(start, end)| (start.0, end.0)).collect()
        };
        place(&mut receiver, 2000, 4000);
        assert_eq!(lost(&receiver, None), []);
        place(&mut receiver, 5000, 6000);
        // 3000 bytes were received behind the first hole, 1000 behind the second.
        assert_eq!(lost(&receiver, None), [(1000, 2000)]);
        place(&mut receiver, 6000, 8000);
        assert_eq!(lost(&receiver, None), [(1000, 2000), (4000, 5000)]);
        assert_eq!(lost(&receiver, Some(2000)), [(4000, 5000)]);
        assert_eq!(lost(&receiver, Some(5000)), []);
        // An old report has no effect on these.
        for old in [500, 9000, 0x8000_0000] {
            assert_eq!(lost(&receiver, Some(old)).len(), 2);
        }
    }

    #[test]
    fn what_arrives_twice_is_reported_once_and_first() {
        let mut receiver = Receiver::new(seq(0));
        place(&mut receiver, 0, 100);
        place(&mut receiver, 200, 300);
        assert_eq!(place(&mut receiver, 0, 100), Placement::Duplicate);
        assert_eq!(blocks(&receiver), [(0, 100), (200, 300)]);
        receiver.acknowledged(true);
        assert_eq!(blocks(&receiver), [(200, 300)]);
        assert_eq!(place(&mut receiver, 200, 300), Placement::Duplicate);
        assert_eq!(blocks(&receiver), [(200, 300), (200, 300)]);
    }

    #[test]
    fn the_number_of_gaps_is_bounded() {
        let mut receiver = Receiver::new(seq(0));
        for gap in 1..=MAX_RANGES as u32 {
            assert_eq!(place(&mut receiver, gap * 10, gap * 10 + 1), Placement::OutOfOrder);
        }
        assert!(!receiver.has_place(seq(1_000_000)));
        assert_eq!(place(&mut receiver, 1_000_000, 1_000_001), Placement::Refused);
        assert_eq!(place(&mut receiver, 0, 1), Placement::InOrder);
    }
}
