//! The pool of packets in the network: links and queues move 4-byte indices.
//!
//! The fields that links and routers read (destination, length, hop limit, ECN) have a dense array of their own; the
//! TCP segment is touched only where a host sends or receives it. A UDP packet consists only of these fields, or of
//! these and the payload of a session.

use crate::address::InterfaceId;
use crate::link::{Cargo, DropCause};
use crate::trace_hash::Digest;
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss};
use anabranch_wire::{Ecn, Packet, Segment};
use bytes::Bytes;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketId(u32);

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    /// TCP payload.
    Data,
    /// A TCP segment without payload.
    Acknowledgement,
    /// UDP.
    Other,
    /// TCP payload that has been sent before, on this or another subflow; told apart from data only where a world
    /// [marks](crate::World::mark_repeats) it.
    Again,
}

/// The fields that the network reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// Over everything that does not change on the way.
    pub(crate) digest: u64,
    pub(crate) source: InterfaceId,
    pub(crate) destination: InterfaceId,
    /// Whole packet in bytes.
    pub(crate) length: u32,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: Ecn,
    pub(crate) corrupt: bool,
    /// A UDP packet has no segment, only its payload if it belongs to a session.
    pub(crate) is_udp: bool,
    /// Its session, counted from 1; 0: cross traffic.
    pub(crate) session: u16,
    /// Radio hops so far.
    pub(crate) radio_hops: u8,
    /// Its data has been sent before.
    pub(crate) again: bool,
}

impl Header {
    /// For slots that have never held a packet.
    pub(crate) const NOTHING: Self = Self {
        digest: 0,
        source: InterfaceId(0),
        destination: InterfaceId(0),
        length: 0,
        hop_limit: 0,
        ecn: Ecn::NotCapable,
        corrupt: false,
        is_udp: false,
        session: 0,
        radio_hops: 0,
        again: false,
    };

    /// The fields that change on the way, for the trace hash.
    pub(crate) fn changing(&self) -> u32 {
        u32::from(self.hop_limit) | (self.ecn as u32) << 8 | u32::from(self.corrupt) << 16
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    headers: Vec<Header>,
    /// Undefined for UDP packets and in free slots: an old packet stays until it is overwritten, since packets are
    /// expensive to move and clear.
    packets: Vec<Packet>,
    /// The free slot that is used next: there is always one.
    next: u32,
    /// Other free slots.
    free: Vec<u32>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { headers: vec![Header::NOTHING], packets: vec![Packet::default()], next: 0, free: Vec::new() }
    }
}

impl Pool {
    /// The slot where a host writes the next TCP packet, so that it is never moved; free until [`Self::insert`].
    #[inline]
    pub(crate) fn next_place(&mut self) -> &mut Packet {
        &mut self.packets[self.next as usize]
    }
    /// Inserts the packet with this header; a TCP packet is in the next slot already.
    #[inline]
    pub(crate) fn insert(&mut self, header: Header) -> PacketId {
        let place = self.next;
        self.headers[place as usize] = header;
        self.next = self.free.pop().unwrap_or_else(|| self.add_place());
        PacketId(place)
    }
    /// Inserts a UDP packet of a session.
    pub(crate) fn insert_carried(&mut self, header: Header, payload: Bytes) -> PacketId {
        self.next_place().segment.payload = payload;
        self.insert(header)
    }
    /// The header and payload of a session's packet that has just been removed.
    pub(crate) fn take_carried(&mut self, id: PacketId) -> Option<(Header, Bytes)> {
        let header = self.headers[id.0 as usize];
        let payload = &mut self.packets[id.0 as usize].segment.payload;
        (header.session > 0).then(|| (header, core::mem::take(payload)))
    }
    /// The payload of a session's packet.
    pub(crate) fn payload(&self, id: PacketId) -> Bytes {
        self.packets[id.0 as usize].segment.payload.clone()
    }
    /// Adds a slot.
    #[cold]
    fn add_place(&mut self) -> u32 {
        let place = self.packets.len();
        self.headers.push(Header::NOTHING);
        self.packets.push(Packet::default());
        place as u32
    }
    #[inline]
    pub(crate) fn header(&self, id: PacketId) -> &Header {
        &self.headers[id.0 as usize]
    }
    #[inline]
    pub(crate) fn header_mut(&mut self, id: PacketId) -> &mut Header {
        &mut self.headers[id.0 as usize]
    }
    /// Header and contents of a packet in the network.
    pub(crate) fn carried(&self, id: PacketId) -> (&Header, Carried) {
        let header = self.header(id);
        let carried = match (header.is_udp, self.packets[id.0 as usize].segment.payload.is_empty()) {
            (true, _) => Carried::Other,
            (false, true) => Carried::Acknowledgement,
            (false, false) if header.again => Carried::Again,
            (false, false) => Carried::Data,
        };
        (header, carried)
    }
    /// Source and destination port; 0 for UDP, whose ports are not modelled.
    pub(crate) fn ports(&self, id: PacketId) -> u32 {
        let segment = &self.packets[id.0 as usize].segment;
        let ports = u32::from(segment.source_port) << 16 | u32::from(segment.destination_port);
        if self.header(id).is_udp { 0 } else { ports }
    }
    /// The packet in its present state; `None` for UDP.
    pub(crate) fn packet(&self, id: PacketId) -> Option<Packet> {
        let header = self.header(id);
        if header.is_udp {
            return None;
        }
        let mut packet = self.packets[id.0 as usize].clone();
        (packet.ip.hop_limit, packet.ip.ecn) = (header.hop_limit, header.ecn);
        Some(packet)
    }
    /// Removes a packet on arrival; `None` for UDP. It stays in its slot, where the receiver reads it.
    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) -> Option<&mut Packet> {
        self.free.push(id.0);
        let header = &self.headers[id.0 as usize];
        if header.is_udp {
            return None;
        }
        let packet = &mut self.packets[id.0 as usize];
        (packet.ip.hop_limit, packet.ip.ecn) = (header.hop_limit, header.ecn);
        Some(packet)
    }
    /// Packets in the network.
    pub(crate) fn len(&self) -> usize {
        self.headers.len() - self.free.len() - 1
    }
}

