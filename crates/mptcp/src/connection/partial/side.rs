//! State of a subflow whose acknowledgements may skip gaps.

use anabranch_policy::ids::SubflowMap;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use std::collections::VecDeque;

/// Duplicate acknowledgements that indicate a loss to a sender (RFC 5681, section 3.2).
pub(in crate::connection) const DUPLICATES: u32 = 3;

/// Limit of retransmissions of skipped data that was acknowledged.
pub(in crate::connection) const MAX_REPEATS: u32 = 16;

/// The receiving side of a subflow, as far as skipping needs it.
#[derive(Debug)]
pub struct Side {
    /// The missing sequence number, and since when data behind it has been present.
    pub(super) gap: Option<(SeqNumber, Instant)>,
    /// Segments received behind it, each answered with a duplicate acknowledgement.
    pub(super) duplicates: u32,
    /// Our timestamp when the first duplicate acknowledgement was due, and the third.
    pub(super) told: Option<u32>,
    pub(super) told_thrice: Option<u32>,
    /// The peer's timestamp on the first segment that it sent after receiving the first of them, and on one that it
    /// sent after reacting.
    pub(super) heard: Option<u32>,
    pub(super) acted: Option<u32>,
    /// Data sequence after the last in-order byte of the subflow, and after the highest out-of-order byte.
    pub(super) in_order: u64,
    pub(super) beyond: u64,
    pub(super) skipped_bytes: u64,
    pub(super) last_skip: Option<Instant>,
    /// Bytes received on other subflows since, as long as nothing arrived here.
    pub(super) elsewhere: Option<u64>,
    pub(super) skipped: VecDeque<(SeqNumber, SeqNumber)>,
    pub(super) repeats: u32,
}

/// State of skipping on all subflows.
#[derive(Debug, Default)]
pub(in crate::connection) struct Skips {
    pub(super) sides: SubflowMap<Side>,
    /// Skipping did harm: it is off for this connection.
    pub(super) skipping_is_off: bool,
    /// Bytes that acknowledgements skipped.
    pub(super) skipped_bytes: u64,
}

impl Side {
    pub(super) fn new() -> Self {
        Self {
            gap: None,
            duplicates: 0,
            told: None,
            told_thrice: None,
            heard: None,
            acted: None,
            in_order: 0,
            beyond: 0,
            skipped_bytes: 0,
            last_skip: None,
            elsewhere: None,
            skipped: VecDeque::new(),
            repeats: 0,
        }
    }
}

impl Side {
    pub(super) fn note(
        &mut self,
        (now, stamp): (Instant, u32),
        (start, end): (SeqNumber, SeqNumber),
        next: SeqNumber,
        data_end: u64,
    ) {
        self.elsewhere = None;
        if end.at_or_before(next) {
            self.in_order = data_end;
        }
        if start.after(next) {
            match self.gap {
                Some((gap, _)) if gap == next => self.duplicates += 1,
                Some(_) | None => {
                    (self.gap, self.duplicates, self.beyond) = (Some((next, now)), 1, 0);
                    self.forget_what_was_told();
                }
            }
            self.told = self.told.or(Some(stamp));
            if self.duplicates >= DUPLICATES {
                self.told_thrice = self.told_thrice.or(Some(stamp));
            }
            self.beyond = self.beyond.max(data_end);
        } else if self.gap.is_some_and(|(gap, _)| gap != next) {
            // The hole is filled. The next one is recorded when a segment arrives behind it.
            self.gap = None;
        }
    }

    pub(super) fn forget_what_was_told(&mut self) {
        (self.told, self.told_thrice, self.heard, self.acted) = (None, None, None, None);
    }
}

/// Whether a timestamp is later than another, modulo 2^32.
pub(in crate::connection) fn is_later(stamp: u32, than: u32) -> bool {
    (stamp.wrapping_sub(than) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamps_of_the_first_and_of_the_third_duplicate_acknowledgement_are_kept() {
        let mut side = Side::new();
        let mut come = |stamp: u32, start: u32, next: u32| {
            let range = (SeqNumber(start), SeqNumber(start + 1_000));
            side.note((Instant::ZERO, stamp), range, SeqNumber(next), 9_000);
            (side.duplicates, side.told, side.told_thrice)
        };
        assert_eq!(come(1, 2_000, 1_000), (1, Some(1), None));
        assert_eq!(come(2, 3_000, 1_000), (2, Some(1), None));
        assert_eq!(come(3, 4_000, 1_000), (3, Some(1), Some(3)));
        assert_eq!(come(4, 5_000, 1_000), (4, Some(1), Some(3)));
        // Another gap is told of anew.
        assert_eq!(come(5, 9_000, 6_000), (1, Some(5), None));
    }
}
