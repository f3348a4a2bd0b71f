//! Handles the notices of a peer with this engine about abandoned data ([`Notice`]). Nothing depends on their arrival.

use crate::connection::state::Connection;
use anabranch_policy::time::Instant;
use anabranch_wire::MptcpOption;
use anabranch_wire::mptcp::notice::Notice;

/// Limit of recorded ranges that the peer withdrew.
const MAX_WITHDRAWN: usize = 256;

impl Connection {
    /// Handles a notice; other experimental options are ignored.
    pub(in crate::connection) fn handle_notice(&mut self, now: Instant, option: &MptcpOption) {
        let near = self.receiver.buffer.next();
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.abandons()) else { return };
        match Notice::of(option) {
            None => {}
            Some(Notice::Hello { heard, repairs }) => {
                let news = !partial.notices.peer_knows;
                partial.notices.peer_knows = true;
                partial.notices.peer_heard |= heard;
                partial.notices.peer_repairs |= repairs;
                if news || !heard {
                    partial.withdrawals.judge_written_at = now;
                    let repairs = self.duplicates();
                    self.tell(Notice::Hello { heard: true, repairs }, false);
                    self.judge_missing(now);
                }
            }
            Some(Notice::Abandoned { total, worst, .. }) => {
                let more = total.wrapping_sub(partial.notices.peer_total);
                // A notice that was overtaken by a later one has no news.
                if more < 1 << 31 {
                    partial.notices.peer_total = total;
                    partial.notices.peer_abandoned += u64::from(more);
                    partial.notices.peer_worst = worst;
                }
            }
            Some(Notice::Withdrawn { data_seq, length }) if partial.notices.peer_knows => {
                let start = crate::connection::numbers::near_offset(
                    near,
                    data_seq.wrapping_sub(self.identity.remote.data_seq(0) as u32),
                );
                let Some(partial) = self.partial.as_mut() else { return };
                let range = (start, start.saturating_add(u64::from(length)));
                partial.notices.peer_withdrawn.retain(|known| known.1 > near);
                if partial.notices.peer_withdrawn.len() < MAX_WITHDRAWN
                    && !partial.notices.peer_withdrawn.contains(&range)
                {
                    partial.notices.peer_withdrawn.push(range);
                }
                self.judge_missing(now);
            }
            Some(Notice::Missing { local_address, remote_address, subflow_seq, length })
                if partial.notices.peer_knows =>
            {
                self.record_missing((local_address, remote_address), subflow_seq, length);
            }
            Some(Notice::Withdrawn { .. } | Notice::Missing { .. }) => {}
        }
    }
}
