//! ECF, earliest completion first: waits for the fast path if all that is to be sent would be through sooner that way.
//!
//! Lim, Nahum, Towsley, Gibbens: "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017, and the
//! authors' code in the out-of-tree kernel (v0.95, `mptcp_ecf.c`), which this was checked against; the paper is taken
//! as others quote it. F is the subflow with the lowest smoothed RTT s, S the one that the classic default would take,
//! the fastest with room. If S = F, it is used. Otherwise, with k bytes to send, windows w in bytes, v the variation
//! of the RTT, d = max(v_F, v_S), and `waiting` 0 or 1:
//!
//! ```text
//! if  s_F (1 + max(k, w_F) / w_F) < (1 + beta waiting) (s_S + d)         F, waited for, is through before S
//!     if  s_S max(k, w_S) / w_S >= 2 s_F + d:  wait for F, waiting = 1   and S cannot help in the meantime
//!     else:                                    use S
//! else:                                        use S, waiting = 0
//! ```
//!
//! beta is 1/4: who waits already goes on waiting a little longer.
//!
//! Decisions:
//! - max(k, w) is the code's: something is to be sent, and that takes a round trip. The paper prints k / w.
//! - v is the RTT variation of RFC 6298. The paper calls it a standard deviation; the code takes twice the kernel's
//!   variation, as its scaled field is shifted by one instead of by two.
//! - k is all that is written and not yet given to a subflow; the chunk is part of it, unless it is a reinjection,
//!   which comes on top. It is not cut to what the send window lets go, so with a large send buffer that is kept full
//!   ECF decides as the lowest RTT does, however small the receive buffer is.
//! - The code runs on top of opportunistic retransmission and penalisation, and so do we; both are settings.
//! - F must be able to end the wait: a full subflow with nothing under way is not waited for. The code's F may be a
//!   backup; ours is of the class that is preferred now (`candidates.rs`), and a reinjection does not wait for the
//!   subflow where it was.

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fastest, fastest_to_wait_for};
use super::{Chunk, ChunkKind, Decision, Hole, Relief, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Number, Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

const BETA: Number = Number {
    name: "beta",
    unit: "",
    default: 0.25,
    range: 0.0..=10.0,
    summary: "How much later the fast path may finish while it is already waited for",
};

/// The scheduler `ecf`.
#[derive(Debug)]
pub struct Ecf {
    beta: f64,
    waiting: bool,
    blocked_window: BlockedWindow,
}

impl Ecf {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::read(reader)?))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            beta: reader.read(&BETA)?,
            waiting: false,
            blocked_window: BlockedWindow::read(reader, true, Penalise::Slower)?,
        })
    }

    /// Whether to wait for the fast path, `to_send` bytes being there to send.
    fn waits(&mut self, to_send: u64, fast: &SubflowView, slow: &SubflowView) -> bool {
        let nanos = |span: crate::time::Duration| span.as_nanos() as f64;
        let (fast_rtt, slow_rtt) = (nanos(fast.smoothed_rtt), nanos(slow.smoothed_rtt));
        let margin = nanos(fast.rtt_variation.max(slow.rtt_variation));
        // Everything in round trips of a window: the bytes to send are at least one.
        let windows = |view: &SubflowView| to_send.max(view.cwnd) as f64 / view.cwnd.max(1) as f64;
        let patience = if self.waiting { 1.0 + self.beta } else { 1.0 };
        if fast_rtt * (1.0 + windows(fast)) >= patience * (slow_rtt + margin) {
            self.waiting = false;
            return false;
        }
        let waits = slow_rtt * windows(slow) >= 2.0 * fast_rtt + margin;
        self.waiting |= waits;
        waits
    }
}

