//! Processes an acceptable segment: acknowledgement, window, options, payload, FIN.

use super::association::Protocol;
use super::output::Notice;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::FallbackCause;
use crate::subflow::acknowledge::Progress;
use crate::subflow::{Signals, State, Subflow};
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::{Flags, Segment};

impl Connection {
    pub(super) fn process(&mut self, now: Instant, handle: Handle, segment: &mut Segment, acknowledges: bool) {
        if self.subflows[handle].state != State::Established && !self.is_open_for(now, handle, segment) {
            return;
        }
        self.confirm_join(now, handle);
        if self.handle_mptcp_options(now, handle, segment) {
            return;
        }
        self.watch_fallback(now, handle, segment);
        if self.answers_join_without_options(handle, segment) {
            return self.reset_for_middlebox(now, handle);
        }
        let progress = if acknowledges { self.handle_ack(now, handle, segment) } else { Progress::default() };
        self.handle_window(now, handle, segment, acknowledges);
        if self.association.protocol != Protocol::Tcp
            && self.subflows.has(handle)
            && (self.lost_its_options(handle, segment) || self.is_plain_end(segment))
        {
            self.fall_back_from(now, handle, segment.seq, FallbackCause::OptionsStripped);
        }
        let payload_end = Subflow::payload_range(segment).1;
        // The steps above may have closed the subflow.
        if !self.subflows.has(handle) {
            return;
        }
        self.handle_payload(now, handle, segment);
        if self.subflows.has(handle) {
            let fin = segment.flags.contains(Flags::FIN).then_some(payload_end);
            self.handle_fin(now, handle, fin);
            if self.association.protocol == Protocol::Multipath && subflow_is(self, handle, State::CloseWait) {
                self.answer_subflow_fins();
            }
        }
        if progress.fin && self.subflows.has(handle) {
            self.handle_fin_acknowledged(now, handle);
        }
        self.announce_end();
        self.finish_if_done(now);
    }

    /// Whether a segment is processed in a state other than ESTABLISHED.
    #[inline(never)]
    fn is_open_for(&mut self, now: Instant, handle: Handle, segment: &mut Segment) -> bool {
        let received = self.subflows[handle].state == State::SynReceived;
        (!received || self.handle_in_syn_received(now, handle, segment)) && !subflow_is(self, handle, State::TimeWait)
    }

    fn handle_ack(&mut self, now: Instant, handle: Handle, segment: &Segment) -> Progress {
        let (subflow, mut cx) = self.subflow_in_context(now, handle);
        let una = subflow.send.una;
        let progress = subflow.handle_acknowledgement(&mut cx, segment);
        let advanced = subflow.send.una != una;
        self.sender.delivered_end = self.sender.delivered_end.max(progress.data_end);
        if advanced {
            self.watch_rest(now);
        }
        if advanced && self.measurement.watch.is_some() {
            self.record_acknowledged_delay(now, handle, segment);
        }
        progress
    }

    /// Handles the window and the DATA_ACK of a segment.
    fn handle_window(&mut self, now: Instant, handle: Handle, segment: &Segment, acknowledges: bool) {
        let subflow = &mut self.subflows[handle];
        // The window of a SYN is never scaled (RFC 7323, section 2.2): this one crosses our own.
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { subflow.negotiated.send_scale };
        let window = u32::from(segment.window) << scale;
        subflow.record_window(window);
        let is_news = acknowledges && subflow.takes_window(segment.seq, segment.ack);
        if is_news {
            subflow.window.edge = match self.association.protocol {
                Protocol::Tcp => segment.ack + window,
                Protocol::Negotiating | Protocol::Multipath => subflow.window.edge.max(segment.ack + window),
            };
        }
        let window = u64::from(window);
        if self.association.protocol == Protocol::Tcp {
            if acknowledges {
                let una = subflow.scoreboard.first_data_seq().unwrap_or(self.sender.data_nxt).min(self.sender.data_nxt);
                // An end that only receives has nothing outstanding.
                if una > self.sender.una() || self.life.write_closed() {
                    self.acknowledge_data(now, una);
                }
                self.sender.window_edge = if is_news { una + window } else { self.sender.window_edge };
            }
        } else if let Some(data_ack) = segment.options.dss.as_ref().and_then(|dss| dss.data_ack) {
            self.confirm(now);
            let ack = self.data_ack_offset(data_ack);
            if ack <= self.sender.data_nxt + u64::from(self.life.write_closed()) {
                self.acknowledge_data(now, ack);
                self.sender.window_edge = self.sender.window_edge.max(ack + window);
            }
        }
    }

