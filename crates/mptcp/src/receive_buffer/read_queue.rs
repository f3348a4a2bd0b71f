//! Owns the bytes in order that the application has not read.

use bytes::Bytes;
use std::collections::VecDeque;

/// Shorter arrivals are copied together once the queue has some length; longer ones are kept as they came.
const SMALL: usize = 512;
/// The queue takes this many pieces of any size, so that an application that keeps up costs no copies.
const FREE_PLACES: usize = 8;
/// Small arrivals are copied together up to this many bytes.
const COALESCED: usize = 16 * 1024;
/// An empty queue of more places than this gives its memory back.
const IDLE_PLACES: usize = 1;

/// First in, first out; the tail comes after all chunks.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    chunks: VecDeque<Bytes>,
    tail: Vec<u8>,
}

impl ReadQueue {
    /// Appends; `data` is not empty.
    pub(super) fn push(&mut self, data: Bytes) {
        let few = self.chunks.len() < FREE_PLACES && self.tail.is_empty();
        if few || data.len() >= SMALL {
            self.seal_tail();
            if self.chunks.is_empty() {
                self.chunks.reserve_exact(1); // all that a reader who keeps up ever needs
            }
            self.chunks.push_back(data);
            return;
        }
        if self.tail.len() + data.len() > COALESCED {
            self.seal_tail();
        }
        self.tail.extend_from_slice(&data);
    }

    /// The oldest bytes, at most `max`.
    pub(super) fn pop(&mut self, max: usize) -> Option<Bytes> {
        if max == 0 {
            return None;
        }
        if self.chunks.is_empty() {
            self.seal_tail();
        }
        let front = self.chunks.front_mut()?;
        if front.len() > max {
            return Some(front.split_to(max));
        }
        let chunk = self.chunks.pop_front();
        if self.chunks.is_empty() && self.chunks.capacity() > IDLE_PLACES {
            self.chunks = VecDeque::new();
        }
        chunk
    }

    /// Chunks and the tail, for tests of the memory bound.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.chunks.len() + usize::from(!self.tail.is_empty())
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push_back(Bytes::from(std::mem::take(&mut self.tail)));
        }
    }
}
