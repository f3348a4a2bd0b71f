//! A bounded set of ranges of the stream: those that were abandoned and did not arrive later.

use std::collections::VecDeque;

/// Limit of ranges. Above it the first are removed.
const MAX_RANGES: usize = 4_096;

/// Ranges in order, not empty, not adjacent.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// Adds a range behind all others, or adjacent to the last.
    pub fn push(&mut self, start: u64, end: u64) {
        match self.ranges.back_mut() {
            Some(last) if last.1 >= start => last.1 = last.1.max(end),
            _ if start < end => self.ranges.push_back((start, end)),
            _ => {}
        }
        if self.ranges.len() > MAX_RANGES {
            self.ranges.pop_front();
        }
    }

    /// Removes `start..end`; returns the number of bytes that were in the set.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        let mut removed = 0;
        let mut at = self.ranges.partition_point(|range| range.1 <= start);
        while let Some(range) = self.ranges.get(at).copied().filter(|range| range.0 < end) {
            removed += range.1.min(end) - range.0.max(start);
            self.ranges.remove(at);
            if range.1 > end {
                self.ranges.insert(at, (end, range.1));
            }
            if range.0 < start {
                self.ranges.insert(at, (range.0, start));
                at += 1;
            }
        }
        removed
    }

    /// Number of bytes of `start..end` in the set.
    pub fn overlap(&self, start: u64, end: u64) -> u64 {
        let from = self.ranges.partition_point(|range| range.1 <= start);
        let within = self.ranges.range(from..).take_while(|range| range.0 < end);
        within.map(|range| range.1.min(end) - range.0.max(start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_comes_after_all_is_taken_out_once() {
        let mut ranges = Ranges::default();
        ranges.push(10, 20);
        ranges.push(20, 30);
        ranges.push(40, 50);
        assert_eq!((ranges.overlap(0, 100), ranges.ranges.len()), (30, 2), "those that touch are one");
        assert_eq!(ranges.remove(15, 45), 20);
        assert_eq!(ranges.remove(15, 45), 0);
        assert_eq!((ranges.remove(0, 12), ranges.remove(0, 100)), (2, 8));
    }

    #[test]
    fn of_more_stretches_than_are_remembered_the_first_are_forgotten() {
        let mut ranges = Ranges::default();
        (0..5_000).for_each(|nth| ranges.push(2 * nth, 2 * nth + 1));
        assert_eq!(ranges.overlap(0, u64::MAX), MAX_RANGES as u64);
        assert_eq!(ranges.overlap(2 * 4_999, u64::MAX), 1);
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_numbers(
            pushes in prop::collection::vec((0_u64..20, 1_u64..20), 0..20),
            takes in prop::collection::vec((0_u64..300, 0_u64..60), 0..20),
        ) {
            let (mut ranges, mut model, mut at) = (Ranges::default(), std::collections::BTreeSet::new(), 0);
            for (gap, length) in pushes {
                ranges.push(at + gap, at + gap + length);
                model.extend(at + gap..at + gap + length);
                at += gap + length;
            }
            for (start, length) in takes {
                let inside = model.range(start..start + length).count() as u64;
                prop_assert_eq!(ranges.overlap(start, start + length), inside);
                prop_assert_eq!(ranges.remove(start, start + length), inside);
                model.retain(|number| !(start..start + length).contains(number));
            }
        }
    }
}
