//! What goes out next, and the MPTCP options that go with it: what shares the 40 bytes of option space.
//!
//! | segment | options besides timestamps (12) |
//! |---|---|
//! | data | DSS with mapping and DATA_ACK (up to 28); nothing else fits, so SACK blocks follow on a bare acknowledgement |
//! | data under a mapping that went ahead (`trains`) | none, if it is longer than a segment with DSS may be; else as data |
//! | first data of a client | MP_CAPABLE with both keys and length (24) in place of DSS |
//! | acknowledgement | DSS with DATA_ACK (8 or 12), then SACK blocks in what is left (one or two) |
//! | acknowledgement with DATA_FIN | DSS as on data |
//! | acknowledgement with ADD_ADDR or its echo | the option (8 to 32) and nothing else |
//! | acknowledgement with REMOVE_ADDR, MP_PRIO, MP_FAIL | DATA_ACK if it fits, and the option; no SACK blocks |
//! | reset of a subflow | MP_FASTCLOSE (12) or MP_FAIL (12) if it is one, MP_TCPRST (4) |
//! | third segment of a handshake | MP_CAPABLE with both keys (20), or MP_JOIN (24) |

use super::association::Protocol;
use super::joined::JoinedSegments;
use super::output::Workspace;
use super::packets::packet;
use super::state::Connection;
use crate::event::{SendKind, TraceRecord};
use crate::subflow::receiver::AckDue;
use crate::subflow::scoreboard::{Joined, Record};
use crate::subflow::transmit::Outgoing;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{CapableKeys, DataSequence, Dss, Mapping, VERSION, dss_checksum};
use anabranch_wire::tcp::OPTION_SPACE;
use anabranch_wire::{Ecn, MptcpOption, Packet, Segment, SeqNumber};

impl Connection {
    /// The next packet to send now.
    pub fn poll_transmit(&mut self, now: Instant, workspace: &mut Workspace) -> Option<Packet> {
        workspace.resends = false;
        if let Some(packet) = self.output.packets.pop_front() {
            self.stats.segments_sent += 1;
            return Some(packet);
        }
        if !self.output.pending {
            return None;
        }
        let packet = self.next_data(now, workspace).or_else(|| self.next_acknowledgement(now));
        match &packet {
            Some(_) => {
                self.stats.segments_sent += 1;
                self.wake_measurement(now);
            }
            None => {
                self.output.pending = false;
                self.note_limits();
                self.watch_window(now);
                self.watch_user_timeout(now);
            }
        }
        packet
    }

    /// Handshakes, data to be sent again and queued data on every subflow; then new data, as long as there is some.
    fn next_data(&mut self, now: Instant, workspace: &mut Workspace) -> Option<Packet> {
        if self.probing_subflow().is_some() {
            self.assign(now, workspace); // a probe is new data, if there is some
        }
        loop {
            for index in 0..self.subflows.len() {
                if let Some(packet) = self.handshake_or_data(now, index, workspace) {
                    return Some(packet);
                }
            }
            if !self.assign(now, workspace) {
                return None;
            }
            // What can go now is given before the first leaves, so that it can share a mapping.
            for _ in 1..self.scheduling.needs.mapping_train {
                if !self.assign(now, workspace) {
                    break;
                }
            }
        }
    }

    fn handshake_or_data(&mut self, now: Instant, index: usize, workspace: &mut Workspace) -> Option<Packet> {
        let subflow = self.subflows.get(index)?;
        let (local, remote) = (subflow.identity.local, subflow.identity.remote);
        if subflow.handshake.due {
            let segment = self.handshake_packet(now, index)?;
            return Some(packet(local, remote, segment));
        }
        let silence = self.scheduling.needs.silence.filter(|_| self.association.protocol == Protocol::Multipath);
        let (subflow, mut cx) = self.subflow_in_context(now, index)?;
        let ecn = subflow.negotiated.ecn.marks();
        let mut outgoing = subflow.next_transmission(&mut cx)?;
        if let Some(silence) = silence {
            subflow.watch_silence(now, silence, cx.config);
        }
        let id = subflow.id();
        let alone = outgoing.record.retransmitted || subflow.is_probe(&outgoing.record);
        if outgoing.kind != SendKind::Retransmission {
            self.bind_train(index, &mut outgoing.record);
        }
        self.account(now, id, &outgoing);
        workspace.resends = alone;
        // Only new data is marked as ECN-capable (RFC 3168, section 6.1.5).
        let ecn = ecn && outgoing.kind != SendKind::Retransmission && !outgoing.record.payload.is_empty();
        let segment = self.data_segment(now, index, outgoing.record)?;
        let mut packet = packet(local, remote, segment);
        if ecn {
            packet.ip.ecn = Ecn::Capable0;
        }
        Some(packet)
    }

    /// Nothing more can be sent: what does a subflow lack, if it has room? The peer's window is the network's business where
    /// there is only one subflow, since nobody else can have filled it.
    fn note_limits(&mut self) {
        if let [only] = self.subflows.as_slice()
            && self.sender.unsent() >= u64::from(only.mss)
        {
            return;
        }
        self.subflows.iter_mut().for_each(|subflow| subflow.note_limit(&*self.congestion));
    }

