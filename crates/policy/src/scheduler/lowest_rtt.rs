//! Lowest round-trip time first, with opportunistic retransmission and penalisation: the classic default.
//!
//! A chunk goes to the subflow with the lowest smoothed RTT whose congestion window has room, f + q + len <= w
//! (bytes: in flight, queued, chunk, window). Backups wait until no regular usable subflow is left; a stale one does
//! not count as left, as in Linux, and gets new data only when all are stale.
//!
//! When the connection-level window closes on a hole ("How Hard Can It Be? Designing and Implementing a Deployable
//! Multipath TCP", NSDI 2012), mechanisms 1 and 2 of the paper step in: see [`super::blocked_window`].

use super::blocked_window::{BlockedWindow, Penalise};
use super::candidates::{excluded, fastest};
use super::{Chunk, Decision, Hole, Relief, Scheduler};
use crate::ids::SubflowId;
use crate::table::{Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

/// The scheduler `lowest_rtt`.
#[derive(Debug)]
pub struct LowestRtt {
    blocked_window: BlockedWindow,
}

impl LowestRtt {
    pub fn new(opportunistic_retransmission: bool, penalise: Penalise) -> Self {
        Self { blocked_window: BlockedWindow::new(opportunistic_retransmission, penalise) }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self { blocked_window: BlockedWindow::read(reader, true, Penalise::Slower)? }))
    }
}

impl Scheduler for LowestRtt {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::on(fastest(subflows, excluded(chunk), chunk.length))
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.blocked_window.relieve(connection, hole, subflows)
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.blocked_window.on_subflow_removed(id);
    }
}
