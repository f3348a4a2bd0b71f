//! Owns the data that the application has not read yet: reassembly at data level, and the receive window.
//!
//! Positions are offsets in the peer's stream, from 0 at its first byte. Memory is bounded: payload never exceeds the
//! size of the buffer, and the budget for out-of-order pieces includes their overhead, so that a peer cannot exhaust
//! memory with single bytes. A piece of payload keeps its allocation alive; callers should pass slices of packets, not
//! of megabytes.

mod out_of_order;
mod read_queue;
#[cfg(test)]
mod tests;

use crate::config::BufferSize;
use anabranch_policy::time::{Duration, Instant};
use bytes::{Buf, Bytes};
use out_of_order::OutOfOrder;
use read_queue::ReadQueue;

/// Segment size before [`ReceiveBuffer::set_segment_size`]: Ethernet, IPv4, no options.
const DEFAULT_SEGMENT: u32 = 1460;
/// Full segments that an automatic buffer leaves free above the measured rate.
const HEADROOM_SEGMENTS: u64 = 16;
/// Limit of out-of-order pieces with their overhead, as a multiple of the buffer size.
const OUT_OF_ORDER_FACTOR: u64 = 2;

/// Result of [`ReceiveBuffer::insert`], in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inserted {
    /// By how much the next expected offset moved, including bytes that had waited out of order.
    pub in_order_advance: u64,
    /// Bytes stored out of order.
    pub out_of_order: u64,
    /// Bytes that had arrived before. The earlier copy is kept.
    pub duplicate: u64,
    /// Bytes dropped, for the reasons in [`Dropped`]. The peer must send them again.
    pub dropped: u64,
}

/// Bytes dropped since the beginning, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Beyond the right edge of the advertised window.
    pub beyond_window: u64,
    /// Beyond the end of the stream.
    pub beyond_end: u64,
    /// Out of order, in too many small pieces.
    pub too_scattered: u64,
    /// Within the window, but the memory that connections share was exhausted.
    pub without_memory: u64,
}

/// The peer announced an end of its stream that contradicts earlier data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the end of the stream contradicts earlier data or an earlier end")]
pub struct EndConflict;

/// Reassembly, the queue of readable data, and the receive window.
#[derive(Debug)]
pub struct ReceiveBuffer {
    queue: ReadQueue,
    out_of_order: OutOfOrder,
    /// Next offset to be read.
    read: u64,
    /// Next offset expected from the peer (RCV.NXT).
    next: u64,
    /// Right edge of the advertised window: data at or beyond it is dropped. Never moves left.
    right_edge: u64,
    size: u64,
    max_size: u64,
    /// `u64::MAX` while unknown.
    end: u64,
    segment_size: u32,
    charge_out_of_order: bool,
    round_trip: Duration,
    round_started: Instant,
    round_read: u64,
    /// Bytes read in the previous round trip.
    round_bytes: u64,
    /// On the heap, since it is rarely used.
    dropped: Option<Box<Dropped>>,
}

impl ReceiveBuffer {
    /// An empty buffer without an allocation. A size of 0 counts as 1, since nothing could ever arrive.
    pub fn new(size: BufferSize) -> Self {
        let (size, max_size) = match size {
            BufferSize::Fixed(size) => (size.max(1), size.max(1)),
            BufferSize::Auto { initial, max } => (initial.max(1), max.max(initial).max(1)),
        };
        Self {
            queue: ReadQueue::default(),
            out_of_order: OutOfOrder::default(),
            read: 0,
            next: 0,
            right_edge: size,
            size,
            max_size,
            end: u64::MAX,
            segment_size: DEFAULT_SEGMENT,
            charge_out_of_order: false,
            round_trip: Duration::ZERO,
            round_started: Instant::ZERO,
            round_read: 0,
            round_bytes: 0,
            dropped: None,
        }
    }

