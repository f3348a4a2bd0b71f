//! Converts data sequence numbers and mappings between wire format and stream offsets (RFC 8684, section 3.3).

use super::checksum::is_right;
use super::resolved::Resolved;
use super::state::Connection;
use super::subflows::Handle;
use anabranch_wire::Segment;
use anabranch_wire::mptcp::{CapableKeys, DataAck, DataSequence, Mapping};

/// A subflow may store one mapping for this many bytes of the receive buffer, ...
const BYTES_PER_MAPPING: u64 = 256;
/// ... but always this many, ...
const LEAST_STORED: usize = 512;
/// ... and at most this many: each takes 16 bytes.
const MOST_STORED: usize = 65_536;

/// Weight of a segment without a mapping if it is the one expected next: the subflow cannot continue without it, and a
/// peer with little data repeats it only once per timeout.
pub(super) const EXPECTED_NEXT: u8 = 8;

impl Connection {
    /// Our DATA_ACK, in the size that the peer expects.
    pub(super) fn wire_data_ack(&self) -> DataAck {
        let offset = self.receiver.buffer.next() + u64::from(self.receiver.buffer.at_end());
        let number = self.identity.remote.data_seq(offset);
        if self.association.long_data_ack { DataAck::Long(number) } else { DataAck::Short(number as u32) }
    }

    /// The offset in our stream of a DATA_ACK. A 32-bit one is taken as the nearest to the outstanding data; one before
    /// the beginning of the stream counts as its beginning.
    pub(super) fn data_ack_offset(&self, ack: DataAck) -> u64 {
        let base = self.identity.local.data_seq(0);
        let near = self.sender.una();
        match ack {
            DataAck::Long(number) => {
                let offset = number.wrapping_sub(base);
                if offset > u64::MAX / 2 { 0 } else { offset }
            }
            DataAck::Short(number) => near_offset(near, number.wrapping_sub(base as u32)),
        }
    }

    /// The offset in the peer's stream at which a mapping begins. One before the beginning wraps around, and lies out of
    /// any window.
    fn data_seq_offset(&self, data_seq: DataSequence) -> u64 {
        let base = self.identity.remote.data_seq(0);
        match data_seq {
            DataSequence::Long(number) => number.wrapping_sub(base),
            DataSequence::Short(number) => {
                let next = self.receiver.buffer.next();
                let low = number.wrapping_sub(base as u32);
                next.wrapping_add_signed(i64::from(low.wrapping_sub(next as u32) as i32))
            }
        }
    }

    /// The offset in the stream of a segment's payload, by its DSS.
    pub(super) fn mapped_to(&self, handle: Handle, segment: &Segment) -> Option<u64> {
        let mapping = segment.options.dss.as_ref()?.mapping?;
        let begins = self.subflows[handle].peer.initial + mapping.subflow_seq;
        let ahead = i64::from(segment.seq.distance(begins));
        self.data_seq_offset(mapping.data_seq).checked_add_signed(ahead)
    }

    /// The mapping of a segment, from DSS or from MP_CAPABLE with data, which has both keys and is of the initial
    /// subflow.
    pub(super) fn mapping_of(&mut self, handle: Handle, segment: &Segment) -> Option<Resolved> {
        let subflow_initial = self.subflows[handle].peer.initial;
        if let Some(dss) = &segment.options.dss {
            let wire = dss.mapping?;
            self.association.long_data_ack |= matches!(wire.data_seq, DataSequence::Long(_));
            return Some(Resolved {
                seq: subflow_initial + wire.subflow_seq,
                length: u32::from(wire.length).saturating_sub(u32::from(dss.data_fin)),
                data_seq: self.data_seq_offset(wire.data_seq),
                wire,
                data_fin: dss.data_fin,
            });
        }
        let capable = segment.options.mptcp.iter().find_map(super::opening::usable_capable)?;
        let CapableKeys::BothWithData { sender, receiver, length, checksum } = capable.1 else { return None };
        let keys = &self.identity.keys;
        if (sender, receiver) != (keys.remote.0, keys.local.0) || !self.is_initial(handle) {
            return None;
        }
        // It implies the peer's initial number, with all 64 bits (as in Linux).
        self.association.long_data_ack = true;
        let data_seq = DataSequence::Long(self.identity.remote.data_seq(0));
        Some(Resolved {
            seq: subflow_initial + 1,
            length: u32::from(length),
            data_seq: 0,
            wire: Mapping { data_seq, subflow_seq: 1, length, checksum },
            data_fin: false,
        })
    }

    /// The checksum of a DATA_FIN without data covers only its pseudo-header (RFC 8684, section 3.3.3).
    pub(super) fn is_verified_alone(&self, mapping: &Resolved) -> bool {
        let number = self.identity.remote.data_seq(mapping.data_seq);
        mapping.length > 0 || is_right(&mapping.wire, number, [])
    }

    /// Stores a mapping for later segments. Returns false if there is no space, which never happens to that of the byte
    /// expected next.
    pub(super) fn store(&mut self, handle: Handle, mapping: &Resolved) -> bool {
        let most = self.receiver.buffer.size() / BYTES_PER_MAPPING;
        let most = usize::try_from(most).unwrap_or(usize::MAX).clamp(LEAST_STORED, MOST_STORED);
        let subflow = &mut self.subflows[handle];
        subflow.mappings.store(mapping.to_store(), subflow.receiver.next, most)
    }
}

/// The 64-bit offset nearest to `near` with the lower 32 bits `low`; 0 if that would be negative.
pub(super) fn near_offset(near: u64, low: u32) -> u64 {
    let ahead = i64::from(low.wrapping_sub(near as u32) as i32);
    u64::try_from(i64::try_from(near).unwrap_or(i64::MAX).saturating_add(ahead)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::near_offset;

    #[test]
    fn short_numbers_resolve_to_the_nearest_long_one() {
        assert_eq!(near_offset(0, 5), 5);
        assert_eq!(near_offset(10, 5), 5);
        assert_eq!(near_offset(0x1_0000_0000, 0xffff_fff0), 0xffff_fff0);
        assert_eq!(near_offset(0xffff_fff0, 0x10), 0x1_0000_0010);
        assert_eq!(near_offset(3, 0xffff_fff0), 0);
    }
}
