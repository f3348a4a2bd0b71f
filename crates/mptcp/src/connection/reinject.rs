//! Data that goes out again on another subflow (RFC 8684, section 3.3.6).

use super::association::Protocol;
use super::reinjections::{Extent, NOBODY, ReinjectedRange};
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::Subflow;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Reinjection;

impl Connection {
    /// When what a subflow has outstanding goes on another.
    pub(super) fn reinjection(&self) -> Reinjection {
        self.config.data_reinjection.unwrap_or(self.scheduling.needs.reinjection)
    }

    /// Whether anything that a subflow has outstanding may go on another before the connection's timer runs out.
    pub(super) fn reinjects_early(&self) -> bool {
        let told_to_wait = self.config.data_reinjection == Some(Reinjection::OnConnectionTimeout);
        !told_to_wait && self.reinjection() != Reinjection::Never
    }

    /// Whether the scheduler is asked what goes out a second time ([`anabranch_policy::scheduler::Needs::outstanding`]).
    pub(super) fn duplicates(&self) -> bool {
        self.scheduling.needs.outstanding && self.reinjects_early()
    }

    /// Whether what is outstanding at `data_seq` is left to a subflow that has it, is open and is used.
    pub(super) fn is_left_to_its_subflow(&self, data_seq: u64) -> bool {
        let holds = |s: &Subflow| s.is_usable() && s.scoreboard.holds(data_seq).is_some();
        self.reinjection() == Reinjection::Never && self.subflows.iter().any(holds)
    }

    /// Which subflow holds the byte at `data_seq`, and how much from there on.
    pub(super) fn find_sender(&self, data_seq: u64) -> Option<(SubflowId, u64)> {
        self.subflows.iter().find_map(|s| s.scoreboard.holds(data_seq).map(|length| (s.id(), length)))
    }

    /// Has a range sent again before all others, on any subflow but `last_sent_on`.
    pub(super) fn reinject_at_once(&mut self, start: u64, end: u64, last_sent_on: SubflowId) {
        self.sender.reinjections.add_first(ReinjectedRange { start, end, last_sent_on });
    }

    /// Has a range sent again, on any subflow but `last_sent_on`.
    pub(super) fn reinject_range(&mut self, start: u64, end: u64, last_sent_on: SubflowId) {
        self.sender.reinjections.add(start, end, last_sent_on);
    }

    /// Has everything that a subflow holds sent elsewhere: it is gone.
    pub(super) fn reinject_all_of(&mut self, handle: Handle) {
        if self.association.protocol != Protocol::Multipath || self.life.closed.is_some() {
            return;
        }
        let subflow = &self.subflows[handle];
        let id = subflow.id();
        for record in subflow.scoreboard.records().filter(|record| !record.reinjected) {
            self.sender.reinjections.add(record.data_seq, record.data_end(), id);
        }
    }

    /// Has what a subflow has outstanding sent elsewhere too: it does not answer.
    pub(super) fn reinject_outstanding(&mut self, handle: Handle, extent: Extent) {
        let una = self.sender.una();
        let subflow = &mut self.subflows[handle];
        let id = subflow.id();
        for record in subflow.scoreboard.assigned_mut() {
            let wanted = extent == Extent::All || record.fate != Fate::Sacked;
            if wanted && !record.reinjected && record.data_end() > una {
                record.reinjected = self.sender.reinjections.add(record.data_seq, record.data_end(), id);
            }
        }
    }

    /// Takes back what a subflow has not sent yet; it may get it again.
    pub(super) fn take_back_queued(&mut self, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        let mut taken = Vec::new();
        while let Some(record) = subflow.take_unsent() {
            taken.push((record.data_seq, record.data_end()));
        }
        for (start, end) in taken.into_iter().rev() {
            self.sender.reinjections.add(start, end, NOBODY);
        }
    }

    /// The first unacknowledged segment goes out once more, on another subflow than the one that holds it, and with it all
    /// else that lies there if that subflow does not answer: it must not wait for a timeout each. What no subflow holds any
    /// more goes out on any, up to the next byte that one does.
    pub(super) fn reinject_first(&mut self) {
        let una = self.sender.una();
        let stale = |s: &Subflow| s.is_stale() && s.scoreboard.holds(una).is_some();
        let silent = self.subflows.find(stale);
        silent.into_iter().for_each(|handle| self.take_back_queued(handle));
        if let Some((id, length)) = self.find_sender(una) {
            let end = una + length;
            self.reinject_at_once(una, end.min(self.sender.data_nxt), id);
            if let Some(handle) = silent.filter(|handle| self.subflows[*handle].id() == id) {
                let first = self.subflows[handle].scoreboard.assigned_mut().find(|record| record.data_end() == end);
                first.into_iter().for_each(|record| record.reinjected = true);
                self.reinject_outstanding(handle, Extent::All);
            }
            return;
        }
        let held = self.subflows.iter().flat_map(|subflow| subflow.scoreboard.records());
        let next = held.filter(|record| !record.payload.is_empty()).map(|record| record.data_seq);
        let end = next.filter(|start| *start > una).min().unwrap_or(self.sender.data_nxt);
        self.reinject_at_once(una, end.min(self.sender.data_nxt), NOBODY);
    }

    /// The next range to be sent again, of those that none of `refused` sent last.
    pub(super) fn next_again(&mut self, refused: &[SubflowId]) -> Option<(usize, ReinjectedRange)> {
        let una = self.sender.una();
        loop {
            let subflows = &self.subflows;
            let can_take = |last: SubflowId| {
                !refused.contains(&last) && subflows.iter().any(|subflow| subflow.is_usable() && subflow.id() != last)
            };
            let (at, range) = self.sender.reinjections.first(una, can_take)?;
            let Some(end) = self.withdrawn_until(range.start) else { return Some((at, range)) };
            self.sender.reinjections.advance(at, end.min(range.end));
        }
    }

    /// What a subflow has not carried yet of the unacknowledged stream that was sent, where every subflow walks all of it (ReMP):
    /// where it begins, and how much of it fits a segment.
    pub(super) fn behind(&mut self, id: SubflowId) -> Option<(u64, u64)> {
        let una = self.sender.una();
        let subflow = self.subflow_mut(id)?;
        let (mut from, mss) = (subflow.cursor.max(una), u64::from(subflow.mss));
        while let Some(end) = self.withdrawn_until(from) {
            from = end;
        }
        self.subflow_mut(id)?.cursor = from;
        let left = self.sender.data_nxt.checked_sub(from).filter(|left| *left > 0)?;
        Some((from, self.useful_length(from, left.min(mss))))
    }
}
