//! On fast paths segments leave in bursts of full offload packets.

mod pair;

use anabranch_mptcp::{BufferSize, ConnectionConfig};
use anabranch_policy::congestion::{Ack, CongestionControl, CongestionEvent, Start};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use pair::{Pair, config};
use std::sync::Arc;

/// Payload of a segment with timestamps, and the number of segments in a packet of at most 62,000 bytes.
const SEGMENT: usize = 1_448;
const WHOLE: usize = 42;

/// A constant window and rate.
#[derive(Debug)]
struct Fixed {
    window: u64,
    megabits: u64,
}

impl CongestionControl for Fixed {
    fn on_subflow_added(&mut self, _id: SubflowId, _start: Start) {}
    fn on_subflow_removed(&mut self, _id: SubflowId) {}
    fn on_ack(&mut self, _id: SubflowId, _ack: &Ack) {}
    fn on_congestion(&mut self, _id: SubflowId, _event: &CongestionEvent) {}
    fn on_spurious(&mut self, _id: SubflowId, _now: Instant) {}
    fn on_idle_restart(&mut self, _id: SubflowId, _window: u64) {}
    fn on_mss(&mut self, _id: SubflowId, _mss: u32) {}
    fn window(&self, _id: SubflowId) -> u64 {
        self.window
    }
    fn ssthresh(&self, _id: SubflowId) -> u64 {
        self.window
    }
    fn pacing_rate(&self, _id: SubflowId) -> Option<Rate> {
        Some(Rate::from_bits_per_second(self.megabits * 1_000_000))
    }
}

/// A connection of plain TCP with four megabytes to send.
fn upload(window: u64, megabits: u64) -> Pair {
    let mut config = ConnectionConfig { multipath: false, receive_buffer: BufferSize::Fixed(8 << 20), ..config() };
    config.send_buffer = 8 << 20;
    config.tcp.mtu = 1_500;
    config.policies.congestion = Arc::new(move || Box::new(Fixed { window, megabits }));
    let mut pair = Pair::new(1);
    let id = pair.connect(config.clone(), config);
    // Until the server has acknowledged something its window is unscaled.
    assert_eq!(pair.write_all(0, id, b"hello", Duration::from_millis(100)), 0);
    pair.run(Duration::from_millis(100));
    pair.sent[0].clear();
    assert_eq!(pair.hosts[0].write(pair.now, id, Bytes::from(vec![7; 4 << 20])).unwrap(), 4 << 20);
    pair
}

/// The number of segments sent at each instant with any.
fn trains(pair: &Pair) -> Vec<usize> {
    let mut trains: Vec<(Instant, usize)> = Vec::new();
    for (at, packet) in &pair.sent[0] {
        assert!(packet.segment.payload.len() <= SEGMENT);
        match trains.last_mut() {
            Some((last, count)) if last == at => *count += 1,
            _ => trains.push((*at, 1)),
        }
    }
    trains.into_iter().map(|(_, count)| count).collect()
}

#[test]
fn who_is_woken_late_releases_whole_packets() {
    let mut pair = upload(8 << 20, 500);
    pair.settle();
    // At 500 Mbit/s a packet takes 0.97 ms. Nothing returns in the first 20 ms.
    for _ in 0..15 {
        pair.now += Duration::from_micros(1_300);
        let now = pair.now;
        pair.hosts[0].handle_timeout(now);
        pair.settle();
    }
    let trains = trains(&pair);
    assert!(trains.len() >= 15 && trains.iter().all(|train| train % WHOLE == 0), "{trains:?}");
    // Delayed segments are sent later.
    assert!(trains.iter().sum::<usize>() >= 19 * WHOLE, "{trains:?}");
}
