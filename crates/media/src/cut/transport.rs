//! Cuts a transport stream (ISO 13818-1) into PES packets: the packets of 188 bytes that carry one form a piece, and
//! tables are pieces of their own.
//!
//! A PES packet of unknown length, as for pictures, is complete when the next one of its elementary stream begins.
//! Packets of different elementary streams are no longer interleaved, so that pieces can be handed over separately:
//! their order within each stream, which is all that decoders of files and pipes use, is kept.

use super::pictures::{self, Picture, start_code};
use super::times::Times;
use super::{CutCounters, MOST, Piece};
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL};
use std::collections::BTreeMap;

pub const PACKET: usize = 188;
/// First byte of a packet.
const SYNC: u8 = 0x47;
/// Consecutive packets that identify a transport stream.
const IN_STEP: usize = 3;
/// The program association table.
const PAT: u16 = 0;
/// Null packets.
const NULL: u16 = 0x1fff;
/// Bytes of packets outside of PES packets that form a piece: tables are shorter, and unknown data is passed on in
/// small pieces.
const TABLES: usize = 7 * PACKET;
/// Limit of elementary streams; packets of others are passed on like tables.
const STREAMS: usize = 64;

/// Where packets begin, if there are several consecutive ones.
pub(crate) fn aligned(bytes: &[u8]) -> Option<usize> {
    (0..PACKET).find(|at| in_step(bytes, *at))
}

/// Whether consecutive packets begin there.
fn in_step(bytes: &[u8], at: usize) -> bool {
    (0..IN_STEP).all(|packet| bytes.get(at + packet * PACKET) == Some(&SYNC))
}

/// Bytes to skip if no packet begins here: without synchronisation, or a packet marked as erroneous.
pub(super) fn skipped(rest: &[u8]) -> usize {
    if rest.first() == Some(&SYNC) {
        return PACKET;
    }
    let after = rest.get(PACKET..).unwrap_or_default();
    if let Some(at) = aligned(after) {
        return at + PACKET;
    }
    // Each further byte brings one more candidate into range; the others were examined.
    let tells = |skip: &usize| rest.get(*skip) == Some(&SYNC) || in_step(after, skip + PACKET - 1);
    (1..=rest.len().saturating_sub(PACKET))
        .find(tells)
        .unwrap_or_else(|| (rest.len() + 1).saturating_sub(PACKET).max(1))
}

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHead {
    /// Packet identifier.
    pub pid: u16,
    /// Whether a PES packet or a section begins in it.
    pub starts: bool,
    /// Whether the elementary stream claims to be decodable from here on.
    pub random_access: bool,
    /// Start of its payload, if it has one.
    pub payload: Option<usize>,
}

impl PacketHead {
    /// `None` without the sync byte, with the error bit, or with invalid fields.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let [sync, high, low, flags, ..] = *packet else { return None };
        if sync != SYNC || high & 0x80 != 0 || packet.len() != PACKET {
            return None;
        }
        let (adapted, carries) = (flags & 0x20 != 0, flags & 0x10 != 0);
        let length = if adapted { usize::from(*packet.get(4)?) + 1 } else { 0 };
        let payload = 4 + length;
        if payload > PACKET || carries && payload == PACKET {
            return None;
        }
        Some(Self {
            pid: u16::from(high & 0x1f) << 8 | u16::from(low),
            starts: high & 0x40 != 0,
            random_access: adapted && length > 1 && packet.get(5)? & 0x40 != 0,
            payload: carries.then_some(payload),
        })
    }
}

/// The coding of an elementary stream according to its program's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coding {
    Mpeg2,
    Mpeg4,
    H264,
    H265,
    /// Sound, subtitles and everything else.
    Other,
}

/// A PES packet being collected.
#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    /// The first bytes of its elementary stream, enough to read the picture type.
    head: Vec<u8>,
    random_access: bool,
    /// Bytes still missing, if the length is known.
    left: Option<usize>,
}

