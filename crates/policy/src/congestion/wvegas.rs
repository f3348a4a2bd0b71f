//! wVegas, "weighted Vegas": keeps a few segments in the queue of each path, and moves them to the paths with the
//! highest rate.
//!
//! Once per round of path i, with w_i its window in segments, r_i the mean of the round's round-trip times, b_i the
//! least ever:
//!
//! diff_i = w_i (r_i - b_i) / r_i: segments in the queue; when diff_i reaches alpha_i: x_i = w_i / r_i, alpha_i =
//! max(2, 10 x_i / sum of x_k); w_i grows by one segment if diff_i < alpha_i and shrinks by one if diff_i > alpha_i;
//! when the queueing delay r_i - b_i is twice the least that it was: w_i b_i / (2 r_i), which drains the queue so that
//! b_i can be seen; slow start brings the window back to three quarters.
//!
//! In slow start diff_i > 1 (gamma) ends it, with w_i = min(w_i, w_i b_i / r_i + 1). Losses halve as in standard TCP.
//!
//! Source: Cao, Xu, Fu: Delay-based Congestion Control for Multipath TCP (ICNP 2012);
//! draft-xu-mptcp-congestion-control.
//!
//! Choices, as the authors' code for Linux has them: total alpha 10, at least 2 for each path, gamma 1; alpha_i begins
//! at 2; x_i is kept until diff_i reaches alpha_i again; after a drain the least queueing delay is measured anew; a
//! round with fewer than three samples says nothing of the queue and the window grows by standard TCP's segment. Not as
//! there: diff is not rounded down; a queueing delay of nothing is never doubled, or a path without a queue would be
//! drained in every round; growth needs a window that limits sending, as for all members.

use super::slow_start::SlowStart;
use super::window::{Decrease, Window, counted};
use super::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use crate::ids::{SubflowId, SubflowMap};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "wvegas",
    summary: "Weighted Vegas: ten segments in all wait in the paths' queues, most where the rate is highest.",
    source: "Cao et al., ICNP 2012; draft-xu-mptcp-congestion-control",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Wvegas::default()))
}

/// Segments in all queues together.
const TOTAL_ALPHA: f64 = 10.0;
/// Minimum of a path.
const LEAST_ALPHA: f64 = 2.0;
/// Segments in the queue that end slow start.
const GAMMA: f64 = 1.0;
/// Samples that a round must have.
const SAMPLES: u32 = 3;

/// One subflow.
#[derive(Clone, Debug)]
struct Path {
    window: Window,
    slow_start: SlowStart,
    /// Minimum round-trip time in seconds; 0 before the first sample.
    base: f64,
    /// Sum of the round's samples in seconds, and their number.
    sum: f64,
    samples: u32,
    /// The round ends when this many bytes are acknowledged.
    round_end: u64,
    alpha: f64,
    /// Rate when the queue last reached alpha, in segments per second: x.
    rate: f64,
    /// Minimum queueing delay since the last drain, in seconds; 0 before the first sample.
    least_queueing: f64,
}

impl Path {
    fn new(start: Start) -> Self {
        Self {
            window: Window::new(start),
            slow_start: SlowStart::new(false),
            base: 0.0,
            sum: 0.0,
            samples: 0,
            round_end: 0,
            alpha: LEAST_ALPHA,
            rate: 0.0,
            least_queueing: 0.0,
        }
    }

    fn sample(&mut self, rtt: Option<Duration>) {
        let Some(rtt) = rtt.map(Duration::as_secs_f64).filter(|rtt| *rtt > 0.0) else { return };
        if self.base == 0.0 || rtt < self.base {
            self.base = rtt;
        }
        self.sum += rtt;
        self.samples += 1;
    }

