//! A queue that is empty in nearly all of its instances: an empty one takes a single pointer.

use std::collections::VecDeque;

#[derive(Clone, Debug)]
#[allow(clippy::box_collection, reason = "hardly any is used, and each pays for its place")]
pub struct RareQueue<T>(Option<Box<VecDeque<T>>>);

impl<T> Default for RareQueue<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> RareQueue<T> {
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.is_empty())
    }

    /// The oldest item.
    pub fn front(&self) -> Option<&T> {
        self.0.as_ref()?.front()
    }

    /// The newest item.
    pub fn back(&self) -> Option<&T> {
        self.0.as_ref()?.back()
    }

    pub fn push_back(&mut self, item: T) {
        self.0.get_or_insert_default().push_back(item);
    }

    /// Takes the oldest item, and keeps the memory.
    pub fn pop_front(&mut self) -> Option<T> {
        self.0.as_mut()?.pop_front()
    }

    /// Takes the oldest item; releases the memory with the last one.
    #[inline]
    pub fn take_front(&mut self) -> Option<T> {
        // The common case must not move a large item.
        if self.0.is_none() { None } else { self.take_from_some() }
    }

    #[inline(never)]
    fn take_from_some(&mut self) -> Option<T> {
        let item = self.pop_front();
        if self.is_empty() {
            self.0 = None;
        }
        item
    }

    /// All items, oldest first.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.0.as_mut().map_or(&mut [], |queue| queue.make_contiguous())
    }

    /// Removes all items, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(|queue| queue.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::RareQueue;

    #[test]
    fn it_is_a_queue_and_gives_its_memory_back() {
        let mut queue = RareQueue::default();
        assert!(queue.front().is_none() && queue.pop_front().is_none());
        (1..=3).for_each(|item| queue.push_back(item));
        queue.as_mut_slice().reverse();
        assert_eq!((queue.front(), queue.back(), queue.is_empty()), (Some(&3), Some(&1), false));
        assert_eq!((queue.pop_front(), queue.take_front(), queue.0.is_some()), (Some(3), Some(2), true));
        assert_eq!((queue.take_front(), queue.0.is_none()), (Some(1), true));
        queue.push_back(4);
        queue.clear();
        assert!(queue.is_empty() && queue.0.is_some());
    }
}
