//! Forecast of what a subflow will do with a segment.

use crate::congestion::{send_quantum, whole_packet};
use crate::ids::SubflowId;
use crate::time::Duration;
use crate::view::{Phase, SubflowView};

/// How long an acknowledgement may be delayed (40 ms), and some.
pub const DELAYED: Duration = Duration::from_millis(50);
/// Number of segments that may always wait for the pacing of a subflow.
const BURST: u64 = 2;
/// Limit of segments that wait together, or share a mapping.
pub const TOGETHER: u64 = 16;
/// Time in seconds that they may wait.
const QUEUED: f64 = 0.01;
/// In-flight segments up to which a path's rate is unknown while there is no sign of a queue: an initial window (RFC
/// 6928).
const UNTRIED: u64 = 10;

/// Forecast for a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    pub id: SubflowId,
    /// Bytes per second, [`SubflowView::trusted_rate`].
    pub rate: f64,
    /// Seconds until a segment assigned now is acknowledged, behind all data in flight and queued.
    pub answer: f64,
    /// Seconds that data occupies the connection's window without a queue or loss.
    pub stay: f64,
    /// The same for data that is lost once.
    pub repaired: f64,
    /// Lost segments per second.
    pub losses: f64,
    /// A segment assigned now is sent at once, or nearly.
    pub ready: bool,
    /// [`released_together`].
    pub together: f64,
}

impl Forecast {
    /// `live`: the application is not ahead of the send buffer, so a late segment is worse than a queue.
    pub fn of(subflow: &SubflowView, length: u32, live: bool) -> Self {
        let mss = u64::from(subflow.mss);
        let (least, smoothed) = (subflow.min_rtt.as_secs_f64(), subflow.smoothed_rtt.as_secs_f64());
        let known = subflow.bytes_per_second();
        let behind = subflow.in_flight + subflow.queued + u64::from(length);
        let untried = behind <= UNTRIED * mss;
        // So little may have been a single segment, whose acknowledgement was delayed.
        let queued_rtt = if untried { subflow.latest_rtt - DELAYED } else { subflow.latest_rtt };
        let no_queue = !subflow.is_filled_by(behind) || ((live || untried) && !subflow.has_queue_in(queued_rtt));
        let never_filled = subflow.phase == Phase::SlowStart && no_queue;
        let beginning = if never_filled { (UNTRIED * mss) as f64 / least.max(1e-3) } else { 0.0 };
        let rate = subflow.trusted_rate(never_filled).max(beginning);
        let alone = least + f64::from(length) / if live || (untried && never_filled) { rate } else { known };
        let queue = if never_filled { 0.0 } else { behind as f64 / known };
        let answer = alone.max(queue);
        let losses = known / mss.max(1) as f64 * subflow.loss_rate;
        let ready = is_ready(subflow, length);
        // Without data of ours a path has no queue of ours, whatever its round trips were before.
        let repaired = alone + 2.0 * smoothed.min(answer);
        Self {
            id: subflow.id,
            rate,
            answer,
            stay: alone,
            repaired,
            losses,
            ready,
            together: released_together(subflow),
        }
    }

    /// How long repairs stall the window beyond the time for which it lasts, as a share of that time.
    pub fn standstill(&self, lasts: f64) -> f64 {
        (self.losses * lasts).min(1.0) * (self.repaired - lasts).max(0.0) / lasts
    }
}

/// Seconds that segments released together take; 0 if the subflow releases them one by one.
fn released_together(subflow: &SubflowView) -> f64 {
    let quantum = send_quantum(subflow.rates.bandwidth, subflow.mss);
    // Whole packets: what was just released is in flight when the next to be released is queued.
    let quanta = if quantum >= whole_packet(subflow.mss) { 2.0 } else { 1.0 };
    if quantum > BURST * u64::from(subflow.mss) { quanta * quantum as f64 / subflow.bytes_per_second() } else { 0.0 }
}

/// Whether a segment of this length that is assigned now is sent at once, or nearly.
pub fn is_ready(subflow: &SubflowView, length: u32) -> bool {
    let mss = u64::from(subflow.mss);
    let few = || {
        // Segments released together are queued together.
        let quantum = send_quantum(subflow.rates.bandwidth, subflow.mss);
        if quantum >= whole_packet(subflow.mss) {
            // And no more: a segment that stays behind would leave as a packet of its own, since what follows it in the stream
            // goes to another subflow meanwhile.
            return subflow.queued + u64::from(length) <= quantum;
        }
        let most = (subflow.bytes_per_second() * QUEUED).min((TOGETHER * mss).max(quantum) as f64);
        subflow.queued as f64 <= most
    };
    (subflow.queued <= BURST * mss || few()) && subflow.room() >= u64::from(length).min(mss)
}
