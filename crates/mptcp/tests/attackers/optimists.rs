//! Peers that acknowledge data not received (RFC 9293, section 3.10.7.4; RFC 2018; RFC 8684, section 3.3.2).

use crate::pair::config;
use crate::peer::{Peer, mapping};
use crate::transcript::{Transcript, plain};
use anabranch_policy::time::Duration;
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss};
use std::collections::BTreeSet;

/// Ten segments of 1000 bytes are in flight.
fn ten_out() -> Transcript {
    let mut t = Transcript::accepted(plain());
    t.write(10_000);
    t.expect_segments(1, 10, 1);
    t
}

// RFC 2018, section 8: selectively acknowledged data is kept until it is acknowledged. Whatever the blocks say, all ten
// segments can be retransmitted.
#[test]
fn whatever_selective_acknowledgements_say_every_byte_is_sent_again_when_it_is_missing() {
    for lie in [
        "sack 1-10001",                       // all
        "sack 5001-3001",                     // inverted
        "sack 3001-3001",                     // empty
        "sack 1001-5001,3001-7001,2001-9001", // overlapping
        "sack 9001-20001",                    // half of it never sent
        "sack 20001-30001",                   // none of it was
        "sack 4294967000-11",                 // from before the first byte
        "sack 1-4294967295",                  // nearly all numbers there are
        "sack 2147483649-1",                  // half of them
        "sack 1501-1502,2501-2502,3501-3502", // bytes in the middle of segments
        "sack 1-2,1-10001",                   // a report of a duplicate that never came
        "sack 4294967000-1,1001-2001",        // the same of before
    ] {
        let mut t = ten_out();
        for _ in 0..20 {
            t.peer(&format!("A 1:1 ack 1 {lie}"));
        }
        let mut seen = BTreeSet::new();
        let end = t.now + Duration::from_secs(120);
        // The peer reneges on all, and acknowledges in order what it receives from now on.
        let mut next = 1_u32;
        t.take();
        while t.now < end && next < 10_001 {
            t.wait(100);
            for packet in t.take() {
                let start = packet.segment.seq.0.wrapping_sub(t.initial);
                seen.insert(start);
                if start == next {
                    next += packet.segment.payload.len() as u32;
                }
            }
            t.peer(&format!("A 1:1 ack {next}"));
        }
        assert_eq!(next, 10_001, "{lie}: {seen:?}");
        assert_eq!(t.closed(), None);
        assert_eq!(t.host.stats(t.id()).unwrap().bytes_acked, 10_000, "{lie}");
    }
}

// RFC 9293, section 3.10.7.4: an acknowledgement of unsent data is answered and dropped with all its content.
#[test]
fn an_acknowledgement_of_the_future_brings_neither_data_nor_blocks_nor_a_window() {
    let mut t = ten_out();
    t.wait(100);
    t.peer("A 1:101 ack 10002 win 1 sack 1001-10001");
    t.expect("A 10001:10001 ack 1");
    t.read(0);
    assert_eq!(t.counted(), (0, 0, 0));
    t.peer("A 1:1 ack 10001");
    t.write(1000);
    t.expect("A 10001:11001 ack 1"); // the window is the old one
}

// RFC 5681, equation 2: each acknowledgement counts for the bytes it covers. A hundred for ten segments open the window
// by ten segments, from ten to twenty, not by a hundred.
#[test]
fn a_divided_acknowledgement_counts_for_the_bytes_that_it_covers() {
    let mut t = ten_out();
    for ack in (101..=10_001).step_by(100) {
        t.peer(&format!("A 1:1 ack {ack}"));
    }
    assert_eq!(t.cwnd(), 20);
}

fn written(length: usize) -> Peer {
    let mut config = config();
    config.tcp.nagle = false;
    let mut peer = Peer::connected(config);
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer.write(&vec![7; length]);
    peer
}

// RFC 8684, section 3.3.2: a DATA_ACK frees the send buffer; data unacknowledged on a subflow is retransmitted there.
#[test]
fn what_is_acknowledged_at_data_level_only_is_repeated_on_its_subflow() {
    let mut peer = written(5_000);
    let segments = peer.take();
    assert_eq!(segments.iter().map(|packet| packet.segment.payload.len()).sum::<usize>(), 5_000);
    let id = peer.id();
    peer.flows[0].ack = 1; // nothing arrived on the subflow
    peer.acknowledge(0, 5_000);
    assert_eq!(peer.host.room(id), Some(config().send_buffer));
    peer.run(Duration::from_secs(2));
    let again = peer.take().into_iter().find(|packet| !packet.segment.payload.is_empty()).expect("sent again");
    assert_eq!(again.segment.seq, segments[0].segment.seq);
    assert_eq!(again.segment.payload, segments[0].segment.payload);
}

// Invalid DATA_ACKs of either size on an established connection are ignored: the buffer is unchanged, and the right one
// counts.
#[test]
fn data_acks_that_go_back_or_lie_ahead_free_nothing() {
    let mut peer = written(5_000);
    let (id, full) = (peer.id(), config().send_buffer);
    peer.acknowledge(0, 2_000);
    assert_eq!(peer.host.room(id), Some(full - 3_000));
    for offset in [1_999, 0, u64::MAX, 1 << 32, 1 << 63, u64::MAX / 2, 5_001, 5_000 + (1 << 32)] {
        peer.acknowledge(0, offset);
        assert_eq!(peer.host.room(id), Some(full - 3_000), "{offset}");
    }
    for ahead in [5_001, 100_000, 1 << 31, u32::MAX] {
        let DataAck::Long(first) = peer.data_ack(0) else { unreachable!() };
        let data_ack = Some(DataAck::Short((first as u32).wrapping_add(ahead)));
        peer.signal(0, Dss { data_ack, ..Dss::default() });
        assert_eq!(peer.host.room(id), Some(full - 3_000), "{ahead}");
    }
    peer.acknowledge(0, 5_000);
    assert_eq!(peer.host.room(id), Some(full));
}

// RFC 8684, section 3.3.3: the DATA_FIN counts as an octet, which is acknowledged only if it was sent.
#[test]
fn a_data_ack_of_an_end_that_was_not_said_ends_nothing() {
    let mut peer = written(5_000);
    peer.acknowledge(0, 5_001);
    peer.acknowledge(0, 5_000);
    peer.write(&[7; 100]);
    let next = peer.said.iter().rev().find_map(mapping).expect("new data");
    let DataSequence::Long(number) = next.data_seq else { panic!("{next:?}") };
    assert_eq!(peer.data_ack(5_000), DataAck::Long(number));
}
