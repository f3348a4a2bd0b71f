//! Makes a stream with gaps decodable: only whole packets of a transport stream are passed on, with continuity counters
//! rewritten where whole PES packets are missing, and elementary streams resume at the next unit.

use crate::cut::{Format, PACKET, PacketHead, aligned};
use std::collections::BTreeMap;

/// Bytes examined to detect the format.
const LOOKED_AT: usize = 64 * 1024;

/// Counters of repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MendCounters {
    /// Gaps.
    pub gaps: u64,
    /// Bytes that arrived but are unusable: packets and units damaged by a gap.
    pub torn_bytes: u64,
}

/// Repairs a stream of bytes with gaps. Offsets count from 0 at the start of the stream.
#[derive(Debug, Default)]
pub struct Mender {
    /// Bytes that are not passed on yet.
    waiting: Vec<u8>,
    format: Option<Format>,
    /// Detection has failed.
    unknown: bool,
    /// Offset of packets of a transport stream, modulo their length.
    step: u64,
    /// Offset of the next byte.
    next: u64,
    /// After a gap: nothing is passed on before the next unit or packet.
    torn: bool,
    counters: MendCounters,
}

/// There is a gap in a stream of unknown format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "what comes in is neither MPEG-TS nor a raw H.264 or MPEG-4 stream: where something is missing it cannot go on"
)]
pub struct CannotMend;

impl Mender {
    /// The format, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    pub fn counters(&self) -> MendCounters {
        self.counters
    }

    /// Takes more bytes; returns those that can be passed on.
    pub fn bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        let begin = self.next - self.waiting.len() as u64;
        self.next += bytes.len() as u64;
        self.waiting.extend_from_slice(bytes);
        if self.format.is_none() && !self.unknown {
            self.format = Format::detect(&self.waiting);
            self.unknown = self.format.is_none() && self.waiting.len() >= LOOKED_AT;
            if self.format == Some(Format::TransportStream) {
                let at = aligned(&self.waiting).unwrap_or(0);
                self.step = (begin + at as u64) % PACKET as u64;
                self.tear(at);
            }
        }
        match self.format {
            Some(Format::TransportStream) => self.packets(),
            Some(_) => self.units(),
            None if self.unknown => core::mem::take(&mut self.waiting),
            None => Vec::new(),
        }
    }

    /// Records a gap of `length` bytes.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn gap(&mut self, length: u64) -> Result<(), CannotMend> {
        self.counters.gaps += 1;
        self.next += length;
        let format = self.format.ok_or(CannotMend)?;
        if format == Format::TransportStream {
            self.tear(self.waiting.len());
        }
        self.torn = true;
        Ok(())
    }

    /// The input has ended; returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        if self.torn || self.format == Some(Format::TransportStream) {
            self.tear(self.waiting.len());
        }
        core::mem::take(&mut self.waiting)
    }

    /// Drops the first pending bytes as damaged.
    fn tear(&mut self, bytes: usize) {
        let bytes = bytes.min(self.waiting.len());
        self.counters.torn_bytes += bytes as u64;
        self.waiting.drain(..bytes);
    }

    fn packets(&mut self) -> Vec<u8> {
        if self.torn {
            let begin = self.next - self.waiting.len() as u64;
            let packet = PACKET as u64;
            let until = (self.step + packet - begin % packet) % packet;
            if (self.waiting.len() as u64) < until {
                return Vec::new();
            }
            self.tear(until as usize);
            self.torn = false;
        }
        let whole = self.waiting.len() / PACKET * PACKET;
        let rest = self.waiting.split_off(whole);
        core::mem::replace(&mut self.waiting, rest)
    }

    fn units(&mut self) -> Vec<u8> {
        if self.torn {
            let code = self.waiting.windows(3).position(|three| three == [0, 0, 1]);
            // A start code may begin in the last bytes.
            self.tear(code.unwrap_or(self.waiting.len().saturating_sub(2)));
            self.torn = code.is_none();
        }
        if self.torn { Vec::new() } else { core::mem::take(&mut self.waiting) }
    }
}

/// Rewrites the continuity counters of each elementary stream, so that a decoder sees a continuous stream with pictures
/// left out where whole PES packets are missing. Duplicates stay duplicates.
#[derive(Debug, Default)]
pub struct Continuity {
    /// By packet identifier: the last packet, and the counter that was written into it.
    last: BTreeMap<u16, ([u8; PACKET], u8)>,
}

impl Continuity {
    /// Rewrites the counters of whole packets in place. Other data is unchanged.
    pub fn renumber(&mut self, packets: &mut [u8]) {
        for packet in packets.chunks_exact_mut(PACKET) {
            let Some(head) = PacketHead::read(packet) else { continue };
            let Ok(came) = <[u8; PACKET]>::try_from(&*packet) else { continue };
            let given = match self.last.get(&head.pid) {
                None => came[3] & 0x0f,
                // Only packets with payload count.
                Some((last, given)) if head.payload.is_none_or(|at| is_copy(last, &came, at)) => *given,
                Some((_, given)) => (given + 1) & 0x0f,
            };
            self.last.insert(head.pid, (came, given));
            packet[3] = came[3] & 0xf0 | given;
        }
    }
}

