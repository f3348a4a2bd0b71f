//! Data that is outstanding on one subflow and goes on another too, because the scheduler wants it there earlier, or a second
//! time on its own.
//!
//! A loss is known after a round trip, and a repair takes half of one more. Where a deadline is nearer than that, a second
//! copy sent at once is the only repair there is; whether it is worth it the scheduler says, once of each segment
//! ([`anabranch_policy::scheduler::Work::recent`]). A copy has a place and a mapping of its own on its subflow, so
//! that congestion control counts it. The peer takes what comes first; the other is data that it has, as after a reinjection
//! (RFC 8684, section 3.3.6).

use super::state::Connection;
use crate::event::SendKind;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Outstanding;

impl Connection {
    /// Of what each subflow has outstanding and shares with nobody the oldest; of these the one with the lowest data
    /// sequence beyond `after`.
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

    /// Sends a copy of what another subflow has outstanding.
    pub(super) fn share(&mut self, id: SubflowId, outstanding: &Outstanding) -> bool {
        let una = self.sender.una();
        let Some(mss) = self.subflow_mut(id).map(|subflow| subflow.mss) else { return false };
        if let Some(sender) = self.subflow_mut(outstanding.sender)
            && let Some(record) = sender.scoreboard.next_unshared(una)
        {
            record.reinjected = true;
        }
        let length = self.useful_length(outstanding.data_seq, u64::from(outstanding.length.min(mss)));
        // A segment without a mapping of its own holds more than one with; the rest goes as well.
        let (start, end) = (outstanding.data_seq, outstanding.data_seq + u64::from(outstanding.length));
        self.reinject_range(start + length, end, outstanding.sender);
        // Of what begins withdrawn nothing goes here; what follows waits to be sent again.
        length == 0 || self.put(id, start, length as usize, SendKind::Duplicate)
    }
}
