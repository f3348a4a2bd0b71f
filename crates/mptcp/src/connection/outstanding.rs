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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use bytes::Bytes;

    #[test]
    fn a_duplicate_is_as_long_as_fits_and_the_rest_is_reinjected() {
        let shared = |mss: u32| {
            let mut connection = connected(config(), 2);
            assert_eq!(connection.write(Bytes::from(vec![0; 2_000])), 2_000);
            let handle = connection.subflows.first_handle().unwrap();
            assert!(connection.put_on(handle, 0, 1_400, SendKind::New));
            assert!(connection.subflows[handle].scoreboard.send_next(anabranch_policy::time::Instant::ZERO).is_some());
            connection.subflow_mut(SubflowId(1)).unwrap().mss = mss;
            let outstanding = connection.next_outstanding(0, None).unwrap();
            assert!(connection.share(SubflowId(1), &outstanding));
            assert!(connection.next_outstanding(0, None).is_none_or(|next| next.sender != SubflowId(0)), "once");
            let record = connection.subflow_mut(SubflowId(1)).unwrap().scoreboard.next_unsent().unwrap();
            let copy = (record.data_seq, record.length);
            let rest: Vec<_> =
                connection.sender.reinjections.ranges.iter().map(|range| (range.start, range.end)).collect();
            (copy, rest)
        };
        assert_eq!(shared(1_400), ((0, 1_400), vec![]));
        assert_eq!(shared(1_000), ((0, 1_000), vec![(1_000, 1_400)]));
    }
}
