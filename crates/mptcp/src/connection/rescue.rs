//! Data that is outstanding on one subflow and sent on another too: because the scheduler wants it there earlier, or
//! because the first is silent.

use super::output::Workspace;
use super::state::Connection;
use crate::event::SendKind;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Outstanding;
use anabranch_policy::time::Instant;

impl Connection {
    /// Whether the scheduler wants what is outstanding sent elsewhere before new data.
    pub(super) fn shares_first(&mut self, now: Instant, workspace: &Workspace) -> bool {
        let view = self.view(now);
        self.scheduling.scheduler.duplicates_first(&view, &workspace.views)
    }

    /// Asks the scheduler whether a subflow should also send what another has outstanding; that of the lowest data
    /// sequence first.
    pub(super) fn assign_shared(&mut self, now: Instant, workspace: &Workspace) -> bool {
        let una = self.sender.una();
        let mut after = None;
        while let Some(outstanding) = self.next_outstanding(una, after) {
            let view = self.view(now);
            if let Some(id) = self.scheduling.scheduler.duplicate(&view, &outstanding, &workspace.views)
                && id != outstanding.holder
                && self.subflow_mut(id).is_some_and(|subflow| subflow.is_usable())
            {
                return self.share(id, &outstanding);
            }
            after = Some(outstanding.data_seq);
        }
        false
    }

    /// Of what each subflow has outstanding and shares with nobody the oldest; of these the one with the lowest data
    /// sequence beyond `after`.
    fn next_outstanding(&mut self, una: u64, after: Option<u64>) -> Option<Outstanding> {
        let oldest = self.subflows.iter_mut().filter_map(|subflow| {
            let holder = subflow.id();
            let record = subflow.scoreboard.next_unshared(una)?;
            let length = record.payload.len() as u32;
            let lost = record.fate == Fate::Lost || record.retransmitted;
            Some(Outstanding { data_seq: record.data_seq, length, holder, sent_at: record.sent_at, lost })
        });
        oldest.filter(|found| after.is_none_or(|after| found.data_seq > after)).min_by_key(|found| found.data_seq)
    }

    fn share(&mut self, id: SubflowId, outstanding: &Outstanding) -> bool {
        let una = self.sender.una();
        let Some(mss) = self.subflow_mut(id).map(|subflow| subflow.mss) else { return false };
        if let Some(holder) = self.subflow_mut(outstanding.holder)
            && let Some(record) = holder.scoreboard.next_unshared(una)
        {
            record.reinjected = true;
        }
        let length = self.useful_length(outstanding.data_seq, u64::from(outstanding.length.min(mss)));
        // A segment without a mapping of its own holds more than one with; the rest goes as well.
        let (start, end) = (outstanding.data_seq, outstanding.data_seq + u64::from(outstanding.length));
        self.reinject_stretch(start + length, end, outstanding.holder);
        // Of what begins withdrawn nothing goes here; what follows waits to be sent again.
        length == 0 || self.give(id, start, length as usize, SendKind::Duplicate)
    }
}
