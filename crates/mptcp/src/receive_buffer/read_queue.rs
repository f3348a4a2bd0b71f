//! Owns the bytes in order that the application has not read.

use bytes::Bytes;
use std::collections::VecDeque;

/// Shorter arrivals are copied together once the queue has some length; longer ones are kept as they came.
const SMALL: usize = 512;
/// The queue takes this many pieces of any size, so that an application that keeps up costs no copies.
const FREE_PLACES: usize = 8;
/// Small arrivals are copied together up to this many bytes.
const COALESCED: usize = 16 * 1024;

/// First in, first out; the tail comes after all chunks.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    /// The oldest, if anything but the tail is held: all that a reader who keeps up ever needs.
    first: Option<Bytes>,
    /// What came after it.
    chunks: VecDeque<Bytes>,
    tail: Vec<u8>,
}

impl ReadQueue {
    /// Appends; `data` is not empty.
    #[inline]
    pub(super) fn push(&mut self, data: Bytes) {
        if self.first.is_none() && self.tail.is_empty() {
            self.first = Some(data);
        } else {
            self.push_behind(data);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, data: Bytes) {
        let few = self.chunks.len() + 1 < FREE_PLACES && self.tail.is_empty();
        if few || data.len() >= SMALL {
            self.seal_tail();
            self.chunks.push_back(data);
            return;
        }
        if self.tail.len() + data.len() > COALESCED {
            self.seal_tail();
        }
        self.tail.extend_from_slice(&data);
    }

    /// The oldest bytes, at most `max`.
    #[inline]
    pub(super) fn pop(&mut self, max: usize) -> Option<Bytes> {
        if max == 0 {
            return None;
        }
        if self.first.is_none() {
            self.seal_tail();
        }
        let front = self.first.as_mut()?;
        if front.len() > max {
            return Some(front.split_to(max));
        }
        let chunk = self.first.take();
        if !self.chunks.is_empty() {
            self.move_up();
        }
        chunk
    }

    /// Chunks and the tail, for tests of the memory bound.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        usize::from(self.first.is_some()) + self.chunks.len() + usize::from(!self.tail.is_empty())
    }

    #[inline(never)]
    fn move_up(&mut self) {
        self.first = self.chunks.pop_front();
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new(); // an idle queue keeps no memory
        }
    }

    #[inline]
    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.seal_some_tail();
        }
    }

    #[inline(never)]
    fn seal_some_tail(&mut self) {
        let sealed = Bytes::from(core::mem::take(&mut self.tail));
        match &self.first {
            Some(_) => self.chunks.push_back(sealed),
            None => self.first = Some(sealed),
        }
    }
}
