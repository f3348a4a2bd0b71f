//! What the receiving end of a connection knows of it.

use crate::ids::{SubflowId, SubflowMap};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowView};

/// Least segments that wait for a hole if a path holds the connection back.
const LATE_SEGMENTS: u64 = 4;
/// What receives nothing for this long is idle.
const SILENT: Duration = Duration::from_secs(1);
/// A path that receives nothing for this long holds nothing any more.
const DRAINED: Duration = Duration::from_millis(200);

/// A connection's receiving side.
#[derive(Debug)]
pub(super) struct Receiving {
    /// More is received than acknowledged.
    more: bool,
    /// Sums over the subflows of what was acknowledged and received.
    sums: (u64, u64),
    /// When something was received last.
    heard: Instant,
    /// What was received on subflows beyond the data in order, when no data waited for a hole: what came twice, and
    /// where data-level numbers begin.
    base: Option<u64>,
    /// Received data that waits for a hole, in bytes.
    waiting: u64,
    /// What each subflow received, and when last.
    subflows: SubflowMap<(u64, Instant)>,
}

impl Receiving {
    pub fn new() -> Self {
        Self { more: false, sums: (0, 0), heard: Instant::ZERO, base: None, waiting: 0, subflows: SubflowMap::new() }
    }

    /// Whether the connection receives more than it sends, and not only did so once.
    pub fn is_on(&self, now: Instant) -> bool {
        self.more && now.since(self.heard) < SILENT
    }

    /// A subflow ended, or began: the sums are others.
    pub fn restart(&mut self) {
        self.base = None;
        self.sums = (u64::MAX, u64::MAX);
    }

    pub fn forget(&mut self, subflow: SubflowId) {
        self.subflows.remove(subflow);
    }

    /// Takes a measurement.
    pub fn observe(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) {
        let now = connection.now;
        let acked = subflows.iter().map(|view| view.counters.bytes_acked).sum();
        let received: u64 = subflows.iter().map(|view| view.counters.bytes_received).sum();
        let before = core::mem::replace(&mut self.sums, (acked, received));
        let (sent, came) = (acked.saturating_sub(before.0), received.saturating_sub(before.1));
        if sent != came {
            self.more = came > sent;
        }
        if came > 0 {
            self.heard = now;
        }
        for view in subflows {
            let known = self.subflows.get(view.id).copied();
            let bytes = view.counters.bytes_received;
            let grew = known.filter(|(before, _)| *before == bytes).map_or(now, |(_, grew)| grew);
            self.subflows.insert(view.id, (bytes, grew));
        }
        let beyond = received.wrapping_sub(connection.data_received);
        // Where data-level numbers begin is unknown, so only differences count, and they are less than half the
        // numbers.
        let waiting = beyond.wrapping_sub(*self.base.get_or_insert(beyond)).cast_signed();
        if waiting < 0 {
            self.base = Some(beyond);
        }
        self.waiting = u64::try_from(waiting).unwrap_or(0);
    }

    /// With a single path nothing waits for another: what seems to wait came twice.
    pub fn settle(&mut self) {
        self.base = self.base.map(|base| base.wrapping_add(self.waiting));
        self.waiting = 0;
    }

    /// Whether a hole keeps back what arrives in the time `late`, at this goodput in bytes per second.
    pub fn is_held_back(&self, goodput: f64, mss: u64, late: Duration) -> bool {
        self.waiting >= LATE_SEGMENTS * mss && self.waiting as f64 >= goodput * late.as_secs_f64()
    }

    /// Whether data that was sent on a subflow may still arrive.
    pub fn may_arrive_on(&self, subflow: SubflowId, now: Instant) -> bool {
        self.subflows.get(subflow).is_some_and(|(_, grew)| now.since(*grew) < DRAINED)
    }
}