impl Scheduler for Ecf {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let Some(slow) = fastest(subflows, excluded(chunk), chunk.length) else { return Decision::Wait(None) };
        let to_send = match chunk.kind {
            ChunkKind::New => connection.unsent,
            ChunkKind::Reinjection => connection.unsent + u64::from(chunk.length),
        };
        match fastest_to_wait_for(subflows, excluded(chunk), chunk.length) {
            Some(fast) if fast.id != slow.id && self.waits(to_send, fast, slow) => Decision::Wait(None),
            _ => Decision::Send(slow.id),
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
    use crate::time::Duration;

    const WAIT: Decision = Decision::Wait(None);

    fn ecf() -> Ecf {
        Settings::new().read(Ecf::read).unwrap()
    }

    /// A full path of 10 ms and one with room.
    fn fast_and_slow(slow_ms: u64) -> [SubflowView; 2] {
        let mut paths = [subflow(0, 10), subflow(1, slow_ms)];
        paths[0].in_flight = 10_000;
        paths
    }

    fn with_unsent(unsent: u64) -> ConnectionView {
        ConnectionView { unsent, ..connection(0) }
    }

    #[test]
    fn the_fastest_path_with_room_is_used_however_little_there_is() {
        let mut paths = fast_and_slow(100);
        paths[0].in_flight = 9_000;
        assert_eq!(ecf().schedule(&with_unsent(1_000), &new_data(), &paths), send(0));
        assert_eq!(ecf().schedule(&with_unsent(1_000), &new_data(), &paths[1..]), send(1));
    }

    #[test]
    fn little_waits_for_the_fast_path_and_much_takes_the_slow_one_too() {
        // d = max(10, 100) / 4 = 25 ms. 10 ms (1 + k / 10,000) < 125 ms if k < 115,000; 100 ms k / 10,000 is more than
        // 2 * 10 + 25 = 45 ms from the first window on.
        let paths = fast_and_slow(100);
        let decide = |unsent| ecf().schedule(&with_unsent(unsent), &new_data(), &paths);
        assert_eq!(decide(1_000), WAIT);
        assert_eq!(decide(114_999), WAIT);
        assert_eq!(decide(115_000), send(1));
    }

    #[test]
    fn who_waits_already_waits_for_a_quarter_more() {
        // 1.25 * 125 ms = 156.25 ms: k < 146,250.
        let paths = fast_and_slow(100);
        let mut scheduler = ecf();
        let mut decide = |unsent| scheduler.schedule(&with_unsent(unsent), &new_data(), &paths);
        assert_eq!(decide(146_249), send(1));
        assert_eq!(decide(114_999), WAIT);
        assert_eq!(decide(146_249), WAIT);
        assert_eq!(decide(146_250), send(1));
        assert_eq!(decide(115_000), send(1));
    }

    #[test]
    fn a_path_that_is_through_before_the_fast_one_has_turned_round_is_used() {
        // S of 22 ms, d = 5.5 ms: 10 (1 + 1) = 20 < 27.5, but 22 < 2 * 10 + 5.5 = 25.5. S of 30 ms, d = 7.5 ms: 20 < 37.5,
        // and 30 >= 27.5.
        assert_eq!(ecf().schedule(&with_unsent(1_000), &new_data(), &fast_and_slow(22)), send(1));
        assert_eq!(ecf().schedule(&with_unsent(1_000), &new_data(), &fast_and_slow(30)), WAIT);
        // With a window of a hundred segments, 100,000 bytes, on S of 100 ms: 100 ms * 1 >= 45 ms still.
        let mut paths = fast_and_slow(100);
        paths[1].cwnd = 100_000;
        assert_eq!(ecf().schedule(&with_unsent(50_000), &new_data(), &paths), WAIT);
    }

    #[test]
    fn using_the_slow_path_for_its_quick_end_does_not_end_the_waiting() {
        let mut scheduler = ecf();
        assert_eq!(scheduler.schedule(&with_unsent(1_000), &new_data(), &fast_and_slow(30)), WAIT);
        assert_eq!(scheduler.schedule(&with_unsent(1_000), &new_data(), &fast_and_slow(22)), send(1));
        // 10 (1 + k / 10,000) < 37.5 if k < 27,500, with patience 46.875: k < 36,875.
        assert_eq!(scheduler.schedule(&with_unsent(30_000), &new_data(), &fast_and_slow(30)), WAIT);
    }

    #[test]
    fn a_reinjection_comes_on_top_of_what_is_unsent_and_does_not_wait_for_the_path_where_it_was() {
        let paths = fast_and_slow(100);
        let mut third = [paths[0].clone(), paths[1].clone(), subflow(2, 500)];
        third[2].in_flight = 10_000;
        assert_eq!(ecf().schedule(&with_unsent(113_999), &reinjection_from(2), &third), WAIT);
        assert_eq!(ecf().schedule(&with_unsent(114_000), &reinjection_from(2), &third), send(1));
        assert_eq!(ecf().schedule(&with_unsent(0), &reinjection_from(0), &paths), send(1));
    }

    #[test]
    fn nobody_waits_for_a_stale_an_idle_or_an_unusable_fast_path_nor_for_a_backup() {
        for spoil in [
            |view: &mut SubflowView| view.stale = true,
            |view: &mut SubflowView| view.suspended = true,
            |view: &mut SubflowView| view.backup = true,
            |view: &mut SubflowView| (view.in_flight, view.window_left) = (0, 0),
        ] {
            let mut paths = fast_and_slow(100);
            spoil(&mut paths[0]);
            assert_eq!(ecf().schedule(&with_unsent(1_000), &new_data(), &paths), send(1));
        }
    }

    #[test]
    fn full_paths_are_waited_for_and_empty_round_trips_and_windows_divide_nothing() {
        let mut paths = fast_and_slow(100);
        paths[1].in_flight = 10_000;
        assert_eq!(ecf().schedule(&connection(0), &new_data(), &paths), WAIT);
        let mut paths = fast_and_slow(100);
        (paths[0].smoothed_rtt, paths[0].rtt_variation) = (Duration::ZERO, Duration::ZERO);
        // 0 < 100 + 25, and 100 >= 0 + 25.
        assert_eq!(ecf().schedule(&connection(0), &new_data(), &paths), WAIT);
        (paths[0].cwnd, paths[0].smoothed_rtt) = (0, Duration::from_millis(10));
        // A window of nothing never gets through.
        assert_eq!(ecf().schedule(&connection(0), &new_data(), &paths), send(1));
    }
}
