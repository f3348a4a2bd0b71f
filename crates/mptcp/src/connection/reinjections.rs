//! Owns the ranges that wait to be reinjected on another subflow than the one that sent them last.

use anabranch_policy::ids::SubflowId;
use std::collections::VecDeque;

/// Limit of ranges that wait; further ones are left to their own subflow.
const MAX_REINJECTIONS: usize = 16_384;

/// In place of the last sender if there was none, or if it no longer carries the range, which may then be sent
/// anywhere.
pub(super) const NOBODY: SubflowId = SubflowId(u32::MAX);

/// Which outstanding data of a subflow is reinjected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// Data that the peer has not acknowledged.
    Missing,
    /// Also data acknowledged selectively. Behind a hole that is never filled on this subflow, the peer may never pass
    /// it to the data level; Linux does not.
    All,
}

/// A range to be reinjected.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReinjectedRange {
    pub start: u64,
    pub end: u64,
    pub last_sent_on: SubflowId,
}

/// The ranges that wait to be reinjected.
#[derive(Debug, Default)]
pub(super) struct Reinjections {
    pub ranges: VecDeque<ReinjectedRange>,
}

impl Reinjections {
    pub fn clear(&mut self) {
        self.ranges = VecDeque::new();
    }

    pub fn add(&mut self, start: u64, end: u64, last_sent_on: SubflowId) -> bool {
        if start >= end {
            return true;
        }
        let full = self.ranges.len() >= MAX_REINJECTIONS;
        match self.ranges.back_mut() {
            Some(last) if last.end == start && last.last_sent_on == last_sent_on => last.end = end,
            _ if full => return false,
            _ => self.ranges.push_back(ReinjectedRange { start, end, last_sent_on }),
        }
        true
    }

    /// The first unacknowledged range that a subflow other than its last sender can take, and its index. Earlier ranges
    /// wait, since their last sender still carries them, but must not block later ones.
    pub fn first(&mut self, una: u64, can_take: impl Fn(SubflowId) -> bool) -> Option<(usize, ReinjectedRange)> {
        while self.ranges.front().is_some_and(|first| first.end <= una) {
            self.ranges.pop_front();
        }
        if self.ranges.is_empty() {
            self.ranges = VecDeque::new();
            return None;
        }
        let at = self.ranges.iter().position(|s| s.start.max(una) < s.end && can_take(s.last_sent_on))?;
        let range = self.ranges.get_mut(at)?;
        range.start = range.start.max(una);
        Some((at, *range))
    }

    /// Queues a range before all others. A waiting range that contains it is moved to the front.
    pub fn add_first(&mut self, range: ReinjectedRange) {
        let same = |other: &ReinjectedRange| (other.start, other.last_sent_on) == (range.start, range.last_sent_on);
        let waiting = self.ranges.iter().position(same).and_then(|at| self.ranges.remove(at));
        let end = waiting.map_or(range.end, |waiting| waiting.end.max(range.end));
        self.ranges.push_front(ReinjectedRange { end, ..range });
    }

    pub fn advance(&mut self, at: usize, to: u64) {
        self.ranges.get_mut(at).into_iter().for_each(|range| range.start = to);
    }
}

#[cfg(test)]
mod tests {
    use super::{NOBODY, Reinjections, SubflowId};

    #[test]
    fn a_range_that_only_its_own_subflow_could_take_does_not_keep_back_those_behind_it() {
        let mut reinjections = Reinjections::default();
        reinjections.add(5_000, 6_000, SubflowId(1));
        reinjections.add(2_000, 3_000, SubflowId(0));
        reinjections.add(1_000, 1_500, NOBODY);
        let only_subflow_1_is_left = |last: SubflowId| last != SubflowId(1);
        let (at, range) = reinjections.first(2_200, only_subflow_1_is_left).unwrap();
        assert_eq!((at, range.start, range.end), (1, 2_200, 3_000));
        reinjections.advance(at, 3_000);
        assert!(reinjections.first(2_200, only_subflow_1_is_left).is_none());
        let (at, range) = reinjections.first(2_200, |_| true).unwrap();
        assert_eq!((at, range.start), (0, 5_000));
    }
}
