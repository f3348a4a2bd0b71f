//! Each interface has a quality, which losses reduce and acknowledgements restore. It limits the rate of low-priority
//! applications; the fastest subflow goes first.
//!
//! Source: Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over Manets", IEEE Access, 2020, section
//! IV.B and Appendix B, which is the algorithm.
//! An interface is a local address of the connection.
//!
//! ```text
//! q <- 10000 at first
//! q <- q - 100  if q >= 100     for each segment found lost by fast retransmit   (lines 2 to 6)
//! q <- q - 1000 if q >= 1000    for each retransmission timeout                  (lines 7 to 12)
//! q <- q + 1    if q <= 9999    for each acknowledgement that made progress      (lines 13 to 16)
//! ```
//!
//! Delivery speed by class of q and priority of the application, in parts of the normal one (NDS; lines 33 to 52):
//!
//! ```text
//!                          1     2      3      4       5       6
//! good     8001 to 10000   1     1      1      31/32   15/16   7/8
//! moderate 5001 to 8000    1     63/64  31/32  15/16   7/8     3/4
//! bad      0 to 5000       1     1/2    1/4    1/8     1/8     1/8
//! ```
//!
//! A packet goes to the subflow with the lowest RTT, on equal RTT to the one with the least loss (lines 60 to 68), within
//! its window and within its share of the receive window in proportion to the bandwidth-delay product.
//!
//! Decisions:
//! - NDS of a subflow is w / s (congestion window over smoothed RTT, bytes per second): what it would send by itself.
//!   The speeds without reduction are not enforced; the window is. The others are, by a token bucket per subflow that
//!   holds two segments or a millisecond's worth. While it is empty the next subflow in order is looked at; if none has
//!   tokens and room the packet waits until the first bucket has.
//! - The floors are as printed: with q below 100 a loss changes nothing, with q below 1000 a timeout does not.
//! - The scheduler is asked when there is data to send and takes in then what has happened since: first losses, then
//!   timeouts, then acknowledgements. The paper has one quality per interface of the host; here it is one per interface
//!   and connection, because a scheduler sees no more.
//! - RTTs are compared in whole milliseconds: to the nanosecond no two are equal, and loss would never be asked.
//! - The text wants both the lowest RTT first and packets in proportion to the bandwidth-delay product. Both hold if
//!   each subflow has no more outstanding than W BDP_i / sum of BDP, of the connection's receive window W, with BDP = NDS x
//!   least RTT (the paper's half of it cancels); a subflow that has nothing outstanding may always send one segment. It
//!   matters only while the receive window is smaller than the windows of the subflows together.
//! - After a timeout the data goes on the same and one more subflow, after a fast retransmit on the same only: the engine
//!   does that ([`super::Reinjection::OnSubflowTimeout`]). What is sent again elsewhere pays the bucket but does not wait
//!   for it, and does not ask for a share.
//! - Backup and stale subflows are looked at only when nothing better is left.
//!
//! What the counters amount to: q falls where more than one segment is lost per 100 acknowledgements that make progress.
//! With an acknowledgement for every second segment that is a loss of 0.5 %: below it every interface becomes
//! good in time and above it bad, whatever it was before. And a speed below NDS first shortens the path's queue, which
//! lowers s and so raises NDS: the path carries less only when f w is less than its bandwidth-delay product, f being the
//! part in the table.

use super::candidates::{excluded, fits, preferred};
use super::{Chunk, ChunkKind, Decision, Scheduler};
use crate::ids::{AddressId, ShortMap, SubflowId, SubflowMap};
use crate::rate::Rate;
use crate::table::{Reader, SettingError};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, Counters, SubflowView};

/// The best quality, and that at the start.
const BEST: u32 = 10_000;
/// What a loss found by fast retransmit takes.
const LOSS: u32 = 100;
/// What a retransmission timeout takes.
const TIMEOUT: u32 = 1_000;
/// What a bucket holds at least.
const DEPTH: Duration = Duration::from_millis(1);

/// The class of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// 8001 to 10000.
    Good,
    /// 5001 to 8000.
    Moderate,
    /// 0 to 5000.
    Bad,
}

/// How good an interface is, 0 to 10000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quality(u32);

impl Default for Quality {
    fn default() -> Self {
        Self(BEST)
    }
}

impl Quality {
    /// Takes in what happened since it was looked at last: segments lost, timeouts, acknowledgements.
    #[must_use]
    pub fn after(self, lost: u32, timeouts: u32, acknowledgements: u32) -> Self {
        let mut left = self.0;
        left -= LOSS * lost.min(left / LOSS);
        left -= TIMEOUT * timeouts.min(left / TIMEOUT);
        Self(left.saturating_add(acknowledgements).min(BEST))
    }

    /// Its class.
    pub fn class(self) -> Class {
        match self.0 {
            8_001.. => Class::Good,
            5_001..=8_000 => Class::Moderate,
            _ => Class::Bad,
        }
    }
}

/// The delivery speed for a class and a priority, 1 (highest) to 6: none if it is the normal one.
pub(crate) fn delivery_speed(normal: Rate, class: Class, priority: u8) -> Option<Rate> {
    // NDS - NDS >> shift, as printed; the bad class subtracts halves one after the other.
    let less = |shift: u32| Some(normal.bytes_per_second() - (normal.bytes_per_second() >> shift));
    let part = |shift: u32| Some(normal.bytes_per_second() >> shift);
    let speed = match (class, priority) {
        (_, 0 | 1) | (Class::Good, 2 | 3) => None,
        (Class::Good, 4) | (Class::Moderate, 3) => less(5),
        (Class::Good, 5) | (Class::Moderate, 4) => less(4),
        (Class::Good, _) | (Class::Moderate, 5) => less(3),
        (Class::Moderate, 2) => less(6),
        (Class::Moderate, _) => less(2),
        (Class::Bad, 2) => part(1),
        (Class::Bad, 3) => part(2),
        (Class::Bad, _) => part(3),
    };
    speed.map(Rate::from_bytes_per_second)
}

