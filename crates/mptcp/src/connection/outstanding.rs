//! Duplicates outstanding data of one subflow on another, because the scheduler wants it delivered earlier or
//! redundantly.
//!
//! A loss is detected after a round trip, and its repair takes another half. If a deadline is nearer than that, a
//! duplicate sent at once is the only repair. The scheduler is asked once per segment whether it is worth sending
//! ([`anabranch_policy::scheduler::Work::recent`]). A duplicate has its own sequence numbers and mapping on its
//! subflow, so that congestion control counts it. The peer takes whichever arrives first; the other is duplicate data,
//! as after a reinjection (RFC 8684, section 3.3.6).

use super::state::Connection;
use crate::event::SendKind;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Outstanding;

impl Connection {
    /// The record with the lowest data sequence beyond `after`, among the oldest record of each subflow that is
    /// outstanding and not yet duplicated.
    pub(super) fn next_outstanding(&mut self, una: u64, after: Option<u64>) -> Option<Outstanding> {
        let oldest = self.subflows.iter_mut_unseen().filter_map(|subflow| {
            let sender = subflow.id();
            let record = subflow.scoreboard.next_unshared(una)?;
            let length = record.payload.len() as u32;
            let unrepaired = record.fate == Fate::Lost;
            let lost = unrepaired || record.retransmitted;
            Some(Outstanding { data_seq: record.data_seq, length, sender, sent_at: record.sent_at, lost, unrepaired })
        });
        oldest.filter(|found| after.is_none_or(|after| found.data_seq > after)).min_by_key(|found| found.data_seq)
    }

    /// Sends a duplicate of another subflow's outstanding data.
    pub(super) fn share(&mut self, id: SubflowId, outstanding: &Outstanding) -> bool {
        let una = self.sender.una();
        let Some(mss) = self.subflow_mut(id).map(|subflow| subflow.mss) else { return false };
        if let Some(sender) = self.subflow_mut(outstanding.sender)
            && let Some(record) = sender.scoreboard.next_unshared(una)
        {
            record.reinjected = true;
        }
        let length = self.useful_length(outstanding.data_seq, u64::from(outstanding.length.min(mss)));
        // A segment without a mapping holds more data than one with a mapping; the rest is duplicated as well.
        let (start, end) = (outstanding.data_seq, outstanding.data_seq + u64::from(outstanding.length));
        self.reinject_range(start + length, end, outstanding.sender);
        // Data is not sent if its beginning was withdrawn; the rest is reinjected later.
        length == 0 || self.put(id, start, length as usize, SendKind::Duplicate)
    }
}
