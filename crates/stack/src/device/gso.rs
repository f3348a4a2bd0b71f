//! Generic segmentation offload: consecutive segments of one subflow go to the device as one long packet, which the kernel or
//! the network card segments again.
//!
//! Segmentation copies the options onto each segment, so the mapping must be that of the whole packet, as in packets of
//! Linux itself. Segments whose mappings cannot be merged, because they are not consecutive in the stream or have
//! checksums, are sent alone.

use super::virtio::{LENGTH, Offload};
use anabranch_mptcp::JoinedSegments;
use anabranch_wire::mptcp::{DataSequence, Dss, Mapping};
use anabranch_wire::{EmitError, Flags, Packet, Segment};
use bytes::Bytes;
use std::io::IoSlice;
use std::net::SocketAddr;

/// Limit of segments in a GSO packet.
const MAX_SEGMENTS: usize = 64;
/// Limit of memory pieces of a GSO packet: headers and payloads.
pub(super) const MAX_PIECES: usize = MAX_SEGMENTS + 1;

/// Bytes of the largest IP packet.
const LARGEST: usize = 65_535;

/// Segments that are sent as one packet.
pub(super) struct GsoPacket {
    /// The first segment, whose mapping and flags grow with the packet; its payload is the first of `payloads`.
    head: Packet,
    payloads: Vec<Bytes>,
    /// Bytes of all payloads.
    length: usize,
    /// Bytes of payload of each segment but the last.
    segment: usize,
    /// No segment can follow.
    complete: bool,
}

impl GsoPacket {
    /// One segment.
    pub(super) fn new(mut packet: Packet) -> Self {
        let payload = std::mem::take(&mut packet.segment.payload);
        let (length, complete) = (payload.len(), !may_be_followed(&packet.segment));
        let mut payloads = Vec::with_capacity(if complete { 1 } else { MAX_SEGMENTS });
        payloads.push(payload);
        Self { head: packet, payloads, length, segment: length, complete }
    }

    /// The merged segments, for the engine; none for a single segment or plain TCP.
    pub(super) fn joined_segments(&self) -> Option<JoinedSegments> {
        let segment = &self.head.segment;
        let dss = segment.options.dss.filter(|dss| dss.mapping.is_some() && self.payloads.len() > 1)?;
        Some(JoinedSegments {
            local: SocketAddr::new(self.head.ip.source, segment.source_port),
            remote: SocketAddr::new(self.head.ip.destination, segment.destination_port),
            seq: segment.seq,
            length: self.length as u32,
            data_fin: dss.data_fin,
        })
    }

    /// Whether the packet belongs to the same subflow.
    pub(super) fn is_of_flow(&self, packet: &Packet) -> bool {
        let (ours, theirs) = (&self.head, packet);
        ours.segment.source_port == theirs.segment.source_port
            && ours.segment.destination_port == theirs.segment.destination_port
            && ours.ip.source == theirs.ip.source
            && ours.ip.destination == theirs.ip.destination
    }

    /// Whether there is no payload.
    pub(super) fn is_bare(&self) -> bool {
        self.length == 0
    }

    /// Number of packets merged.
    pub(super) fn packets(&self) -> usize {
        self.payloads.len()
    }

