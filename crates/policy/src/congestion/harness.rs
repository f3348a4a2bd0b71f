//! Helpers for the tests of this family: events with plain numbers, and segments of 1000 bytes.

use super::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use crate::ids::SubflowId;
use crate::time::{Duration, Instant};

/// The time of events unless a test says otherwise.
pub(super) const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// Ten segments of 1000 bytes.
pub(super) const START: Start =
    Start { now: NOW, mss: 1_000, initial_window: 10_000, smoothed_rtt: Duration::from_millis(10) };

/// The subflow with this number.
pub(super) fn id(index: usize) -> SubflowId {
    SubflowId(u32::try_from(index).expect("a small number"))
}

/// Adds a subflow with the window of [`START`].
pub(super) fn add_path(control: &mut dyn CongestionControl, index: usize) {
    control.on_subflow_added(id(index), START);
}

/// `bytes` acknowledged cumulatively on a subflow that uses its whole window.
pub(super) fn ack(bytes: u64, rtt_ms: u64) -> Ack {
    let rtt = Duration::from_millis(rtt_ms);
    Ack {
        now: NOW,
        acked: bytes,
        delivered: bytes,
        total_acked: bytes,
        total_sent: 2 * bytes,
        prior_in_flight: u64::MAX,
        in_flight: u64::MAX,
        rtt: Some(rtt),
        smoothed_rtt: rtt,
        min_rtt: rtt,
        delivery_rate: None,
        app_limited: false,
        total_delivered: bytes,
        prior_delivered: Some(0),
        lost: 0,
        total_lost: 0,
        prior_lost: 0,
        tx_in_flight: 2 * bytes,
        cwnd_limited: true,
        in_recovery: false,
    }
}

/// A congestion event of `cause` with this much in flight.
pub(super) fn congestion(cause: Congestion, in_flight: u64) -> CongestionEvent {
    CongestionEvent { now: NOW, cause, in_flight, lost: 1_000, repeated: false, uncounted: false }
}

/// A loss found by acknowledgements.
pub(super) fn loss(in_flight: u64) -> CongestionEvent {
    congestion(Congestion::Loss, in_flight)
}

/// A retransmission timeout.
pub(super) fn timeout(in_flight: u64) -> CongestionEvent {
    congestion(Congestion::Timeout, in_flight)
}

/// Asserts that the two differ by no more than `tolerance`.
#[track_caller]
pub(super) fn close_to(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}
