//! Splits frames into packets as in the recPR paper: no packet contains bytes of two frames.

use crate::frame::{ByType, Frame};
use crate::trace::Trace;
use core::num::NonZeroU32;

/// The payload for which the packets of this crate's clip match the paper's number: 1,024 bytes less 12 of header,
/// EvalVid's usual packet.
pub(crate) const PAPER_PAYLOAD: u32 = 1012;

/// A part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Index of the frame in coding order.
    pub frame: u32,
    /// Offset of its first byte in the frame.
    pub offset: u32,
    /// In bytes.
    pub length: u32,
    /// Whether it ends the frame.
    pub last: bool,
}

/// Splits frames into payloads of limited size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packetiser {
    payload: NonZeroU32,
}

impl Default for Packetiser {
    fn default() -> Self {
        Self::new(PAPER_PAYLOAD)
    }
}

impl Packetiser {
    /// `payload` is in bytes, at least 1.
    pub fn new(payload: u32) -> Self {
        Self { payload: NonZeroU32::new(payload).unwrap_or(NonZeroU32::MIN) }
    }

    /// Number of packets of the frame.
    pub const fn count(&self, frame: &Frame) -> u32 {
        frame.size.div_ceil(self.payload.get())
    }

    /// Number of packets of the trace, by type of frame.
    pub fn counts(&self, trace: &Trace) -> ByType<u64> {
        let mut counts = ByType::default();
        for frame in trace.frames() {
            counts[frame.frame_type] += u64::from(self.count(frame));
        }
        counts
    }

    /// The packets of frame `index` of a trace.
    ///
    /// ```
    /// use anabranch_media::{Packet, Packetiser, clip};
    ///
    /// let trace = clip::trace();
    /// let lengths: Vec<u32> = Packetiser::new(200).packets(0, &trace.frames()[0]).map(|packet| packet.length).collect();
    /// assert_eq!(lengths, [200, 87]);
    /// ```
    pub fn packets(&self, index: u32, frame: &Frame) -> impl Iterator<Item = Packet> + use<> {
        let (payload, size, count) = (self.payload.get(), frame.size, self.count(frame));
        (0..count).map(move |packet| {
            let offset = packet * payload;
            Packet { frame: index, offset, length: payload.min(size - offset), last: packet + 1 == count }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameType;
    use crate::trace::FrameRate;

    fn trace(sizes: &[u32]) -> Trace {
        let coded: Vec<_> = sizes.iter().map(|&size| (FrameType::I, size)).collect();
        Trace::at_rate(&coded, FrameRate::new(30, 1).expect("a rate")).expect("a trace")
    }

    #[test]
    fn a_frame_is_cut_into_full_packets_and_a_rest() {
        let trace = trace(&[2500]);
        let packets: Vec<_> = Packetiser::default().packets(0, &trace.frames()[0]).collect();
        let cut: Vec<_> = packets.iter().map(|packet| (packet.offset, packet.length, packet.last)).collect();
        assert_eq!(cut, [(0, 1012, false), (1012, 1012, false), (2024, 476, true)]);
    }

    #[test]
    fn a_frame_of_exactly_one_payload_is_one_packet_and_one_byte_more_is_two() {
        let trace = trace(&[1012, 1013, 1]);
        let counts: Vec<_> = trace.frames().iter().map(|frame| Packetiser::default().count(frame)).collect();
        assert_eq!(counts, [1, 2, 1]);
        assert_eq!(Packetiser::default().counts(&trace), ByType { i: 4, p: 0, b: 0 });
    }

    #[test]
    fn the_longest_frame_and_the_shortest_payload_do_not_overflow() {
        let trace = trace(&[u32::MAX]);
        assert_eq!(Packetiser::new(0).count(&trace.frames()[0]), u32::MAX);
        let last = Packetiser::default().packets(0, &trace.frames()[0]).last().expect("a packet");
        assert_eq!(last.offset + (last.length - 1), u32::MAX - 1);
    }
}