    /// Length of the merged IP packets in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.length + self.packets() * (self.head.ip.encoded_len() + self.head.segment.header_len())
    }

    /// Adds a packet of the same subflow, and takes its payload; returns false if it does not continue this one.
    pub(super) fn push(&mut self, packet: &mut Packet) -> bool {
        let Some(dss) = self.joined(packet) else { return false };
        let length = packet.segment.payload.len();
        self.head.segment.options.dss = dss;
        self.head.segment.flags |= packet.segment.flags;
        self.complete = length < self.segment || dss.is_some_and(|dss| dss.data_fin);
        self.length += length;
        self.payloads.push(std::mem::take(&mut packet.segment.payload));
        true
    }

    /// The DSS of the GSO packet extended by this packet, if it can be.
    fn joined(&self, packet: &Packet) -> Option<Option<Dss>> {
        let (head, next) = (&self.head.segment, &packet.segment);
        let length = next.payload.len();
        let fits = !self.complete
            && (1..=self.segment).contains(&length)
            && self.payloads.len() < MAX_SEGMENTS
            && self.head.ip.encoded_len() + head.header_len() + self.length + length <= LARGEST;
        let same = self.head.ip == packet.ip
            && next.seq == head.seq + self.length as u32
            && next.ack == head.ack
            && next.window == head.window
            && without_push(next.flags) == without_push(head.flags)
            && next.options.timestamps == head.options.timestamps
            && next.options.sack.is_empty()
            && next.options.mptcp.is_empty();
        if !fits || !same {
            return None;
        }
        match (&head.options.dss, &next.options.dss) {
            (None, None) => Some(None),
            (Some(first), Some(second)) => join(first, second, self.length, length).map(Some),
            _ => None,
        }
    }

    /// Writes the headers, and passes the pieces of the whole packet to `write`.
    ///
    /// # Errors
    /// [`EmitError`] if a header cannot be written.
    pub(super) fn emit<T>(&self, out: &mut Vec<u8>, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> Result<T, EmitError> {
        out.clear();
        out.extend_from_slice(&[0; LENGTH]);
        self.head.emit_for_offload(self.length, out)?;
        let ip_header = self.head.ip.encoded_len();
        let segment = (self.payloads.len() > 1).then_some(self.segment as u16);
        let offload = Offload { ip_header, headers: ip_header + self.head.segment.header_len(), segment };
        for (place, byte) in out.iter_mut().zip(offload.encode()) {
            *place = byte;
        }
        let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
        let parts = std::iter::once(out.as_slice()).chain(self.payloads.iter().map(|payload| payload.as_ref()));
        let mut count = 0;
        for (place, part) in pieces.iter_mut().zip(parts) {
            *place = IoSlice::new(part);
            count += 1;
        }
        Ok(write(pieces.get(..count).unwrap_or_default()))
    }
}

/// Whether a GSO packet can begin with this segment, apart from its payload: it has nothing that applies to it alone.
fn may_be_followed(segment: &Segment) -> bool {
    let joinable = |dss: &Dss| {
        !dss.data_fin && dss.mapping.is_some_and(|mapping| mapping.checksum.is_none() && mapping.length > 0)
    };
    without_push(segment.flags) == Flags::ACK
        && segment.options.sack.is_empty()
        && segment.options.mptcp.is_empty()
        && segment.options.dss.as_ref().is_none_or(joinable)
}

fn without_push(flags: Flags) -> Flags {
    Flags(flags.0 & !Flags::PSH.0)
}

/// The DSS for `first_length` bytes under `first` and `length` under `second`, if they are one range of the stream.
fn join(first: &Dss, second: &Dss, first_length: usize, length: usize) -> Option<Dss> {
    let (one, other) = (first.mapping?, second.mapping?);
    let continues = match (one.data_seq, other.data_seq) {
        (DataSequence::Long(from), DataSequence::Long(to)) => from.wrapping_add(first_length as u64) == to,
        (DataSequence::Short(from), DataSequence::Short(to)) => from.wrapping_add(first_length as u32) == to,
        _ => false,
    };
    let own = |mapping: &Mapping, length: usize, dss: &Dss| {
        usize::from(mapping.length) == length + usize::from(dss.data_fin) && mapping.checksum.is_none()
    };
    let fits = continues
        && first.data_ack == second.data_ack
        && one.subflow_seq.wrapping_add(first_length as u32) == other.subflow_seq
        && own(&one, first_length, first)
        && own(&other, length, second);
    let total = one.length.checked_add(other.length)?;
    fits.then_some(Dss { mapping: Some(Mapping { length: total, ..one }), data_fin: second.data_fin, ..*first })
}

#[cfg(test)]
mod tests;