    /// The peer's MPTCP options arrive: joins are allowed (RFC 8684, section 3.1).
    fn confirm(&mut self, now: Instant) {
        let first = !core::mem::replace(&mut self.association.confirmed, true);
        if first && self.partial.is_some() {
            self.send_hello(now);
        }
        if first && self.identity.role == Role::Client {
            self.output.tell(Notice::Established);
            let initial = self.subflows.first().map(Subflow::id);
            initial.into_iter().for_each(|id| self.output.tell(Notice::SubflowEstablished(id)));
            let announced =
                self.signalling.remote_addresses.iter().map(|known| Notice::AddressAnnounced(known.id, known.remote));
            announced.for_each(|notice| self.output.tell(notice));
        }
    }

    /// Whether the peer answered our data without any MPTCP option, and never sent one on this subflow. On the first
    /// subflow its data counts too, if none had a mapping, and earlier options do not until it has sent a DATA_ACK for
    /// data of ours: a peer that does not receive our options falls back silently (RFC 8684, section 3.7).
    pub(super) fn lost_its_options(&mut self, handle: Handle, segment: &Segment) -> bool {
        let (initial, confirmed) = (self.is_initial(handle), self.association.confirmed);
        let id = self.subflows[handle].id();
        let unseen = initial && !self.association.joined && self.sender.una() == 0;
        // MP_CAPABLE maps the first data of a client.
        let mapped = self.receiver.buffer.next() > 0 || self.receiver.pending_mappings.has_some_of(id);
        let subflow = &mut self.subflows[handle];
        let bare = is_bare(segment);
        let signalled =
            subflow.signals != Signals::Never || segment.options.dss.is_some() || (initial && (confirmed || mapped));
        subflow.signals = subflow.signals.after(signalled, segment);
        // Data, not only the SYN or a FIN.
        let answers = subflow.counters.bytes_acked > 0;
        let answers_now = answers && segment.ack.after(subflow.send.initial + 1);
        self.association.protocol == Protocol::Multipath
            && bare
            && (if signalled {
                unseen && answers_now
            } else {
                // What is not next may have overtaken the segment with the keys and the first mapping.
                !segment.seq.after(subflow.receiver.next) && (answers || (initial && !segment.payload.is_empty()))
            })
            && !self.is_within_mapping(handle, segment)
    }

    /// Whether the peer acknowledges the first data on a joined subflow without any MPTCP option, which ends the
    /// subflow (RFC 8684, section 3.7). That is judged before the acknowledgement counts: what it is for has no
    /// DATA_ACK, and is reinjected at once with the rest of what the subflow carries.
    #[inline]
    fn answers_join_without_options(&self, handle: Handle, segment: &Segment) -> bool {
        is_bare(segment) && self.association.protocol == Protocol::Multipath && self.is_first_answer(handle, segment)
    }

    #[inline(never)]
    fn is_first_answer(&self, handle: Handle, segment: &Segment) -> bool {
        let subflow = &self.subflows[handle];
        subflow.signals == Signals::Never
            && !self.is_initial(handle)
            && subflow.scoreboard.records().next().is_some_and(|record| !record.payload.is_empty())
            && segment.ack.after(subflow.send.una)
            && !segment.seq.after(subflow.receiver.next)
            && !self.is_within_mapping(handle, segment)
    }

    /// Whether the payload begins within a mapping that is known and needs no option therefore (RFC 8684, section
    /// 3.3.1): a middlebox that splits segments may keep the options on the first part only.
    fn is_within_mapping(&self, handle: Handle, segment: &Segment) -> bool {
        let subflow = &self.subflows[handle];
        let seq = segment.seq;
        !segment.payload.is_empty()
            && seq == subflow.receiver.next
            && (subflow.mappings.find(seq).is_some()
                || self.receiver.pending_mappings.find(subflow.id(), seq).is_some())
    }

