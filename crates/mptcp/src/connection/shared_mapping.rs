//! Trains: consecutive segments of a subflow under one mapping, which only the first carries (RFC 8684, section 3.3.1).
//!
//! New data that waits on a subflow, behind data that it continues, has no room reserved for a mapping. When the first of
//! them leaves, its mapping is for all that is there then. From that moment these bytes must follow under these
//! sequence numbers; until then they can be taken back. Sent again, a segment goes as it went at first.

use super::association::Protocol;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::MAPPING_SPACE;
use crate::subflow::scoreboard::{Departing, Place};
use anabranch_policy::ids::SubflowId;

/// Most bytes under one mapping: its length has 16 bits, and DATA_FIN takes one.
const MOST_BYTES: u32 = 65_534;

impl Connection {
    /// The place that the next new data takes in a shared mapping on this subflow; none if there are to be none.
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

    /// Returns new data to a subflow; behind what it continues there, `length` or a full segment without a mapping if there
    /// is so much.
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

    /// A record leaves for the first time: if others wait behind it in its shared mapping, its mapping is for them too.
    pub(super) fn bind_to_mapping(&mut self, handle: Handle, record: &mut Departing) {
        let (closed, end) = (self.life.write_closed(), self.sender.buffer.end());
        let multipath = self.association.protocol == Protocol::Multipath;
        if multipath && record.joined.is_none() {
            record.joined = self.subflows[handle].scoreboard.bind_to_mapping(|last| closed && last == end);
        }
    }
}
