//! OTIAS: each segment goes where it is expected to arrive first, queueing beyond the window included.
//!
//! Yang, Wang, Amer: "Out-of-order Transmission for In-order Arrival Scheduling for Multipath TCP", AINA workshops
//! 2014. For each subflow with window w, f in flight, q queued (bytes) and smoothed RTT s:
//!
//! ```text
//! rounds  = (q - (w - f)) / w, at least 0        round trips until the window lets the segment go
//! arrival = (rounds + 1/2) s                     and half of one under way
//! ```
//!
//! The segment goes to the subflow with the least arrival, the lower id on a tie, and queues there if its window is
//! full, so that a fast path is preferred until its queue takes as long as the slow one's half round trip. In this way
//! segments leave out of order and are to arrive in order.
//!
//! Decisions:
//! - The paper's text was not at hand; the rule is that of an implementation in the Linux kernel (for multipath DCCP).
//! - `rounds` is a fraction. That implementation divides whole numbers: less than a window in the queue then waits for
//!   nothing. `rounds = whole` does that.
//! - The queue has no limit but the connection-level window.
//! - That implementation does nothing about a closed window: opportunistic retransmission and penalisation are
//!   settings, and off.
//! - Backups and stale subflows get nothing while others are left (`candidates.rs`). What queues on a subflow that
//!   fails is sent again elsewhere by the engine, in the same way but never to where it was.

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, preferred};
use super::{Chunk, Decision, Hole, Relief, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Choice, Reader, SettingError};
use crate::time::Duration;
use crate::view::{ConnectionView, SubflowView};

const ROUNDS: Choice<bool> = Choice {
    name: "rounds",
    default: false,
    words: &[("fraction", false), ("whole", true)],
    summary: "Whether the round trips of waiting are counted in parts or rounded down",
};

/// The scheduler `otias`.
#[derive(Debug)]
pub struct Otias {
    whole_rounds: bool,
    blocked_window: BlockedWindow,
}

impl Otias {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            whole_rounds: reader.read(&ROUNDS)?,
            blocked_window: BlockedWindow::read(reader, false, Penalise::Never)?,
        })
    }

    /// When a segment assigned to the subflow now would arrive, from now.
    fn arrival(&self, subflow: &SubflowView) -> Duration {
        let waiting = (subflow.queued + subflow.in_flight).saturating_sub(subflow.cwnd);
        let rounds = waiting as f64 / subflow.cwnd.max(1) as f64;
        let rounds = if self.whole_rounds { libm::floor(rounds) } else { rounds };
        subflow.smoothed_rtt.mul_f64(rounds + 0.5)
    }
}

impl Scheduler for Otias {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let first = preferred(subflows, excluded(chunk)).min_by_key(|subflow| self.arrival(subflow));
        Decision::on(first)
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

    fn otias(settings: Settings) -> Otias {
        settings.read(Otias::read).unwrap()
    }

    /// Assigns segments of 1000 bytes until one goes elsewhere than to the first path; returns how many went there.
    fn segments_for_the_first(scheduler: &mut Otias, paths: &mut [SubflowView]) -> u64 {
        let mut given = 0;
        while scheduler.schedule(&connection(0), &new_data(), paths) == send(0) {
            paths[0].queued += 1_000;
            given += 1;
        }
        given
    }

    #[test]
    fn the_fast_path_queues_until_the_slow_one_delivers_as_soon() {
        // 20 ms against 100 ms. The first ten of the fast path arrive after 10 ms; then (q / 10 + 1/2) 20 ms for q segments
        // beyond the window, which exceeds the slow one's 50 ms when q > 20. The 31st finds q = 20, a tie, and is the
        // last.
        let mut paths = [subflow(0, 20), subflow(1, 100)];
        assert_eq!(segments_for_the_first(&mut otias(Settings::new()), &mut paths), 31);
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(1));
    }

    #[test]
    fn whole_rounds_let_a_part_of_a_window_wait_for_nothing() {
        // floor(q / 10) is 2 up to q = 29, and 2.5 * 20 ms is the slow one's 50 ms; with q = 30 it is 70 ms.
        let mut paths = [subflow(0, 20), subflow(1, 100)];
        assert_eq!(segments_for_the_first(&mut otias(Settings::new().with("rounds", "whole")), &mut paths), 40);
    }

    #[test]
    fn what_is_in_flight_counts_like_what_is_queued() {
        let mut paths = [subflow(0, 20), subflow(1, 100)];
        (paths[0].in_flight, paths[0].queued) = (10_000, 5_000);
        // (15 - 10) / 10 + 1/2 round trips.
        assert_eq!(otias(Settings::new()).arrival(&paths[0]), Duration::from_millis(20));
        assert_eq!(otias(Settings::new()).arrival(&paths[1]), Duration::from_millis(50));
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(0));
    }

    #[test]
    fn one_path_takes_everything_however_full_it_is() {
        let mut paths = [subflow(3, 20)];
        (paths[0].in_flight, paths[0].queued) = (10_000, 1_000_000);
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(3));
    }

    #[test]
    fn a_backup_gets_nothing_while_a_regular_path_lives_and_all_when_it_is_stale() {
        let mut paths = [subflow(0, 20), subflow(1, 1)];
        paths[1].backup = true;
        paths[0].queued = 1_000_000;
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(0));
        paths[0].stale = true;
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(1));
    }

    #[test]
    fn a_reinjection_queues_on_another_subflow() {
        let mut paths = [subflow(0, 20), subflow(1, 100)];
        paths[1].queued = 50_000;
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &reinjection_from(0), &paths), send(1));
    }

    #[test]
    fn windows_and_round_trips_of_zero_divide_nothing() {
        let mut paths = [subflow(0, 20), subflow(1, 0)];
        paths[0].cwnd = 0;
        paths[1].queued = 50_000;
        assert_eq!(otias(Settings::new()).schedule(&connection(0), &new_data(), &paths), send(1));
        paths[0].queued = 1_000;
        // A window of no bytes counts as one byte: 1000.5 round trips.
        assert_eq!(otias(Settings::new()).arrival(&paths[0]), Duration::from_millis(20_010));
    }
}
