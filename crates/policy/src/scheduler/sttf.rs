//! STTF, shortest transfer time first: the rounds of each congestion window are simulated until the segment is
//! delivered.
//!
//! Hurtig, Grinnemo, Brunstrom, Ferlin, Alay, Kuhn: "Low-Latency Scheduling in MPTCP", IEEE/ACM Transactions on
//! Networking 2019, and the authors' code for the out-of-tree kernel (`mptcp_sttf.c`, the later of its two
//! computations), which this was checked against; the paper's text was not at hand. A segment behind q others on a
//! subflow with a window of w segments, f of them in flight, and round-trip time s is delivered after
//!
//! ```text
//! s / 2                  if it is among the first w - f
//! (r + 1/2) s            if it is among the w_r of round r = 1, 2, ...
//! w_r = 2 w_(r-1), not above the slow-start threshold; w_(r-1) + 1 from there on;  w_0 = w
//! ```
//!
//! It goes to the subflow that delivers it first, the lower id on a tie, even if its window is full.
//!
//! The authors' scheduler gives all segments to the subflows at once, and when the round-trip times have drifted plans
//! anew what is still queued there. A scheduler of ours cannot take back what a subflow has, so segments are held
//! back: one whose subflow is full is given to it only if a later one would leave at once, that is, if of those that
//! are unsent and fit into the window there are more than the others deliver by the time of the first that has room.
//! What is held back is planned anew at each opportunity. So a plan is never older than the last acknowledgement for
//! what is held; what was let past stays.
//!
//! Decisions:
//! - s is the smoothed round-trip time; the code takes the latest sample (`round_trip = latest`).
//! - After 64 rounds the window is taken to stay as it is, so that the time of a decision has a bound.
//! - The code sends what holds a closed window on another path and penalises nobody; so do we, and both are settings.
//! - Backups and stale subflows get nothing while others are left, and a full subflow with nothing under way, which
//!   nothing would ever make free, is left out (`candidates.rs`).

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fits, preferred, will_have_room};
use super::{Chunk, ChunkKind, Decision, Hole, Relief, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Choice, Reader, SettingError};
use crate::time::Duration;
use crate::view::{ConnectionView, SubflowView};

/// Rounds that are simulated; the window stays as it is in later ones.
const MOST_ROUNDS: u64 = 64;

const ROUND_TRIP: Choice<bool> = Choice {
    name: "round_trip",
    default: false,
    words: &[("smoothed", false), ("latest", true)],
    summary: "Which round-trip time a round takes",
};

/// The scheduler `sttf`.
#[derive(Debug)]
pub struct Sttf {
    latest: bool,
    blocked_window: BlockedWindow,
}

impl Sttf {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            latest: reader.read(&ROUND_TRIP)?,
            blocked_window: BlockedWindow::read(reader, true, Penalise::Never)?,
        })
    }

    fn round_trip(&self, subflow: &SubflowView) -> Duration {
        if self.latest { subflow.latest_rtt } else { subflow.smoothed_rtt }
    }

    /// When a segment behind what is queued would be delivered, from now.
    fn transfer_time(&self, subflow: &SubflowView) -> Duration {
        let (mut rounds, mut segments) = Rounds::start(subflow, queued_segments(subflow) + 1);
        let round_trip = self.round_trip(subflow);
        while segments > 0 {
            if rounds.passed == MOST_ROUNDS {
                rounds.passed = rounds.passed.saturating_add(segments.div_ceil(rounds.window));
                break;
            }
            segments = segments.saturating_sub(rounds.next());
        }
        round_trip * rounds.passed + round_trip / 2
    }

    /// How many segments besides those that are queued are delivered within `time`.
    fn delivered_within(&self, subflow: &SubflowView, time: Duration) -> u64 {
        let round_trip = self.round_trip(subflow);
        let half = round_trip / 2;
        if round_trip.is_zero() || time < half {
            return if round_trip.is_zero() { u64::MAX } else { 0 };
        }
        let last = (time - half).as_nanos() / round_trip.as_nanos();
        let (mut rounds, _) = Rounds::start(subflow, 0);
        let mut delivered = rounds.free;
        while rounds.passed < last.min(MOST_ROUNDS) {
            delivered = delivered.saturating_add(rounds.next());
        }
        let rest = rounds.window.saturating_mul(last - rounds.passed);
        delivered.saturating_add(rest).saturating_sub(queued_segments(subflow))
    }

    /// Whether one of `unsent` segments, planned in order, would go to a subflow that has room for it now.
    fn some_leave_now<'a>(&self, unsent: u64, eligible: impl Iterator<Item = &'a SubflowView> + Clone) -> bool {
        eligible.clone().filter(|subflow| fits(subflow, subflow.mss)).any(|with_room| {
            let time = self.transfer_time(with_room);
            let others = eligible.clone().filter(|other| other.id != with_room.id);
            let elsewhere = others.fold(0_u64, |sum, other| sum.saturating_add(self.delivered_within(other, time)));
            unsent > elsewhere
        })
    }
}