    /// Whether a FIN without any MPTCP option on the only subflow ends the stream: the peer has sent no DATA_ACK for
    /// data of ours yet, and until then may fall back silently. Later such a FIN may be that of a subflow whose options
    /// are stripped; then the stream may continue elsewhere and must not be cut.
    fn is_plain_end(&self, segment: &Segment) -> bool {
        self.association.protocol == Protocol::Multipath
            && self.subflows.len() == 1
            && self.sender.una() == 0
            && !self.life.end_acknowledged()
            && segment.flags.contains(Flags::FIN)
            && is_bare(segment)
    }

    /// Payload: its position in the stream, the receive buffer, and its range on the subflow.
    fn handle_payload(&mut self, now: Instant, handle: Handle, segment: &mut Segment) {
        if segment.payload.is_empty() {
            if segment.options.dss.is_some() {
                self.handle_mapping_alone(now, handle, segment);
            }
            return;
        }
        let payload = core::mem::take(&mut segment.payload);
        let subflow = &mut self.subflows[handle];
        if !subflow.state.can_receive() {
            subflow.receiver.acknowledge_now();
            return;
        }
        self.record_receive_round_trip(now, handle, segment);
        if self.partial.is_some() {
            self.record_stamps(handle, segment);
        }
        if self.measurement.watch.is_some() {
            self.record_arrival_delay(now, handle, segment);
        }
        if self.association.protocol == Protocol::Tcp {
            self.place_plain(now, handle, segment, payload);
        } else {
            self.place_mapped(now, handle, segment, payload);
        }
        if self.measurement.watch.is_some() {
            self.watch_receive_buffer(now);
        }
    }
}

/// Whether a segment has no MPTCP option.
pub(super) fn is_bare(segment: &Segment) -> bool {
    segment.options.mptcp.is_empty() && segment.options.dss.is_none()
}

