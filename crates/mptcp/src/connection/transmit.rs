//! Selects the next packet to send. The MPTCP options of each kind of segment share 40 bytes of option space:
//!
//! | segment | options besides timestamps (12) |
//! |---|---|
//! | data | DSS with mapping and DATA_ACK (up to 28); nothing else fits, so SACK blocks follow on a bare acknowledgement |
//! | data under a shared mapping sent before | none, if it is longer than a segment with DSS may be; otherwise as data |
//! | first data of a client | MP_CAPABLE with both keys and length (24) in place of DSS |
//! | acknowledgement | DSS with DATA_ACK (8 or 12), then SACK blocks in what is left (one or two) |
//! | acknowledgement with DATA_FIN | DSS as on data |
//! | acknowledgement with ADD_ADDR or its echo | the option (8 to 32) and nothing else |
//! | acknowledgement with REMOVE_ADDR, MP_PRIO, MP_FAIL | DATA_ACK if it fits, and the option; no SACK blocks |
//! | reset of a subflow | MP_FASTCLOSE (12) or MP_FAIL (12) if it is one, MP_TCPRST (4) |
//! | third segment of a handshake | MP_CAPABLE with both keys (20), or MP_JOIN (24) |

use super::agenda::Task;
use super::association::Protocol;
use super::joined::JoinedSegments;
use super::output::Workspace;
use super::packets::{ip_header, packet};
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::event::{SendKind, TraceRecord};
use crate::subflow::scoreboard::Joined;
use crate::subflow::timers::SubflowTimer;
use crate::subflow::transmit::Outgoing;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::Instant;
use anabranch_wire::{Ecn, Packet};

