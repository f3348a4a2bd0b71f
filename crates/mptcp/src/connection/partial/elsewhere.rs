//! Reports of data missing on a subflow: they go on a faster one, and the sender reinjects the data at once.
//!
//! The sender of a subflow knows of a loss there after that subflow's round trip. The receiver knows half of it earlier, and
//! its word over a quicker path ([`Notice::Missing`]) saves half the difference of the two round trips: on paths of 50 and 200
//! ms a repair is there 150 ms after the loss was sent, and not 225. It is said once of each gap, when by the rule of RFC 6675
//! it is a loss, to a peer whose hello asks for it, and may be lost.
//!
//! The sender believes it for one thing only: what lies there, and is outstanding, goes elsewhere if the scheduler wants that
//! ([`anabranch_policy::scheduler::Work::missing`]), each segment once. Congestion control, round trips and what is kept
//! until it is acknowledged go by the subflow's own acknowledgements. So a peer that lies gets at most a copy of what is
//! outstanding, which it could have by being silent, too.

use crate::connection::association::Protocol;
use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::subflow::Subflow;
use crate::subflow::scoreboard::Fate;
use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::notice::Notice;

/// Most gaps reported when a segment has arrived, which rarely shows more than one; the next segment reports the others.
const MAX_GAPS: usize = 4;
/// Most reports of missing data that wait for the scheduler.
const MAX_REPORTS: usize = 64;

impl Connection {
    /// A segment found its place on a subflow: the peer hears of what is missing there.
    pub(in crate::connection) fn tell_of_missing(&mut self, handle: Handle) {
        let wanted = self.partial.as_deref().is_some_and(|partial| partial.notices.peer_repairs);
        let subflow = &self.subflows[handle];
        if !wanted || !subflow.receiver.has_gap() {
            return;
        }
        let open = |s: &&Subflow| s.state.can_receive() && s.handshake.confirmed;
        let quicker = |s: &Subflow| s.rtt.smoothed() < subflow.rtt.smoothed();
        if self.association.protocol != Protocol::Multipath || !self.subflows.iter().filter(open).any(quicker) {
            return;
        }
        let (id, initial) = (subflow.id(), subflow.peer.initial);
        let Some(partial) = self.partial.as_mut() else { return };
        let told = partial.notices.told_until.get(id).copied();
        let gaps: Vec<(SeqNumber, SeqNumber)> = subflow.receiver.lost_gaps(told).take(MAX_GAPS).collect();
        let Some(last) = gaps.last() else { return };
        partial.notices.told_until.insert(id, last.1);
        let local_address = self.identity.wire_address(subflow.identity.local_address);
        let remote_address = subflow.identity.remote_address.0;
        for (start, end) in gaps {
            let (subflow_seq, length) = (start - initial, end - start);
            self.tell(Notice::Missing { local_address, remote_address, subflow_seq, length }, false);
        }
    }

    /// The peer says that this is missing on a subflow of ours: the scheduler decides on it at the next opportunity.
    pub(in crate::connection) fn record_missing(&mut self, addresses: (u8, u8), subflow_seq: u32, length: u32) {
        let asks = self.association.protocol == Protocol::Multipath && self.duplicates();
        let handle = self.named_by_peer(addresses).filter(|_| asks);
        let subflow = handle.map(|handle| &self.subflows[handle]);
        let (Some(subflow), Some(partial)) = (subflow, self.partial.as_mut()) else { return };
        if partial.notices.missing.len() < MAX_REPORTS {
            let start = subflow.send.initial + subflow_seq;
            partial.notices.missing.push((subflow.id(), start, start + length));
            self.output.pending = true;
        }
    }

    /// Whether the peer reported something missing since the scheduler was asked last.
    pub(in crate::connection) fn has_reports(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| !partial.notices.missing.is_empty())
    }

    /// The scheduler was asked: what it did not repair is left to its subflow.
    pub(in crate::connection) fn forget_reports(&mut self) {
        self.partial.iter_mut().for_each(|partial| partial.notices.missing.clear());
    }

    /// Has what was reported missing sent again on another subflow.
    pub(in crate::connection) fn send_elsewhere(&mut self) {
        let una = self.sender.una();
        let Some(partial) = self.partial.as_mut() else { return };
        for (id, start, end) in core::mem::take(&mut partial.notices.missing) {
            let Some(handle) = self.subflows.handle_of(id) else { continue };
            let subflow = &mut self.subflows[handle];
            for record in subflow.scoreboard.sent_between(start, end) {
                let outstanding = record.fate != Fate::Sacked && record.data_end() > una && !record.payload.is_empty();
                if outstanding && !record.reinjected {
                    record.reinjected = self.sender.reinjections.add(record.data_seq, record.data_end(), id);
                }
            }
        }
    }
}