/// Bytes of an elementary stream examined for a picture, after parameters and supplementary information.
const LOOKED_AT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Transport {
    waiting: Vec<u8>,
    /// Program map tables.
    maps: Vec<u16>,
    codings: BTreeMap<u16, Coding>,
    open: BTreeMap<u16, Open>,
    /// Packets outside of PES packets since the last piece.
    tables: Vec<u8>,
    times: Times,
    counters: CutCounters,
}

impl Transport {
    pub(super) fn counters(&self) -> CutCounters {
        self.counters
    }

    pub(super) fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) {
        self.waiting.extend_from_slice(bytes);
        let waiting = core::mem::take(&mut self.waiting);
        let mut rest = waiting.as_slice();
        while rest.len() >= PACKET {
            let (packet, after) = rest.split_at(PACKET);
            match PacketHead::read(packet) {
                Some(head) => {
                    self.packet(head, packet, pieces);
                    rest = after;
                }
                None => {
                    let skip = skipped(rest);
                    self.counters.skipped_bytes += skip as u64;
                    rest = rest.get(skip..).unwrap_or_default();
                }
            }
        }
        self.waiting = rest.to_vec();
    }

    pub(super) fn finish(&mut self, pieces: &mut Vec<Piece>) {
        self.counters.skipped_bytes += self.waiting.len() as u64;
        self.waiting.clear();
        let pids: Vec<u16> = self.open.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.close(pid, pieces));
        self.close_tables(pieces);
    }

    fn packet(&mut self, head: PacketHead, packet: &[u8], pieces: &mut Vec<Piece>) {
        if head.pid == NULL {
            self.counters.null_packets += 1;
            return;
        }
        let payload = head.payload.and_then(|at| packet.get(at..)).unwrap_or_default();
        if head.pid == PAT {
            self.read_programs(payload, head.starts);
        } else if self.maps.contains(&head.pid) {
            self.read_map(payload, head.starts);
        }
        let begins = head.starts && payload.starts_with(&[0, 0, 1]) && !self.maps.contains(&head.pid);
        if begins {
            self.close(head.pid, pieces);
            self.close_tables(pieces);
            if self.open.len() < STREAMS {
                self.open.insert(head.pid, Open::new(head.random_access, payload));
            }
        }
        let Some(open) = self.open.get_mut(&head.pid) else {
            self.tables.extend_from_slice(packet);
            if self.tables.len() >= TABLES {
                self.close_tables(pieces);
            }
            return;
        };
        open.take(packet, payload);
        if open.left == Some(0) || open.bytes.len() + PACKET > MOST {
            self.close(head.pid, pieces);
        }
    }

    /// The PES packet of an elementary stream is complete.
    fn close(&mut self, pid: u16, pieces: &mut Vec<Piece>) {
        let Some(open) = self.open.remove(&pid) else { return };
        if open.bytes.is_empty() {
            return;
        }
        let stamp = pes_stamp(&open.head).map(|stamp| self.times.of(pid, stamp));
        let coding = self.codings.get(&pid).copied().unwrap_or(Coding::Other);
        let picture = picture(coding, pes_payload(&open.head));
        if picture.is_none() && coding != Coding::Other {
            self.counters.unknown_pictures += 1;
        }
        let unknown = match coding {
            Coding::Other => ESSENTIAL,
            _ if open.random_access => ESSENTIAL,
            _ => DEPENDED_ON,
        };
        pieces.push(Piece {
            bytes: open.bytes,
            picture: picture.map(|picture| picture.frame_type),
            importance: picture.map_or(unknown, Picture::importance),
            time: stamp.or(self.times.latest()),
        });
    }

    fn close_tables(&mut self, pieces: &mut Vec<Piece>) {
        if !self.tables.is_empty() {
            let bytes = core::mem::take(&mut self.tables);
            pieces.push(Piece { bytes, picture: None, importance: 0, time: self.times.latest() });
        }
    }

    /// The program association table (2.4.4.3) lists the tables of programs.
    fn read_programs(&mut self, payload: &[u8], starts: bool) {
        let Some(section) = section(payload, starts, 0x00) else { return };
        let programs = section.get(8..section.len().saturating_sub(4)).unwrap_or_default();
        let map = |entry: &[u8]| {
            let [p0, p1, high, low] = *entry else { return None };
            // Program 0 is the network information.
            (p0 != 0 || p1 != 0).then(|| u16::from(high & 0x1f) << 8 | u16::from(low))
        };
        self.maps = programs.chunks(4).filter_map(map).take(STREAMS).collect();
    }

    /// A program map table (2.4.4.8) lists elementary streams.
    fn read_map(&mut self, payload: &[u8], starts: bool) {
        let Some(section) = section(payload, starts, 0x02) else { return };
        let length = |at: usize| match section.get(at..at + 2) {
            Some([high, low]) => usize::from(high & 0x0f) << 8 | usize::from(*low),
            _ => 0,
        };
        let mut at = 12 + length(10);
        while at + 5 <= section.len().saturating_sub(4) {
            let Some([kind, high, low]) = section.get(at..at + 3) else { return };
            let coding = match kind {
                0x01 | 0x02 => Coding::Mpeg2,
                0x10 => Coding::Mpeg4,
                0x1b => Coding::H264,
                0x24 => Coding::H265,
                _ => Coding::Other,
            };
            let pid = u16::from(high & 0x1f) << 8 | u16::from(*low);
            if self.codings.len() < STREAMS || self.codings.contains_key(&pid) {
                self.codings.insert(pid, coding);
            }
            at += 5 + length(at + 3);
        }
    }
}

