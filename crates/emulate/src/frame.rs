//! A packet in emulated links: its bytes, and how links change them.

use anabranch_sim::link::{Cargo, DropCause};

/// A packet in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// From the first byte of the IP header; empty for cross traffic.
    bytes: Vec<u8>,
    /// Bytes on the link.
    length: u32,
}

impl Frame {
    /// The packet, from the first byte of its IP header.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it is cross traffic, which has a length but no bytes.
    pub(super) fn is_cross_traffic(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Most buffers kept for reuse.
const KEPT: usize = 4_096;

/// The packets in flight, and buffers for reuse.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    spare: Vec<Vec<u8>>,
    under_way: usize,
    bytes_under_way: u64,
}

impl Frames {
    /// Packets in flight.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Bytes of the packets in flight.
    pub(super) fn bytes_under_way(&self) -> u64 {
        self.bytes_under_way
    }

    /// A packet with these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Frame {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.count(Frame { length: buffer.len() as u32, bytes: buffer })
    }

    /// A packet of cross traffic.
    pub(super) fn cross_traffic(&mut self, length: u32) -> Frame {
        self.count(Frame { bytes: Vec::new(), length })
    }

    fn count(&mut self, frame: Frame) -> Frame {
        self.under_way += 1;
        self.bytes_under_way += u64::from(frame.length);
        frame
    }

    /// Recycles a packet that has left the network.
    pub(super) fn give_back(&mut self, frame: Frame) {
        self.under_way = self.under_way.saturating_sub(1);
        self.bytes_under_way = self.bytes_under_way.saturating_sub(u64::from(frame.length));
        if !frame.is_cross_traffic() && self.spare.len() < KEPT {
            self.spare.push(frame.bytes);
        }
    }
}

impl Cargo for Frames {
    type Item = Frame;

    fn length(&self, frame: &Frame) -> u32 {
        frame.length
    }

    fn mark_congestion(&mut self, frame: &mut Frame) -> bool {
        mark_congestion(&mut frame.bytes)
    }

    fn corrupt(&mut self, frame: &mut Frame, luck: u32) {
        corrupt(&mut frame.bytes, luck);
    }

    fn duplicate(&mut self, frame: &Frame) -> Frame {
        if frame.is_cross_traffic() { self.cross_traffic(frame.length) } else { self.take(&frame.bytes) }
    }

    fn discard(&mut self, frame: Frame, _cause: DropCause) {
        self.give_back(frame);
    }
}

/// Sets "congestion experienced" in an ECN-capable IP header (RFC 3168, section 5); returns false for others.
fn mark_congestion(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => mark_ipv4(packet),
        // The low two bits of the traffic class (RFC 8200, section 3).
        Some(6) => match packet.get_mut(1) {
            Some(class) if *class & 0x30 != 0 => {
                *class |= 0x30;
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    let Some([first, class, _, _, _, _, _, _, _, _, c0, c1]) = packet.first_chunk_mut::<12>() else { return false };
    if *class & 3 == 0 {
        return false;
    }
    let old = u16::from_be_bytes([*first, *class]);
    *class |= 3;
    let new = u16::from_be_bytes([*first, *class]);
    // HC' = ~(~HC + ~m + m') in ones' complement (RFC 1624, equation 3).
    let sum = u32::from(!u16::from_be_bytes([*c0, *c1])) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    [*c0, *c1] = (!(sum as u16)).to_be_bytes();
    true
}

/// Flips a bit after the IP header, where every transport's checksum detects it. IPv6 headers have no checksum, so
/// damage there could remain undetected.
fn corrupt(packet: &mut [u8], luck: u32) {
    let header = match packet.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
        _ => 40,
    };
    let behind = packet.len().saturating_sub(header);
    let place = header + (luck as usize & 0xffff) % behind.max(1);
    if let Some(byte) = packet.get_mut(place) {
        *byte ^= 1 << (luck >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ip::{self, IpHeader, PROTOCOL_UDP};
    use anabranch_wire::{Ecn, udp};

    fn packet(v6: bool, ecn: Ecn) -> Vec<u8> {
        let (source, destination) = if v6 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
        let [source, destination] = [source, destination].map(|text| text.parse().expect("an address"));
        let mut bytes = Vec::new();
        let header = IpHeader { source, destination, ecn, dscp: 10, hop_limit: 64 };
        header.emit(PROTOCOL_UDP, 100, &mut bytes).expect("a small packet");
        bytes.resize(bytes.len() + 100, 7);
        bytes
    }

    #[test]
    fn a_marked_packet_says_congestion_and_its_header_is_still_right() {
        for v6 in [false, true] {
            for ecn in [Ecn::Capable0, Ecn::Capable1, Ecn::Congestion] {
                let mut bytes = packet(v6, ecn);
                assert!(mark_congestion(&mut bytes));
                assert_eq!(bytes, packet(v6, Ecn::Congestion), "the header as it would have been written at once");
                assert_eq!(ip::parse(&bytes).expect("its checksum is right").header.ecn, Ecn::Congestion);
            }
            let mut bytes = packet(v6, Ecn::NotCapable);
            assert!(!mark_congestion(&mut bytes));
            assert_eq!(bytes, packet(v6, Ecn::NotCapable));
        }
    }

    #[test]
    fn corruption_changes_one_bit_behind_the_header_whatever_the_luck() {
        for v6 in [false, true] {
            let before = packet(v6, Ecn::NotCapable);
            for luck in [0, 1, 99, 100, 0xffff, 0x2000_0000, u32::MAX] {
                let mut after = before.clone();
                corrupt(&mut after, luck);
                let flipped: Vec<usize> = (0..before.len()).filter(|place| before[*place] != after[*place]).collect();
                assert_eq!(flipped.len(), 1);
                assert!(flipped[0] >= if v6 { 40 } else { 20 });
                assert_eq!((before[flipped[0]] ^ after[flipped[0]]).count_ones(), 1);
            }
        }
        let mut nothing_behind = before_payload();
        corrupt(&mut nothing_behind, 5);
        assert_eq!(nothing_behind, before_payload());
    }

    fn before_payload() -> Vec<u8> {
        packet(false, Ecn::NotCapable)[..20].to_vec()
    }

    #[test]
    fn nonsense_is_neither_marked_nor_does_it_panic() {
        for bytes in [&[][..], &[0x45], &[0x45, 1, 0], &[0x60], &[0xff; 60]] {
            let mut bytes = bytes.to_vec();
            assert!(!mark_congestion(&mut bytes));
            corrupt(&mut bytes, 12_345);
        }
    }

    #[test]
    fn buffers_of_packets_that_have_gone_are_used_again() {
        let mut frames = Frames::default();
        let first = frames.take(&[1; 1500]);
        let place = first.bytes().as_ptr();
        assert_eq!((frames.under_way(), frames.bytes_under_way()), (1, 1500));
        frames.discard(first, DropCause::Loss);
        assert_eq!((frames.under_way(), frames.bytes_under_way()), (0, 0));
        assert_eq!(frames.take(&[2; 40]).bytes().as_ptr(), place);
    }

    #[test]
    fn udp_is_what_cross_traffic_pretends_to_be() {
        let mut frames = Frames::default();
        let frame = frames.cross_traffic(udp::HEADER as u32 + 20);
        assert!(frame.is_cross_traffic() && frames.length(&frame) == 28);
        assert!(frames.duplicate(&frame).is_cross_traffic());
    }
}