    fn account(&mut self, now: Instant, subflow: SubflowId, outgoing: &Outgoing) {
        let record = &outgoing.record;
        let kind = match outgoing.kind {
            SendKind::Retransmission => SendKind::Retransmission,
            // Taken back from another subflow before it was sent there: this is the first time after all.
            _ if record.data_seq >= self.sender.sent_end => SendKind::New,
            _ => record.origin,
        };
        self.sender.sent_end = self.sender.sent_end.max(record.data_end());
        let length = record.payload.len() as u32;
        match kind {
            SendKind::New => self.stats.bytes_sent += u64::from(length),
            SendKind::Retransmission => self.stats.bytes_retransmitted += u64::from(length),
            SendKind::Reinjection | SendKind::Duplicate => {} // counted when they were decided on
        }
        if self.output.traces() && length > 0 {
            let (connection, data_seq) = (self.id, record.data_seq);
            self.output.record(TraceRecord::Sent { connection, subflow, data_seq, length, kind });
        }
        if self.timers.data_retransmit == Instant::NEVER && self.association.protocol == Protocol::Multipath {
            self.arm_data_retransmit(now);
        }
    }

    fn data_segment(&mut self, now: Instant, index: usize, record: Record) -> Option<Segment> {
        let initial = self.subflows.get(index)?.send.initial;
        let (dss, capable) = self.data_options(index, initial, &record);
        let space = dss.as_ref().map_or(0, Dss::encoded_len) + capable.as_ref().map_or(0, MptcpOption::encoded_len);
        // The peer knows of a window by the DATA_ACK beside it.
        let bare = space == 0 && self.association.protocol == Protocol::Multipath;
        let window = if bare { self.receiver.buffer.window() } else { self.receiver.offer_window() };
        let push = record.data_end() == self.sender.buffer.end();
        let (subflow, cx) = self.subflow_in_context(now, index)?;
        let mut segment = subflow.data_segment(&cx, record, window, space, push);
        segment.options.dss = dss;
        self.association.dss_sent |= segment.options.dss.is_some();
        segment.options.mptcp.extend(capable);
        Some(segment)
    }

