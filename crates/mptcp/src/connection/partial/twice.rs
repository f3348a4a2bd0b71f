//! What has a deadline may go twice on its own subflow.
//!
//! A loss is known after a round trip, and a repair takes half of one more. Where the deadline is nearer than that, a second
//! copy sent at once is the only repair there is; whether it is worth it the scheduler says
//! ([`anabranch_policy::Scheduler::twice`]), once of each segment. The copy has a place and a mapping of its own on the subflow, so
//! that congestion control counts it. The peer takes what comes first; the other is data that it has, as after a reinjection
//! (RFC 8684, section 3.3.6).

use crate::connection::output::Workspace;
use crate::connection::state::Connection;
use crate::event::SendKind;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::scheduler::Outstanding;
use anabranch_policy::time::Instant;

impl Connection {
    /// Sends one segment again where the scheduler wants that. Gives false if nothing is left to be asked about.
    pub(in crate::connection) fn assign_twice(&mut self, now: Instant, workspace: &Workspace) -> bool {
        for index in 0..self.subflows.len() {
            while let Some(held) = self.next_unasked(index) {
                let Some(time_left) = self.time_left(now, held.data_seq) else { continue };
                let length = self.useful_length(held.data_seq, u64::from(held.length));
                let view = self.view(now);
                // Of what begins withdrawn nothing goes again.
                if length > 0 && self.scheduling.scheduler.twice(&view, &held, time_left, &workspace.views) {
                    return self.give(held.holder, held.data_seq, length as usize, SendKind::Duplicate);
                }
            }
        }
        false
    }

    /// The oldest segment of a subflow that the scheduler was not asked about.
    fn next_unasked(&mut self, index: usize) -> Option<Outstanding> {
        let una = self.sender.una();
        let partial = self.partial.as_mut().filter(|partial| partial.terms.sender.is_some())?;
        let subflow = self.subflows.get(index)?;
        let holder = subflow.id();
        let from = partial.asked_until.get(holder).copied().unwrap_or(subflow.send.initial);
        let record = subflow.scoreboard.sent_from(from).find(|record| record.is_alone(una))?;
        partial.asked_until.insert(holder, record.end());
        let lost = record.fate == Fate::Lost || record.retransmitted;
        let length = record.payload.len() as u32;
        Some(Outstanding { data_seq: record.data_seq, length, holder, sent_at: record.sent_at, lost })
    }
}