    /// Stores payload that starts at `offset`. Of bytes that overlap, the first copy is kept.
    ///
    /// In-order payload within the window is accepted even if the out-of-order budget is exhausted: dropping the
    /// segment that would free memory would block both ends for ever.
    #[inline]
    pub fn insert(&mut self, now: Instant, offset: u64, data: Bytes) -> Inserted {
        let end = offset.saturating_add(data.len() as u64);
        let next_in_order = offset == self.next && offset > 0 && self.out_of_order.is_empty();
        if !next_in_order || end > self.right_edge.min(self.end) || data.is_empty() {
            return self.insert_anywhere(now, offset, data);
        }
        let in_order_advance = data.len() as u64;
        self.push(data);
        Inserted { in_order_advance, ..Inserted::default() }
    }

    #[inline(never)]
    fn insert_anywhere(&mut self, now: Instant, offset: u64, mut data: Bytes) -> Inserted {
        let mut inserted = Inserted::default();
        self.trim_right(offset, &mut data, &mut inserted);
        let old = self.next.saturating_sub(offset).min(data.len() as u64);
        if old > 0 {
            data.advance(old as usize);
            inserted.duplicate = old;
        }
        if data.is_empty() {
            return inserted;
        }
        let offset = offset + old;
        if self.next == 0 && self.out_of_order.is_empty() {
            self.round_started = now;
        }
        if offset == self.next {
            let before = self.next;
            if self.out_of_order.is_empty() {
                self.push(data);
            } else {
                inserted.duplicate += self.fill(data);
            }
            inserted.in_order_advance = self.next - before;
        } else {
            let budget = self.size.saturating_mul(OUT_OF_ORDER_FACTOR);
            let stored = self.out_of_order.insert(offset, data, budget);
            inserted.out_of_order = stored.new;
            inserted.duplicate += stored.duplicate;
            inserted.dropped += stored.dropped;
            if stored.dropped > 0 {
                self.dropped.get_or_insert_default().too_scattered += stored.dropped;
            }
        }
        inserted
    }

    /// The next bytes in order, at most `max` of one contiguous piece; none if nothing is readable. May grow an
    /// automatic buffer, and moves the window.
    #[cfg(test)]
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Bytes> {
        self.read_within(now, max, u64::MAX)
    }

    /// The same where there is memory for a buffer of `allowed` bytes. An automatic buffer that is larger shrinks: the
    /// window stays until the reader has caught up.
    #[inline]
    pub fn read_within(&mut self, now: Instant, max: usize, allowed: u64) -> Option<Bytes> {
        let bytes = self.queue.pop(max)?;
        self.read += bytes.len() as u64;
        self.end_round(now, allowed);
        self.advance_right_edge();
        Some(bytes)
    }

    /// Counts bytes that the caller drops for want of memory.
    pub fn refuse(&mut self, bytes: u64) -> Inserted {
        self.dropped.get_or_insert_default().without_memory += bytes;
        Inserted { dropped: bytes, ..Inserted::default() }
    }

    /// The next bytes in order, for a caller that keeps them until they are read and then calls [`Self::record_read`].
    pub fn take(&mut self) -> Option<Bytes> {
        self.queue.pop(usize::MAX)
    }

    /// Everything before `to` has been read or was abandoned; `allowed` as in [`Self::read_within`].
    pub fn record_read(&mut self, now: Instant, to: u64, allowed: u64) {
        self.read = self.read.max(to.min(self.next));
        self.end_round(now, allowed);
        self.advance_right_edge();
    }

    /// Abandons missing data before `to`, at most up to the first byte that has arrived, since only a hole in front of
    /// received data can be abandoned. Data behind it becomes readable. Returns the number of bytes abandoned.
    pub fn skip_to(&mut self, to: u64) -> u64 {
        let Some(first) = self.out_of_order.first() else { return 0 };
        let to = to.min(first);
        let skipped = to.saturating_sub(self.next);
        self.next += skipped;
        while self.out_of_order.first() == Some(self.next)
            && let Some(piece) = self.out_of_order.pop_first()
        {
            self.push(piece);
        }
        skipped
    }

    /// Removes what has arrived out of order from `offset` on.
    pub fn forget_from(&mut self, offset: u64) {
        self.out_of_order.forget_from(offset);
    }

