//! Reinjects data on another subflow (RFC 8684, section 3.3.6).

use super::association::Protocol;
use super::reinjections::{Extent, NOBODY, ReinjectedRange};
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::Subflow;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::Reinjection;

impl Connection {
    /// When outstanding data of a subflow is reinjected.
    pub(super) fn reinjection(&self) -> Reinjection {
        self.config.data_reinjection.unwrap_or(self.scheduling.needs.reinjection)
    }

    /// Whether outstanding data may be reinjected before the connection's timer expires.
    pub(super) fn reinjects_early(&self) -> bool {
        let told_to_wait = self.config.data_reinjection == Some(Reinjection::OnConnectionTimeout);
        !told_to_wait && self.reinjection() != Reinjection::Never
    }

    /// Whether the scheduler is asked for duplicates ([`anabranch_policy::scheduler::Needs::outstanding`]).
    pub(super) fn duplicates(&self) -> bool {
        self.scheduling.needs.outstanding && self.reinjects_early()
    }

    /// Whether outstanding data at `data_seq` is left to a subflow that carries it and is in use.
    pub(super) fn is_left_to_its_subflow(&self, data_seq: u64) -> bool {
        let holds = |s: &Subflow| s.is_usable() && s.scoreboard.holds(data_seq).is_some();
        self.reinjection() == Reinjection::Never && self.subflows.iter().any(holds)
    }

    /// The subflow that carries the byte at `data_seq`, and how much from there on.
    pub(super) fn find_sender(&self, data_seq: u64) -> Option<(SubflowId, u64)> {
        self.subflows.iter().find_map(|s| s.scoreboard.holds(data_seq).map(|length| (s.id(), length)))
    }

    /// Queues a range to be reinjected first, on any subflow but `last_sent_on`.
    pub(super) fn reinject_at_once(&mut self, start: u64, end: u64, last_sent_on: SubflowId) {
        self.sender.reinjections.add_first(ReinjectedRange { start, end, last_sent_on });
    }

    /// Queues a range to be reinjected, on any subflow but `last_sent_on`.
    pub(super) fn reinject_range(&mut self, start: u64, end: u64, last_sent_on: SubflowId) {
        self.sender.reinjections.add(start, end, last_sent_on);
    }

    /// Reinjects everything assigned to a subflow that is gone.
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

    /// Reinjects the outstanding data of a subflow that does not answer.
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

    /// Takes back the unsent data of a subflow, which may be assigned to it again.
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

