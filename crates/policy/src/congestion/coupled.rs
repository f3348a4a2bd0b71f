//! The common part of coupled algorithms: every subflow's window, and a rule over all of them.
//!
//! Coupling applies to congestion avoidance only (RFC 6356, section 3): slow start is separate for each subflow, and
//! losses are answered per subflow, by the factor of the rule.
//!
//! The rules use windows w_i and smoothed round-trip times s_i. Here w_i is the smaller of the window and the bytes in
//! flight, as RFC 6356, section 3, recommends: a subflow that carries nothing, such as a backup, must not slow the
//! growth of the others. It is evaluated at every event; the sums are computed once per acknowledgement that may let
//! the window grow, which takes a few multiplications per subflow. (RFC 6356, section 4.1, allows to compute them less
//! often; with few subflows and floating point there is nothing to save.) A subflow without a round-trip time, because
//! nothing was acknowledged, counts as carrying nothing. One that has failed, after a configurable number of
//! consecutive timeouts, is left out by the rules that ask for it, until something is acknowledged there.

use super::slow_start::SlowStart;
use super::window::{Decrease, Window, counted};
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Sent, Start};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::Written;
use crate::time::Instant;

/// The setting that leaves failed subflows out of the coupling.
pub(super) const FAILED_AFTER: Written<Option<u8>> = Written {
    name: "failed_after",
    default: "never",
    values: "timeouts in a row, 1 to 100 | never",
    expected: "a number from 1 to 100",
    read: |text| match text {
        "never" => Some(None),
        count => count.parse().ok().filter(|count: &f64| (1.0..=100.0).contains(count)).map(|count| Some(count as u8)),
    },
    summary: "After how many retransmission timeouts in a row a subflow is left out of the coupling, until it makes progress.",
};

/// One subflow as a coupling rule sees it.
#[derive(Clone, Debug)]
pub(super) struct Path<R> {
    /// Window and threshold.
    pub(super) window: Window,
    slow_start: SlowStart,
    /// 1 / smoothed round-trip time, per second; 0 while it is unknown.
    pub(super) inverse_rtt: f64,
    /// Bytes in flight.
    pub(super) in_flight: u64,
    /// Timeouts since something was acknowledged.
    timeouts_in_row: u8,
    /// It is excluded after too many timeouts.
    pub(super) failed: bool,
    /// State of the rule.
    pub(super) record: R,
    /// The record before the last congestion event, valid if `has_before`: a separate flag, so that the flags share a
    /// word.
    before: R,
    has_before: bool,
}

impl<R> Path<R> {
    /// The used part of the window in bytes: w.
    pub(super) fn used_window(&self) -> f64 {
        self.window.cwnd().min(self.in_flight) as f64
    }
    /// Bytes per second: w / s.
    pub(super) fn rate(&self) -> f64 {
        self.used_window() * self.inverse_rtt
    }
}

/// A rule that couples the subflows of a connection.
pub(super) trait Coupling: Send {
    /// Its state of each subflow.
    type Record: Copy + Default + Send;
    /// Minimum threshold in segments if the connection has several subflows; with one it is two (RFC 5681).
    const FLOOR_OF_SEVERAL: u64;

    /// Growth of the window of `path` in bytes per byte acknowledged there, in units of its segment size: 1 / w is
    /// standard TCP. Negative: it shrinks.
    fn increase(paths: &SubflowMap<Path<Self::Record>>, path: &Path<Self::Record>) -> f64;

    /// Share of the window of `path` that is kept after a loss.
    fn keep(_paths: &SubflowMap<Path<Self::Record>>, _path: &Path<Self::Record>) -> f64 {
        Decrease::STANDARD.keep
    }
    /// Bytes were delivered.
    fn on_delivered(_record: &mut Self::Record, _bytes: u64) {}
    /// A loss, mark or timeout happened.
    fn on_loss(_record: &mut Self::Record) {}
}

/// A connection under a coupling rule. A call for an unknown subflow does nothing; its window is 0.
#[derive(Debug)]
pub(super) struct Coupled<C: Coupling> {
    hystart: bool,
    failed_after: Option<u8>,
    pub(super) paths: SubflowMap<Path<C::Record>>,
}

impl<C: Coupling> Coupled<C> {
    /// A connection without subflows; `hystart` ends each subflow's first slow start by HyStart++ (RFC 9406).
    pub(super) fn new(hystart: bool) -> Self {
        Self { hystart, failed_after: None, paths: SubflowMap::new() }
    }

    /// The same, leaving out subflows after this number of consecutive timeouts.
    pub(super) fn without_failed(self, failed_after: Option<u8>) -> Self {
        Self { failed_after, ..self }
    }

