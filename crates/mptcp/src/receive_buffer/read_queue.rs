//! Owns in-order data that the application has not read.

use bytes::Bytes;
use std::collections::VecDeque;

/// Shorter pieces are copied together once the queue is long; longer ones are kept without a copy.
const SMALL: usize = 512;
/// Number of pieces that the queue keeps without a copy, so that an application that keeps up costs no copies.
const FREE_PLACES: usize = 8;
/// Limit of small pieces that are copied together, in bytes.
const COALESCED: usize = 16 * 1024;

/// First in, first out; the tail comes last.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    /// The oldest piece, unless only the tail is used: it is all that a fast reader needs.
    first: Option<Bytes>,
    chunks: VecDeque<Bytes>,
    tail: Vec<u8>,
}

impl ReadQueue {
    /// Appends `data`, which is not empty.
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
            self.chunks = VecDeque::new(); // an idle queue holds no memory
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_chunks_behind_a_few_others_share_blocks_of_16_kilobytes() {
        let mut queue = ReadQueue::default();
        (0..FREE_PLACES).for_each(|_| queue.push(Bytes::from_static(b"x")));
        assert_eq!(queue.places(), FREE_PLACES, "each in its own memory");
        let fill = |queue: &mut ReadQueue, count: usize| (0..count).for_each(|_| queue.push(Bytes::from(vec![7; 256])));
        fill(&mut queue, 64);
        assert_eq!(queue.places(), FREE_PLACES + 1, "16 KiB exactly");
        fill(&mut queue, 1);
        assert_eq!(queue.places(), FREE_PLACES + 2);
        queue.push(Bytes::from(vec![8; SMALL]));
        assert_eq!(queue.places(), FREE_PLACES + 3, "a large one ends the block and has its own place");
        queue.push(Bytes::from(vec![9; SMALL - 1]));
        let mut read = Vec::new();
        while let Some(bytes) = queue.pop(1_000) {
            assert!(bytes.len() <= 1_000);
            read.extend_from_slice(&bytes);
        }
        let expected = [vec![b'x'; FREE_PLACES], vec![7; 65 * 256], vec![8; SMALL], vec![9; SMALL - 1]].concat();
        assert!(read == expected);
        assert_eq!((queue.places(), queue.pop(1)), (0, None));
    }
}