impl Connection {
    /// Writes the next packet to send into `place`, whose content is replaced. Returns false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, workspace: &mut Workspace, place: &mut Packet) -> bool {
        workspace.resends = false;
        if let Some(packet) = self.output.packets.take_front() {
            self.stats.segments_sent += 1;
            *place = packet;
            return true;
        }
        if !self.output.pending {
            return false;
        }
        let data = self.next_data(now, workspace, place);
        let sent = data || self.next_acknowledgement(now, place);
        if sent {
            self.stats.segments_sent += 1;
            self.wake_measurement(now);
        }
        // If the scheduler has no choice, an acknowledgement does not enable data that could not be sent before it.
        let last = !data && (!sent || (self.association.protocol == Protocol::Tcp && !self.owes_acknowledgement(now)));
        if last {
            self.rest(now);
        }
        sent
    }

    /// Nothing more can be sent now.
    fn rest(&mut self, now: Instant) {
        self.output.pending = false;
        self.record_limits();
        self.watch_window(now);
        self.watch_user_timeout(now);
    }

    /// Handshakes, retransmissions and queued data of every subflow; then new data, as long as there is some.
    fn next_data(&mut self, now: Instant, workspace: &mut Workspace, place: &mut Packet) -> bool {
        if self.probing_subflow().is_some() {
            self.assign(now, workspace); // a probe carries new data, if there is some
        }
        loop {
            let mut next = self.subflows.next_for(now, Task::Data, None);
            while let Some(handle) = next {
                if self.handshake_or_data(now, handle, workspace, place) {
                    return true;
                }
                next = self.subflows.next_for(now, Task::Data, next);
            }
            if !self.assign(now, workspace) {
                return false;
            }
            // All data that can be sent now is assigned before the first record leaves, so that it can share a mapping.
            for _ in 1..self.scheduling.needs.segments_per_mapping {
                if !self.assign(now, workspace) {
                    break;
                }
            }
        }
    }

    fn handshake_or_data(
        &mut self,
        now: Instant,
        handle: Handle,
        workspace: &mut Workspace,
        place: &mut Packet,
    ) -> bool {
        let subflow = &self.subflows[handle];
        if subflow.handshake.due {
            let (local, remote) = (subflow.identity.local, subflow.identity.remote);
            let segment = self.handshake_packet(now, handle);
            let sent = segment.is_some();
            segment.into_iter().for_each(|segment| *place = packet(local, remote, segment));
            return sent;
        }
        if subflow.is_paced_out(now) {
            self.subflows.wait_for_pacing(handle);
            return false;
        }
        let watched = self.subflows[handle].timers.runs(SubflowTimer::Silence);
        let patience = if watched { None } else { self.patience() };
        let (subflow, mut cx) = self.subflow_in_context(now, handle);
        let ecn = subflow.negotiated.ecn.marks();
        let Some(mut outgoing) = subflow.next_transmission(&mut cx) else { return false };
        if let Some(patience) = patience {
            subflow.watch_silence(now, patience, cx.config);
        }
        place.ip = ip_header(&subflow.identity);
        let id = subflow.id();
        let alone = outgoing.record.retransmitted || subflow.is_probe(&outgoing.record);
        if outgoing.kind != SendKind::Retransmission {
            self.bind_to_mapping(handle, &mut outgoing.record);
        }
        self.account(now, id, &outgoing);
        workspace.resends = alone;
        // Only new data is marked as ECN-capable (RFC 3168, section 6.1.5).
        let ecn = ecn && outgoing.kind != SendKind::Retransmission && !outgoing.record.payload.is_empty();
        if ecn {
            place.ip.ecn = Ecn::Capable0;
        }
        self.data_segment(now, handle, outgoing.record, &mut place.segment);
        true
    }

    /// Nothing more can be sent: records what limits each subflow that has congestion window left. With a single
    /// subflow, the peer's window counts as a limit of the network, since no other subflow can have filled it.
    fn record_limits(&mut self) {
        if let Some(only) = self.subflows.only()
            && self.sender.unsent() >= u64::from(only.mss)
        {
            return;
        }
        self.subflows.each_changed(|subflow| subflow.record_limit(&*self.congestion));
    }

    fn account(&mut self, now: Instant, subflow: SubflowId, outgoing: &Outgoing) {
        let record = &outgoing.record;
        let kind = match outgoing.kind {
            SendKind::Retransmission => SendKind::Retransmission,
            // It was taken back from another subflow before it was sent there: this is its first transmission.
            _ if record.data_seq >= self.sender.sent_end => SendKind::New,
            _ => record.origin,
        };
        self.sender.sent_end = self.sender.sent_end.max(record.data_end());
        let length = record.payload.len() as u32;
        match kind {
            SendKind::New => self.stats.bytes_sent += u64::from(length),
            SendKind::Retransmission => self.stats.bytes_retransmitted += u64::from(length),
            SendKind::Reinjection | SendKind::Duplicate => {} // counted when they were assigned
        }
        if self.output.traces() && length > 0 {
            let (connection, data_seq) = (self.id, record.data_seq);
            self.output.record(TraceRecord::Sent { connection, subflow, data_seq, length, kind });
        }
        if !self.timers.runs(Timer::DataRetransmit) && self.association.protocol == Protocol::Multipath {
            self.arm_data_retransmit(now);
        }
    }

    /// Segments left as one packet: their records keep its mapping.
    pub fn handle_joined(&mut self, joined: &JoinedSegments) {
        let JoinedSegments { local, remote, seq, length, data_fin } = *joined;
        let found = self.subflows.find(|s| s.identity.local == local && s.identity.remote == remote);
        let Some(subflow) = found.map(|handle| &mut self.subflows[handle]) else { return };
        let end = seq + length;
        for record in subflow.scoreboard.sent_between(seq, end) {
            if !record.retransmitted {
                let (before, after) = ((record.seq - seq) as u16, (end - record.end()) as u16);
                record.joined = Some(Joined { before, after, data_fin });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConnectionConfig;
    use crate::connection::tests::{config, connected};
    use bytes::Bytes;

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn what_is_sent_is_traced_and_counted_by_its_kind_and_a_fin_is_no_data() {
        let mut connection = connected(ConnectionConfig { trace: true, ..config() }, 1);
        let handle = connection.subflows.first_handle().unwrap();
        connection.subflows[handle].mss = 1_000;
        connection.sender.window_edge = 50_000;
        assert_eq!(connection.write(Bytes::from(vec![0; 2_000])), 2_000);
        let mut packet = Packet::default();
        let mut sent = |connection: &mut Connection| {
            while connection.poll_transmit(NOW, &mut Workspace::default(), &mut packet) {}
            let records = core::iter::from_fn(|| connection.output.poll_trace());
            let of = |record| match record {
                TraceRecord::Sent { data_seq, length, kind, .. } => Some((data_seq, length, kind)),
                _ => None,
            };
            records.filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(sent(&mut connection), [(0, 1_000, SendKind::New), (1_000, 1_000, SendKind::New)]);
        assert!(connection.timers.runs(Timer::DataRetransmit));
        assert_eq!(connection.subflows[handle].scoreboard.mark_all_lost(), 2_000);
        connection.output.pending = true;
        assert_eq!(sent(&mut connection)[0], (0, 1_000, SendKind::Retransmission));
        let data_end = connection.sender.buffer.end();
        connection.subflows[handle].close(data_end);
        connection.output.pending = true;
        let all = sent(&mut connection);
        assert!(all.iter().all(|(_, length, _)| *length > 0), "{all:?}");
        assert_eq!(connection.stats.bytes_sent, 2_000);
        assert!(connection.stats.bytes_retransmitted >= 1_000);
    }
}