/// What is remembered of a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    segments_lost: u32,
    timeouts: u32,
    acknowledgements: u32,
    /// The token bucket: it holds what could have been sent since, and is empty until then.
    paid_until: Instant,
}

/// The scheduler `qoe`.
#[derive(Debug, Default)]
pub struct Qoe {
    records: SubflowMap<Record>,
    qualities: ShortMap<AddressId, Quality>,
}

impl Qoe {
    pub fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::default()))
    }

    /// Takes in what the counters say has happened since the last time.
    fn observe(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows {
            let known = self.records.get(subflow.id).copied().unwrap_or_default();
            let lost = subflow.counters.segments_lost.wrapping_sub(known.segments_lost);
            let timeouts = subflow.counters.timeouts.wrapping_sub(known.timeouts);
            let acknowledgements = subflow.counters.acknowledgements.wrapping_sub(known.acknowledgements);
            if lost == 0 && timeouts == 0 && acknowledgements == 0 {
                continue;
            }
            let Counters { segments_lost, timeouts: all_timeouts, acknowledgements: all, .. } = subflow.counters;
            let record = Record { segments_lost, timeouts: all_timeouts, acknowledgements: all, ..known };
            self.records.insert(subflow.id, record);
            let quality = self.quality(subflow).after(lost, timeouts, acknowledgements);
            self.qualities.insert(subflow.local_address, quality);
        }
    }

    fn quality(&self, subflow: &SubflowView) -> Quality {
        self.qualities.get(subflow.local_address).copied().unwrap_or_default()
    }

    /// The reduced speed of a subflow, if it is reduced.
    fn speed(&self, connection: &ConnectionView, subflow: &SubflowView) -> Option<Rate> {
        let normal = Rate::from_bytes_over(subflow.cwnd, subflow.smoothed_rtt);
        delivery_speed(normal, self.quality(subflow).class(), connection.priority)
    }

    /// When the bucket of a subflow has something.
    fn tokens_at(&self, connection: &ConnectionView, subflow: &SubflowView) -> Instant {
        let paid_until = self.records.get(subflow.id).map_or(Instant::ZERO, |record| record.paid_until);
        self.speed(connection, subflow).map_or(Instant::ZERO, |_| paid_until)
    }

    fn pay(&mut self, connection: &ConnectionView, subflow: &SubflowView, length: u32) {
        let Some(speed) = self.speed(connection, subflow) else { return };
        let mut record = self.records.get(subflow.id).copied().unwrap_or_default();
        let depth = speed.time_for(u64::from(subflow.mss)).max(DEPTH);
        let taken = speed.time_for(u64::from(length.min(subflow.mss)));
        record.paid_until = record.paid_until.max(connection.now - depth) + taken;
        self.records.insert(subflow.id, record);
    }
}

/// The order in which subflows are taken: RTT in milliseconds, then loss, then id.
fn order(a: &SubflowView, b: &SubflowView) -> core::cmp::Ordering {
    let by_loss = a.loss_rate.total_cmp(&b.loss_rate);
    a.smoothed_rtt.as_millis().cmp(&b.smoothed_rtt.as_millis()).then(by_loss).then(a.id.cmp(&b.id))
}

/// The window less the queue, bytes: NDS times the least round trip.
fn bandwidth_delay(subflow: &SubflowView) -> u64 {
    match subflow.smoothed_rtt.as_nanos() {
        0 => subflow.cwnd,
        smoothed => {
            let product = u128::from(subflow.cwnd) * u128::from(subflow.min_rtt.as_nanos()) / u128::from(smoothed);
            u64::try_from(product).unwrap_or(u64::MAX)
        }
    }
}

/// Whether a subflow may have `length` bytes more of the receive window, the BDPs of all being `sum`.
fn within_share(connection: &ConnectionView, subflow: &SubflowView, sum: u64, length: u32) -> bool {
    let outstanding = subflow.in_flight + subflow.queued;
    let share = u128::from(connection.window) * u128::from(bandwidth_delay(subflow));
    let wanted = u128::from(outstanding + u64::from(length.min(subflow.mss))) * u128::from(sum);
    outstanding == 0 || wanted <= share
}

impl Scheduler for Qoe {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.observe(subflows);
        let candidates = preferred(subflows, excluded(chunk));
        let again = chunk.kind == ChunkKind::Reinjection;
        let sum = candidates.clone().map(bandwidth_delay).sum();
        let with_room = candidates.filter(|subflow| {
            fits(subflow, chunk.length) && (again || within_share(connection, subflow, sum, chunk.length))
        });
        let ready = |subflow: &&SubflowView| again || self.tokens_at(connection, subflow) <= connection.now;
        match with_room.clone().filter(ready).min_by(|a, b| order(a, b)) {
            Some(subflow) => {
                self.pay(connection, subflow, chunk.length);
                Decision::Send(subflow.id)
            }
            None => Decision::Wait(with_room.map(|subflow| self.tokens_at(connection, subflow)).min()),
        }
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.records.remove(id);
    }
}

#[cfg(test)]
mod tests;
