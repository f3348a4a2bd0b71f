//! DAPS: segments are spread by a schedule over the forward delays, so that they arrive in order.
//!
//! Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli: "DAPS: Intelligent Delay-Aware Packet Scheduling for Multipath
//! Transport", ICC 2014, and the code for the out-of-tree kernel by one of the authors of BLEST (`mptcp_daps.c`,
//! v0.89), which this was checked against; the paper's text was not at hand. With forward delays D_i (half the
//! smoothed RTT) and windows w_i in segments:
//!
//! ```text
//! for t = 1, 2, ... lcm(D_1, ..., D_n), and for each i in order of D_i:
//!     if t is a multiple of D_i:  the next w_i segments are for path i
//! ```
//!
//! The data that path i is to deliver at its k-th turn belongs behind all that is delivered until t = k D_i. Each
//! segment is given to its path at once, so it queues there if the window is full: the slow path starts at once with
//! data from far ahead. When the schedule is used up, the next one is made from the delays and windows of that moment.
//!
//! Bounds: the turns are reckoned, not stored, so that memory is one entry per path. Delays are counted in eighths of
//! the least one and are at most 1024 times that. Where the least common multiple is awkward the schedule ends after
//! 64 turns of the fastest path, or after the first turn of the slowest where that is later: so at most 1024 turns of
//! each path.
//!
//! Decisions:
//! - Delays in eighths of the least: the code rounds to multiples of 4 ms to keep schedules short.
//! - `replan`: a schedule is replaced before its end when a delay or a window differs by more than this share (0.5)
//!   from the values it was computed for. The code never does that (`replan = 0`). It is always replaced when the paths
//!   to be used change.
//! - The window is the present one; the code smooths it with 7/8 per window.
//! - A reinjection is not part of the schedule: it goes to the fastest other path with room.
//! - When the window is closed the code sends again what other paths hold, and penalises nobody. Ours sends the hole
//!   again, once per hole; both are settings.
//! - Backups and stale subflows get nothing while others are left (`candidates.rs`).

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fastest, preferred};
use super::{Chunk, ChunkKind, Decision, Hole, Relief, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Number, Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

/// Into how many parts the least delay is divided.
const PARTS: u64 = 8;
/// Most that a delay is, in least delays.
const LARGEST_RATIO: u64 = 1024;
/// Turns of the fastest path after which a schedule ends although the pattern would go on.
const MOST_TURNS: u64 = 64;

const REPLAN: Number = Number {
    name: "replan",
    unit: "share",
    default: 0.5,
    range: 0.0..=10.0,
    summary: "By how much a delay or a window may change before the schedule is made anew; 0: only at the end",
};

/// A path's part in the schedule.
#[derive(Clone, Copy, Debug)]
struct Turns {
    id: SubflowId,
    /// Smoothed round-trip time in nanoseconds and window in bytes that the schedule was made for.
    made_for: [u64; 2],
    /// Between its turns, in parts of the least delay.
    every: u64,
    /// When its next turn is.
    next: u64,
    /// Segments of a turn.
    window: u64,
    /// Segments that are left of its next turn.
    left: u64,
}

/// The scheduler `daps`.
#[derive(Debug)]
pub struct Daps {
    replan: f64,
    /// The paths in order of delay.
    turns: Vec<Turns>,
    /// The last turns of the schedule are here.
    end: u64,
    blocked_window: BlockedWindow,
}

impl Daps {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            replan: reader.read(&REPLAN)?,
            turns: Vec::new(),
            end: 0,
            blocked_window: BlockedWindow::read(reader, true, Penalise::Never)?,
        })
    }

    /// Whether the schedule is for these paths, as they are now.
    fn holds<'a>(&self, paths: impl Iterator<Item = &'a SubflowView>) -> bool {
        let mut known = 0;
        for path in paths {
            let Some(turns) = self.turns.iter().find(|turns| turns.id == path.id) else { return false };
            let mut pairs = turns.made_for.into_iter().zip(measured(path));
            if self.replan > 0.0 && pairs.any(|(then, now)| now.abs_diff(then) as f64 > self.replan * then as f64) {
                return false;
            }
            known += 1;
        }
        known == self.turns.len()
    }

    /// Makes a schedule.
    fn plan<'a>(&mut self, paths: impl Iterator<Item = &'a SubflowView>) {
        self.turns.clear();
        self.turns.extend(paths.map(|path| {
            let window = (path.cwnd / u64::from(path.mss.max(1))).max(1);
            Turns { id: path.id, made_for: measured(path), every: 0, next: 0, window, left: window }
        }));
        self.turns.sort_unstable_by_key(|turns| (turns.made_for[0], turns.id));
        let least = self.turns.first().map_or(1, |fastest| fastest.made_for[0].max(1));
        let mut multiple = 1;
        for turns in &mut self.turns {
            let parts = (u128::from(turns.made_for[0]) * u128::from(PARTS) + u128::from(least / 2)) / u128::from(least);
            turns.every = u64::try_from(parts).unwrap_or(u64::MAX).clamp(PARTS, PARTS * LARGEST_RATIO);
            turns.next = turns.every;
            // More than the bound is never needed, so that the product stays small.
            multiple = least_common_multiple(multiple, turns.every).min(PARTS * MOST_TURNS);
        }
        self.end = self.turns.last().map_or(0, |slowest| slowest.every.max(multiple));
    }

    /// Whose turn it is, by place in `turns`; none when the schedule is used up.
    fn turn(&self) -> Option<usize> {
        let (place, turns) = self.turns.iter().enumerate().min_by_key(|(_, turns)| turns.next)?;
        (turns.next <= self.end).then_some(place)
    }

    /// Takes one segment from the schedule.
    fn take(&mut self) -> Option<SubflowId> {
        let place = self.turn()?;
        let turns = self.turns.get_mut(place)?;
        turns.left -= 1;
        if turns.left == 0 {
            turns.left = turns.window;
            turns.next += turns.every;
        }
        Some(turns.id)
    }
}

