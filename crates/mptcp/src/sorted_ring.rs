//! A sorted sequence that mostly grows at its end and shrinks at its front, also if it is long.
//!
//! A ring buffer does both in constant time, but an insertion in its middle moves half of it. Hence the sequence is cut
//! into chunks: an insertion moves at most one chunk, and a lookup is a binary search among the chunks and then within
//! one. An empty sequence takes a single pointer, since most connections never use it.

use std::collections::VecDeque;

/// Maximum number of items in a chunk.
const CHUNK: usize = 256;

/// Position of an item. Valid until the next insertion or removal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    chunk: usize,
    at: usize,
}

/// Items in the order in which the caller inserts them. No chunk is empty.
#[derive(Clone, Debug)]
pub struct SortedRing<T> {
    inner: Option<Box<Inner<T>>>,
}

#[derive(Clone, Debug)]
struct Inner<T> {
    chunks: VecDeque<VecDeque<T>>,
    length: usize,
}

impl<T> Default for SortedRing<T> {
    fn default() -> Self {
        Self { inner: None }
    }
}

impl<T> SortedRing<T> {
    fn chunks(&self) -> impl DoubleEndedIterator<Item = &VecDeque<T>> {
        self.inner.iter().flat_map(|inner| inner.chunks.iter())
    }

    pub fn len(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.length)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn front(&self) -> Option<&T> {
        self.inner.as_ref()?.chunks.front()?.front()
    }

    pub fn back(&self) -> Option<&T> {
        self.inner.as_ref()?.chunks.back()?.back()
    }

    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.inner.as_mut()?.chunks.back_mut()?.back_mut()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks().flatten()
    }

    /// All items from `place` on.
    pub fn iter_from(&self, place: Place) -> impl Iterator<Item = &T> {
        let first = self.inner.iter().filter_map(move |inner| inner.chunks.get(place.chunk));
        let rest = self.inner.iter().flat_map(move |inner| inner.chunks.iter().skip(place.chunk + 1));
        first.flat_map(move |chunk| chunk.iter().skip(place.at)).chain(rest.flatten())
    }

    /// The first place whose item is not `before`, which must hold for a prefix of the items only.
    pub fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> Place {
        let Some(inner) = &self.inner else { return Place::default() };
        let chunk = inner.chunks.partition_point(|chunk| chunk.back().is_some_and(&mut before));
        match inner.chunks.get(chunk) {
            Some(found) => Place { chunk, at: found.partition_point(before) },
            None => self.end(),
        }
    }

    /// The place after the last item.
    pub fn end(&self) -> Place {
        let Some(inner) = &self.inner else { return Place::default() };
        let last = inner.chunks.len().saturating_sub(1);
        Place { chunk: last, at: inner.chunks.get(last).map_or(0, VecDeque::len) }
    }

    pub fn at(&self, place: Place) -> Option<&T> {
        self.inner.as_ref()?.chunks.get(place.chunk)?.get(place.at)
    }

    /// The item at a place. The caller must not change its order.
    pub fn at_mut(&mut self, place: Place) -> Option<&mut T> {
        self.inner.as_mut()?.chunks.get_mut(place.chunk)?.get_mut(place.at)
    }

    pub fn before(&self, place: Place) -> Option<Place> {
        if let Some(at) = place.at.checked_sub(1) {
            return Some(Place { at, ..place });
        }
        let chunk = place.chunk.checked_sub(1)?;
        let length = self.inner.as_ref()?.chunks.get(chunk)?.len();
        Some(Place { chunk, at: length.checked_sub(1)? })
    }

    pub fn after(&self, place: Place) -> Place {
        let next = Place { at: place.at + 1, ..place };
        let Some(inner) = &self.inner else { return next };
        let ends = inner.chunks.get(place.chunk).is_none_or(|chunk| next.at >= chunk.len());
        if ends && place.chunk + 1 < inner.chunks.len() { Place { chunk: place.chunk + 1, at: 0 } } else { next }
    }

    /// Inserts an item before the one at `place`; returns its place.
    pub fn insert(&mut self, place: Place, item: T) -> Place {
        let inner =
            self.inner.get_or_insert_with(|| Box::new(Inner { chunks: VecDeque::from([VecDeque::new()]), length: 0 }));
        inner.length += 1;
        let place = inner.make_room(place);
        if let Some(chunk) = inner.chunks.get_mut(place.chunk) {
            chunk.insert(place.at.min(chunk.len()), item);
        }
        place
    }

    pub fn pop_front(&mut self) -> Option<T> {
        self.remove(Place::default())
    }

    pub fn pop_back(&mut self) -> Option<T> {
        self.remove(self.before(self.end())?)
    }

    /// Removes the item at a place, which then is that of the next item, unless it was the last of a chunk.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let inner = self.inner.as_mut()?;
        let chunk = inner.chunks.get_mut(place.chunk)?;
        let item = chunk.remove(place.at)?;
        inner.length -= 1;
        if chunk.is_empty() {
            inner.chunks.remove(place.chunk);
        }
        if inner.length == 0 {
            self.inner = None;
        }
        Some(item)
    }

    /// Removes all items and releases the memory.
    pub fn clear(&mut self) {
        self.inner = None;
    }
}

