//! Packets not sent by either host: forged resets, garbage, and SYNs.

use super::case::Aim;
use super::network::Network;
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss, Mapping};
use anabranch_wire::tcp::{SackBlock, Timestamps};
use anabranch_wire::{Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// Outside any window of at most 16 MB, in either direction.
fn far(from: SeqNumber, by: u32) -> SeqNumber {
    from + (0x2000_0000 + by % 0xc000_0000)
}

/// An empty answer to the last packet of `victim`.
fn answer(network: &Network, victim: usize) -> Option<(Packet, Packet)> {
    let last = network.last[victim].clone()?;
    let segment = Segment {
        source_port: last.segment.destination_port,
        destination_port: last.segment.source_port,
        ..Segment::default()
    };
    let ip = IpHeader { source: last.ip.destination, destination: last.ip.source, ..last.ip };
    Some((Packet { ip, segment }, last))
}

/// A reset for `victim`, as if from its peer.
pub fn reset(network: &Network, victim: usize, aim: Aim) -> Option<Packet> {
    let (mut packet, last) = answer(network, victim)?;
    let expected = last.segment.ack;
    packet.segment.flags = Flags::RST;
    packet.segment.seq = match aim {
        Aim::Exact => expected,
        Aim::Beyond(by) => expected + 1 + u32::from(by),
        Aim::Far(by) => far(expected, by),
    };
    let opening = last.segment.flags.contains(Flags::SYN) && !last.segment.flags.contains(Flags::ACK);
    if opening && aim == Aim::Exact {
        packet.segment.flags |= Flags::ACK;
        packet.segment.ack = last.segment.seq + 1;
    }
    Some(packet)
}

/// A segment outside `victim`'s windows with random fields.
pub fn garbage(network: &Network, victim: usize, seed: u32) -> Option<Packet> {
    let (mut packet, last) = answer(network, victim)?;
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.rotate_left(16)
    };
    let segment = &mut packet.segment;
    segment.seq = far(last.segment.ack, random());
    segment.ack = far(last.segment.seq, random());
    // Every combination except a bare SYN, which `syn` makes.
    segment.flags = Flags(random() as u8) | Flags::ACK;
    segment.window = random() as u16;
    segment.payload = Bytes::from(vec![random() as u8; (random() % 100) as usize]);
    if random() % 2 == 0 {
        segment.options.timestamps = Some(Timestamps { value: random(), echo: random() });
    }
    match random() % 4 {
        0 => {
            let mapping = Mapping {
                data_seq: DataSequence::Long(u64::from(random()) << 32 | u64::from(random())),
                subflow_seq: random(),
                length: random() as u16,
                checksum: (random() % 2 == 0).then_some(random() as u16),
            };
            let dss =
                Dss { data_ack: Some(DataAck::Short(random())), mapping: Some(mapping), data_fin: random() % 2 == 0 };
            segment.options.dss = Some(dss);
        }
        1 => segment.options.mptcp.push(MptcpOption::FastClose { key: u64::from(random()) }),
        2 => segment.options.mptcp.push(MptcpOption::Fail { data_seq: u64::from(random()) }),
        _ => {
            let start = SeqNumber(random());
            segment.options.sack.push(SackBlock { start, end: start + random() % 1_000 });
        }
    }
    Some(packet)
}

/// The first segment of a connection that is never completed.
pub fn syn(from: IpAddr, to: IpAddr, port: u16) -> Packet {
    let (source, destination) = (SocketAddr::new(from, port), SocketAddr::new(to, crate::pair::PORT));
    let ip = IpHeader { source: from, destination: to, ecn: Default::default(), dscp: 0, hop_limit: 64 };
    let segment = Segment {
        source_port: source.port(),
        destination_port: destination.port(),
        seq: SeqNumber(u32::from(port) << 16),
        flags: Flags::SYN,
        window: 1_000,
        ..Segment::default()
    };
    Packet { ip, segment }
}
