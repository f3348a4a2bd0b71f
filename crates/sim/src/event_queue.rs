//! The event queue: a heap of (time, sequence number, target); events of equal time keep their order of insertion.
//!
//! Each link and each timer has at most one valid entry, so the heap stays as small as the network, and a 4-ary heap of
//! 16-byte entries fits into the first-level cache. The next few events stand before it in sorted order: most
//! insertions are among them, for example of packets on a fast link, and never reach the heap.

use anabranch_policy::time::Instant;

/// The target of an event: a kind and an index, 24 bits together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target(u32);

const INDEX_BITS: u32 = 20;

impl Target {
    /// Limit of indices per kind.
    pub const LIMIT: usize = 1 << INDEX_BITS;

    /// `kind` is 0 to 15.
    ///
    /// # Panics
    /// If the index is not below [`Self::LIMIT`]: networks of a million links are not supported.
    pub fn new(kind: u32, index: usize) -> Self {
        assert!(index < Self::LIMIT && kind < 16, "too many targets of one kind");
        Self(kind << INDEX_BITS | index as u32)
    }
    pub fn kind(self) -> u32 {
        self.0 >> INDEX_BITS
    }
    pub fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

/// Time in the upper half, then 40 bits of sequence number and 24 of target: one comparison orders it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Entry(u128);

impl Entry {
    fn time(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
    fn target(self) -> Target {
        Target(self.0 as u32 & 0xff_ffff)
    }
}

/// Number of sorted events before the heap.
const NEAR: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// The next events, the last one first: none is later than the first in the heap.
    near: [Entry; NEAR],
    near_len: usize,
    heap: Vec<Entry>,
    put: u64,
}

impl EventQueue {
    pub fn new() -> Self {
        Self::default()
    }
    /// Number of events ever inserted.
    pub fn total(&self) -> u64 {
        self.put
    }
    #[inline(never)]
    pub fn put(&mut self, time: Instant, target: Target) {
        let entry = Entry(u128::from(time.as_nanos()) << 64 | u128::from(self.put << 24) | u128::from(target.0));
        self.put += 1;
        if self.heap.first().is_some_and(|first| *first < entry) {
            return self.push(entry);
        }
        if self.near_len == NEAR {
            let last = self.near[0];
            if last < entry {
                return self.push(entry);
            }
            self.push(last);
            self.near.copy_within(1.., 0);
            self.near_len -= 1;
        }
        let mut at = self.near_len;
        while let Some(before) = at.checked_sub(1)
            && self.near[before] < entry
        {
            self.near[at] = self.near[before];
            at = before;
        }
        self.near[at] = entry;
        self.near_len += 1;
    }
    /// Time of the first event, [`Instant::NEVER`] if there is none.
    pub fn next_time(&self) -> Instant {
        self.first().map_or(Instant::NEVER, Entry::time)
    }
    /// Removes the first event if it is due at `end` or before.
    #[inline]
    pub fn take(&mut self, end: Instant) -> Option<(Instant, Target)> {
        let first = self.first().filter(|first| first.time() <= end)?;
        match self.near_len.checked_sub(1) {
            Some(left) => self.near_len = left,
            None => self.remove_root(),
        }
        Some((first.time(), first.target()))
    }

    #[inline]
    fn first(&self) -> Option<Entry> {
        match self.near_len.checked_sub(1) {
            Some(at) => self.near.get(at).copied(),
            None => self.heap.first().copied(),
        }
    }
    fn push(&mut self, entry: Entry) {
        self.heap.push(entry);
        self.sift_up(entry);
    }
    fn remove_root(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
    }
    /// Inserts `entry` on the way down from the root, whose old entry is overwritten.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let Some((least, least_entry)) = least_child(heap, first) else { break };
            if entry <= least_entry {
                break;
            }
            heap[at] = least_entry;
            at = least;
        }
        heap[at] = entry;
    }
    fn sift_up(&mut self, entry: Entry) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }
}

/// The least of up to four children, and its index.
#[inline]
fn least_child(heap: &[Entry], first: usize) -> Option<(usize, Entry)> {
    let earlier = |a: (usize, Entry), b: (usize, Entry)| if b.1 < a.1 { b } else { a };
    // The common case: three comparisons without a branch.
    if let Some(&[a, b, c, d]) = heap.get(first..first + 4) {
        return Some(earlier(earlier((first, a), (first + 1, b)), earlier((first + 2, c), (first + 3, d))));
    }
    let rest = heap.get(first..)?;
    rest.iter().enumerate().map(|(at, entry)| (first + at, *entry)).reduce(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = EventQueue::new();
        for index in 0..100 {
            queue.put(at(5), Target::new(1, index));
        }
        let order: Vec<usize> = core::iter::from_fn(|| queue.take(at(5))).map(|(_, target)| target.index()).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_taken_before_it_is_due() {
        let mut queue = EventQueue::new();
        queue.put(at(5), Target::new(2, 7));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.next_time(), at(5));
        let (time, target) = queue.take(at(9)).unwrap();
        assert_eq!((time, target.kind(), target.index()), (at(5), 2, 7));
        assert_eq!(queue.next_time(), Instant::NEVER);
        assert_eq!(queue.take(Instant::NEVER), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list(steps in proptest::collection::vec((0u64..50, any::<bool>()), 0..300)) {
            let mut queue = EventQueue::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (index, (time, take)) in steps.into_iter().enumerate() {
                if take {
                    model.sort();
                    let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                    let taken = queue.take(Instant::NEVER).map(|(time, target)| (time.as_nanos(), target.index()));
                    prop_assert_eq!(taken, expected);
                } else {
                    queue.put(at(time), Target::new(0, index));
                    model.push((time, index));
                }
            }
        }
    }
}
