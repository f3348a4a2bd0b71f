//! Reports of data missing on a subflow: they are sent on a faster one, and the sender reinjects the data at once.
//!
//! A sender detects a loss after a round trip of that subflow. The receiver knows of it half a round trip earlier, and
//! a report on a faster path ([`Notice::Missing`]) saves half the difference of the two round trips: with paths of 50
//! and 200 ms a repair arrives 150 ms after the lost segment was sent, instead of 225. A gap is reported once, when it
//! is a loss by RFC 6675, to a peer whose hello asks for it. The report itself may be lost.
//!
//! The sender uses it for a single purpose: outstanding data of that range is reinjected if the scheduler agrees
//! ([`anabranch_policy::scheduler::Work::missing`]), each segment once. Congestion control, round trips and the send
//! buffer depend on the subflow's own acknowledgements. A lying peer can thus cause at most one duplicate of
//! outstanding data, which it can also cause by not answering.

use crate::connection::association::Protocol;
use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::subflow::Subflow;
use crate::subflow::scoreboard::Fate;
use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::notice::Notice;

/// Limit of gaps reported per segment received, which rarely reveals more than one; the next segment reports the
/// others.
const MAX_GAPS: usize = 4;
/// Limit of reports that wait for the scheduler.
const MAX_REPORTS: usize = 64;

impl Connection {
    /// A segment was placed on a subflow: reports what is missing there.
    pub(in crate::connection) fn report_missing(&mut self, handle: Handle) {
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
        let told = partial.notices.reported_until.get(id).copied();
        let gaps: Vec<(SeqNumber, SeqNumber)> = subflow.receiver.lost_gaps(told).take(MAX_GAPS).collect();
        let Some(last) = gaps.last() else { return };
        partial.notices.reported_until.insert(id, last.1);
        let local_address = self.identity.wire_address(subflow.identity.local_address);
        let remote_address = subflow.identity.remote_address.0;
        for (start, end) in gaps {
            let (subflow_seq, length) = (start - initial, end - start);
            self.tell(Notice::Missing { local_address, remote_address, subflow_seq, length }, false);
        }
    }

    /// The peer reports a range missing on a subflow: the scheduler decides at the next opportunity.
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

    /// Whether the peer reported missing data since the scheduler was last asked.
    pub(in crate::connection) fn has_reports(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| !partial.notices.missing.is_empty())
    }

    /// The scheduler was asked: data that it did not reinject is left to its subflow.
    pub(in crate::connection) fn forget_reports(&mut self) {
        self.partial.iter_mut().for_each(|partial| partial.notices.missing.clear());
    }

    /// Reinjects the data reported missing on another subflow.
    pub(in crate::connection) fn reinject_missing(&mut self) {
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
