//! Decisions of a subflow in states that the test sets up.

use super::context::Context;
use super::identity::Identity;
use super::path_mtu_search::PathMtu;
use super::state::Subflow;
use super::tcp_state::State;
use crate::config::TcpConfig;
use crate::event::SendKind;
use anabranch_policy::congestion::{Ack, CongestionControl, CongestionEvent, Start};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use bytes::Bytes;

const NOW: Instant = at(1_000);

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Established, with segments of 1,000 bytes.
fn subflow() -> Subflow {
    let identity = Identity {
        id: SubflowId(0),
        local: ([10, 0, 0, 1], 5_000).into(),
        remote: ([10, 0, 0, 2], 80).into(),
        local_address: AddressId(1),
        remote_address: AddressId(0),
    };
    let mut subflow = Subflow::new(identity, State::Established, SeqNumber(0), Instant::ZERO);
    subflow.mss = 1_000;
    subflow
}

/// A congestion control that has a rate, and a window of 20,000 bytes.
struct Paces(Option<Rate>);

impl CongestionControl for Paces {
    fn on_subflow_added(&mut self, _: SubflowId, _: Start) {}
    fn on_subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, _: &Ack) {}
    fn on_congestion(&mut self, _: SubflowId, _: &CongestionEvent) {}
    fn on_spurious(&mut self, _: SubflowId, _: Instant) {}
    fn on_idle_restart(&mut self, _: SubflowId, _: u64) {}
    fn on_mss(&mut self, _: SubflowId, _: u32) {}
    fn window(&self, _: SubflowId) -> u64 {
        20_000
    }
    fn ssthresh(&self, _: SubflowId) -> u64 {
        u64::MAX
    }
    fn pacing_rate(&self, _: SubflowId) -> Option<Rate> {
        self.0
    }
}

/// The earliest time of the next segment after one of 1,000 bytes.
fn paced(rate: Option<Rate>, pacing: bool) -> Instant {
    let mut subflow = subflow();
    let config = TcpConfig { pacing, ..TcpConfig::default() };
    subflow.rtt.sample(Duration::from_millis(100), config.rto);
    subflow.pace(&Context { now: NOW, config: &config, congestion: &mut Paces(rate), stamp: 0 }, 1_000);
    subflow.rates.pace_until
}

#[test]
fn segments_leave_at_the_rate_of_congestion_control_or_twice_the_window_over_the_round_trip_or_at_once() {
    // 80 kbit/s: a segment takes 100 ms. The first may make up for its own duration at most.
    let rate = Rate::from_bytes_over(1_000, Duration::from_millis(100));
    assert_eq!(paced(Some(rate), false), at(1_000));
    // In slow start, 2 × 20,000 bytes in 100 ms: 2.5 ms.
    assert_eq!(paced(None, true), at(1_000) + Duration::from_micros(2_500));
    assert_eq!(paced(None, false), Instant::ZERO);
    assert_eq!(paced(Some(Rate::ZERO), true), Instant::ZERO);
}

#[test]
fn small_quanta_are_spread_and_who_is_late_catches_up_with_one_segment_only() {
    let mut subflow = subflow();
    let rate = Rate::from_bytes_over(1_000, Duration::from_millis(100));
    // The limit is at 1.00 s; the time is 1.03 s.
    subflow.rates.pace_until = at(1_000);
    subflow.pace_quantum(at(1_030), rate, 1_000);
    assert_eq!(subflow.rates.pace_until, at(1_100));
    // Two seconds later only the time of one segment is made up for.
    subflow.pace_quantum(at(3_000), rate, 1_000);
    assert_eq!(subflow.rates.pace_until, at(3_000));
}

#[test]
fn a_path_is_probed_only_while_nothing_waits_and_the_peer_answers() {
    let size = |change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        let path = PathMtu {
            largest: 1_400,
            overhead: 52,
            low: 1_000,
            high: 1_401,
            failures: 0,
            probe: None,
            rest_until: NOW,
        };
        subflow.path_mtu = Some(Box::new(path));
        change(&mut subflow);
        subflow.probe_size(NOW, 10_000)
    };
    assert_eq!(size(|_| {}), Some(1_400));
    assert_eq!(size(|subflow| subflow.liveness.timeouts_in_row = 1), None);
    assert_eq!(size(|subflow| subflow.liveness.silent = true), None);
    assert_eq!(size(|subflow| subflow.push(0, Bytes::from_static(&[0; 100]), SendKind::New)), None);
}