    /// Ends a round. Returns its mean round-trip time, if it has enough samples.
    fn end_round(&mut self, ack: &Ack) -> Option<f64> {
        let (sum, samples) = (self.sum, self.samples);
        self.round_end = ack.total_sent;
        (self.sum, self.samples) = (0.0, 0);
        (samples >= SAMPLES).then(|| sum / f64::from(samples))
    }

    fn segments(&self) -> f64 {
        self.window.cwnd() as f64 / self.window.mss() as f64
    }

    /// Segments in the queue at this round-trip time.
    fn queued(&self, rtt: f64) -> f64 {
        self.segments() * (rtt - self.base) / rtt
    }

    /// Ends slow start if there is a queue. Returns whether it did.
    fn leave_slow_start(&mut self, rtt: f64) -> bool {
        if self.queued(rtt) <= GAMMA {
            return false;
        }
        let target = (self.segments() * self.base / rtt + 1.0) * self.window.mss() as f64;
        self.window.settle(self.window.cwnd().min(target as u64));
        true
    }

    /// Grows or shrinks by a segment, or drains.
    fn adjust(&mut self, rtt: f64, may_grow: bool) {
        let mss = self.window.mss();
        let queued = self.queued(rtt);
        if queued > self.alpha {
            self.window.settle(self.window.cwnd().saturating_sub(mss));
        } else if queued < self.alpha && may_grow {
            self.window.add(mss as f64);
        }
        let queueing = rtt - self.base;
        if self.least_queueing == 0.0 || queueing < self.least_queueing {
            self.least_queueing = queueing;
        }
        if queueing > 0.0 && queueing >= 2.0 * self.least_queueing {
            self.window.drain((self.window.cwnd() as f64 * self.base / (2.0 * rtt)) as u64);
            self.least_queueing = 0.0;
        }
    }
}

/// wVegas over the subflows of a connection. A call for an unknown subflow does nothing; its window is 0.
#[derive(Debug, Default)]
struct Wvegas {
    paths: SubflowMap<Path>,
}

impl Wvegas {
    /// Updates the weights when the queue of this path reaches alpha.
    fn weigh(&mut self, id: SubflowId, rtt: f64) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.queued(rtt) < path.alpha {
            return;
        }
        path.rate = path.segments() / rtt;
        let rate = path.rate;
        let total: f64 = self.paths.values().map(|path| path.rate).sum();
        if let Some(path) = self.paths.get_mut(id) {
            path.alpha = (TOTAL_ALPHA * rate / total).max(LEAST_ALPHA);
        }
    }
}

