//! BLEST: the slow path is used only if the fast one can then still send all it wants within the send window.
//!
//! Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks", IFIP
//! Networking 2016, and the authors' code in the out-of-tree kernel (v0.95, `mptcp_blest.c`), which this was checked
//! against; the paper is taken as others quote it. F is the subflow with the lowest smoothed RTT, S the one that the
//! classic default would take, the fastest with room. If S = F, it is used. Otherwise, with w the window of F in
//! segments of m bytes and n the round trips of F in the time T that S needs:
//!
//! ```text
//! X = m (w + (n - 1) / 2) n              what F can send in T in congestion avoidance
//! X = m w (2^n - 1), n at most 16        the same in initial slow start
//! use S if  lambda X <= W - (len + f_S)  otherwise wait for F
//! ```
//!
//! W is the whole send window of the connection, f_S what S holds: both are bytes that stay in the window until S has
//! delivered. What F has in flight now is acknowledged within T and needs no subtracting.
//!
//! Paper and code differ in T and n; `estimate` chooses:
//! - `code` (the default): T = max(s_S, min_S + (max_S - min_S) (f_S + len) / w_S), between the least and the largest
//!   smoothed RTT seen on S; n = floor(T / a) + 1 with a the mean of the least and the largest smoothed RTT seen on F;
//!   X with initial slow start, and else with the slow-start threshold and a segment for w where that is more;
//! - `paper`: n = s_S / s_F, not rounded, congestion avoidance only.
//!
//! lambda is 1.2 at first and stays within 1.0 and 1.3. Whenever S is considered, but at most once per (least) RTT of
//! S, it rises by 0.04 if the send window was blocked since then, and falls by 0.01 if not.
//!
//! Decisions:
//! - (n - 1) / 2 is not rounded down; the code divides integers.
//! - "A window-driven retransmission was needed": the engine reported a hole in a closed window, whether or not
//!   another path had room for it, as in the code.
//! - The code runs on top of opportunistic retransmission and penalisation, and so do we; both are settings.
//! - F must be able to end the wait: a full subflow with nothing under way is not waited for. The code's F may be a
//!   backup or a potentially failed subflow; ours is of the class that is preferred now (`candidates.rs`), and a
//!   reinjection does not wait for the subflow where it was.

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fastest, fastest_to_wait_for};
use super::{Chunk, Decision, Hole, Relief, Scheduler};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Choice, Number, Reader, SettingError, Switch};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, Phase, SubflowView};

/// Bounds of lambda, and its steps up and down, in thousandths.
const LAMBDA_RANGE: core::ops::RangeInclusive<i32> = 1_000..=1_300;
const LAMBDA_UP: i32 = 40;
const LAMBDA_DOWN: i32 = 10;
/// The slow-start threshold before the first loss.
const NO_THRESHOLD: u64 = u64::MAX;
/// Most round trips for which slow start is reckoned to go on.
const MOST_DOUBLINGS: i32 = 16;

const LAMBDA: Number = Number {
    name: "lambda",
    unit: "",
    default: 1.2,
    range: 1.0..=1.3,
    summary: "Factor on what the fast path is expected to send, at first",
};
const ESTIMATE: Choice<Estimate> = Choice {
    name: "estimate",
    default: Estimate::Code,
    words: &[("code", Estimate::Code), ("paper", Estimate::Paper)],
    summary: "How the fast path's round trips within one of the slow path are counted",
};
const ADAPT: Switch = Switch { name: "adapt", default: true, summary: "Whether the factor adapts to blocked windows" };

/// How the time of the slow path is turned into round trips of the fast one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimate {
    /// Whole round trips between the extremes seen, slow start included.
    Code,
    /// The ratio of the smoothed round trips.
    Paper,
}

/// Least and largest smoothed RTT of a subflow.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    least: Duration,
    largest: Duration,
}

/// The scheduler `blest`.
#[derive(Debug)]
pub struct Blest {
    estimate: Estimate,
    adapt: bool,
    /// In thousandths.
    lambda: i32,
    /// When lambda was last changed.
    updated: Option<Instant>,
    /// The window was blocked since then.
    blocked: bool,
    round_trips: SubflowMap<Extremes>,
    blocked_window: BlockedWindow,
}