impl Cargo for Pool {
    type Item = PacketId;
    fn length(&self, id: &PacketId) -> u32 {
        self.header(*id).length
    }
    fn mark_congestion(&mut self, id: &mut PacketId) -> bool {
        let header = self.header_mut(*id);
        if header.ecn == Ecn::NotCapable {
            return false;
        }
        header.ecn = Ecn::Congestion;
        true
    }
    fn corrupt(&mut self, id: &mut PacketId, _luck: u32) {
        self.header_mut(*id).corrupt = true;
    }
    fn duplicate(&mut self, id: &PacketId) -> PacketId {
        let header = *self.header(*id);
        if !header.is_udp || header.session > 0 {
            *self.next_place() = self.packets[id.0 as usize].clone();
        }
        self.insert(header)
    }
    fn discard(&mut self, id: PacketId, _cause: DropCause) {
        self.free.push(id.0);
        self.packets[id.0 as usize].segment.payload = Bytes::new();
    }
}

/// The digest of all header fields of a TCP packet that do not change on the way, and its payload length. Options
/// beyond those of nearly every segment are first written into `scratch` as bytes.
pub(crate) fn digest_of(packet: &Packet, ends: u64, scratch: &mut Vec<u8>) -> u64 {
    let Segment { source_port, destination_port, seq, ack, flags, window, urgent, options, payload } = &packet.segment;
    let mut digest = Digest::default();
    digest.add(ends);
    digest.add(u64::from(*source_port) << 48 | u64::from(*destination_port) << 32 | u64::from(seq.0));
    digest.add(u64::from(ack.0) << 32 | u64::from(*window) << 16 | u64::from(flags.0) << 8 | u64::from(packet.ip.dscp));
    digest.add(u64::from(*urgent) << 32 | payload.len() as u64);
    if let Some(timestamps) = options.timestamps {
        digest.add(u64::from(timestamps.value) << 32 | u64::from(timestamps.echo));
    }
    for block in options.sack.as_slice() {
        digest.add(u64::from(block.start.0) << 32 | u64::from(block.end.0));
    }
    if let Some(dss) = &options.dss {
        add_dss(&mut digest, dss);
    }
    if options.has_rare() {
        add_bytes(&mut digest, packet, scratch);
    }
    digest.value()
}

#[inline(never)]
fn add_bytes(digest: &mut Digest, packet: &Packet, scratch: &mut Vec<u8>) {
    scratch.clear();
    // A packet that cannot be emitted is counted where it is sent; its other fields suffice here.
    if packet.emit(scratch).is_ok() {
        let header = scratch.len() - packet.segment.payload.len();
        for chunk in scratch[..header].chunks(8) {
            digest.add(chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }
}

fn add_dss(digest: &mut Digest, dss: &Dss) {
    digest.add(match dss.data_ack {
        None => 0,
        Some(DataAck::Short(ack)) => u64::from(ack),
        Some(DataAck::Long(ack)) => ack,
    });
    if let Some(mapping) = &dss.mapping {
        digest.add(match mapping.data_seq {
            DataSequence::Short(seq) => u64::from(seq),
            DataSequence::Long(seq) => seq,
        });
        let checksum = u64::from(mapping.checksum.unwrap_or(0));
        let length = u64::from(mapping.length) << 16;
        digest.add(u64::from(mapping.subflow_seq) << 32 | length | checksum ^ u64::from(dss.data_fin));
    }
}