/// The rounds of a congestion window to come.
#[derive(Debug)]
struct Rounds {
    /// Segments of the round that passed last.
    window: u64,
    threshold: u64,
    passed: u64,
    /// Segments that may leave at once.
    free: u64,
}

impl Rounds {
    /// The rounds of a subflow's window, and how many of so many segments are left when what may go at once has gone.
    fn start(subflow: &SubflowView, segments: u64) -> (Self, u64) {
        let mss = u64::from(subflow.mss.max(1));
        let free = subflow.cwnd.saturating_sub(subflow.in_flight) / mss;
        let window = (subflow.cwnd / mss).max(1);
        (Self { window, threshold: subflow.ssthresh / mss, passed: 0, free }, segments.saturating_sub(free))
    }

    /// Segments of the next round.
    fn next(&mut self) -> u64 {
        self.passed += 1;
        self.window = if self.window < self.threshold {
            self.window.saturating_mul(2).min(self.threshold)
        } else {
            self.window.saturating_add(1)
        };
        self.window
    }
}

fn queued_segments(subflow: &SubflowView) -> u64 {
    subflow.queued.div_ceil(u64::from(subflow.mss.max(1)))
}

impl Scheduler for Sttf {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let eligible = preferred(subflows, excluded(chunk)).filter(|subflow| will_have_room(subflow, chunk.length));
        let Some(first) = eligible.clone().min_by_key(|subflow| self.transfer_time(subflow)) else {
            return Decision::Wait(None);
        };
        let unsent = match chunk.kind {
            ChunkKind::New => connection.unsent.min(connection.window_left).div_ceil(u64::from(chunk.length.max(1))),
            ChunkKind::Reinjection => 1,
        };
        if fits(first, chunk.length) || self.some_leave_now(unsent, eligible) {
            Decision::Send(first.id)
        } else {
            Decision::Wait(None)
        }
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.blocked_window.relieve(connection, hole, subflows)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.blocked_window.on_subflow_removed(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{connection, new_data, reinjection_from, send, subflow};
    use super::*;
    use crate::table::Settings;

    const WAIT: Decision = Decision::Wait(None);

    fn sttf() -> Sttf {
        Settings::new().read(Sttf::read).unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn with_unsent(segments: u64) -> ConnectionView {
        ConnectionView { unsent: 1_000 * segments, ..connection(0) }
    }

    /// When the segments of these places in the queue, from 1, are delivered by an idle subflow of 10 ms.
    fn times(subflow: &mut SubflowView, places: &[u64]) -> Vec<Duration> {
        let time = |place: &u64| {
            subflow.queued = 1_000 * (place - 1);
            sttf().transfer_time(subflow)
        };
        places.iter().map(time).collect()
    }

    #[test]
    fn in_congestion_avoidance_each_round_carries_a_segment_more() {
        // 10 at once, then 11, 12, 13: up to the 10th, 21st, 33rd, 46th.
        let mut path = subflow(0, 10);
        assert_eq!(times(&mut path, &[1, 10, 11, 21, 22, 33, 34, 46]), [5, 5, 15, 15, 25, 25, 35, 35].map(ms));
        // With four in flight 6 may go at once: up to the 6th, 17th.
        path.in_flight = 4_000;
        assert_eq!(times(&mut path, &[6, 7, 17, 18]), [5, 15, 15, 25].map(ms));
    }

    #[test]
    fn in_slow_start_the_rounds_double_up_to_the_threshold() {
        // 10, 20, 40, then the threshold of 50, then 51: up to 10, 30, 70, 120, 171.
        let mut path = subflow(0, 10);
        path.ssthresh = 50_000;
        let places = [10, 11, 30, 31, 70, 71, 120, 121, 171, 172];
        assert_eq!(times(&mut path, &places), [5, 15, 15, 25, 25, 35, 35, 45, 45, 55].map(ms));
    }

    #[test]
    fn a_plan_of_more_than_64_rounds_goes_on_with_the_window_of_the_64th() {
        // 1 at once, then 2, 3, .. 65: the sum of 1 to 65 is 2145; then 65 in each.
        let mut path = subflow(0, 10);
        (path.cwnd, path.ssthresh) = (1_000, 1_000);
        let expected = [64 * 10 + 5, 65 * 10 + 5, 65 * 10 + 5, 66 * 10 + 5].map(ms);
        assert_eq!(times(&mut path, &[2_145, 2_146, 2_210, 2_211]), expected);
    }

    #[test]
    fn what_is_delivered_within_a_time_is_what_does_not_take_longer() {
        for (cwnd, ssthresh, in_flight, queued) in [(10, 10, 0, 0), (10, 50, 4, 3), (1, 1, 1, 5), (3, 1_000, 9, 40)] {
            let mut path = subflow(0, 10);
            (path.cwnd, path.ssthresh) = (1_000 * cwnd, 1_000 * ssthresh);
            path.in_flight = 1_000 * in_flight;
            for time in [0, 4, 5, 14, 15, 16, 25, 95, 645, 655, 2_000].map(ms) {
                path.queued = 1_000 * queued;
                let delivered = sttf().delivered_within(&path, time);
                path.queued += 1_000 * delivered;
                assert!(sttf().transfer_time(&path) > time, "{cwnd} {ssthresh} {in_flight} {queued} {time}");
                if delivered > 0 {
                    path.queued -= 1_000;
                    assert!(sttf().transfer_time(&path) <= time, "{cwnd} {ssthresh} {in_flight} {queued} {time}");
                }
            }
        }
    }

    #[test]
    fn a_segment_for_a_full_path_is_held_back_if_no_other_leaves_now() {
        // F of 10 ms is full: its 11 of the next round arrive after 15 ms, its 12 of the one after that after 25 ms, and S
        // of 50 ms delivers after 25 ms, so that F takes 23 of them and the 24th is S's.
        let mut paths = [subflow(0, 10), subflow(1, 50)];
        paths[0].in_flight = 10_000;
        assert_eq!(sttf().schedule(&with_unsent(1), &new_data(), &paths), WAIT);
        assert_eq!(sttf().schedule(&with_unsent(23), &new_data(), &paths), WAIT);
        assert_eq!(sttf().schedule(&with_unsent(24), &new_data(), &paths), send(0));
        // The window counts, not what is beyond it.
        let narrow = ConnectionView { window_left: 23_000, ..with_unsent(24) };
        assert_eq!(sttf().schedule(&narrow, &new_data(), &paths), WAIT);
    }

    #[test]
    fn of_a_hundred_segments_the_slow_path_carries_those_that_the_fast_one_would_deliver_later() {
        let mut paths = [subflow(0, 10), subflow(1, 50)];
        paths[0].in_flight = 10_000;
        let mut order = Vec::new();
        for unsent in (1..=100).rev() {
            let Decision::Send(id) = sttf().schedule(&with_unsent(unsent), &new_data(), &paths) else { break };
            paths[id.0 as usize].queued += 1_000;
            order.push(id.0);
        }
        // 23 for F, then S's window of ten, and the rest is held back.
        let mut expected = vec![0; 23];
        expected.resize(33, 1);
        assert_eq!(order, expected);
    }

    #[test]
    fn what_is_held_back_is_planned_anew_when_the_round_trip_time_drifts() {
        let mut paths = [subflow(0, 10), subflow(1, 50)];
        paths[0].in_flight = 10_000;
        assert_eq!(sttf().schedule(&with_unsent(20), &new_data(), &paths), WAIT);
        // F needs 45 ms for its next round now, and S 25 ms.
        paths[0].smoothed_rtt = ms(30);
        assert_eq!(sttf().schedule(&with_unsent(20), &new_data(), &paths), send(1));
        // The latest sample is something else.
        let mut latest = Settings::new().with("round_trip", "latest").read(Sttf::read).unwrap();
        assert_eq!(latest.schedule(&with_unsent(20), &new_data(), &paths), WAIT);
    }

    #[test]
    fn one_path_is_used_while_it_has_room() {
        let mut paths = [subflow(2, 10)];
        assert_eq!(sttf().schedule(&connection(0), &new_data(), &paths), send(2));
        paths[0].in_flight = 10_000;
        assert_eq!(sttf().schedule(&connection(0), &new_data(), &paths), WAIT);
    }

    #[test]
    fn the_slow_path_is_used_when_the_fast_one_is_stale_a_backup_or_can_never_have_room() {
        for spoil in [
            |view: &mut SubflowView| view.stale = true,
            |view: &mut SubflowView| view.backup = true,
            |view: &mut SubflowView| (view.in_flight, view.window_left) = (0, 0),
        ] {
            let mut paths = [subflow(0, 10), subflow(1, 500)];
            paths[0].in_flight = 10_000;
            assert_eq!(sttf().schedule(&with_unsent(1), &new_data(), &paths), WAIT);
            spoil(&mut paths[0]);
            assert_eq!(sttf().schedule(&with_unsent(1), &new_data(), &paths), send(1));
        }
        let mut paths = [subflow(0, 10), subflow(1, 500)];
        paths[0].in_flight = 10_000;
        assert_eq!(sttf().schedule(&with_unsent(1), &reinjection_from(0), &paths), send(1));
    }

    #[test]
    fn round_trips_and_windows_of_zero_divide_nothing() {
        let mut paths = [subflow(0, 0), subflow(1, 10)];
        (paths[0].in_flight, paths[0].cwnd) = (10_000, 0);
        assert_eq!(sttf().schedule(&with_unsent(100), &new_data(), &paths), WAIT);
        paths[0].cwnd = 20_000;
        assert_eq!(sttf().schedule(&with_unsent(100), &new_data(), &paths), send(0));
    }
}