impl Blest {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        let estimate = reader.read(&ESTIMATE)?;
        Ok(Self {
            estimate,
            adapt: reader.read(&ADAPT)?,
            lambda: (reader.read(&LAMBDA)? * 1000.0 + 0.5) as i32,
            updated: None,
            blocked: false,
            round_trips: SubflowMap::new(),
            blocked_window: BlockedWindow::read(reader, true, Penalise::Slower)?,
        })
    }

    fn observe(&mut self, subflows: &[SubflowView]) {
        for subflow in subflows.iter().filter(|subflow| subflow.usable()) {
            let now = subflow.smoothed_rtt;
            match self.round_trips.get_mut(subflow.id) {
                Some(seen) => *seen = Extremes { least: seen.least.min(now), largest: seen.largest.max(now) },
                None => {
                    self.round_trips.insert(subflow.id, Extremes { least: now, largest: now });
                }
            }
        }
    }

    fn extremes(&self, subflow: &SubflowView) -> Extremes {
        let now = subflow.smoothed_rtt;
        self.round_trips.get(subflow.id).copied().unwrap_or(Extremes { least: now, largest: now })
    }

    /// Raises or lowers lambda, at most once per round trip of the slow path.
    fn update_lambda(&mut self, now: Instant, slow: &SubflowView) {
        let Some(updated) = self.updated else {
            self.updated = Some(now);
            return;
        };
        if !self.adapt || now.since(updated) < self.extremes(slow).least {
            return;
        }
        let step = if self.blocked { LAMBDA_UP } else { -LAMBDA_DOWN };
        self.lambda = (self.lambda + step).clamp(*LAMBDA_RANGE.start(), *LAMBDA_RANGE.end());
        self.blocked = false;
        self.updated = Some(now);
    }

    /// How long a segment on the slow path will stay in the send window.
    fn linger(&self, slow: &SubflowView, length: u64) -> Duration {
        let Extremes { least, largest } = self.extremes(slow);
        let filled = (held(slow) + length) as f64 / slow.cwnd.max(1) as f64;
        (least + (largest - least).mul_f64(filled.min(1.0))).max(slow.smoothed_rtt)
    }

    /// What the fast path can send in that time, bytes, without lambda.
    fn expected(&self, fast: &SubflowView, slow: &SubflowView, length: u64) -> f64 {
        let mss = f64::from(fast.mss.max(1));
        if self.estimate == Estimate::Paper {
            let round_trips = ratio(slow.smoothed_rtt, fast.smoothed_rtt).max(1.0);
            return avoidance(fast.cwnd as f64 / mss, round_trips) * mss;
        }
        let Extremes { least, largest } = self.extremes(fast);
        let round_trips = libm::floor(ratio(self.linger(slow, length), (least + largest) / 2)) + 1.0;
        let window = match fast.ssthresh {
            NO_THRESHOLD if fast.phase == Phase::SlowStart => {
                let doublings = round_trips.min(f64::from(MOST_DOUBLINGS)) as i32;
                return fast.cwnd as f64 * f64::from((1_i32 << doublings) - 1);
            }
            NO_THRESHOLD => fast.cwnd,
            threshold => fast.cwnd.max(threshold.saturating_add(u64::from(fast.mss))),
        };
        avoidance(window as f64 / mss, round_trips) * mss
    }

    /// Whether the slow path may carry the chunk without the fast one being blocked by it.
    fn leaves_enough(
        &self,
        connection: &ConnectionView,
        chunk: &Chunk,
        fast: &SubflowView,
        slow: &SubflowView,
    ) -> bool {
        let length = u64::from(chunk.length.min(slow.mss));
        let expected = self.expected(fast, slow, length) * f64::from(self.lambda) / 1000.0;
        expected <= connection.window.saturating_sub(length + held(slow)) as f64
    }
}

/// Segments sent in `round_trips` by a window of `window` segments that grows by one in each.
fn avoidance(window: f64, round_trips: f64) -> f64 {
    (window + (round_trips - 1.0) / 2.0) * round_trips
}

/// One span in units of another; 0 if that is empty.
fn ratio(span: Duration, unit: Duration) -> f64 {
    if unit.is_zero() { 0.0 } else { span.as_nanos() as f64 / unit.as_nanos() as f64 }
}

/// What the subflow holds, bytes.
fn held(subflow: &SubflowView) -> u64 {
    subflow.in_flight + subflow.queued
}