    /// The MPTCP option of a segment with data (or of a FIN): DSS, or MP_CAPABLE on the first data of a client until the
    /// peer has shown that it got the keys (RFC 8684, section 3.1).
    fn data_options(
        &mut self,
        index: usize,
        initial: SeqNumber,
        record: &Record,
    ) -> (Option<Dss>, Option<MptcpOption>) {
        if self.subflows.get(index).is_some_and(|subflow| subflow.is_bare(record)) {
            return (None, None);
        }
        if self.association.protocol != Protocol::Multipath {
            return (self.infinite_mapping(initial, record), None);
        }
        if record.payload.is_empty() {
            return (Some(Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false }), None);
        }
        // Sent again under later numbers of the subflow, it needs a mapping: MP_CAPABLE implies the first.
        let in_place = record.seq == initial + 1;
        let first = in_place
            && record.data_seq == 0
            && self.role == Role::Client
            && !self.association.confirmed
            && self.is_initial(index);
        if first {
            // MP_CAPABLE has no F flag: a DATA_FIN follows by itself.
            let ends = self.life.write_closed() && record.data_end() == self.sender.buffer.end();
            self.subflows.get_mut(index).into_iter().for_each(|subflow| subflow.due.data_fin |= ends);
            let length = record.payload.len() as u16;
            let relative = record.seq - initial;
            let checksum = self
                .association
                .checksum
                .then(|| dss_checksum(self.identity.wire_data_seq(0), relative, length, [record.payload.as_ref()]));
            let (sender, receiver) = (self.identity.keys.local.0, self.identity.keys.remote.0);
            let keys = CapableKeys::BothWithData { sender, receiver, length, checksum };
            return (None, Some(MptcpOption::Capable { version: VERSION, flags: self.capable_flags(), keys }));
        }
        (Some(self.mapping_for(initial, record)), None)
    }

    fn mapping_for(&self, initial: SeqNumber, record: &Record) -> Dss {
        let (before, after, data_fin) = match record.joined {
            // The peer may be in the midst of the mapping that this data had when it left (RFC 8684, section 3.3.1: it must
            // not change). Linux takes part of it under another one as an error, and resets the subflow.
            Some(Joined { before, after, data_fin }) => (before, after, data_fin),
            None => (0, 0, self.life.write_closed() && record.data_end() == self.sender.buffer.end()),
        };
        let length = before + record.payload.len() as u16 + after + u16::from(data_fin);
        let number = self.identity.wire_data_seq(record.data_seq - u64::from(before));
        let relative = record.seq - initial - u32::from(before);
        let checksum =
            self.association.checksum.then(|| dss_checksum(number, relative, length, [record.payload.as_ref()]));
        Dss {
            data_ack: Some(self.wire_data_ack()),
            mapping: Some(Mapping { data_seq: DataSequence::Long(number), subflow_seq: relative, length, checksum }),
            data_fin,
        }
    }

    /// Segments left as one packet: their records keep its mapping.
    pub fn handle_joined(&mut self, joined: &JoinedSegments) {
        let JoinedSegments { local, remote, seq, length, data_fin } = *joined;
        let found = self.subflows.iter_mut().find(|s| s.identity.local == local && s.identity.remote == remote);
        let Some(subflow) = found else { return };
        let end = seq + length;
        for record in subflow.scoreboard.sent_between(seq, end) {
            if !record.retransmitted {
                let (before, after) = ((record.seq - seq) as u16, (end - record.end()) as u16);
                record.joined = Some(Joined { before, after, data_fin });
            }
        }
    }

    /// The last mapping before plain TCP: length 0 makes it infinite (RFC 8684, section 3.7).
    fn infinite_mapping(&mut self, initial: SeqNumber, record: &Record) -> Option<Dss> {
        if record.payload.is_empty() || !self.association.fallback.goes_with(record.data_seq) {
            return None;
        }
        let data_seq = DataSequence::Long(self.identity.wire_data_seq(record.data_seq));
        let checksum = self.association.checksum.then_some(0);
        let mapping = Mapping { data_seq, subflow_seq: record.seq - initial, length: 0, checksum };
        Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false })
    }

    /// A bare acknowledgement where one is due.
    fn next_acknowledgement(&mut self, now: Instant) -> Option<Packet> {
        let index = self.subflows.iter().position(|subflow| subflow.wants_acknowledgement(now))?;
        let subflow = self.subflows.get(index)?;
        let (local, remote) = (subflow.identity.local, subflow.identity.remote);
        let was_due = subflow.receiver.due != AckDue::No;
        let (dss, options) = self.acknowledgement_options(index);
        // What an option took the place of follows it.
        let takes_place =
            |option: &MptcpOption| matches!(option, MptcpOption::AddAddress { .. } | MptcpOption::Experimental { .. });
        let owes_data_ack = was_due && dss.is_none() && options.as_ref().is_some_and(takes_place);
        let space = dss.as_ref().map_or(0, Dss::encoded_len) + options.as_ref().map_or(0, MptcpOption::encoded_len);
        let window = self.receiver.offer_window();
        let (subflow, cx) = self.subflow_in_context(now, index)?;
        let mut segment = subflow.acknowledgement(&cx, window, space);
        // A bare acknowledgement is all there is: what did not fit does not hold it back.
        subflow.receiver.acknowledged(true);
        if owes_data_ack {
            subflow.receiver.acknowledge_now();
        }
        segment.options.dss = dss;
        self.association.dss_sent |= segment.options.dss.is_some();
        segment.options.mptcp.extend(options);
        Some(packet(local, remote, segment))
    }

    fn acknowledgement_options(&mut self, index: usize) -> (Option<Dss>, Option<MptcpOption>) {
        if let Some(proof) = self.join_proof(index) {
            return (None, Some(proof));
        }
        let control = self.subflows.get_mut(index).and_then(|subflow| subflow.control.pop());
        if self.association.protocol != Protocol::Multipath {
            return (None, control.filter(|option| matches!(option, MptcpOption::Fail { .. })));
        }
        let data_ack = Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false };
        if let Some(option) = control {
            let stamps = if self.subflows.get(index).is_some_and(|s| s.negotiated.timestamps) { 12 } else { 0 };
            // ADD_ADDR and its echo go alone, as Linux sends them: with IPv6 there is no room for more.
            let fits = stamps + option.encoded_len() + data_ack.encoded_len() <= OPTION_SPACE;
            let alone = !fits || matches!(option, MptcpOption::AddAddress { .. });
            return ((!alone).then_some(data_ack), Some(option));
        }
        // A DATA_FIN does not fit beside the keys: it follows them.
        let end_waits = self.subflows.get(index).is_some_and(|s| s.due.data_fin && s.receiver.due != AckDue::Now);
        let keys_wait = self.role == Role::Client
            && !self.association.confirmed
            && self.is_initial(index)
            && self.sender.data_nxt == 0;
        if keys_wait && !end_waits {
            let keys = CapableKeys::Both { sender: self.identity.keys.local.0, receiver: self.identity.keys.remote.0 };
            return (None, Some(MptcpOption::Capable { version: VERSION, flags: self.capable_flags(), keys }));
        }
        let fin = self.subflows.get_mut(index).is_some_and(|subflow| subflow.due.take_data_fin());
        if fin && self.life.write_closed() && self.sender.all_assigned() {
            return (Some(self.data_fin_signal(data_ack)), None);
        }
        (Some(data_ack), None)
    }

    /// A DATA_FIN without data: subflow sequence 0, length 1 (RFC 8684, section 3.3.3).
    fn data_fin_signal(&self, data_ack: Dss) -> Dss {
        let number = self.identity.wire_data_seq(self.sender.buffer.end());
        let checksum = self.association.checksum.then(|| dss_checksum(number, 0, 1, []));
        let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq: 0, length: 1, checksum };
        Dss { mapping: Some(mapping), data_fin: true, ..data_ack }
    }
}
