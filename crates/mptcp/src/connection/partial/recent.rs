//! Recently sent data with a deadline, of which the scheduler is asked once whether a duplicate is sent at once.

use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::scheduler::Outstanding;
use anabranch_policy::time::{Duration, Instant};

impl Connection {
    /// The next such data, subflow by subflow, and the time left for it. Data whose beginning was withdrawn is not
    /// duplicated.
    pub(in crate::connection) fn next_recent(&mut self, now: Instant) -> Option<(Outstanding, Duration)> {
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            while let Some(held) = self.next_unasked(handle) {
                if let Some(time_left) = self.time_left(now, held.data_seq)
                    && self.useful_length(held.data_seq, u64::from(held.length)) > 0
                {
                    return Some((held, time_left));
                }
            }
            next = self.subflows.after(handle);
        }
        None
    }

    /// The oldest segment of a subflow about which the scheduler was not asked.
    fn next_unasked(&mut self, handle: Handle) -> Option<Outstanding> {
        let una = self.sender.una();
        let partial = self.partial.as_mut().filter(|partial| partial.terms.sender.is_some())?;
        let subflow = &self.subflows[handle];
        let sender = subflow.id();
        let from = partial.asked_until.get(sender).copied().unwrap_or(subflow.send.initial);
        let record = subflow.scoreboard.sent_from(from).find(|record| record.is_alone(una))?;
        partial.asked_until.insert(sender, record.end());
        let unrepaired = record.fate == Fate::Lost;
        let lost = unrepaired || record.retransmitted;
        let length = record.payload.len() as u32;
        Some(Outstanding { data_seq: record.data_seq, length, sender, sent_at: record.sent_at, lost, unrepaired })
    }
}