impl Scheduler for Blest {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.observe(subflows);
        let Some(slow) = fastest(subflows, excluded(chunk), chunk.length) else { return Decision::Wait(None) };
        match fastest_to_wait_for(subflows, excluded(chunk), chunk.length) {
            Some(fast) if fast.id != slow.id => {
                self.update_lambda(connection.now, slow);
                if self.leaves_enough(connection, chunk, fast, slow) {
                    Decision::Send(slow.id)
                } else {
                    Decision::Wait(None)
                }
            }
            _ => Decision::Send(slow.id),
        }
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.blocked = true;
        self.blocked_window.relieve(connection, hole, subflows)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.round_trips.remove(id);
        self.blocked_window.on_subflow_removed(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{connection, new_data, reinjection_from, send, subflow};
    use super::*;
    use crate::table::Settings;

    const WAIT: Decision = Decision::Wait(None);

    fn blest(settings: Settings) -> Blest {
        settings.read(Blest::read).unwrap()
    }

    /// A full path of 10 ms and one of 100 ms with room.
    fn fast_and_slow() -> [SubflowView; 2] {
        let mut paths = [subflow(0, 10), subflow(1, 100)];
        paths[0].in_flight = 10_000;
        paths
    }

    fn with_window(now_ms: u64, window: u64) -> ConnectionView {
        ConnectionView { window, ..connection(now_ms) }
    }

    /// The least send window with which the slow path is used.
    fn needed(scheduler: &mut Blest, paths: &[SubflowView]) -> u64 {
        let uses =
            |scheduler: &mut Blest, window| scheduler.schedule(&with_window(0, window), &new_data(), paths) != WAIT;
        let (mut no, mut yes) = (0, 1 << 40);
        assert!(!uses(scheduler, no) && uses(scheduler, yes));
        while yes - no > 1 {
            let middle = (no + yes) / 2;
            if uses(scheduler, middle) { yes = middle } else { no = middle }
        }
        yes
    }

    #[test]
    fn the_fastest_path_with_room_is_used_whatever_the_window_is() {
        let mut paths = fast_and_slow();
        paths[0].in_flight = 9_000;
        assert_eq!(blest(Settings::new()).schedule(&with_window(0, 0), &new_data(), &paths), send(0));
        assert_eq!(blest(Settings::new()).schedule(&with_window(0, 0), &new_data(), &paths[1..]), send(1));
    }

    #[test]
    fn the_slow_path_is_used_if_the_window_holds_what_the_fast_one_sends_meanwhile() {
        // T = 100 ms, n = floor(100 / 10) + 1 = 11; w = the threshold and one, 11; X = (11 + 10 / 2) 11 = 176 segments;
        // lambda X = 1.2 * 176,000 = 211,200; with the segment itself 212,200.
        let mut scheduler = blest(Settings::new());
        let paths = fast_and_slow();
        assert_eq!(needed(&mut scheduler, &paths), 212_200);
        assert_eq!(scheduler.schedule(&with_window(0, 212_199), &new_data(), &paths), WAIT);
        assert_eq!(scheduler.schedule(&with_window(0, 212_200), &new_data(), &paths), send(1));
        // What the slow path holds already, 3000 bytes, stays in the window as long.
        let mut paths = paths;
        (paths[1].in_flight, paths[1].queued) = (2_000, 1_000);
        assert_eq!(needed(&mut scheduler, &paths), 215_200);
    }

    #[test]
    fn the_papers_estimate_takes_the_ratio_of_the_round_trips() {
        // n = 100 / 10; X = (10 + 9 / 2) 10 = 145 segments; 1.2 * 145,000 + 1000 = 175,000.
        let mut scheduler = blest(Settings::new().with("estimate", "paper"));
        assert_eq!(needed(&mut scheduler, &fast_and_slow()), 175_000);
    }

    #[test]
    fn in_initial_slow_start_the_fast_window_is_expected_to_double_at_most_sixteen_times() {
        let mut paths = fast_and_slow();
        (paths[0].ssthresh, paths[0].phase) = (u64::MAX, Phase::SlowStart);
        // 10,000 (2^11 - 1) = 20,470,000; 1.2 times that is 24,564,000.
        assert_eq!(needed(&mut blest(Settings::new()), &paths), 24_565_000);
        // 1 s is 101 round trips: 10,000 (2^16 - 1) = 655,350,000; 1.2 times that is 786,420,000.
        paths[1] = subflow(1, 1_000);
        assert_eq!(needed(&mut blest(Settings::new()), &paths), 786_421_000);
        // Without a threshold, but not in slow start (a congestion control that has none): (10 + 50) 101 = 6060 segments
        // of 1000, 1.2 times.
        paths[0].phase = Phase::CongestionAvoidance;
        assert_eq!(needed(&mut blest(Settings::new()), &paths), 7_273_000);
    }

    #[test]
    fn the_time_of_the_slow_path_lies_between_its_extremes_by_how_full_it_is() {
        let mut scheduler = blest(Settings::new());
        let mut paths = fast_and_slow();
        for rtt in [100, 300, 200] {
            paths[1].smoothed_rtt = Duration::from_millis(rtt);
            scheduler.schedule(&connection(0), &new_data(), &paths);
        }
        // (4000 + 1000) / 10,000: T = 100 + 200 / 2 = 200 ms, no less than the present RTT.
        paths[1].in_flight = 4_000;
        assert_eq!(scheduler.linger(&paths[1], 1_000), Duration::from_millis(200));
        // 8000 / 10,000: T = 260 ms, n = 27, X = (11 + 13) 27 = 648; 1.2 * 648,000 + 1000 + 7000.
        paths[1].in_flight = 7_000;
        assert_eq!(needed(&mut scheduler, &paths), 785_600);
        paths[1].in_flight = 20_000;
        assert_eq!(scheduler.linger(&paths[1], 1_000), Duration::from_millis(300));
        scheduler.on_subflow_removed(SubflowId(1));
        assert_eq!(scheduler.linger(&paths[1], 1_000), Duration::from_millis(200));
    }

    #[test]
    fn lambda_rises_by_4_percent_after_a_blocked_window_and_falls_by_1_percent_without_once_per_slow_round_trip() {
        let mut scheduler = blest(Settings::new());
        let paths = fast_and_slow();
        let hole = Hole { data_seq: 0, length: 1000, culprit: SubflowId(1) };
        let mut lambda_at = |ms, blocked| {
            if blocked {
                scheduler.on_window_blocked(&connection(ms), &hole, &paths);
            }
            scheduler.schedule(&connection(ms), &new_data(), &paths);
            scheduler.lambda
        };
        assert_eq!([lambda_at(0, false), lambda_at(99, false), lambda_at(100, false)], [1_200, 1_200, 1_190]);
        assert_eq!([lambda_at(150, true), lambda_at(199, false), lambda_at(200, false)], [1_190, 1_190, 1_230]);
        assert_eq!(lambda_at(300, false), 1_220);
        assert_eq!([lambda_at(400, true), lambda_at(500, true), lambda_at(600, true)], [1_260, 1_300, 1_300]);
        assert_eq!((7..=50).map(|n| lambda_at(100 * n, false)).last(), Some(1_000));
    }

    #[test]
    fn lambda_stays_where_it_is_put_without_adaptation() {
        let mut scheduler = blest(Settings::new().with("lambda", 1.0).with("adapt", "off"));
        for ms in [0, 1_000] {
            scheduler.schedule(&connection(ms), &new_data(), &fast_and_slow());
        }
        assert_eq!(needed(&mut scheduler, &fast_and_slow()), 177_000);
    }

    #[test]
    fn nobody_waits_for_a_stale_an_idle_or_an_unusable_fast_path_nor_for_a_backup() {
        for spoil in [
            |view: &mut SubflowView| view.stale = true,
            |view: &mut SubflowView| view.suspended = true,
            |view: &mut SubflowView| view.backup = true,
            |view: &mut SubflowView| (view.in_flight, view.window_left) = (0, 0),
        ] {
            let mut paths = fast_and_slow();
            spoil(&mut paths[0]);
            assert_eq!(blest(Settings::new()).schedule(&with_window(0, 2_000), &new_data(), &paths), send(1));
        }
    }

    #[test]
    fn a_reinjection_does_not_wait_for_the_path_where_it_was() {
        let mut scheduler = blest(Settings::new());
        assert_eq!(scheduler.schedule(&with_window(0, 2_000), &reinjection_from(0), &fast_and_slow()), send(1));
    }

    #[test]
    fn full_paths_are_waited_for_and_round_trips_of_zero_divide_nothing() {
        let mut paths = fast_and_slow();
        paths[1].in_flight = 10_000;
        assert_eq!(blest(Settings::new()).schedule(&connection(0), &new_data(), &paths), WAIT);
        paths[1].in_flight = 0;
        paths[0].smoothed_rtt = Duration::ZERO;
        // One round trip: (11 + 0) 1 = 11 segments by the code, 10 by the paper.
        assert_eq!(needed(&mut blest(Settings::new()), &paths), 14_200);
        assert_eq!(needed(&mut blest(Settings::new().with("estimate", "paper")), &paths), 13_000);
    }
}