impl<T> Inner<T> {
    /// Splits a full chunk. At the end of the sequence a new chunk begins instead, so that appending fills every chunk.
    fn make_room(&mut self, place: Place) -> Place {
        let Some(chunk) = self.chunks.get_mut(place.chunk).filter(|chunk| chunk.len() >= CHUNK) else { return place };
        let cut = if place.at == chunk.len() { place.at } else { CHUNK / 2 };
        let rest = chunk.split_off(cut);
        self.chunks.insert(place.chunk + 1, rest);
        if place.at >= cut { Place { chunk: place.chunk + 1, at: place.at - cut } } else { place }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Place, SortedRing};

    /// The same numbers in every run.
    fn numbers(count: usize) -> impl Iterator<Item = u64> {
        let step =
            |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        core::iter::successors(Some(1), step).map(|state| state >> 40).take(count)
    }

    fn sorted(items: impl Iterator<Item = u64>) -> (SortedRing<u64>, Vec<u64>) {
        let (mut ring, mut all) = (SortedRing::default(), Vec::new());
        for item in items {
            let place = ring.partition_point(|other| *other < item);
            let place = ring.insert(place, item);
            assert_eq!(ring.at(place), Some(&item));
            all.push(item);
        }
        all.sort_unstable();
        (ring, all)
    }

    #[test]
    fn what_is_inserted_anywhere_is_in_order() {
        let (ring, all) = sorted(numbers(5_000));
        assert_eq!((ring.len(), ring.front(), ring.back()), (5_000, all.first(), all.last()));
        assert!(ring.iter().eq(&all));
        for item in all.iter().step_by(97) {
            let place = ring.partition_point(|other| other < item);
            assert_eq!(ring.at(place), Some(item));
            assert!(ring.iter_from(place).eq(all.iter().skip_while(|other| *other < item)));
        }
    }

    #[test]
    fn places_are_walked_both_ways_over_the_ends_of_chunks() {
        let (ring, all) = sorted(numbers(3 * CHUNK));
        let mut place = Place::default();
        for item in &all {
            assert_eq!(ring.at(place), Some(item));
            place = ring.after(place);
        }
        assert_eq!(ring.at(place), None);
        for item in all.iter().rev() {
            place = ring.before(place).unwrap();
            assert_eq!(ring.at(place), Some(item));
        }
        assert_eq!(ring.before(place), None);
    }

    #[test]
    fn what_is_taken_from_both_ends_and_the_middle_is_gone() {
        let (mut ring, mut all) = sorted(numbers(2_000));
        while all.len() > 3 {
            assert_eq!(ring.pop_front(), Some(all.remove(0)));
            assert_eq!(ring.pop_back(), all.pop());
            let middle = all.remove(all.len() / 2);
            let place = ring.partition_point(|other| *other < middle);
            assert_eq!(ring.remove(place), Some(middle));
            assert!(ring.len() == all.len() && ring.front() == all.first() && ring.back() == all.last());
        }
        while ring.pop_front().is_some() {}
        assert!(ring.is_empty() && ring.iter().next().is_none() && ring.pop_back().is_none());
        ring.insert(ring.end(), 7);
        assert_eq!(ring.pop_back(), Some(7));
    }

    #[test]
    fn who_appends_fills_every_chunk() {
        let (ring, _) = sorted(0..10 * CHUNK as u64);
        assert_eq!(ring.inner.unwrap().chunks.len(), 10);
    }

    #[test]
    fn nothing_is_left_of_what_was_cleared() {
        let (mut ring, _) = sorted(numbers(3 * CHUNK));
        ring.clear();
        assert_eq!((ring.len(), ring.is_empty(), ring.front()), (0, true, None));
        ring.insert(ring.end(), 7);
        assert_eq!(ring.iter().copied().collect::<Vec<u64>>(), [7]);
    }
}