impl CongestionControl for Wvegas {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.paths.insert(id, Path::new(start));
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.paths.remove(id);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let Some(path) = self.paths.get_mut(id) else { return };
        path.sample(ack.rtt);
        let may_grow = counted(ack) > 0;
        if ack.total_acked < path.round_end || ack.acked == 0 {
            if path.window.in_slow_start() {
                path.slow_start.on_ack(&mut path.window, ack);
            }
            return;
        }
        let mean = path.end_round(ack).filter(|_| !ack.in_recovery);
        if path.window.in_slow_start() {
            if !mean.is_some_and(|rtt| path.leave_slow_start(rtt)) {
                path.slow_start.on_ack(&mut path.window, ack);
            }
            return;
        }
        match mean {
            Some(rtt) => {
                self.weigh(id, rtt);
                if let Some(path) = self.paths.get_mut(id) {
                    path.adjust(rtt, may_grow);
                }
            }
            None if may_grow => path.window.add(path.window.mss() as f64),
            None => {}
        }
    }

    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_congestion(event, Decrease::STANDARD);
            if event.cause != Congestion::Penalty {
                // Earlier measurements do not apply to the queue now.
                (path.sum, path.samples) = (0.0, 0);
            }
        }
    }

    fn on_recovery_end(&mut self, id: SubflowId, _now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_recovery_end();
        }
    }

    fn on_spurious(&mut self, id: SubflowId, _now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.window.on_spurious();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{START, ack, add_path, close_to, id, loss};

    /// A path after slow start: window in segments of 1000 bytes, minimum round-trip time in ms.
    fn with_path(wvegas: &mut Wvegas, index: usize, segments: u64, base_ms: u64) {
        wvegas.on_subflow_added(id(index), Start { initial_window: segments * 1_000, ..START });
        let path = wvegas.paths.get_mut(id(index)).expect("just added");
        path.window.leave_slow_start();
        path.base = base_ms as f64 / 1e3;
        path.round_end = 1;
    }

    /// A round in which all samples have this value.
    fn round(wvegas: &mut Wvegas, index: usize, rtt_ms: u64) {
        for _ in 0..2 {
            wvegas.on_ack(id(index), &Ack { total_acked: 0, ..ack(1_000, rtt_ms) });
        }
        wvegas.on_ack(id(index), &Ack { total_acked: 1, total_sent: 1, ..ack(1_000, rtt_ms) });
    }

    fn alpha(wvegas: &Wvegas, index: usize) -> f64 {
        wvegas.paths.get(id(index)).expect("a path of the test").alpha
    }

    #[test]
    fn a_window_grows_while_fewer_than_alpha_segments_wait_and_shrinks_when_more_do() {
        let mut wvegas = Wvegas::default();
        with_path(&mut wvegas, 0, 21, 100);
        // 21 (105 - 100) / 105 = 1 segment waits, alpha is 2.
        round(&mut wvegas, 0, 105);
        assert_eq!(wvegas.window(id(0)), 22_000);
        // 22 (111 - 100) / 111 = 2.2: alpha is reached. Alone it becomes 10, and there is room again; but the queueing
        // delay has doubled, from 5 ms to 11 ms: 23 * 100 / 222 = 10.36 segments.
        round(&mut wvegas, 0, 111);
        close_to(alpha(&wvegas, 0), 10.0, 1e-12);
        assert_eq!(wvegas.window(id(0)), 10_360);
        // 60 (125 - 100) / 125 = 12 wait: one segment less. The delay of 25 ms is the least since the drain.
        with_path(&mut wvegas, 0, 60, 100);
        wvegas.paths.get_mut(id(0)).expect("there").alpha = 10.0;
        round(&mut wvegas, 0, 125);
        assert_eq!(wvegas.window(id(0)), 59_000);
    }

    #[test]
    fn the_ten_segments_are_shared_by_rate_and_two_is_the_least() {
        let mut wvegas = Wvegas::default();
        with_path(&mut wvegas, 0, 30, 100);
        with_path(&mut wvegas, 1, 30, 300);
        // 30 * 20 / 120 = 5 wait: x = 30 / 0.12 = 250 segments/s, alone so far: alpha 10.
        round(&mut wvegas, 0, 120);
        close_to(alpha(&wvegas, 0), 10.0, 1e-12);
        // 30 * 60 / 360 = 5 wait: x = 30 / 0.36 = 83.3; 10 * 83.3 / 333.3 = 2.5.
        round(&mut wvegas, 1, 360);
        close_to(alpha(&wvegas, 1), 2.5, 1e-9);
        // The first has 31 segments now and is updated for the other when it reaches its alpha: 31 * 50 / 150 = 10.3, x
        // = 206.7; 10 * 206.7 / 290 = 7.126.
        round(&mut wvegas, 0, 150);
        close_to(alpha(&wvegas, 0), 7.126_436, 1e-6);
        // A third at a tenth of the rate still gets two.
        with_path(&mut wvegas, 2, 10, 200);
        round(&mut wvegas, 2, 400);
        close_to(alpha(&wvegas, 2), 2.0, 1e-12);
    }

    #[test]
    fn a_queue_of_just_alpha_segments_is_full_enough_to_share_anew() {
        let mut wvegas = Wvegas::default();
        // 4 * 250 / 500 = 2 wait, which is alpha at first; alone it becomes 10.
        with_path(&mut wvegas, 0, 4, 250);
        round(&mut wvegas, 0, 500);
        close_to(alpha(&wvegas, 0), 10.0, 1e-12);
    }

    #[test]
    fn slow_start_ends_when_more_than_one_segment_waits() {
        let mut wvegas = Wvegas::default();
        add_path(&mut wvegas, 0);
        let path = wvegas.paths.get_mut(id(0)).expect("there");
        path.base = 0.1;
        path.round_end = 1;
        // 10 to 13 segments over the three acknowledgements, with 104 ms: 12 * 4 / 104 = 0.46 wait.
        round(&mut wvegas, 0, 104);
        assert_eq!(wvegas.window(id(0)), 13_000);
        assert!(wvegas.paths.get(id(0)).is_some_and(|path| path.window.in_slow_start()));
        // 15 at the end of the next round with 125 ms: 15 * 25 / 125 = 3 wait; 15 * 100 / 125 + 1 = 13.
        round(&mut wvegas, 0, 125);
        assert_eq!((wvegas.window(id(0)), wvegas.ssthresh(id(0))), (13_000, 13_000));
    }

    #[test]
    fn a_round_of_two_samples_counts_as_one_without_a_queue() {
        let mut wvegas = Wvegas::default();
        with_path(&mut wvegas, 0, 20, 100);
        wvegas.on_ack(id(0), &Ack { total_acked: 0, ..ack(1_000, 500) });
        wvegas.on_ack(id(0), &Ack { total_acked: 1, total_sent: 1, ..ack(1_000, 500) });
        assert_eq!(wvegas.window(id(0)), 21_000);
    }

    #[test]
    fn a_loss_halves_one_window_only() {
        let mut wvegas = Wvegas::default();
        with_path(&mut wvegas, 0, 20, 100);
        with_path(&mut wvegas, 1, 20, 100);
        wvegas.on_congestion(id(0), &loss(20_000));
        assert_eq!((wvegas.window(id(0)), wvegas.window(id(1))), (10_000, 20_000));
    }

    /// Alone, with four segments, a minimum of 250 ms and an alpha of two.
    fn four_segments(wvegas: &mut Wvegas) -> &mut Path {
        with_path(wvegas, 0, 4, 250);
        let path = wvegas.paths.get_mut(id(0)).expect("there");
        path.alpha = 2.0;
        path
    }

    #[test]
    fn a_queue_of_just_alpha_segments_leaves_the_window_as_it_is() {
        let mut wvegas = Wvegas::default();
        let path = four_segments(&mut wvegas);
        // 4 * 250 / 500 = 2.
        path.adjust(0.5, true);
        assert_eq!(path.window.cwnd(), 4_000);
    }

    #[test]
    fn a_window_that_was_not_used_does_not_grow() {
        let mut wvegas = Wvegas::default();
        let path = four_segments(&mut wvegas);
        // 4 * 62.5 / 312.5 = 0.8.
        path.adjust(0.3125, false);
        assert_eq!(path.window.cwnd(), 4_000);
        path.adjust(0.3125, true);
        assert_eq!(path.window.cwnd(), 5_000);
    }

    #[test]
    fn a_queue_is_drained_when_it_takes_twice_the_least_since_the_last_time_and_none_is_not() {
        let mut wvegas = Wvegas::default();
        let path = four_segments(&mut wvegas);
        path.adjust(0.25, false);
        assert_eq!(path.window.cwnd(), 4_000, "nothing waits");
        path.adjust(0.5, false);
        path.adjust(0.375, false);
        assert_eq!((path.window.cwnd(), path.least_queueing), (4_000, 0.125));
        // 250 ms are twice 125: 4000 * 250 / (2 * 500) = 1000, but two segments are the least.
        path.adjust(0.5, false);
        assert_eq!((path.window.cwnd(), path.least_queueing), (2_000, 0.0));
    }
}