/// What a schedule is made for.
fn measured(path: &SubflowView) -> [u64; 2] {
    [path.smoothed_rtt.as_nanos(), path.cwnd]
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor.max(1) * b
}

impl Scheduler for Daps {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        if chunk.kind == ChunkKind::Reinjection {
            let other = fastest(subflows, excluded(chunk), chunk.length);
            return Decision::on(other);
        }
        let paths = preferred(subflows, None);
        if !self.holds(paths.clone()) || self.turn().is_none() {
            self.plan(paths);
        }
        self.take().map_or(Decision::Wait(None), Decision::Send)
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
    use crate::time::Duration;

    fn daps(replan: f64) -> Daps {
        Settings::new().with("replan", replan).read(Daps::read).unwrap()
    }

    /// An established subflow with a window of so many segments.
    fn path(id: u32, rtt_ms: u64, segments: u64) -> SubflowView {
        SubflowView { cwnd: 1_000 * segments, ..subflow(id, rtt_ms) }
    }

    /// Where the next segments go.
    fn next(scheduler: &mut Daps, paths: &[SubflowView], count: usize) -> String {
        let one = |_| match scheduler.schedule(&connection(0), &new_data(), paths) {
            Decision::Send(id) => char::from_digit(id.0, 10).unwrap(),
            Decision::Wait(_) => '-',
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_path_three_times_as_slow_carries_what_belongs_behind_three_windows_of_the_fast_one() {
        // Delays 5 and 15: turns of F at 5, 10 and 15, of S at 15; lcm 15. Windows of 2 and 4.
        let paths = [path(0, 30, 4), path(1, 10, 2)];
        assert_eq!(next(&mut daps(0.0), &paths, 20), "11111100001111110000");
    }

    #[test]
    fn delays_of_two_to_three_share_a_multiple_of_six() {
        // Turns of 0 at 2, 4, 6 and of 1 at 3, 6, the faster first at 6: 0 1 0 0 1.
        let paths = [path(0, 20, 1), path(1, 30, 1)];
        assert_eq!(next(&mut daps(0.0), &paths, 10), "0100101001");
    }

    #[test]
    fn three_paths_take_turns_by_their_delays() {
        // Delays 1, 2, 4; at 1: 0; at 2: 0 1; at 3: 0; at 4: 0 1 2.
        let paths = [path(0, 10, 1), path(1, 20, 1), path(2, 40, 1)];
        assert_eq!(next(&mut daps(0.0), &paths, 14), "00100120010012");
    }

    #[test]
    fn segments_queue_on_a_full_path() {
        let mut paths = [path(0, 10, 2), path(1, 30, 4)];
        (paths[0].in_flight, paths[1].in_flight) = (2_000, 4_000);
        assert_eq!(next(&mut daps(0.0), &paths, 10), "0000001111");
    }

    #[test]
    fn one_path_takes_everything_and_no_path_nothing() {
        assert_eq!(next(&mut daps(0.5), &[path(7, 10, 2)], 5), "77777");
        assert_eq!(next(&mut daps(0.5), &[], 2), "--");
    }

    #[test]
    fn a_schedule_is_made_anew_at_its_end_from_what_is_then() {
        let mut paths = [path(0, 10, 1), path(1, 20, 1)];
        let mut scheduler = daps(0.0);
        assert_eq!(next(&mut scheduler, &paths, 2), "00");
        paths[1].smoothed_rtt = Duration::from_millis(40);
        assert_eq!(next(&mut scheduler, &paths, 1), "1");
        assert_eq!(next(&mut scheduler, &paths, 5), "00001");
    }

    #[test]
    fn a_schedule_is_discarded_when_a_delay_or_a_window_is_off_by_more_than_half() {
        let change = |scheduler: &mut Daps, rtt: u64, window: u64| {
            next(scheduler, &[path(0, 10, 4), path(1, 20, 4)], 6);
            next(scheduler, &[path(0, 10, 4), path(1, rtt, window)], 6)
        };
        // 4 + 4 for path 0 by its delay of 1, 4 for path 1 of 2: two are left of the 8.
        assert_eq!(change(&mut daps(0.5), 30, 6), "001111");
        assert_eq!(change(&mut daps(0.5), 31, 4), "000000");
        assert_eq!(change(&mut daps(0.5), 20, 7), "000000");
        assert_eq!(change(&mut daps(0.0), 31, 7), "001111");
    }

    #[test]
    fn a_path_that_goes_stale_or_comes_back_changes_the_schedule_at_once() {
        let mut paths = [path(0, 10, 2), path(1, 20, 2), path(2, 1, 2)];
        paths[2].backup = true;
        let mut scheduler = daps(0.0);
        assert_eq!(next(&mut scheduler, &paths, 3), "000");
        paths[0].stale = true;
        assert_eq!(next(&mut scheduler, &paths, 3), "111");
        paths[1].stale = true;
        assert_eq!(next(&mut scheduler, &paths, 3), "222");
        paths[0].stale = false;
        assert_eq!(next(&mut scheduler, &paths, 3), "000");
        paths[1].stale = false;
        assert_eq!(next(&mut scheduler, &paths, 6), "000011");
    }

    #[test]
    fn awkward_ratios_end_after_64_turns_of_the_fastest_or_one_of_the_slowest() {
        // 8 and 8.1 ms to an eighth are 1 to 1; 8 to 13 have the multiple 104, 13 turns; with 37 eighths it is 3848.
        for (rtts, end) in [
            (vec![80, 81], 8),
            (vec![80, 130], 104),
            (vec![80, 130, 370], 512),
            (vec![10, 1_000], 800),
            (vec![10, 1_000, 1_010], 808),
            (vec![1, 100_000], 8 * 1024),
        ] {
            let paths: Vec<_> = rtts.iter().zip(0..).map(|(rtt, id)| path(id, *rtt, 1)).collect();
            let mut scheduler = daps(0.0);
            next(&mut scheduler, &paths, 1);
            assert_eq!(scheduler.end, end, "{rtts:?}");
        }
    }

    #[test]
    fn the_slowest_path_is_reached_in_every_schedule() {
        let paths = [path(0, 10, 1), path(1, 1_000, 1), path(2, 1_010, 1)];
        let order = next(&mut daps(0.0), &paths, 103);
        assert_eq!((order.matches('0').count(), order.matches('1').count(), order.matches('2').count()), (101, 1, 1));
        assert!(order.ends_with("102"), "{order}");
    }

    #[test]
    fn a_reinjection_goes_to_the_fastest_other_path_with_room_and_leaves_the_schedule_alone() {
        let mut paths = [path(0, 10, 2), path(1, 20, 2)];
        let mut scheduler = daps(0.0);
        assert_eq!(next(&mut scheduler, &paths, 3), "000");
        assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), send(1));
        paths[1].in_flight = 2_000;
        assert_eq!(scheduler.schedule(&connection(0), &reinjection_from(0), &paths), Decision::Wait(None));
        assert_eq!(next(&mut scheduler, &paths, 3), "011");
    }

    #[test]
    fn round_trips_and_windows_of_zero_make_a_schedule_too() {
        let paths = [path(0, 0, 0), path(1, 0, 2), path(2, 10, 1)];
        let order = next(&mut daps(0.5), &paths, 3 * 1024 + 1);
        assert!(order.starts_with("011011") && order.ends_with("0112"), "{order}");
    }
}