    fn decrease(&self, path: &Path<C::Record>, cause: Congestion) -> Decrease {
        let floor = if self.paths.len() > 1 { C::FLOOR_OF_SEVERAL } else { Decrease::STANDARD.floor };
        let keep = match cause {
            Congestion::Loss | Congestion::Mark => C::keep(&self.paths, path),
            Congestion::Timeout | Congestion::Penalty => Decrease::STANDARD.keep,
        };
        Decrease { keep, floor, ..Decrease::STANDARD }
    }
}

impl<C: Coupling> CongestionControl for Coupled<C> {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        let path = Path {
            window: Window::new(start),
            slow_start: SlowStart::new(self.hystart),
            inverse_rtt: 0.0,
            in_flight: 0,
            timeouts_in_row: 0,
            failed: false,
            record: C::Record::default(),
            before: C::Record::default(),
            has_before: false,
        };
        self.paths.insert(id, path);
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.paths.remove(id);
    }

    fn on_sent(&mut self, id: SubflowId, sent: &Sent) {
        if let Some(path) = self.paths.get_mut(id) {
            path.in_flight = sent.in_flight;
        }
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let Some(path) = self.paths.get_mut(id) else { return };
        path.inverse_rtt = 1e9 / ack.smoothed_rtt.as_nanos().max(1) as f64;
        (path.timeouts_in_row, path.failed) = (0, false);
        C::on_delivered(&mut path.record, ack.delivered);
        if path.window.in_slow_start() {
            path.slow_start.on_ack(&mut path.window, ack);
            path.in_flight = ack.in_flight;
            return;
        }
        let counted = counted(ack);
        if counted > 0 {
            // The window limited sending, so all of it was in use when these bytes were sent.
            path.in_flight = u64::MAX;
            if let Some(path) = self.paths.get(id) {
                let increase = C::increase(&self.paths, path) * counted as f64 * path.window.mss() as f64;
                if let Some(path) = self.paths.get_mut(id) {
                    path.window.add(increase);
                }
            }
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.in_flight = ack.in_flight;
        }
    }

    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        if let Some(path) = self.paths.get_mut(id) {
            path.in_flight = u64::MAX;
        }
        let Some(decrease) = self.paths.get(id).map(|path| self.decrease(path, event.cause)) else { return };
        let Some(path) = self.paths.get_mut(id) else { return };
        path.in_flight = event.in_flight;
        if event.cause == Congestion::Timeout {
            path.timeouts_in_row = path.timeouts_in_row.saturating_add(1);
            path.failed = self.failed_after.is_some_and(|most| path.timeouts_in_row >= most);
        }
        if event.cause != Congestion::Penalty && !event.repeated {
            (path.before, path.has_before) = (path.record, true);
            C::on_loss(&mut path.record);
        }
        path.window.on_congestion(event, decrease);
    }

    fn on_recovery_end(&mut self, id: SubflowId, _now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_recovery_end();
        }
    }

    fn on_spurious(&mut self, id: SubflowId, _now: Instant) {
        if let Some(path) = self.paths.get_mut(id)
            && path.window.on_spurious()
            && core::mem::take(&mut path.has_before)
        {
            path.record = path.before;
        }
    }

    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_idle_restart(window);
        }
    }

    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_mss(mss);
        }
    }

    fn window(&self, id: SubflowId) -> u64 {
        self.paths.get(id).map_or(0, |path| path.window.cwnd())
    }

    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.paths.get(id).map_or(0, |path| path.window.ssthresh())
    }
}

/// A connection in congestion avoidance, for tests of the rules: each path is (window in segments of 1000 bytes,
/// round-trip time in ms, record), with the whole window in flight.
#[cfg(test)]
pub(super) fn in_avoidance<C: Coupling>(paths: &[(u64, u64, C::Record)]) -> Coupled<C> {
    use super::harness::{START, id};
    let mut coupled = Coupled::new(false);
    for (index, (segments, rtt_ms, record)) in paths.iter().enumerate() {
        coupled.on_subflow_added(id(index), Start { initial_window: segments * 1_000, ..START });
        let path = coupled.paths.get_mut(id(index)).expect("just added");
        path.window.leave_slow_start();
        path.in_flight = u64::MAX;
        path.inverse_rtt = 1_000.0 / *rtt_ms as f64;
        path.record = *record;
    }
    coupled
}

/// The increase on path `index`, in segments per segment acknowledged.
#[cfg(test)]
pub(super) fn increase_on<C: Coupling>(coupled: &Coupled<C>, index: usize) -> f64 {
    let path = coupled.paths.get(super::harness::id(index)).expect("a path of the test");
    C::increase(&coupled.paths, path) * 1_000.0
}
