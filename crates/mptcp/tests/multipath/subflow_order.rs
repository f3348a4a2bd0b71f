//! A receiver that passes data to the data level only in subflow order, like Linux.

use super::peer::Peer;
use crate::pair::{config, pattern};
use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_wire::mptcp::CapableKeys;
use anabranch_wire::tcp::{TcpOptions, Timestamps};

fn strict(buffer: u64) -> ConnectionConfig {
    ConnectionConfig {
        receiver: anabranch_mptcp::config::ReceiverConfig { data_in_subflow_order: true, ..Default::default() },
        buffers_per_subflow: false,
        receive_buffer: BufferSize::Fixed(buffer),
        ..config()
    }
}

fn connected(config: ConnectionConfig) -> Peer {
    let mut peer = Peer::new(config);
    peer.stamps = Some(TcpOptions {
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..TcpOptions::default()
    });
    peer.open(vec![super::peer::capable(CapableKeys::None)]);
    peer.acknowledge_keys();
    peer
}

/// Sends `range` of the stream on the first flow, at the same offset there.
fn send_at(peer: &mut Peer, range: std::ops::Range<usize>) {
    let data = pattern(100_000);
    let payload = &data[range.clone()];
    let dss = peer.map(range.start as u64, 1 + range.start as u32, payload, false);
    let options = TcpOptions { dss: Some(dss), ..TcpOptions::default() };
    peer.send_at(0, 1 + range.start as u32, anabranch_wire::Flags::ACK, options, payload);
}

/// The SACK blocks of the last acknowledgement, relative to the start of the stream.
fn blocks(peer: &Peer) -> Vec<(u32, u32)> {
    let last = peer.said.last().expect("it is acknowledged");
    let first = peer.flows[0].peer_initial + 1;
    last.segment.options.sack.as_slice().iter().map(|block| (block.start - first, block.end - first)).collect()
}

#[test]
fn what_lies_behind_a_hole_of_its_subflow_is_acknowledged_there_and_reaches_the_data_level_with_the_hole() {
    let mut peer = connected(strict(64_000));
    send_at(&mut peer, 0..1_000);
    send_at(&mut peer, 2_000..3_000);
    assert_eq!((peer.acknowledged(), blocks(&peer)), (Some(1_000), vec![(2_000, 3_000)]));
    // Meanwhile another subflow delivers the missing bytes: data after them on the first still waits.
    peer.join(1);
    let data = pattern(100_000);
    peer.send_data(1, 1_000, &data[1_000..2_000]);
    assert_eq!((peer.acknowledged(), peer.received.len()), (Some(2_000), 2_000));
    send_at(&mut peer, 1_000..2_000);
    assert_eq!((peer.acknowledged(), peer.received.len()), (Some(3_000), 3_000));
    assert!(peer.received == data[..3_000]);
}

#[test]
fn where_room_is_short_what_lies_furthest_is_dropped_though_it_was_acknowledged_and_taken_when_it_comes_again() {
    let mut peer = connected(strict(4_000));
    send_at(&mut peer, 0..100);
    // Twice the buffer, with 64 bytes overhead per piece: 7 of 1,000 bytes.
    for start in [8_100, 7_100, 6_100, 5_100, 4_100, 3_100, 2_100] {
        send_at(&mut peer, start..start + 1_000);
    }
    assert_eq!(blocks(&peer), [(2_100, 9_100)]);
    send_at(&mut peer, 1_100..2_100);
    assert_eq!(blocks(&peer), [(1_100, 8_100)]);
    // Data beyond all queued data is refused.
    send_at(&mut peer, 8_100..9_100);
    assert_eq!(blocks(&peer), [(1_100, 8_100)]);
    send_at(&mut peer, 100..1_100);
    let arrived = peer.received.len();
    assert!(peer.received == pattern(100_000)[..arrived] && arrived >= 4_000, "{arrived}");
    // The rest was beyond the window of 4,000 and is lost at data level; it is sent again under new numbers.
    let data = pattern(100_000);
    peer.flows[0].nxt = 8_101;
    peer.send_data(0, arrived as u64, &data[arrived..arrived + 1_000]);
    assert!(peer.received == data[..arrived + 1_000]);
}
