//! Shared mappings: one mapping for consecutive segments of a subflow, which only the first carries (RFC 8684, section
//! 3.3.1).
//!
//! Queued new data that continues other queued data reserves no space for a mapping. When the first record leaves, its
//! mapping covers all records queued by then, which are from then on bound to these sequence numbers; until then they
//! can be taken back. A retransmission uses the mapping of the first transmission.

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::MAPPING_SPACE;
use crate::subflow::scoreboard::{Departing, Place};
use anabranch_policy::ids::SubflowId;

/// Limit of bytes under one mapping, whose length has 16 bits and includes a DATA_FIN.
const MOST_BYTES: u32 = 65_534;

impl Connection {
    /// The place of the next new data in a shared mapping on this subflow; none if mappings are not to be shared.
    pub(super) fn place_under_mapping(&mut self, id: SubflowId) -> Option<Place> {
        let most = self.scheduling.needs.segments_per_mapping.min(u32::from(u8::MAX));
        let multipath = self.association.protocol == Protocol::Multipath
            && self.association.confirmed
            && !self.association.checksum;
        if most <= 1 || !multipath {
            return None;
        }
        let data_seq = self.sender.data_nxt;
        let arrived = (self.receiver.buffer.next() + self.receiver.buffer.out_of_order()) as u32;
        let subflow = self.subflow_mut(id).filter(|subflow| subflow.may_share_mappings())?;
        let most = most.min(MOST_BYTES / (subflow.mss + MAPPING_SPACE));
        Some(subflow.scoreboard.next_place(data_seq, arrived, most))
    }

    /// Assigns new data to a subflow. If it continues queued data there, it may be as long as a segment without a
    /// mapping, otherwise `length`.
    pub(super) fn put_under_mapping(&mut self, id: SubflowId, mut length: u64, place: Place) -> bool {
        let Some(most) = self.subflow_mut(id).map(|subflow| subflow.mss + MAPPING_SPACE) else { return false };
        if place.number > 0 {
            length = self.next_length(most).map_or(length, |longer| longer.max(length));
        }
        let data_seq = self.sender.data_nxt;
        let Some(payload) = self.sender.buffer.slice(data_seq, length as usize) else { return false };
        self.advance_data_nxt(data_seq + payload.len() as u64);
        if let Some(subflow) = self.subflow_mut(id) {
            subflow.push_under_mapping(data_seq, payload, place);
        }
        true
    }

    /// A record is sent for the first time: its mapping covers the records queued after it in the same shared mapping.
    pub(super) fn bind_to_mapping(&mut self, handle: Handle, record: &mut Departing) {
        let (closed, end) = (self.life.write_closed(), self.sender.buffer.end());
        let multipath = self.association.protocol == Protocol::Multipath;
        if multipath && record.joined.is_none() {
            record.joined = self.subflows[handle].scoreboard.bind_to_mapping(|last| closed && last == end);
        }
    }
}