impl Open {
    fn new(random_access: bool, payload: &[u8]) -> Self {
        let length = match payload {
            [_, _, _, _, high, low, ..] => usize::from(*high) << 8 | usize::from(*low),
            _ => 0,
        };
        Self { bytes: Vec::new(), head: Vec::new(), random_access, left: (length > 0).then_some(length + 6) }
    }

    fn take(&mut self, packet: &[u8], payload: &[u8]) {
        self.bytes.extend_from_slice(packet);
        let room = LOOKED_AT.saturating_sub(self.head.len());
        self.head.extend(payload.iter().take(room));
        self.left = self.left.map(|left| left.saturating_sub(payload.len()));
    }
}

/// A section that is complete in this packet, from its table id on.
fn section(payload: &[u8], starts: bool, table: u8) -> Option<&[u8]> {
    let pointer = usize::from(*payload.first().filter(|_| starts)?);
    let section = payload.get(1 + pointer..)?;
    let [id, high, low, ..] = *section else { return None };
    let length = usize::from(high & 0x0f) << 8 | usize::from(low);
    section.get(..3 + length).filter(|_| id == table)
}

/// The decoding time stamp of a PES packet, or else its presentation time stamp (2.4.3.7).
fn pes_stamp(pes: &[u8]) -> Option<u64> {
    let flags = *pes.get(7)?;
    // Only packets of pictures, sound and a few others have this header: it begins with `10`.
    if pes.get(6)? >> 6 != 2 || flags & 0x80 == 0 {
        return None;
    }
    let at = if flags & 0xc0 == 0xc0 { 14 } else { 9 };
    let [a, b, c, d, e] = *pes.get(at..at + 5)?.first_chunk::<5>()?;
    let [a, b, c, d, e] = [a, b, c, d, e].map(u64::from);
    Some((a >> 1 & 7) << 30 | b << 22 | c >> 1 << 15 | d << 7 | e >> 1)
}

/// The elementary stream data of a PES packet.
fn pes_payload(pes: &[u8]) -> &[u8] {
    let header = pes.get(8).map_or(0, |length| 9 + usize::from(*length));
    pes.get(header..).unwrap_or_default()
}

/// The first picture in elementary stream data.
fn picture(coding: Coding, bytes: &[u8]) -> Option<Picture> {
    let mut from = 0;
    while let Some(at) = start_code(bytes, from) {
        let unit = bytes.get(at + 3..)?;
        let (code, rest) = unit.split_first()?;
        let found = match coding {
            Coding::Mpeg2 if *code == 0 => pictures::mpeg2_picture(rest),
            Coding::Mpeg4 if *code == 0xb6 => pictures::mpeg4_plane(rest),
            Coding::H264 => pictures::h264_slice(unit).map(|(_, picture)| picture),
            Coding::H265 => pictures::h265_unit(unit),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        from = at + 3;
    }
    None
}
