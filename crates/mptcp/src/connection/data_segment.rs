//! Writes data segments and the MPTCP option on them: a mapping (DSS), or MP_CAPABLE on the first data of a client.

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::scoreboard::{Departing, Joined};
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{CapableKeys, DataSequence, Dss, Mapping, VERSION, dss_checksum};
use anabranch_wire::{MptcpOption, Segment, SeqNumber};

impl Connection {
    /// Writes the segment of a record into `segment`, whose content is replaced.
    pub(super) fn data_segment(&mut self, now: Instant, handle: Handle, record: Departing, segment: &mut Segment) {
        let initial = self.subflows[handle].send.initial;
        let (dss, capable) = self.data_options(handle, initial, &record);
        let space = dss.as_ref().map_or(0, Dss::encoded_len) + capable.as_ref().map_or(0, MptcpOption::encoded_len);
        // A window counts for the peer only together with a DATA_ACK.
        let bare = space == 0 && self.association.protocol == Protocol::Multipath;
        let window = if bare { self.receiver.buffer.window() } else { self.receiver.offer_window() };
        let push = record.data_end() == self.sender.buffer.end();
        let (subflow, cx) = self.subflow_in_context(now, handle);
        subflow.data_segment(&cx, record, window, (space, push), segment);
        segment.options.dss = dss;
        self.association.dss_sent |= segment.options.dss.is_some();
        segment.options.mptcp.extend(capable);
    }

    /// The MPTCP option of a segment with data or a FIN: DSS, or MP_CAPABLE on the first data of a client until the
    /// peer has shown that it has the keys (RFC 8684, section 3.1).
    fn data_options(
        &mut self,
        handle: Handle,
        initial: SeqNumber,
        record: &Departing,
    ) -> (Option<Dss>, Option<MptcpOption>) {
        if self.subflows[handle].is_bare(record) {
            return (None, None);
        }
        if self.association.protocol != Protocol::Multipath {
            return (self.infinite_mapping(initial, record), None);
        }
        if record.payload.is_empty() {
            return (Some(Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false }), None);
        }
        // At a later sequence number of the subflow it needs a mapping, since MP_CAPABLE implies the first number.
        let in_place = record.seq == initial + 1;
        let first = in_place
            && record.data_seq == 0
            && self.identity.role == Role::Client
            && !self.association.confirmed
            && self.is_initial(handle);
        if first {
            // MP_CAPABLE has no F flag: a DATA_FIN is sent separately.
            let ends = self.life.write_closed() && record.data_end() == self.sender.buffer.end();
            self.subflows[handle].due.data_fin |= ends;
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

    fn mapping_for(&self, initial: SeqNumber, record: &Departing) -> Dss {
        let (before, after, data_fin) = match record.joined {
            // The peer may have part of the mapping under which this data was first sent, which must not change (RFC
            // 8684, section 3.3.1). Linux treats a part of it under another mapping as an error and resets the subflow.
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

    /// The last mapping before plain TCP: length 0 makes it infinite (RFC 8684, section 3.7).
    fn infinite_mapping(&mut self, initial: SeqNumber, record: &Departing) -> Option<Dss> {
        if (record.payload.is_empty() && !record.fin) || !self.association.fallback.goes_with(record.data_seq) {
            return None;
        }
        let data_seq = DataSequence::Long(self.identity.wire_data_seq(record.data_seq));
        let checksum = self.association.checksum.then_some(0);
        let mapping = Mapping { data_seq, subflow_seq: record.seq - initial, length: 0, checksum };
        Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false })
    }
}
