//! Forecast of what the paths deliver by a given time, as far as the sender knows.
//!
//! Per path: B its bandwidth, l the share of segments that it loses, q the bytes queued on it, s its smoothed round
//! trip; r the minimum round trip of all paths. Data sent there arrives at least (s - r) / 2 later than on the fastest
//! path. If a message of n segments is more likely than not to lose one, (1 - l)^n < 1/2, it takes a round trip more
//! for the repair: d is s then, and otherwise 0. So within a time t, counted as the deadline is, the path delivers of
//! it
//!
//! ```text
//! max(0, B (1 - l) (t - (s - r) / 2 - d) - q)
//! ```
//!
//! For a path that was never filled B is unknown: as in the scheduler `anabranch`, more than the measured value is
//! assumed ([`SubflowView::trusted_rate`]), in start-up until a round trip shows a queue.

use crate::time::Duration;
use crate::view::{Phase, SubflowView};

/// Bytes per second, and seconds.
#[derive(Clone, Copy, Debug)]
struct Path {
    rate: f64,
    behind: f64,
    queued: f64,
    loss: f64,
    segment: f64,
    round_trip: f64,
}

impl Path {
    fn of(view: &SubflowView, least: Duration) -> Self {
        let limited = view.rates.app_limited || view.phase == Phase::SlowStart;
        let untried = view.phase == Phase::SlowStart && !view.has_queue_in(view.latest_rtt);
        let never_filled = limited && (untried || !view.is_filled_by(view.in_flight + view.queued));
        Self {
            rate: view.trusted_rate(never_filled) * (1.0 - view.loss_rate),
            behind: (view.smoothed_rtt - least).as_secs_f64() / 2.0,
            queued: view.queued as f64,
            loss: view.loss_rate,
            segment: f64::from(view.mss.max(1)),
            round_trip: view.smoothed_rtt.as_secs_f64(),
        }
    }

    fn delivers(&self, time: f64, message: f64) -> f64 {
        let whole = libm::pow(1.0 - self.loss, message / self.segment);
        let repair = if whole < 0.5 { self.round_trip } else { 0.0 };
        let left = time - self.behind - repair;
        if left > 0.0 { (self.rate * left - self.queued).max(0.0) } else { 0.0 }
    }
}

/// The state of the paths.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    paths: Vec<Path>,
    /// There are paths, and all of them are stale.
    blind: bool,
}

impl Forecast {
    pub fn of(paths: &[SubflowView]) -> Self {
        let least = paths.iter().map(|path| path.min_rtt).min().unwrap_or_default();
        let usable = || paths.iter().filter(|path| path.usable());
        Self {
            paths: usable().filter(|path| !path.stale).map(|path| Path::of(path, least)).collect(),
            blind: usable().next().is_some() && usable().all(|path| path.stale),
        }
    }

    /// Whether nothing is known of what will be delivered: all paths are silent, and may go on at any time.
    pub const fn is_blind(&self) -> bool {
        self.blind
    }

    /// Bytes that can arrive within this time, if they end with a message of `message` bytes.
    pub fn delivered_within(&self, time: Duration, message: u64) -> f64 {
        self.paths.iter().map(|path| path.delivers(time.as_secs_f64(), message as f64)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use crate::scheduler::tests::subflow;

    /// 100 kB/s, segments of 1000 bytes, filled.
    fn path(id: u32, rtt_ms: u64, loss_rate: f64) -> SubflowView {
        let in_flight = 1_000 * rtt_ms;
        let mut path = SubflowView { in_flight, loss_rate, ..subflow(id, rtt_ms) };
        path.rates.bandwidth = Rate::from_bits_per_second(800_000);
        path
    }
    fn within(paths: &[SubflowView], millis: u64, message: u64) -> f64 {
        Forecast::of(paths).delivered_within(Duration::from_millis(millis), message).round()
    }

    #[test]
    fn paths_deliver_by_their_rates_from_the_time_on_at_which_something_sent_now_can_be_there() {
        // The second begins (240 - 40) / 2 = 100 ms later.
        let paths = [path(0, 40, 0.0), path(1, 240, 0.0)];
        assert_eq!([50, 100, 300].map(|millis| within(&paths, millis, 1)), [5_000.0, 10_000.0, 50_000.0]);
        let queued = [SubflowView { queued: 6_000, ..path(0, 40, 0.0) }];
        assert_eq!([50, 100].map(|millis| within(&queued, millis, 1)), [0.0, 4_000.0]);
    }

    #[test]
    fn what_is_lost_in_part_more_likely_than_not_takes_a_round_trip_more() {
        // 0.9^6 = 0.53, 0.9^7 = 0.48; a tenth is lost of 100 kB/s.
        let paths = [path(0, 40, 0.1)];
        assert_eq!([6_000, 7_000].map(|message| within(&paths, 100, message)), [9_000.0, 5_400.0]);
    }

    #[test]
    fn a_path_that_was_never_filled_is_trusted_with_more_and_one_that_is_put_aside_with_nothing() {
        let mut limited = SubflowView { in_flight: 0, ..path(0, 40, 0.0) };
        limited.rates.app_limited = true;
        assert_eq!(within(&[limited], 100, 1), 80_000.0);
        let aside =
            [SubflowView { suspended: true, ..path(0, 40, 0.0) }, SubflowView { stale: true, ..path(1, 40, 0.0) }];
        assert_eq!(within(&aside, 100, 1), 0.0);
    }

    #[test]
    fn a_path_was_filled_if_it_had_a_queue_or_what_a_round_trip_carries_in_flight() {
        // 100 kB/s and 40 ms: 4000 bytes fill it, and 40 000 are more than that. What was never filled may be eight
        // times as fast.
        let with = |change: fn(&mut SubflowView)| {
            let mut path = path(0, 40, 0.0);
            change(&mut path);
            within(&[path], 100, 1)
        };
        assert_eq!(with(|view| view.in_flight = 0), 10_000.0, "it is not limited by anything but its window");
        assert_eq!(with(|view| view.phase = Phase::SlowStart), 80_000.0, "without a queue it may be faster");
        let queued = |view: &mut SubflowView| {
            (view.phase, view.latest_rtt) = (Phase::SlowStart, Duration::from_millis(80));
        };
        assert_eq!(with(queued), 10_000.0, "a queue shows its rate");
        assert_eq!(with(|view| view.rates.app_limited = true), 10_000.0, "filled");
        let half_queued = |view: &mut SubflowView| {
            (view.rates.app_limited, view.in_flight, view.queued) = (true, 3_000, 3_000);
        };
        assert_eq!(with(half_queued), 7_000.0, "what is queued counts");
    }
}
