//! Owns the bytes that were written and are not yet acknowledged at data level.

use bytes::Bytes;
use std::collections::VecDeque;

/// Shorter writes are copied together; longer ones are kept without a copy.
const SMALL_WRITE: usize = 1024;
/// Limit of small writes that are copied together, in bytes.
const COALESCED: usize = 16 * 1024;

/// A range of data that no write is appended to.
#[derive(Debug)]
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// The written bytes by data sequence, counted from 0 at the first byte of the stream.
///
/// Large writes are stored without a copy, so a [`Bytes`] cut from a much larger allocation keeps all of it alive.
/// Small writes are appended to the tail: each costs a copy instead of a queue entry.
#[derive(Debug)]
pub struct SendBuffer {
    limit: u64,
    start: u64,
    /// Oldest first, contiguous, up to `tail_start`.
    chunks: VecDeque<Chunk>,
    tail: Vec<u8>,
    tail_start: u64,
    /// Index of the chunk of the furthest slice so far, from which the next search starts.
    cursor: usize,
}

impl SendBuffer {
    /// An empty buffer without an allocation, of at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, start: 0, chunks: VecDeque::new(), tail: Vec::new(), tail_start: 0, cursor: 0 }
    }

    /// Maximum size in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Raises the limit; never lowers it.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Lowers the limit; never raises it. What is in the buffer stays.
    pub fn lower_limit(&mut self, limit: u64) {
        self.limit = self.limit.min(limit);
    }

    /// Bytes written and not acknowledged.
    pub fn held(&self) -> u64 {
        self.end() - self.start
    }

    /// Appends as much of `data` as fits; returns the number of bytes.
    pub fn write(&mut self, mut data: Bytes) -> usize {
        let taken = usize::try_from(self.space()).unwrap_or(usize::MAX).min(data.len());
        data.truncate(taken);
        if data.is_empty() {
            return 0;
        }
        if taken < SMALL_WRITE {
            if self.tail.len() + taken > COALESCED {
                self.seal_tail();
            }
            self.tail.extend_from_slice(&data);
        } else {
            self.seal_tail();
            self.push_chunk(data);
        }
        taken
    }

    /// Bytes that [`Self::write`] would accept.
    pub fn space(&self) -> u64 {
        self.limit.saturating_sub(self.held())
    }

    /// Data sequence of the first unacknowledged byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Data sequence after the last byte written.
    pub fn end(&self) -> u64 {
        self.tail_start + self.tail.len() as u64
    }

    /// The bytes from `data_seq` on: `max_len` of them, fewer only at the end of the written data. None if `data_seq`
    /// is acknowledged or not yet written, or `max_len` is 0.
    ///
    /// Bytes of a single large write are not copied. Takes constant time for new data in order, and a binary search
    /// otherwise.
    #[inline(always)]
    pub fn slice(&mut self, data_seq: u64, max_len: usize) -> Option<Bytes> {
        // New data continues where the last slice ended.
        if let Some(chunk) = self.chunks.get(self.cursor)
            && data_seq >= chunk.start.max(self.start)
            && data_seq.saturating_add(max_len as u64) <= chunk.end()
            && max_len > 0
        {
            let from = (data_seq - chunk.start) as usize;
            return Some(chunk.bytes.slice(from..from + max_len));
        }
        self.slice_anywhere(data_seq, max_len)
    }

    #[inline(never)]
    fn slice_anywhere(&mut self, data_seq: u64, max_len: usize) -> Option<Bytes> {
        if data_seq < self.start || data_seq >= self.end() || max_len == 0 {
            return None;
        }
        let available = usize::try_from(self.end() - data_seq).unwrap_or(usize::MAX);
        let length = max_len.min(available);
        let index = self.find(data_seq);
        if let Some(chunk) = self.chunks.get(index) {
            let from = (data_seq - chunk.start) as usize;
            if chunk.bytes.len() - from >= length {
                return Some(chunk.bytes.slice(from..from + length));
            }
        }
        Some(self.join(index, data_seq, length))
    }

    /// Frees data before `up_to` (a data-level acknowledgement, RFC 8684, section 3.3.2); returns the number of newly
    /// acknowledged bytes. A position beyond the end of the data counts as the end.
    pub fn acknowledge(&mut self, up_to: u64) -> u64 {
        let up_to = up_to.min(self.end());
        let newly = up_to.saturating_sub(self.start);
        if newly == 0 {
            return 0;
        }
        self.start = up_to;
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= up_to) {
            self.chunks.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        if up_to == self.end() {
            self.tail_start = up_to;
            self.tail = Vec::new();
        }
        if self.chunks.is_empty() && self.chunks.capacity() > 0 {
            self.chunks = VecDeque::new();
        }
        newly
    }

    /// Removes `start..end`, of which nothing was sent, and moves later data up. Returns the number of bytes removed.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        let (start, end) = (start.max(self.start), end.min(self.end()));
        if start >= end {
            return 0;
        }
        self.seal_tail();
        let mut behind = VecDeque::new();
        while self.chunks.back().is_some_and(|chunk| chunk.end() > start)
            && let Some(mut chunk) = self.chunks.pop_back()
        {
            if chunk.end() > end {
                let from = end.saturating_sub(chunk.start) as usize;
                behind.push_front(chunk.bytes.slice(from..));
            }
            if chunk.start < start {
                chunk.bytes.truncate((start - chunk.start) as usize);
                self.chunks.push_back(chunk);
                break;
            }
        }
        self.tail_start = start;
        self.cursor = self.cursor.min(self.chunks.len());
        behind.into_iter().for_each(|bytes| self.push_chunk(bytes));
        end - start
    }

    /// The index of the chunk with `data_seq`, which is not acknowledged; the number of chunks if it is in the tail.
    fn find(&mut self, data_seq: u64) -> usize {
        let holds = |index: usize| self.chunks.get(index).is_some_and(|c| c.start <= data_seq && data_seq < c.end());
        let index = if data_seq >= self.tail_start {
            self.chunks.len()
        } else if holds(self.cursor) {
            self.cursor
        } else if holds(self.cursor + 1) {
            self.cursor + 1
        } else {
            self.chunks.partition_point(|chunk| chunk.end() <= data_seq)
        };
        // A retransmission must not move the cursor back.
        self.cursor = self.cursor.max(index);
        index
    }

    /// A copy of `length` bytes from `data_seq`, which is in the chunk at `index` or in the tail.
    fn join(&self, index: usize, data_seq: u64, length: usize) -> Bytes {
        let mut joined = Vec::with_capacity(length);
        let mut at = data_seq;
        let mut index = index;
        while joined.len() < length {
            let (start, held) = match self.chunks.get(index) {
                Some(chunk) => (chunk.start, chunk.bytes.as_ref()),
                None => (self.tail_start, self.tail.as_slice()),
            };
            let wanted = length - joined.len();
            let Some(rest) = held.get((at - start) as usize..).filter(|rest| !rest.is_empty()) else { break };
            let part = rest.get(..wanted).unwrap_or(rest);
            joined.extend_from_slice(part);
            at += part.len() as u64;
            index += 1;
        }
        debug_assert_eq!(joined.len(), length);
        Bytes::from(joined)
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.push_chunk(Bytes::from(tail));
        }
    }

    /// Requires an empty tail.
    fn push_chunk(&mut self, bytes: Bytes) {
        let start = self.tail_start;
        self.tail_start += bytes.len() as u64;
        self.chunks.push_back(Chunk { start, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The byte at a data sequence, with a period that divides no power of two.
    fn pattern(at: u64) -> u8 {
        (at % 251) as u8
    }

    fn range(from: u64, len: usize) -> Bytes {
        (from..from + len as u64).map(pattern).collect()
    }

    fn filled(writes: &[usize]) -> SendBuffer {
        let mut buffer = SendBuffer::new(u64::MAX);
        for &len in writes {
            let data = range(buffer.end(), len);
            assert_eq!(buffer.write(data), len);
        }
        buffer
    }

    #[test]
    fn small_writes_are_copied_together_up_to_16_kib() {
        let chunks = |writes: &[usize]| {
            let buffer = filled(writes);
            (buffer.chunks.iter().map(|chunk| chunk.bytes.len()).collect::<Vec<_>>(), buffer.tail.len())
        };
        assert_eq!(chunks(&[1_000; 16]), (vec![], 16_000));
        assert_eq!(chunks(&[[1_000; 16].as_slice(), &[384]].concat()), (vec![], 16_384));
        assert_eq!(chunks(&[[1_000; 16].as_slice(), &[385, 10]].concat()), (vec![16_000], 395));
        // A longer one is a chunk of its own.
        assert_eq!(chunks(&[1_000, 1_023, 1_024, 10]), (vec![2_023, 1_024], 10));
    }

    #[test]
    fn a_write_is_cut_at_the_limit_and_space_comes_back_with_the_acknowledgement() {
        let mut buffer = SendBuffer::new(3_000);
        assert_eq!(buffer.write(range(0, 2_000)), 2_000);
        assert_eq!(buffer.write(range(2_000, 2_000)), 1_000);
        assert_eq!((buffer.space(), buffer.end()), (0, 3_000));
        assert_eq!(buffer.write(range(3_000, 1)), 0);
        assert_eq!(buffer.acknowledge(500), 500);
        assert_eq!((buffer.start(), buffer.space()), (500, 500));
        assert_eq!(buffer.write(range(3_000, 10)), 10);
        assert_eq!(buffer.slice(2_999, 100).unwrap(), range(2_999, 11));
    }

    #[test]
    fn a_slice_within_one_large_write_is_not_copied() {
        let mut buffer = SendBuffer::new(u64::MAX);
        let data = range(0, 10_000);
        let address = data.as_ptr();
        buffer.write(data);
        assert_eq!(buffer.slice(1_400, 1_400).unwrap().as_ptr(), address.wrapping_add(1_400));
    }

    #[test]
    fn a_segment_stays_full_sized_across_writes_of_all_sizes() {
        let mut buffer = filled(&[1_500, 10, 10, 2_000, 700]);
        assert_eq!(buffer.slice(1_000, 1_400).unwrap(), range(1_000, 1_400));
        assert_eq!(buffer.slice(0, 10_000).unwrap(), range(0, 4_220));
        assert_eq!(buffer.slice(4_000, 1_400).unwrap(), range(4_000, 220));
    }

    #[test]
    fn nothing_comes_from_outside_what_is_held() {
        let mut buffer = filled(&[2_000]);
        buffer.acknowledge(100);
        assert_eq!(buffer.slice(99, 10), None);
        assert_eq!(buffer.slice(2_000, 10), None);
        assert_eq!(buffer.slice(100, 0), None);
        assert_eq!(buffer.slice(100, 10).unwrap(), range(100, 10));
    }

    #[test]
    fn an_acknowledgement_that_is_old_or_beyond_the_end_does_no_harm() {
        let mut buffer = filled(&[2_000, 100]);
        assert_eq!(buffer.acknowledge(2_050), 2_050);
        assert_eq!(buffer.acknowledge(2_000), 0);
        assert_eq!(buffer.acknowledge(5_000), 50);
        assert_eq!((buffer.start(), buffer.end()), (2_100, 2_100));
        buffer.write(range(2_100, 30));
        assert_eq!(buffer.slice(2_100, 30).unwrap(), range(2_100, 30));
    }

    #[test]
    fn a_hundred_thousand_small_writes_take_few_chunks() {
        let mut buffer = SendBuffer::new(u64::MAX);
        for at in 0..100_000 {
            buffer.write(range(at, 1));
            // An interactive application: each byte is sent before the next is written.
            assert_eq!(buffer.slice(at, 1_400).unwrap(), range(at, 1));
        }
        // 100 000 / 16 384 = 6.1
        assert_eq!(buffer.chunks.len(), 6);
        assert_eq!(buffer.slice(0, 100_000).unwrap(), range(0, 100_000));
    }

    #[test]
    fn a_buffer_that_was_full_and_is_empty_again_holds_no_memory() {
        let mut buffer = filled(&[1_024; 1_000]);
        buffer.write(range(buffer.end(), 10));
        buffer.acknowledge(buffer.end());
        assert_eq!((buffer.chunks.capacity(), buffer.tail.capacity()), (0, 0));
    }

    #[test]
    fn an_empty_buffer_is_small() {
        assert!(size_of::<SendBuffer>() <= 96, "{}", size_of::<SendBuffer>());
    }

    #[test]
    fn a_retransmission_does_not_move_the_place_of_new_data() {
        let mut buffer = filled(&[1_024; 100]);
        buffer.slice(50 * 1_024, 1_024);
        buffer.slice(3 * 1_024, 1_024);
        assert_eq!(buffer.cursor, 50);
        buffer.acknowledge(10 * 1_024);
        assert_eq!(buffer.cursor, 40);
        assert_eq!(buffer.slice(51 * 1_024, 10).unwrap(), range(51 * 1_024, 10));
        assert_eq!(buffer.cursor, 41);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(usize),
        Slice(u64, usize),
        Acknowledge(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => prop_oneof![1..20usize, 500..1_100usize, 1_000..9_000usize].prop_map(Step::Write),
            4 => (0..40_000u64, 0..3_000usize).prop_map(|(at, len)| Step::Slice(at, len)),
            2 => (0..5_000u64).prop_map(Step::Acknowledge),
        ]
    }

    #[test]
    fn what_follows_something_taken_out_moves_up() {
        for writes in [&[5_000, 10, 3_000][..], &[100, 200, 300], &[2_000, 2_000, 2_000]] {
            let total: u64 = writes.iter().map(|length| *length as u64).sum();
            for (start, end) in [(0, 10), (50, 150), (90, total), (99, 100), (total - 1, total)] {
                let mut buffer = filled(writes);
                assert_eq!(buffer.remove(start, end), end - start);
                assert_eq!(buffer.end(), total - (end - start));
                let left = [range(0, start as usize), range(end, (total - end) as usize)].concat();
                assert_eq!(buffer.slice(0, usize::MAX).unwrap_or_default(), left);
                assert_eq!(buffer.write(range(7, 3)), 3);
                assert_eq!(buffer.slice(buffer.end() - 3, 10).unwrap(), range(7, 3));
            }
        }
    }

    proptest! {
        #[test]
        fn every_slice_equals_what_was_written_there(steps in proptest::collection::vec(step(), 1..120)) {
            let limit = 30_000;
            let mut buffer = SendBuffer::new(limit);
            let (mut start, mut end) = (0u64, 0u64);
            for step in steps {
                match step {
                    Step::Write(len) => {
                        let taken = buffer.write(range(end, len)) as u64;
                        prop_assert_eq!(taken, (len as u64).min(limit - (end - start)));
                        end += taken;
                    }
                    Step::Slice(ahead, len) => {
                        // From a little before the buffer to a little beyond it.
                        let at = (start + ahead).saturating_sub(1_000);
                        let expected = (start..end).contains(&at) && len > 0;
                        let wanted = expected.then(|| range(at, len.min((end - at) as usize)));
                        prop_assert_eq!(buffer.slice(at, len), wanted);
                    }
                    Step::Acknowledge(count) => {
                        let up_to = (start + count).min(end);
                        prop_assert_eq!(buffer.acknowledge(start + count), up_to - start);
                        start = up_to;
                    }
                }
                prop_assert_eq!((buffer.start(), buffer.end()), (start, end));
                prop_assert!(buffer.chunks.iter().all(|chunk| chunk.end() > start));
            }
        }
    }

    #[test]
    fn a_limit_that_is_lowered_keeps_what_is_there_and_does_not_rise() {
        let mut buffer = SendBuffer::new(100);
        assert_eq!(buffer.write(range(0, 80)), 80);
        buffer.lower_limit(60);
        assert_eq!((buffer.limit(), buffer.held(), buffer.write(range(80, 1))), (60, 80, 0));
        buffer.lower_limit(70);
        assert_eq!(buffer.limit(), 60);
    }
}