    /// Reinjects the first unacknowledged segment on another subflow, and with it all other data of the same subflow if
    /// that does not answer, so that it does not need a timeout per segment. Data that no subflow carries is reinjected
    /// on another than the one that took it, up to the next byte that one does.
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
        let taker = self.presumed_taker();
        self.reinject_at_once(una, end.min(self.sender.data_nxt), taker);
    }

    /// The subflow that acknowledged data which has no DATA_ACK: the one that acknowledged last, and at the next timeout
    /// another, in turn. A middlebox may acknowledge there what never reaches the peer (RFC 8684, section 3.3.6).
    fn presumed_taker(&self) -> SubflowId {
        let mut usable: Vec<&Subflow> = self.subflows.iter().filter(|subflow| subflow.is_usable()).collect();
        usable.sort_by_key(|subflow| core::cmp::Reverse(subflow.liveness.last_progress));
        let turn = self.timers.data_attempts.saturating_sub(1) as usize % usable.len().max(1);
        usable.get(turn).filter(|_| usable.len() > 1).map_or(NOBODY, |subflow| subflow.id())
    }

    /// The next range to reinject whose last sender is not in `refused`.
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

    /// The next part of the sent and unacknowledged stream that a subflow has not carried, if every subflow carries all
    /// of the stream (ReMP): its offset, and the length that fits into a segment.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConnectionConfig;
    use crate::connection::tests::{config, connected};
    use crate::event::SendKind;
    use anabranch_policy::time::{Duration, Instant};
    use bytes::Bytes;

    #[test]
    fn without_reinjection_data_is_left_to_a_usable_subflow_that_holds_it() {
        let is_left = |reinjection: Option<Reinjection>, data_seq: u64, usable: bool| {
            let mut connection = connected(ConnectionConfig { data_reinjection: reinjection, ..config() }, 2);
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].push(0, Bytes::from_static(b"data"), SendKind::New);
            connection.subflows[handle].priority.suspended = !usable;
            connection.is_left_to_its_subflow(data_seq)
        };
        let never = Some(Reinjection::Never);
        assert!(is_left(never, 0, true) && is_left(never, 3, true));
        assert!(!is_left(never, 4, true), "nobody holds it");
        assert!(!is_left(never, 0, false));
        assert!(!is_left(Some(Reinjection::OnSubflowTimeout), 0, true));
    }

    #[test]
    fn outstanding_data_is_reinjected_early_unless_the_connection_must_wait_or_never_does() {
        let early = |reinjection: Option<Reinjection>| {
            connected(ConnectionConfig { data_reinjection: reinjection, ..config() }, 1).reinjects_early()
        };
        assert!(early(Some(Reinjection::OnSubflowTimeout)));
        assert!(!early(Some(Reinjection::OnConnectionTimeout)) && !early(Some(Reinjection::Never)));
    }

    #[test]
    fn the_data_of_a_subflow_that_is_gone_is_reinjected_once_and_only_in_mptcp() {
        let ranges = |change: fn(&mut Connection)| {
            let mut connection = connected(config(), 2);
            let handle = connection.subflows.first_handle().unwrap();
            for at in [0, 1_000] {
                connection.subflows[handle].push(at, Bytes::from(vec![0; 1_000]), SendKind::New);
            }
            change(&mut connection);
            connection.reinject_all_of(handle);
            connection.sender.reinjections.ranges.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(ranges(|_| {}), [(0, 2_000)]);
        assert_eq!(ranges(|connection| connection.association.protocol = Protocol::Tcp), []);
        assert_eq!(ranges(|connection| connection.life.closed = Some(crate::event::CloseCause::Finished)), []);
    }

    /// The ranges that are to be reinjected.
    fn queued(connection: &Connection) -> Vec<(u64, u64)> {
        connection.sender.reinjections.ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    /// A connection of which this much was written and assigned, all of it but the first `hole` bytes to a subflow.
    fn assigned(written: u64, hole: u64) -> Connection {
        let mut connection = connected(config(), 2);
        assert_eq!(connection.write(Bytes::from(vec![0; written as usize])), written as usize);
        connection.sender.data_nxt = written;
        let handle = connection.subflows.first_handle().unwrap();
        for at in (hole..written).step_by(1_000) {
            connection.subflows[handle].push(at, Bytes::from(vec![0; 1_000]), SendKind::New);
        }
        connection
    }

    #[test]
    fn data_that_no_subflow_carries_is_reinjected_up_to_what_one_does() {
        let mut connection = assigned(4_000, 2_000);
        connection.reinject_first();
        assert_eq!(queued(&connection), [(0, 2_000)]);
        let mut connection = assigned(4_000, 4_000);
        connection.reinject_first();
        assert_eq!(queued(&connection), [(0, 4_000)], "all that was assigned");
        let mut connection = assigned(4_000, 0);
        connection.reinject_first();
        assert_eq!(queued(&connection), [(0, 1_000)], "the first segment");
    }

    #[test]
    fn what_a_subflow_acknowledged_without_a_data_ack_goes_to_another_and_then_to_the_next() {
        let taker = |attempts: u32, alone: bool| {
            let mut connection = connected(config(), if alone { 1 } else { 2 });
            connection.timers.data_attempts = attempts;
            let handle = connection.subflows.handle_of(SubflowId(u32::from(!alone))).unwrap();
            connection.subflows[handle].liveness.last_progress = Instant::ZERO + Duration::from_secs(1);
            connection.presumed_taker()
        };
        assert_eq!([1, 2, 3].map(|attempts| taker(attempts, false)), [1, 0, 1].map(SubflowId));
        assert_eq!([1, 2].map(|attempts| taker(attempts, true)), [NOBODY; 2], "it is sent again on the same");
    }

    #[test]
    fn with_the_first_segment_all_data_of_its_subflow_is_reinjected_if_that_does_not_answer() {
        let reinjected = |silent: usize| {
            let mut connection = assigned(4_000, 0);
            let handles = connection.subflows.first_handle().zip(connection.subflows.handle_of(SubflowId(1)));
            let (first, other) = handles.unwrap();
            // The other carries the first segment too, as a duplicate.
            connection.subflows[other].push(0, Bytes::from(vec![0; 1_000]), SendKind::Duplicate);
            for handle in [first, other] {
                while connection.subflows[handle].scoreboard.send_next(Instant::ZERO).is_some() {}
            }
            connection.subflows[[first, other][silent]].liveness.timeouts_in_row = 1;
            connection.reinject_first();
            queued(&connection)
        };
        assert_eq!(reinjected(0), [(0, 4_000)]);
        assert_eq!(reinjected(1), [(0, 1_000)], "the subflow that carries it first answers");
    }

    #[test]
    fn of_a_subflow_that_does_not_answer_what_is_acknowledged_at_data_level_is_not_reinjected() {
        let ranges = |acknowledged: u64| {
            let mut connection = assigned(2_000, 0);
            connection.sender.buffer.acknowledge(acknowledged);
            let handle = connection.subflows.first_handle().unwrap();
            while connection.subflows[handle].scoreboard.send_next(Instant::ZERO).is_some() {}
            connection.reinject_outstanding(handle, Extent::All);
            queued(&connection)
        };
        assert_eq!([ranges(0), ranges(999), ranges(1_000)], [vec![(0, 2_000)], vec![(0, 2_000)], vec![(1_000, 2_000)]]);
    }

    #[test]
    fn what_was_selectively_acknowledged_is_reinjected_only_with_all_and_nothing_is_twice() {
        use anabranch_wire::tcp::{SackBlock, SackBlocks};
        let ranges = |extent: Extent| {
            let mut connection = assigned(2_000, 0);
            let handle = connection.subflows.first_handle().unwrap();
            let subflow = &mut connection.subflows[handle];
            while subflow.scoreboard.send_next(Instant::ZERO).is_some() {}
            let mut blocks = SackBlocks::new();
            blocks.push(SackBlock { start: subflow.send.una + 1_000, end: subflow.send.una + 2_000 });
            subflow.scoreboard.acknowledge(
                Instant::ZERO,
                subflow.send.una,
                &blocks,
                &crate::subflow::scoreboard::Proofs::NONE,
            );
            connection.reinject_outstanding(handle, extent);
            let first = queued(&connection);
            connection.sender.reinjections.ranges.clear();
            connection.reinject_outstanding(handle, extent);
            (first, queued(&connection))
        };
        assert_eq!(ranges(Extent::Missing), (vec![(0, 1_000)], vec![]));
        assert_eq!(ranges(Extent::All), (vec![(0, 2_000)], vec![]));
    }
}