    /// Whether all of `start..end`, beyond the first hole, has arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        self.out_of_order.has(start, end)
    }

    /// A copy of the out-of-order bytes `start..end`, extended by up to `more` contiguous bytes on either side, and its
    /// first offset. If a part of `start..end` is missing, returns what follows the last missing byte.
    pub fn held_around(&self, start: u64, end: u64, more: usize) -> (u64, Vec<u8>) {
        self.out_of_order.around(start, end, more as u64)
    }

    /// The message to be read next, of `bytes` bytes, must fit as a whole: an automatic buffer grows, and the window
    /// opens for all of it, even by a small step. Returns whether a window update is due.
    pub fn make_room_for(&mut self, bytes: u64) -> bool {
        let before = self.right_edge;
        let wanted = bytes.saturating_add(HEADROOM_SEGMENTS * u64::from(self.segment_size));
        if wanted > self.size && self.size < self.max_size {
            self.size = wanted.min(self.max_size);
            self.advance_right_edge();
        }
        let end = self.read.saturating_add(bytes.min(self.size));
        self.right_edge = self.right_edge.max(end);
        self.right_edge > before
    }

    /// The maximum size of an automatic buffer, in bytes.
    pub fn most(&self) -> u64 {
        self.max_size
    }

    /// Next offset to be read.
    pub fn read_offset(&self) -> u64 {
        self.read
    }

    /// Next offset expected in order.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// Bytes stored out of order.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order.bytes()
    }

    /// Current size of the buffer, in bytes of payload. Shrinks only where memory is short.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The window to advertise with an acknowledgement of [`Self::next`]: the size less the unread data. The right edge
    /// never moves left (RFC 9293, section 3.8.6.2.1), and moves right only in large steps (section 3.8.6.2.2).
    /// Out-of-order data lies within the window. A sender of scaled windows must round down.
    pub fn window(&self) -> u64 {
        self.right_edge - self.next
    }

    /// Whether the application read nearly a full buffer in the last round trip, so that the buffer limits the peer.
    pub fn is_tight(&self) -> bool {
        self.round_bytes > self.size / 8 * 7
    }

    /// The offset after the last one that the peer may send: [`Self::next`] plus [`Self::window`]. A window update is
    /// due when it is ahead of the advertised edge.
    pub fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// The first hole in front of received data, as (first offset, offset after the last).
    pub fn first_gap(&self) -> Option<(u64, u64)> {
        self.out_of_order.first().map(|first| (self.next, first))
    }

    /// Sets the peer's segment size in bytes: the step of the window, and the headroom of an automatic buffer.
    pub fn set_segment_size(&mut self, bytes: u32) {
        self.segment_size = bytes.max(1);
    }

    /// Whether out-of-order bytes reduce the window or lie within it.
    #[must_use]
    pub fn charging_out_of_order(self, charge_out_of_order: bool) -> Self {
        Self { charge_out_of_order, ..self }
    }

    /// Begins with no more than `size` bytes; 0: as it is.
    #[must_use]
    pub fn beginning_with(self, size: u64) -> Self {
        let size = if size == 0 { self.size } else { self.size.min(size) };
        Self { size, right_edge: size, ..self }
    }

    /// Has at least `size` bytes from now on.
    pub fn enlarge(&mut self, size: u64) {
        self.size = self.size.max(size.min(self.max_size));
        self.advance_right_edge();
    }

    /// Raises the limit of an automatic buffer; never lowers it.
    pub fn raise_max(&mut self, max: u64) {
        self.max_size = self.max_size.max(max);
    }

    /// Sets the longest smoothed round trip of the subflows in use. An automatic buffer keeps its size before the first
    /// call.
    pub fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// The offset after the last out-of-order byte; none if there is none.
    pub fn highest(&self) -> Option<u64> {
        self.out_of_order.last_end()
    }

    /// The peer's segment size in bytes, or the default.
    pub fn segment_size(&self) -> u32 {
        self.segment_size
    }

    /// Sets the end of the stream to `offset` (DATA_FIN, or FIN in plain TCP). Repetition is harmless.
    ///
    /// # Errors [`EndConflict`] if data at or after `offset` has arrived, or another end is set; nothing changes.
    pub fn set_end(&mut self, offset: u64) -> Result<(), EndConflict> {
        let known = self.end != u64::MAX;
        let highest = self.out_of_order.last_end().unwrap_or(self.next);
        if (known && self.end != offset) || offset < highest || offset == u64::MAX {
            return Err(EndConflict);
        }
        self.end = offset;
        Ok(())
    }

    /// The end of the stream, if known.
    #[cfg(test)]
    pub fn end(&self) -> Option<u64> {
        (self.end != u64::MAX).then_some(self.end)
    }

    /// Whether every byte up to the end of the stream has arrived; some may be unread.
    pub fn at_end(&self) -> bool {
        self.next == self.end
    }

    /// Bytes dropped since the beginning.
    pub fn dropped(&self) -> Dropped {
        self.dropped.as_deref().copied().unwrap_or_default()
    }

    /// Drops what lies beyond the window or the end of the stream.
    fn trim_right(&mut self, offset: u64, data: &mut Bytes, inserted: &mut Inserted) {
        let length = data.len() as u64;
        let keep = self.right_edge.min(self.end).saturating_sub(offset).min(length);
        if keep == length {
            return;
        }
        let excess = length - keep;
        let beyond_end = length.saturating_sub(self.end.saturating_sub(offset));
        let dropped = self.dropped.get_or_insert_default();
        dropped.beyond_end += beyond_end;
        dropped.beyond_window += excess - beyond_end;
        inserted.dropped = excess;
        data.truncate(keep as usize);
    }

    #[inline]
    fn push(&mut self, data: Bytes) {
        self.next += data.len() as u64;
        self.queue.push(data);
    }

    /// Appends in-order data to the read queue, and out-of-order pieces that it makes contiguous. Returns the number of
    /// duplicate bytes.
    fn fill(&mut self, mut data: Bytes) -> u64 {
        let mut duplicate = 0;
        while let Some(first) = self.out_of_order.first() {
            let gap = (first - self.next).min(data.len() as u64);
            if gap > 0 {
                self.push(data.split_to(gap as usize));
            }
            if self.next < first {
                break;
            }
            if let Some(piece) = self.out_of_order.pop_first() {
                let overlap = piece.len().min(data.len());
                data.advance(overlap);
                duplicate += overlap as u64;
                self.push(piece);
            }
        }
        if !data.is_empty() {
            self.push(data);
        }
        duplicate
    }

    /// Dynamic right-sizing, once per round trip.
    ///
    /// A buffer of twice the bytes read in a round trip covers one round trip in flight, and one in which data waits
    /// for the retransmission of a lost segment. While the rate still rises, four times are needed: a sender in slow
    /// start has twice the measured amount in flight now, and twice that at the end of the round.
    fn end_round(&mut self, now: Instant, allowed: u64) {
        if self.round_trip.is_zero() || now.since(self.round_started) < self.round_trip {
            return;
        }
        let bytes = self.read - self.round_read;
        let rising = bytes > self.round_bytes.saturating_add(self.round_bytes / 4);
        let headroom = HEADROOM_SEGMENTS * u64::from(self.segment_size);
        let wanted = bytes.saturating_mul(if rising { 4 } else { 2 }).saturating_add(headroom);
        self.size = wanted.min(self.max_size).max(self.size).min(allowed);
        self.round_started = now;
        self.round_read = self.read;
        self.round_bytes = bytes;
    }

    /// Receiver's silly window avoidance (RFC 9293, section 3.8.6.2.2). The "reduction" of that section, RCV.BUFF -
    /// RCV.USER - RCV.WND, is the distance by which the edge could move.
    fn advance_right_edge(&mut self) {
        let charged = if self.charge_out_of_order { self.out_of_order.bytes() } else { 0 };
        let possible = self.read.saturating_add(self.size).saturating_sub(charged);
        let step = (self.size / 2).min(u64::from(self.segment_size));
        if possible.saturating_sub(self.right_edge) >= step {
            self.right_edge = possible;
        }
    }
}
