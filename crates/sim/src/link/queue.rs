//! The queue of a link: drop-tail, or CoDel (RFC 8289).

use anabranch_policy::time::{Duration, Instant};
use std::collections::VecDeque;

/// Limit of the queue. A packet in transmission does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    Packets(usize),
    /// Bytes, headers included.
    Bytes(u64),
    Unlimited,
}

/// Which packets are dropped before the limit is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    #[default]
    DropTail,
    /// Those that CoDel selects when they leave the queue; ECN-capable ones are marked instead.
    CoDel {
        /// Acceptable standing delay; 5 ms (RFC 8289, section 4.3).
        target: Duration,
        /// Time in which a burst should drain; 100 ms (RFC 8289, section 4.2).
        interval: Duration,
    },
}

impl Discipline {
    /// CoDel with the values of RFC 8289.
    pub const CODEL: Self = Self::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    pub limit: QueueLimit,
    pub discipline: Discipline,
}

impl Default for QueueConfig {
    /// Drop-tail, 100 packets.
    fn default() -> Self {
        Self { limit: QueueLimit::Packets(100), discipline: Discipline::DropTail }
    }
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) length: u32,
    pub(super) came: Instant,
}

/// Decision about the packet at the head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Send,
    /// Drop it, or mark it and send it.
    MarkOrDrop,
}

/// Queued packets, in order.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: u64,
    limit: QueueLimit,
    codel: Option<CoDel>,
}

impl<T> Queue<T> {
    pub(super) fn new(config: &QueueConfig) -> Self {
        let codel = match config.discipline {
            Discipline::DropTail => None,
            Discipline::CoDel { target, interval } => Some(CoDel::new(target, interval)),
        };
        Self { waiting: VecDeque::new(), bytes: 0, limit: config.limit, codel }
    }
    pub(super) fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }
    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Whether a packet may bypass the queue when the link is idle.
    pub(super) fn can_be_skipped(&self) -> bool {
        self.waiting.is_empty() && self.codel.is_none()
    }
    #[inline]
    pub(super) fn has_room(&self, length: u32) -> bool {
        match self.limit {
            QueueLimit::Packets(most) => self.waiting.len() < most,
            QueueLimit::Bytes(most) => self.bytes + u64::from(length) <= most,
            QueueLimit::Unlimited => true,
        }
    }
    #[inline]
    pub(super) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.length);
        self.waiting.push_back(packet);
    }
    pub(super) fn head(&self) -> Option<&Waiting<T>> {
        self.waiting.front()
    }
    /// Removes the head, whose transmission starts at `now`, and decides about it.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Waiting<T>, Verdict)> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.length);
        let verdict = match &mut self.codel {
            None => Verdict::Send,
            Some(codel) => codel.judge(now, now - packet.came, self.bytes),
        };
        Some((packet, verdict))
    }
    /// The packet judged last was marked and is sent.
    pub(super) fn marked(&mut self) {
        if let Some(codel) = &mut self.codel {
            codel.marked();
        }
    }
    /// The packet judged last was dropped.
    pub(super) fn dropped(&mut self) {
        if let Some(codel) = self.codel.as_mut().filter(|_| self.waiting.is_empty()) {
            codel.emptied();
        }
    }
    /// Removes all packets and resets the state of the discipline.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = T> + '_ {
        self.bytes = 0;
        if let Some(codel) = &mut self.codel {
            *codel = CoDel::new(codel.target, codel.interval);
        }
        self.waiting.drain(..).map(|packet| packet.item)
    }
}

/// The control law of CoDel (RFC 8289, sections 4 and 5).
#[derive(Clone, Debug)]
struct CoDel {
    target: Duration,
    interval: Duration,
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops since the dropping state began, and that number when it began last.
    count: u32,
    last_count: u32,
    /// Set if the packet before was dropped, so that this one is judged in its place.
    replaces: Option<Replaced>,
}

/// The drop after which a packet became the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Replaced {
    /// The first in the dropping state.
    First,
    /// A later one.
    Later,
}

/// If at most this many bytes remain, the queue is not the bottleneck (RFC 8289, section 5.4).
const ONE_PACKET: u64 = 1500;

impl CoDel {
    fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            replaces: None,
        }
    }
    /// Time of the next drop after one at `time`: the interval shrinks with the square root of the number of drops.
    fn drop_after(&self, time: Instant) -> Instant {
        time + self.interval.mul_f64(1.0 / libm::sqrt(f64::from(self.count.max(1))))
    }
    /// Whether the delay has been above the target for a whole interval.
    fn is_persistent(&mut self, now: Instant, sojourn: Duration, bytes_behind: u64) -> bool {
        if sojourn < self.target || bytes_behind <= ONE_PACKET {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(time) => now >= time,
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
        }
    }
    /// Called for successive packets until one is sent.
    fn judge(&mut self, now: Instant, sojourn: Duration, bytes_behind: u64) -> Verdict {
        let persistent = self.is_persistent(now, sojourn, bytes_behind);
        match self.replaces.take() {
            Some(Replaced::First) => return Verdict::Send,
            Some(Replaced::Later) if persistent => self.drop_next = self.drop_after(self.drop_next),
            Some(Replaced::Later) | None => self.dropping &= persistent,
        }
        if self.dropping {
            if now < self.drop_next {
                return Verdict::Send;
            }
            self.count += 1;
            self.replaces = Some(Replaced::Later);
            return Verdict::MarkOrDrop;
        }
        if !persistent {
            return Verdict::Send;
        }
        self.dropping = true;
        // The dropping state was left only recently: resume the drop rate that had controlled the queue.
        let learned = self.count.wrapping_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.interval * 16;
        self.count = if learned > 1 && recent { learned } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.drop_after(now);
        self.replaces = Some(Replaced::First);
        Verdict::MarkOrDrop
    }
    /// The packet was marked and is sent: no other is judged in its place.
    fn marked(&mut self) {
        if self.replaces.take() == Some(Replaced::Later) {
            self.drop_next = self.drop_after(self.drop_next);
        }
    }
    /// The packet was dropped and the queue is empty.
    fn emptied(&mut self) {
        self.first_above = None;
        if self.replaces.take() == Some(Replaced::Later) {
            self.dropping = false;
        }
    }
}