pub(super) fn subflow_is(connection: &Connection, handle: Handle, state: State) -> bool {
    connection.subflows[handle].state == state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::output::Workspace;
    use crate::connection::tests::{config, connected};
    use crate::connection::timer_table::Timer;
    use anabranch_wire::mptcp::{DataAck, Dss};
    use anabranch_wire::{MptcpOption, Packet};
    use bytes::Bytes;

    const NOW: Instant = Instant::ZERO;

    /// 2,000 bytes are in flight on the first subflow in segments of 1,000.
    fn sending() -> (Connection, Handle) {
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        connection.subflows[handle].mss = 1_000;
        connection.sender.window_edge = 2_000;
        assert_eq!(connection.write(Bytes::from(vec![0; 5_000])), 5_000);
        let mut packet = Packet::default();
        while connection.poll_transmit(NOW, &mut Workspace::default(), &mut packet) {}
        assert_eq!(connection.sender.data_nxt, 2_000);
        (connection, handle)
    }

    #[test]
    fn an_acknowledgement_that_advances_shows_that_something_moves() {
        let moves = |bytes: u32| {
            let (mut connection, handle) = sending();
            connection.timers.stop(Timer::Rest);
            let ack = connection.subflows[handle].send.una + bytes;
            connection.handle_ack(NOW, handle, &Segment { ack, flags: Flags::ACK, ..Segment::default() });
            (connection.timers.runs(Timer::Rest), connection.sender.delivered_end)
        };
        assert_eq!(moves(0), (false, 0));
        assert_eq!(moves(1_000), (true, 1_000));
    }

    #[test]
    fn the_window_of_the_connection_ends_behind_the_data_ack_and_never_moves_back() {
        // RFC 8684, section 3.3.5.
        let edge = |data_ack: u64, window: u16| {
            let (mut connection, handle) = sending();
            let number = connection.identity.wire_data_seq(data_ack);
            let mut segment =
                Segment { ack: connection.subflows[handle].send.una, window, flags: Flags::ACK, ..Segment::default() };
            segment.options.dss = Some(Dss { data_ack: Some(DataAck::Long(number)), ..Dss::default() });
            connection.handle_window(NOW, handle, &segment, true);
            (connection.sender.una(), connection.sender.window_edge)
        };
        assert_eq!(edge(1_000, 3_000), (1_000, 4_000));
        assert_eq!(edge(1_000, 500), (1_000, 2_000), "it was promised before");
        assert_eq!(edge(2_000, 3_000), (2_000, 5_000));
        assert_eq!(edge(2_001, 3_000), (0, 2_000), "it acknowledges what was never sent");
    }

    #[test]
    fn a_window_of_plain_tcp_may_shrink_and_is_taken_from_news_alone() {
        let edge = |window: u16, acknowledges: bool| {
            let (mut connection, handle) = sending();
            connection.association.protocol = Protocol::Tcp;
            let ack = connection.subflows[handle].send.una;
            let segment = Segment { ack, window, flags: Flags::ACK, ..Segment::default() };
            connection.handle_window(NOW, handle, &segment, acknowledges);
            let subflow = &connection.subflows[handle];
            (connection.sender.window_edge, subflow.window.edge - ack)
        };
        assert_eq!(edge(3_000, true), (3_000, 3_000));
        assert_eq!(edge(500, true), (500, 500));
        assert_eq!(edge(3_000, false), (2_000, 60_000));
    }

    #[test]
    fn a_bare_fin_ends_the_stream_before_the_first_data_ack_and_a_subflow_after_it() {
        let ends = |change: fn(&mut Connection, &mut Segment)| {
            let (mut connection, _) = sending();
            let mut segment = Segment { flags: Flags::ACK | Flags::FIN, ..Segment::default() };
            change(&mut connection, &mut segment);
            connection.is_plain_end(&segment)
        };
        assert!(ends(|_, _| {}));
        assert!(!ends(|_, segment| segment.flags = Flags::ACK));
        assert!(!ends(|connection, _| assert_eq!(connection.sender.buffer.acknowledge(1), 1)));
        assert!(!ends(|connection, _| connection.association.protocol = Protocol::Tcp));
        assert!(!ends(|connection, _| connection.life.acknowledge_end()));
        assert!(!ends(|_, segment| segment.options.dss = Some(Dss::default())));
        assert!(!ends(|_, segment| segment.options.mptcp.push(MptcpOption::Priority { backup: true })));
        let two = connected(config(), 2);
        assert!(!two.is_plain_end(&Segment { flags: Flags::ACK | Flags::FIN, ..Segment::default() }));
    }

    #[test]
    fn options_are_lost_if_data_is_answered_bare_by_a_peer_that_never_sent_one() {
        let lost = |bytes_acked: u64, payload: &'static [u8], change: fn(&mut Connection)| {
            let mut connection = connected(config(), 1);
            connection.association.confirmed = false;
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].counters.bytes_acked = bytes_acked;
            change(&mut connection);
            let ack = connection.subflows[handle].send.initial + 1;
            let segment = Segment { ack, payload: Bytes::from_static(payload), ..Segment::default() };
            connection.lost_its_options(handle, &segment)
        };
        assert!(lost(1, b"", |_| {}) && lost(0, b"data", |_| {}) && !lost(0, b"", |_| {}));
        // With options before, a bare segment counts if it acknowledges data now.
        assert!(!lost(1, b"data", |connection| connection.association.confirmed = true));
        let answers = |ahead: u32, acknowledged: u64, joined: bool| {
            let (mut connection, handle) = sending();
            connection.subflows[handle].counters.bytes_acked = 1_000;
            connection.sender.buffer.acknowledge(acknowledged);
            connection.association.joined = joined;
            let ack = connection.subflows[handle].send.initial + ahead;
            connection.lost_its_options(handle, &Segment { ack, ..Segment::default() })
        };
        assert!(!answers(1, 0, false) && answers(2, 0, false));
        assert!(!answers(2, 1, false) && !answers(2, 0, true), "a DATA_ACK or a join shows that they pass");
        let mapped = |connection: &mut Connection| {
            connection.receiver.buffer.insert(NOW, 0, Bytes::from_static(b"mapped"));
        };
        assert!(!lost(0, b"data", mapped));
        assert!(!lost(1, b"", |connection| connection.association.protocol = Protocol::Tcp));
    }
}