/// Whether a packet is a duplicate of the one before it (2.4.3.3): the same counter and the same payload, which begins
/// at `payload`. The counter alone would also be equal after 15 missing packets.
fn is_copy(last: &[u8; PACKET], packet: &[u8; PACKET], payload: usize) -> bool {
    last[3] == packet[3] && last.get(payload..) == packet.get(payload..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets of one elementary stream, numbered.
    fn packets(count: u8) -> Vec<u8> {
        let packet = |number: u8| {
            let mut packet = vec![0x47, 0x01, 0x00, 0x10 | number & 0x0f];
            packet.resize(PACKET, number);
            packet
        };
        (0..count).flat_map(packet).collect()
    }

    fn numbers(packets: &[u8]) -> Vec<u8> {
        packets.chunks(PACKET).map(|packet| packet[4]).collect()
    }

    fn counters(packets: &[u8]) -> Vec<u8> {
        packets.chunks(PACKET).map(|packet| packet[3] & 0x0f).collect()
    }

    #[test]
    fn a_gap_takes_the_packets_that_it_tears_and_no_others() {
        let stream = packets(10);
        let mut mender = Mender::default();
        let mut out = mender.bytes(&stream[..700]);
        // Bytes 700 to 999 are in packets 3, 4 and 5.
        mender.gap(300).unwrap();
        out.extend(mender.bytes(&stream[1_000..1_100]));
        out.extend(mender.bytes(&stream[1_100..]));
        out.extend(mender.finish());
        assert_eq!(numbers(&out), [0, 1, 2, 6, 7, 8, 9]);
        assert_eq!(mender.counters(), MendCounters { gaps: 1, torn_bytes: (700 - 564) + (1_128 - 1_000) });
        // A gap of whole packets damages none.
        let mut mender = Mender::default();
        let mut out = mender.bytes(&stream[..4 * PACKET]);
        mender.gap(2 * PACKET as u64).unwrap();
        out.extend(mender.bytes(&stream[6 * PACKET..]));
        assert_eq!((numbers(&out), mender.counters().torn_bytes), (vec![0, 1, 2, 3, 6, 7, 8, 9], 0));
    }

    #[test]
    fn a_stream_that_does_not_begin_with_a_packet_is_in_step_behind_a_gap_all_the_same() {
        let stream = [&[1, 2, 3][..], &packets(8)].concat();
        let mut mender = Mender::default();
        let mut out = mender.bytes(&stream[..3 + 4 * PACKET]);
        mender.gap(PACKET as u64 + 50).unwrap();
        out.extend(mender.bytes(&stream[3 + 5 * PACKET + 50..]));
        assert_eq!(numbers(&out), [0, 1, 2, 3, 6, 7]);
        assert_eq!(mender.counters().torn_bytes, 3 + (PACKET as u64 - 50));
    }

    #[test]
    fn an_elementary_stream_goes_on_with_its_next_unit() {
        let mut mender = Mender::default();
        let start = [0, 0, 0, 1, 0x67, 0x42, 9, 9, 9, 0, 0, 1, 0x65, 0x88, 7];
        assert_eq!(mender.bytes(&start), start);
        mender.gap(50).unwrap();
        assert_eq!(mender.bytes(&[5, 5, 0]), []);
        assert_eq!(mender.bytes(&[0, 1, 0x41, 0x9a, 3]), [0, 0, 1, 0x41, 0x9a, 3]);
        assert_eq!(mender.counters(), MendCounters { gaps: 1, torn_bytes: 2 });
    }

    #[test]
    fn what_is_not_known_is_passed_on_and_cannot_have_a_gap() {
        let mut mender = Mender::default();
        let stream = vec![0x1a; LOOKED_AT];
        assert_eq!(mender.bytes(&stream).len(), LOOKED_AT);
        assert_eq!(mender.gap(1), Err(CannotMend));
    }

    #[test]
    fn missing_packets_are_counted_on_and_duplicates_counted_as_often_as_they_came() {
        let stream = packets(20);
        let part = |from: usize, to: usize| stream[from * PACKET..to * PACKET].to_vec();
        let mut left = [part(0, 3), part(2, 3), part(9, 12), part(18, 20)].concat();
        Continuity::default().renumber(&mut left);
        assert_eq!(counters(&left), [0, 1, 2, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn behind_fifteen_packets_that_are_missing_the_next_is_no_copy_of_the_last_though_its_counter_is_the_same() {
        let stream = packets(20);
        let mut left = [&stream[..3 * PACKET], &stream[18 * PACKET..]].concat();
        assert_eq!(counters(&left), [0, 1, 2, 2, 3]);
        Continuity::default().renumber(&mut left);
        assert_eq!(counters(&left), [0, 1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_passed_on_or_counted(
            parts in proptest::collection::vec((0..400_usize, 0..500_u64), 1..30), transport: bool,
        ) {
            let stream = if transport { packets(250) } else { [0, 0, 1, 0x67, 1, 2, 3, 4].repeat(5_000) };
            let (mut mender, mut at, mut came, mut out) = (Mender::default(), 0_usize, 0_usize, 0_usize);
            for (bytes, gap) in parts {
                let part = stream.get(at..(at + bytes).min(stream.len())).unwrap_or_default();
                came += part.len();
                out += mender.bytes(part).len();
                at += part.len();
                if gap > 0 && mender.gap(gap).is_err() {
                    break;
                }
                at += gap as usize;
            }
            out += mender.finish().len();
            prop_assert_eq!(out + mender.counters().torn_bytes as usize, came);
        }
    }
}
