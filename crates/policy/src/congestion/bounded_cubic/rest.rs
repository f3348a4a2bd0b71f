//! The state kept of a subflow while its connection is idle, and its restart.
//!
//! After an idle minute other flows have come and gone. Only properties of the path itself are still valid: the
//! threshold of slow start, the bandwidth and the random loss rate. The subflow restarts with these.

use super::{BoundedCubic, Phase};
use crate::congestion::queue_evidence::QueueEvidence;
use crate::congestion::uncoupled::SinglePath;
use crate::congestion::window::NO_THRESHOLD;
use crate::congestion::{Ack, CongestionEvent, Lost, Start};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// One subflow.
#[derive(Debug)]
pub(super) enum Path {
    Active(Box<BoundedCubic>),
    AtRest(Box<Remains>),
}

/// The state kept while idle.
#[derive(Debug)]
pub(super) struct Remains {
    mss: u32,
    /// The congestion window, bytes.
    window: u64,
    /// The threshold of slow start, bytes; [`NO_THRESHOLD`] if there is none.
    ssthresh: u64,
    /// Delivery rate, bits per second; 0 if unknown.
    bandwidth: u64,
    smoothed_rtt: Duration,
    /// Rate of random losses, and the number of segments that it is based on.
    random_loss: (f64, u32),
}

impl Remains {
    fn of(path: &BoundedCubic) -> Self {
        let (window, ssthresh) = (path.window, path.cubic.ssthresh());
        Self {
            mss: path.mss,
            window,
            // As after any pause (RFC 2861, section 3).
            ssthresh: if ssthresh == NO_THRESHOLD { ssthresh } else { ssthresh.max(window - window / 4) },
            bandwidth: path.bandwidth.max(),
            smoothed_rtt: path.smoothed_rtt,
            random_loss: path.queue.random_loss(),
        }
    }

    fn pacing_rate(&self) -> Rate {
        Rate::from_bytes_over(self.window, self.smoothed_rtt).mul_f64(Phase::StartUp.pacing_gain(0))
    }

    fn begin_again(&self, now: Instant) -> BoundedCubic {
        let start = Start { now, mss: self.mss, initial_window: self.window, smoothed_rtt: self.smoothed_rtt };
        let mut path = BoundedCubic::start(&(), start);
        path.cubic = path.cubic.with_threshold(self.ssthresh);
        path.bandwidth.update(self.bandwidth);
        path.queue = QueueEvidence::new(now).with_random_loss(self.random_loss);
        path.settle();
        path
    }
}

impl Path {
    /// The subflow, unless it is idle.
    pub(super) fn active(&self) -> Option<&BoundedCubic> {
        match self {
            Self::Active(path) => Some(path),
            Self::AtRest(_) => None,
        }
    }

    /// The subflow, unless it is idle.
    pub(super) fn active_mut(&mut self) -> Option<&mut BoundedCubic> {
        match self {
            Self::Active(path) => Some(path),
            Self::AtRest(_) => None,
        }
    }

    /// The subflow, restarted if it was idle.
    #[inline]
    pub(super) fn wake(&mut self, now: Instant) -> &mut BoundedCubic {
        if let Self::AtRest(remains) = self {
            *self = Self::Active(Box::new(remains.begin_again(now)));
        }
        match self {
            Self::Active(path) => path,
            Self::AtRest(_) => unreachable!("it was woken"),
        }
    }

    /// Discards all but the state to keep.
    pub(super) fn rest(&mut self) {
        if let Self::Active(path) = self {
            *self = Self::AtRest(Box::new(Remains::of(path)));
        }
    }
}

impl SinglePath for Path {
    type Settings = ();
    const GOVERNS_RECOVERY: bool = true;

    fn start((): &(), start: Start) -> Self {
        Self::Active(Box::new(BoundedCubic::start(&(), start)))
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.wake(lost.now).on_lost(lost);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.wake(ack.now).on_ack(ack);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.wake(event.now).on_congestion(event);
    }

    fn on_recovery_end(&mut self, now: Instant) {
        self.wake(now).on_recovery_end(now);
    }

    fn on_spurious(&mut self, now: Instant) {
        self.wake(now).on_spurious(now);
    }

    fn on_idle_restart(&mut self, window: u64) {
        match self {
            Self::Active(path) => path.on_idle_restart(window),
            Self::AtRest(remains) => remains.window = remains.window.min(window).max(u64::from(remains.mss)),
        }
    }

    fn on_mss(&mut self, mss: u32) {
        match self {
            Self::Active(path) => path.on_mss(mss),
            Self::AtRest(remains) => (remains.mss, remains.window) = (mss, remains.window.max(u64::from(mss))),
        }
    }

    fn window(&self) -> u64 {
        match self {
            Self::Active(path) => path.window(),
            Self::AtRest(remains) => remains.window,
        }
    }

    fn ssthresh(&self) -> u64 {
        match self {
            Self::Active(path) => path.ssthresh(),
            Self::AtRest(remains) => remains.ssthresh,
        }
    }

    fn bandwidth(&self) -> Option<Rate> {
        match self {
            Self::Active(path) => path.bandwidth(),
            Self::AtRest(remains) => Some(remains.bandwidth).filter(|bits| *bits > 0).map(Rate::from_bits_per_second),
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Active(path) => path.pacing_rate(),
            Self::AtRest(remains) => Some(remains.pacing_rate()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{START, ack};

    #[test]
    fn an_acknowledgement_wakes_it_and_grows_its_window() {
        let mut path = Path::start(&(), START);
        path.rest();
        path.on_ack(&ack(1_000, 1));
        assert_eq!(path.active().map(SinglePath::window), Some(START.initial_window + 1_000));
    }

    #[test]
    fn a_bandwidth_that_was_never_measured_is_unknown_at_rest() {
        let at_rest =
            |bandwidth| Path::AtRest(Box::new(Remains { bandwidth, ..Remains::of(&BoundedCubic::start(&(), START)) }));
        assert_eq!(at_rest(0).bandwidth(), None);
        assert_eq!(at_rest(8_000).bandwidth(), Some(Rate::from_bits_per_second(8_000)));
    }
}
