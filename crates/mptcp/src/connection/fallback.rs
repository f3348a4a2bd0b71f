//! Falls back to plain TCP, or closes a subflow that cannot carry MPTCP (RFC 8684, section 3.7).

use super::association::Protocol;
use super::packets::REASON_MIDDLEBOX;
use super::resolved::Resolved;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::FallbackCause;
use crate::subflow::{Signals, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{DataSequence, Dss};
use anabranch_wire::{Flags, MptcpOption, Segment, SeqNumber};
use bytes::Bytes;

/// How often the peer is asked for an option on the only subflow before that is reset.
const OPTION_PROBES: u32 = 2;

impl Connection {
    /// Whether the peer will not send its key any more: no data precedes the first byte of the stream, and the segment
    /// answers our retransmitted SYN/ACK. Linux omits the key once it has a DATA_FIN to send, and continues as plain
    /// TCP if the answer is plain.
    pub(super) fn withholds_key(&self, handle: Handle, segment: &Segment) -> bool {
        let subflow = &self.subflows[handle];
        let again = subflow.liveness.timeouts_in_row > 0;
        segment.seq == subflow.receiver.next && (again || !segment.payload.is_empty())
    }

    /// Answers a peer that uses MPTCP although we lack its key with MP_FAIL. Its first mapping has the first byte of
    /// the stream, so that retransmissions sent before the MP_FAIL arrives are recognized.
    pub(super) fn report_fallback_to_peer(&mut self, segment: &Segment) {
        let Some(mapping) = segment.options.dss.as_ref().and_then(|dss| dss.mapping) else { return };
        let first = match mapping.data_seq {
            DataSequence::Long(number) => number,
            DataSequence::Short(number) => u64::from(number),
        };
        self.identity.remote.initial_data_seq = first.wrapping_sub(1);
        self.association.fallback.fail(first);
    }

    /// MPTCP does not work on this subflow. If it is the only one and its data is contiguous, the connection continues
    /// as plain TCP; otherwise the subflow is reset.
    pub(super) fn fall_back_or_reset(&mut self, now: Instant, handle: Handle, cause: FallbackCause) {
        if self.association.protocol != Protocol::Multipath {
            return;
        }
        // If the peer falls back, its data is contiguous by its own decision. If we do, that is sure only if there
        // never was another subflow.
        let alone = self.is_only_carrier(handle) && (cause == FallbackCause::Peer || !self.association.joined);
        if alone && self.is_initial(handle) && self.is_contiguous(handle) {
            self.abandon_joins(now);
            self.fall_back(now, handle, cause);
        } else {
            self.reset_for_middlebox(now, handle);
        }
    }

    /// Resets a subflow whose path does not pass our options or the peer's. Beside others the path is left alone;
    /// without one, another attempt may do better than to wait for the end of the connection.
    pub(super) fn reset_for_middlebox(&mut self, now: Instant, handle: Handle) {
        let last = self.association.confirmed && self.is_only_carrier(handle);
        let why = if last { CloseReason::Reset } else { CloseReason::ProtocolError };
        self.reset_subflow(now, handle, why, REASON_MIDDLEBOX);
    }

    /// The same with the segment that begins at `seq`.
    pub(super) fn fall_back_from(&mut self, now: Instant, handle: Handle, seq: SeqNumber, cause: FallbackCause) {
        let hole = seq.after(self.subflows[handle].receiver.next);
        self.fall_back_or_reset(now, handle, cause);
        if hole && self.association.protocol == Protocol::Tcp {
            self.association.fallback.begin_behind_hole(Some(seq));
        }
    }

    /// Whether no other subflow carries data; incomplete joins do not count.
    fn is_only_carrier(&self, handle: Handle) -> bool {
        self.subflows.entries().all(|(other, subflow)| other == handle || subflow.state.is_opening())
    }

    /// Whether the data of the subflow is contiguous, from the acknowledged to the end of what was assigned, and
    /// nothing before it is missing. It may have gaps where data was withdrawn.
    fn is_contiguous(&self, handle: Handle) -> bool {
        let subflow = &self.subflows[handle];
        let first = subflow.scoreboard.first_data_seq().unwrap_or(self.sender.data_nxt);
        let mut next = first;
        let follows = subflow.scoreboard.records().all(|record| {
            let follows = record.data_seq == next;
            next = record.data_end();
            follows
        });
        follows
            && next == self.sender.data_nxt
            && self.has_arrived_until(handle, first)
            && !self.has_unheeded_withdrawals()
            && self.receive_is_aligned(handle)
    }

    /// Whether the peer has the stream up to `first`, where the subflow's acknowledgements count as they do in plain
    /// TCP. On the only subflow there has been, each byte must have gone once and in its order: a peer that fell back
    /// in silence reads them as they come. With others before, what waits to be sent again has not arrived.
    fn has_arrived_until(&self, handle: Handle, first: u64) -> bool {
        let una = self.sender.una();
        if first <= una {
            return true;
        }
        if self.association.joined {
            return !self.sender.reinjections.ranges.iter().any(|range| range.start < first && range.end > una);
        }
        let send = &self.subflows[handle].send;
        let fin = u32::from(self.subflows[handle].fin_queued());
        send.end == send.initial + 1 + (self.sender.data_nxt as u32).wrapping_add(fin)
    }

    /// Whether the next expected byte of the subflow is that of the stream, counting data held for checksums. The
    /// stream may have skipped a gap that the subflow still waits for.
    fn receive_is_aligned(&self, handle: Handle) -> bool {
        let subflow = &self.subflows[handle];
        let has_gap = subflow.receiver.has_gap();
        let ahead = has_gap && self.misses_abandoned_data();
        !ahead && (self.receiver.buffer.out_of_order() == 0 || has_gap || self.association.checksum)
    }

    /// Asks the peer for an option on the only subflow, where options passed before, and what has no DATA_ACK was
    /// acknowledged in a segment without any. That may have been a single one: a peer that goes on in MPTCP answers the
    /// probe with a DATA_ACK, and one that has fallen back reads nothing twice. Returns whether it asks.
    pub(super) fn asks_for_options(&mut self, now: Instant) -> bool {
        let una = self.sender.una();
        let waits = una > 0 && una < self.sender.data_nxt && self.find_sender(una).is_none();
        if !waits || self.timers.data_attempts > OPTION_PROBES {
            return false;
        }
        let Some(handle) = self.only_without_options() else { return false };
        self.subflows[handle].due.keepalive = true;
        self.arm_data_retransmit(now);
        true
    }

    /// The only subflow that may carry data, if the peer's options are gone from it.
    fn only_without_options(&self) -> Option<Handle> {
        let alone = self.subflows.iter().filter(|subflow| subflow.handshake.confirmed).count() == 1;
        let gone = |subflow: &Subflow| subflow.handshake.confirmed && subflow.signals == Signals::Gone;
        self.subflows.find(gone).filter(|_| alone)
    }

    /// Checks whether a subflow acknowledged all data that waits for a DATA_ACK, in segments without any option: then a
    /// middlebox strips options, perhaps only for some time. On the only subflow, a peer that has silently fallen back
    /// for that reason would read data sent again as new data. Returns whether MPTCP, or the only subflow, has ended.
    pub(super) fn leaves_options_behind(&mut self, now: Instant) -> bool {
        let una = self.sender.una();
        if una >= self.sender.data_nxt || self.find_sender(una).is_some() {
            return false;
        }
        let is_gone = |subflow: &Subflow| subflow.handshake.confirmed && subflow.signals == Signals::Gone;
        let goes_on = |subflow: &Subflow| subflow.handshake.confirmed && subflow.signals != Signals::Gone;
        if self.subflows.iter().any(goes_on) {
            // RFC 8684, section 3.7: the others go on without it.
            while let Some(handle) = self.subflows.find(is_gone) {
                self.reset_subflow(now, handle, CloseReason::ProtocolError, REASON_MIDDLEBOX);
            }
            return false;
        }
        let Some(handle) = self.only_without_options() else { return false };
        if una > 0 {
            // Options passed in both directions before: the path has changed. A peer that goes on in MPTCP sends data
            // again at data level, which would be read twice as plain TCP.
            self.reset_for_middlebox(now, handle);
            return true;
        }
        self.fall_back_or_reset(now, handle, FallbackCause::OptionsStripped);
        true
    }

    fn fall_back(&mut self, now: Instant, handle: Handle, cause: FallbackCause) {
        self.association.protocol = Protocol::Tcp;
        self.sender.reinjections.clear();
        self.joins.open.clear();
        self.signalling.announcements.clear();
        self.scheduling.blocked = None;
        self.timers.stop_multipath();
        // The peer may still receive our options: an infinite mapping tells it.
        if cause != FallbackCause::NotCapable {
            self.association.fallback.announce();
        }
        self.report_fallback(cause);
        let subflow = &mut self.subflows[handle];
        subflow.priority.suspended = false;
        subflow.due.data_fin = false;
        // One that never was heard has no reason to think otherwise: Linux falls back by our data, and stops at
        // MP_FAIL.
        let was_heard = self.association.confirmed && self.association.dss_sent;
        if cause == FallbackCause::OptionsStripped && was_heard {
            let next = self.receiver.buffer.next();
            self.association.fallback.fail_blindly(self.identity.remote.data_seq(next));
        }
        let answer = matches!(cause, FallbackCause::Peer | FallbackCause::Checksum);
        subflow.control.retain(|option| answer && matches!(option, MptcpOption::Fail { .. }));
        // The subflow has acknowledged these, and no option will follow.
        let id = subflow.id();
        // What the peer has announced stays as it is, unless it is not believed any more.
        if cause == FallbackCause::Checksum {
            subflow.mappings.clear();
        } else {
            let announced: Vec<Resolved> = self.receiver.pending_mappings.of(id).collect();
            announced.iter().for_each(|mapping| _ = self.store(handle, mapping));
        }
        for (data_seq, bytes) in self.receiver.pending_mappings.release(id) {
            self.insert(now, handle, data_seq, bytes);
        }
        // From now on the acknowledgements of the subflow count, including earlier ones: there may be no other.
        let held = self.subflows.live(handle).and_then(|subflow| subflow.scoreboard.first_data_seq());
        self.acknowledge_data(now, held.unwrap_or(self.sender.data_nxt).min(self.sender.data_nxt));
        if self.life.write_closed() {
            self.close_plain();
        } else if self.sender.all_assigned() {
            self.fail_blindly(handle);
        }
    }

    /// A peer that has had DATA_ACKs of ours goes on in MPTCP although its options are stripped on their way to us, and
    /// sends again at data level what it misses a DATA_ACK for: plain TCP would read that twice. The infinite mapping
    /// needs data or FIN to go with; MP_FAIL does not, and the peer must answer it with a fallback.
    fn fail_blindly(&mut self, handle: Handle) {
        let Some(subflow) = self.subflows.live_mut(handle) else { return };
        if let Some(data_seq) = self.association.fallback.take_blind_failure() {
            subflow.push_control(MptcpOption::Fail { data_seq });
        }
    }

    /// After our fallback: data without options may be sent again at data level by a peer that does not know of it.
    fn watch_for_options(&mut self, handle: Handle, segment: &Segment) {
        if segment.options.dss.is_some() || !segment.options.mptcp.is_empty() {
            self.association.fallback.hear_option();
        } else if !segment.payload.is_empty() {
            self.fail_blindly(handle);
        }
    }

    /// The checksum of a complete mapping is wrong. `parts` are its bytes, which the subflow has acknowledged.
    pub(super) fn checksum_failed(
        &mut self,
        now: Instant,
        handle: Handle,
        mapping: &Resolved,
        parts: Vec<(u64, Bytes)>,
    ) {
        let number = self.identity.remote.data_seq(mapping.data_seq);
        let fail = MptcpOption::Fail { data_seq: number };
        if self.subflows.len() == 1 && !self.association.joined && self.is_initial(handle) && self.is_contiguous(handle)
        {
            self.association.fallback.fail(number);
            self.fall_back(now, handle, FallbackCause::Checksum);
            self.send_failure(now, handle);
            for (data_seq, bytes) in parts {
                self.insert(now, handle, data_seq, bytes);
            }
            // Later data follows what is in order.
            self.release_in_order(now, handle);
        } else {
            self.reset_subflow_with(now, handle, CloseReason::ProtocolError, fail, REASON_MIDDLEBOX);
        }
    }

    /// Sends our MP_FAIL, and again by a timer until the peer has answered. Not in answer to its segments: each MP_FAIL
    /// may be answered by one.
    fn send_failure(&mut self, now: Instant, handle: Handle) {
        if let Some(subflow) = self.subflows.live_mut(handle)
            && let Some(data_seq) = self.association.fallback.take_failure()
        {
            subflow.push_control(MptcpOption::Fail { data_seq });
            self.output.pending = true;
        }
        self.arm_data_retransmit(now);
    }

    /// The peer has not answered our MP_FAIL in time. After the last one we no longer wait for that.
    pub(super) fn repeat_failure(&mut self, now: Instant) {
        self.timers.data_attempts += 1;
        match self.subflows.first_handle() {
            Some(handle) if !self.withholds_fin() && self.association.fallback.may_fail_again() => {
                self.send_failure(now, handle)
            }
            _ => {
                self.association.fallback.hear();
                self.close_plain();
            }
        }
    }

    /// After our fallback, a segment of the peer that still uses MPTCP shows that our MP_FAIL was lost or is in flight.
    /// Any other segment shows that the peer knows.
    pub(super) fn watch_fallback(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let infinite = |dss: &Dss| dss.mapping.is_some_and(|mapping| mapping.length == 0);
        let speaks = segment.options.dss.as_ref().is_some_and(|dss| !infinite(dss));
        let fell_back = self.association.protocol == Protocol::Tcp && self.config.multipath;
        if fell_back {
            self.watch_for_options(handle, segment);
        }
        if fell_back && speaks && segment.flags.contains(Flags::FIN) && self.association.fallback.unheard().is_none() {
            let next = self.receiver.buffer.next();
            self.association.fallback.fail(self.identity.remote.data_seq(next));
        }
        if self.association.fallback.unheard().is_none() {
            return;
        }
        let answers = segment.options.mptcp.iter().any(|option| matches!(option, MptcpOption::Fail { .. }));
        match &segment.options.dss {
            Some(dss) if speaks && !answers => {
                let waits = segment.sequence_length() > 0 || dss.mapping.is_some();
                if waits && (self.association.fallback.is_unsaid() || self.withholds_fin()) {
                    self.send_failure(now, handle);
                }
                self.arm_data_retransmit(now);
            }
            None if !answers && !segment.options.mptcp.is_empty() => {} // no space for DSS beside another option
            Some(_) | None => {
                self.association.fallback.hear();
                self.close_plain();
            }
        }
    }

    /// The peer found a checksum failure (MP_FAIL). If that came on a reset, the subflow is gone and its data is
    /// reinjected.
    pub(super) fn record_failure(&mut self, _data_seq: u64) {
        self.stats.checksum_failures = self.stats.checksum_failures.saturating_add(1);
    }

    /// MP_FAIL on an acknowledgement that begins at `seq`: answers with MP_FAIL and falls back.
    pub(super) fn handle_failure(&mut self, now: Instant, handle: Handle, data_seq: u64, seq: SeqNumber) {
        self.record_failure(data_seq);
        if self.association.protocol == Protocol::Multipath && self.is_only_carrier(handle) {
            let number = self.identity.remote.data_seq(self.receiver.buffer.next());
            self.subflows[handle].push_control(MptcpOption::Fail { data_seq: number });
        }
        self.fall_back_from(now, handle, seq, FallbackCause::Peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::reinjections::NOBODY;
    use crate::connection::tests::{config, connected};
    use crate::event::SendKind;

    const NOW: Instant = Instant::ZERO;

    /// With 5,000 bytes written, of which the first 3,000 are assigned to the first subflow and none is acknowledged.
    fn assigned() -> (Connection, Handle) {
        let mut connection = connected(config(), 1);
        connection.sender.window_edge = 50_000;
        assert_eq!(connection.write(Bytes::from(vec![0; 5_000])), 5_000);
        let handle = connection.subflows.first_handle().unwrap();
        for at in [0, 1_000, 2_000] {
            assert!(connection.put_on(handle, at, 1_000, SendKind::New));
        }
        (connection, handle)
    }

    #[test]
    fn with_earlier_subflows_what_waits_to_be_sent_again_has_not_arrived() {
        let has_arrived = |ranges: &[(u64, u64)], first: u64| {
            let (mut connection, handle) = assigned();
            connection.association.joined = true;
            connection.sender.buffer.acknowledge(1_000);
            for (start, end) in ranges {
                connection.sender.reinjections.add(*start, *end, NOBODY);
            }
            connection.has_arrived_until(handle, first)
        };
        assert!(has_arrived(&[], 2_000));
        assert!(has_arrived(&[(1_000, 2_000)], 1_000), "it is acknowledged");
        assert!(!has_arrived(&[(1_000, 2_000)], 1_001));
        assert!(has_arrived(&[(2_000, 3_000)], 2_000), "it begins behind that");
        assert!(has_arrived(&[(500, 1_000)], 2_000), "it is acknowledged by now");
        assert!(!has_arrived(&[(500, 1_000), (500, 1_001)], 2_000));
    }

    #[test]
    fn on_the_only_subflow_that_there_was_each_byte_went_once_and_in_order() {
        let (mut connection, handle) = assigned();
        assert!(connection.has_arrived_until(handle, 1_000) && connection.is_contiguous(handle));
        connection.life.close_writing();
        let end = connection.sender.buffer.end();
        connection.subflows[handle].close(end);
        assert!(connection.has_arrived_until(handle, 1_000), "its FIN has a sequence number, and is no byte");
        let (mut connection, handle) = assigned();
        assert!(connection.put_on(handle, 0, 1_000, SendKind::Duplicate));
        assert!(!connection.has_arrived_until(handle, 1_000));
        assert!(!connection.is_contiguous(handle), "the duplicate does not follow");
        assert!(connection.has_arrived_until(handle, 0));
    }

    #[test]
    fn a_peer_withholds_its_key_if_it_answers_a_syn_ack_that_was_repeated_or_sends_data_at_once() {
        let withholds = |timeouts: u32, ahead: u32, payload: &'static [u8]| {
            let mut connection = connected(config(), 1);
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].liveness.timeouts_in_row = timeouts;
            let seq = connection.subflows[handle].receiver.next + ahead;
            let segment = Segment { seq, payload: Bytes::from_static(payload), ..Segment::default() };
            connection.withholds_key(handle, &segment)
        };
        assert!(withholds(1, 0, b"") && withholds(0, 0, b"data"));
        assert!(!withholds(0, 0, b""), "the first answer may be reordered before the key");
        assert!(!withholds(1, 1, b"") && !withholds(0, 1, b"data"), "data may precede it");
    }

    #[test]
    fn the_first_mapping_of_a_peer_whose_key_never_came_tells_where_its_stream_begins() {
        use anabranch_wire::mptcp::Mapping;
        let told = |data_seq: Option<DataSequence>| {
            let mut connection = connected(config(), 1);
            let mapping = data_seq.map(|data_seq| Mapping { data_seq, subflow_seq: 1, length: 4, checksum: None });
            let mut segment = Segment::default();
            segment.options.dss = Some(Dss { mapping, ..Dss::default() });
            connection.report_fallback_to_peer(&segment);
            connection.association.fallback.unheard().map(|failed| (failed, connection.identity.remote.data_seq(0)))
        };
        assert_eq!(told(Some(DataSequence::Long(1 << 40))), Some((1 << 40, 1 << 40)));
        assert_eq!(told(Some(DataSequence::Short(7))), Some((7, 7)));
        assert_eq!(told(None), None);
    }

    #[test]
    fn who_was_heard_at_data_level_tells_of_a_fallback_by_mp_fail_and_others_by_their_data() {
        let tells = |cause: FallbackCause, confirmed: bool, dss_sent: bool| {
            let mut connection = connected(config(), 1);
            (connection.association.confirmed, connection.association.dss_sent) = (confirmed, dss_sent);
            let handle = connection.subflows.first_handle().unwrap();
            connection.fall_back(NOW, handle, cause);
            assert_eq!(connection.association.protocol, Protocol::Tcp);
            !connection.subflows[handle].control.is_empty()
        };
        assert!(tells(FallbackCause::OptionsStripped, true, true));
        assert!(!tells(FallbackCause::OptionsStripped, false, true), "Linux stops at MP_FAIL");
        assert!(!tells(FallbackCause::OptionsStripped, true, false));
        assert!(!tells(FallbackCause::NoMapping, true, true));
    }

    #[test]
    fn only_the_one_initial_subflow_with_all_data_in_order_falls_back_and_any_other_is_reset() {
        let fell_back = |cause: FallbackCause, change: fn(&mut Connection, Handle)| {
            let mut connection = connected(config(), 1);
            let handle = connection.subflows.first_handle().unwrap();
            change(&mut connection, handle);
            connection.fall_back_or_reset(NOW, handle, cause);
            assert_ne!(connection.association.protocol == Protocol::Tcp, connection.subflows.live(handle).is_none());
            connection.association.protocol == Protocol::Tcp
        };
        assert!(fell_back(FallbackCause::NoMapping, |_, _| {}));
        assert!(fell_back(FallbackCause::Peer, |connection, _| connection.association.joined = true));
        assert!(!fell_back(FallbackCause::NoMapping, |connection, _| connection.association.joined = true));
        let hole = |connection: &mut Connection, _: Handle| {
            connection.receiver.buffer.insert(NOW, 9, Bytes::from_static(b"later"));
        };
        assert!(!fell_back(FallbackCause::NoMapping, hole), "the subflow has no hole that would explain it");
        let held = |connection: &mut Connection, _: Handle| {
            connection.receiver.buffer.insert(NOW, 9, Bytes::from_static(b"later"));
            connection.association.checksum = true;
        };
        assert!(fell_back(FallbackCause::NoMapping, held), "it waits for a checksum");
        let gone = |connection: &mut Connection, handle: Handle| {
            connection.subflows[handle].identity.id = anabranch_policy::ids::SubflowId(1);
        };
        assert!(!fell_back(FallbackCause::NoMapping, gone), "it is not the initial one");
    }

    #[test]
    fn of_the_options_that_wait_only_the_answer_to_a_failure_outlives_the_fallback() {
        let left = |cause: FallbackCause| {
            let mut connection = connected(config(), 1);
            connection.association.dss_sent = false;
            let handle = connection.subflows.first_handle().unwrap();
            let fail = MptcpOption::Fail { data_seq: 9 };
            assert!(connection.subflows[handle].control.push(MptcpOption::Priority { backup: true }));
            assert!(connection.subflows[handle].control.push(fail));
            connection.fall_back(NOW, handle, cause);
            core::iter::from_fn(|| connection.subflows[handle].control.pop()).collect::<Vec<_>>()
        };
        let fail = MptcpOption::Fail { data_seq: 9 };
        assert_eq!((left(FallbackCause::Peer), left(FallbackCause::Checksum)), (vec![fail.clone()], vec![fail]));
        assert_eq!((left(FallbackCause::NoMapping), left(FallbackCause::OptionsStripped)), (vec![], vec![]));
    }

    #[test]
    fn who_has_lost_our_options_before_its_first_data_ack_falls_back_and_later_loses_the_subflow() {
        let left = |acknowledged: u64, change: fn(&mut Connection, Handle)| {
            let (mut connection, handle) = assigned();
            // The subflow has acknowledged what was assigned.
            while connection.subflows[handle].scoreboard.send_next(NOW).is_some() {}
            let end = connection.subflows[handle].send.end;
            let blocks = anabranch_wire::tcp::SackBlocks::new();
            connection.subflows[handle].scoreboard.acknowledge(
                NOW,
                end,
                &blocks,
                &crate::subflow::scoreboard::Proofs::NONE,
            );
            connection.subflows[handle].signals = Signals::Gone;
            connection.sender.buffer.acknowledge(acknowledged);
            change(&mut connection, handle);
            let leaves = connection.leaves_options_behind(NOW);
            (leaves, connection.association.protocol == Protocol::Tcp, connection.subflows.live(handle).is_some())
        };
        assert_eq!(left(0, |_, _| {}), (true, true, true));
        assert_eq!(left(1, |_, _| {}), (true, false, false));
        assert_eq!(left(3_000, |_, _| {}), (false, false, true), "nothing waits for a DATA_ACK");
        let present = |connection: &mut Connection, handle: Handle| {
            connection.subflows[handle].signals = Signals::Present;
        };
        assert_eq!(left(0, present), (false, false, true));
        let carried = |connection: &mut Connection, handle: Handle| {
            assert!(connection.put_on(handle, 0, 1_000, SendKind::Duplicate));
        };
        assert_eq!(left(0, carried), (false, false, true), "the subflow still carries it");
    }

    #[test]
    fn one_of_several_subflows_that_lost_the_options_of_what_it_acknowledged_is_reset() {
        let kept = |signals: [Signals; 2], written: bool| {
            let mut connection = connected(config(), 2);
            if written {
                connection.write(bytes::Bytes::from_static(b"taken by a middlebox"));
                connection.sender.data_nxt = connection.sender.buffer.end();
            }
            let handles = [0, 1].map(|id| connection.subflows.handle_of(anabranch_policy::ids::SubflowId(id)).unwrap());
            for (handle, signals) in handles.into_iter().zip(signals) {
                connection.subflows[handle].signals = signals;
            }
            assert!(!connection.leaves_options_behind(NOW), "MPTCP goes on");
            handles.map(|handle| connection.subflows.live(handle).is_some())
        };
        use Signals::{Gone, Present};
        assert_eq!(kept([Gone, Present], true), [false, true]);
        assert_eq!(kept([Present, Gone], true), [true, false]);
        assert_eq!(kept([Present, Present], true), [true, true]);
        assert_eq!(kept([Gone, Gone], true), [true, true], "nothing would be left");
        assert_eq!(kept([Gone, Present], false), [true, true], "nothing waits");
    }
}
