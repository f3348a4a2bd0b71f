//! What is remembered of a subflow whose acknowledgements may go over gaps.

use anabranch_policy::ids::SubflowMap;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use std::collections::VecDeque;

/// Duplicate acknowledgements that tell a sender of a loss (RFC 5681, section 3.2).
pub(in crate::connection) const DUPLICATES: u32 = 3;

/// Copies of what was skipped that come although it was acknowledged.
pub(in crate::connection) const MAX_REPEATS: u32 = 16;

/// The receiving side of a subflow, as far as skipping asks.
#[derive(Debug)]
pub struct Side {
    /// The sequence number that is missing, and since when something behind it has been here.
    pub(super) gap: Option<(SeqNumber, Instant)>,
    /// Segments that came behind it: each was answered with a duplicate acknowledgement.
    pub(super) duplicates: u32,
    /// Our timestamp when the first of them was due, and the third.
    pub(super) told: Option<u32>,
    pub(super) told_thrice: Option<u32>,
    /// The peer's timestamp on the first segment sent when it had heard of the first, and on one sent when it had acted.
    pub(super) heard: Option<u32>,
    pub(super) acted: Option<u32>,
    /// Data sequence behind the last byte that came in order here, and behind the highest that came out of order.
    pub(super) in_order: u64,
    pub(super) beyond: u64,
    /// Bytes skipped.
    pub(super) skipped_bytes: u64,
    pub(super) last_skip: Option<Instant>,
    /// What came on other subflows since, as long as nothing has come here.
    pub(super) elsewhere: Option<u64>,
    pub(super) skipped: VecDeque<(SeqNumber, SeqNumber)>,
    pub(super) repeats: u32,
}

/// Gaps of subflows that acknowledgements went over.
#[derive(Debug, Default)]
pub(in crate::connection) struct Skips {
    /// What is known of each subflow.
    pub(super) sides: SubflowMap<Side>,
    /// It did harm: it is not done again on this connection.
    pub(super) skips_no_more: bool,
    /// Bytes that acknowledgements went over.
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
            // Filled; what lies behind the next gap, if there is one, is known when something comes there.
            self.gap = None;
        }
    }

    pub(super) fn forget_what_was_told(&mut self) {
        (self.told, self.told_thrice, self.heard, self.acted) = (None, None, None, None);
    }
}

/// Whether one timestamp is later than another, modulo 2^32.
pub(in crate::connection) fn is_later(stamp: u32, than: u32) -> bool {
    (stamp.wrapping_sub(than) as i32) > 0
}
