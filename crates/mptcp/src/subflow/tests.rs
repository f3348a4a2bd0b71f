//! Decisions of a subflow in states that the test sets up.

use super::context::Context;
use super::identity::Identity;
use super::parts::HandshakeKind;
use super::path_mtu_search::PathMtu;
use super::receiver::AckDue;
use super::recovery::{Phase, Prr};
use super::state::Subflow;
use super::tcp_state::State;
use crate::config::TcpConfig;
use crate::event::SendKind;
use crate::stamp_clock::StampClock;
use anabranch_policy::congestion::{Ack, CongestionControl, CongestionEvent, Lost, Start};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Segment, SeqNumber};
use bytes::Bytes;

const NOW: Instant = at(1_000);

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Established, with segments of 1,000 bytes.
pub(super) fn subflow() -> Subflow {
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

/// A congestion control that has a rate, perhaps, and a window of 20,000 bytes, which it may keep while losses are
/// repaired.
#[derive(Default)]
pub(super) struct Fixed {
    rate: Option<Rate>,
    governs_recovery: bool,
    /// How often it was told of something delivered.
    pub acks: u32,
    /// Whether the last of them was part of a recovery.
    pub held: bool,
    /// Of how many bytes it was told that they are lost.
    pub lost: u64,
}

impl CongestionControl for Fixed {
    fn on_subflow_added(&mut self, _: SubflowId, _: Start) {}
    fn on_subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, ack: &Ack) {
        self.held = ack.in_recovery;
        self.acks += 1;
    }
    fn on_lost(&mut self, _: SubflowId, lost: &Lost) {
        self.lost += lost.bytes;
    }
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
        self.rate
    }
    fn governs_recovery(&self) -> bool {
        self.governs_recovery
    }
}

/// The earliest time of the next segment after one of 1,000 bytes.
fn paced(rate: Option<Rate>, pacing: bool) -> Instant {
    let mut subflow = subflow();
    let config = TcpConfig { pacing, ..TcpConfig::default() };
    subflow.rtt.sample(Duration::from_millis(100), config.rto);
    subflow.pace(
        &Context {
            now: NOW,
            config: &config,
            congestion: &mut Fixed { rate, ..Fixed::default() },
            clock: StampClock::default(),
        },
        1_000,
    );
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

#[test]
fn in_recovery_prr_limits_the_window_unless_congestion_control_governs_it() {
    let window = |governs_recovery: bool| {
        let mut subflow = subflow();
        // One segment may go beside the 5,000 bytes in flight.
        subflow.recovery.phase =
            Phase::Fast { end: SeqNumber(10_000), partial_acks: 0, prr: Box::new(Prr::new(10_000, 5_000, 1_000)) };
        subflow.window(&Fixed { governs_recovery, ..Fixed::default() }, &TcpConfig::default())
    };
    assert_eq!(window(false), 6_000);
    assert_eq!(window(true), 20_000);
}

#[test]
fn a_subflow_is_limited_by_its_application_if_a_segment_more_would_just_fit_the_window() {
    let is_limited = |mss: u32| {
        let mut subflow = subflow();
        subflow.mss = mss;
        subflow.record_limit(&Fixed::default())
    };
    assert!(is_limited(20_000));
    assert!(!is_limited(20_001));
}

#[test]
fn segments_share_mappings_only_on_a_path_that_loses_hardly_any() {
    let may_share = |change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        subflow.negotiated.sack = true;
        subflow.counters.bytes_acked = 1_001;
        change(&mut subflow);
        subflow.may_share_mappings()
    };
    assert!(may_share(|_| {}));
    assert!(!may_share(|subflow| subflow.rates.loss_rate = 0.001));
    assert!(!may_share(|subflow| subflow.liveness.timeouts_in_row = 1));
    assert!(!may_share(|subflow| subflow.counters.bytes_acked = 1_000));
    assert!(!may_share(|subflow| subflow.negotiated.sack = false));
}

#[test]
fn a_syn_ack_offers_window_scaling_if_the_peer_did_though_it_scales_by_nothing() {
    // RFC 7323, section 2.2: the option with a shift of 0 is an offer as well.
    let offers = |state: State, (receive_scale, send_scale): (u8, u8)| {
        let mut subflow = subflow();
        subflow.state = state;
        (subflow.negotiated.receive_scale, subflow.negotiated.send_scale) = (receive_scale, send_scale);
        subflow.syn(&TcpConfig::default(), 0, 7, 60_000).options.window_scale
    };
    assert_eq!(offers(State::SynSent, (0, 0)), Some(7));
    assert_eq!(offers(State::SynReceived, (7, 0)), Some(7));
    assert_eq!(offers(State::SynReceived, (0, 3)), Some(7));
    assert_eq!(offers(State::SynReceived, (0, 0)), None);
}

#[test]
fn a_quantum_of_whole_packets_is_begun_when_none_is_left_and_not_halfway() {
    let mut subflow = subflow();
    // 1 Gbit/s: a quantum is more than one packet of offload.
    let rate = Rate::from_bits_per_second(1_000_000_000);
    let quantum = anabranch_policy::congestion::send_quantum(rate, 1_000) as u32;
    assert!(quantum >= 64_000, "{quantum}");
    subflow.pace_quantum(at(1_000), rate, 1_000);
    assert_eq!(subflow.rates.released, quantum - 1_000);
    // A second later the rest of it is released, and no more.
    subflow.pace_quantum(at(2_000), rate, 1_000);
    assert_eq!(subflow.rates.released, quantum - 2_000);
    subflow.rates.released = 0;
    subflow.pace_quantum(at(3_000), rate, 1_000);
    assert_eq!(subflow.rates.released, quantum - 1_000);
}

#[test]
fn an_acknowledgement_is_wanted_if_one_is_due_or_something_waits_for_one() {
    let wants = |change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        subflow.handshake.confirmed = true;
        change(&mut subflow);
        (subflow.wants_acknowledgement(NOW), subflow.will_want_acknowledgement())
    };
    assert_eq!(wants(|_| {}), (false, false));
    assert_eq!(wants(|subflow| subflow.receiver.due = AckDue::By(at(1_001))), (false, true));
    assert_eq!(wants(|subflow| subflow.receiver.due = AckDue::By(NOW)), (true, true));
    assert_eq!(wants(|subflow| subflow.due.data_fin = true), (true, true));
    // The HMAC goes alone.
    let unconfirmed = |subflow: &mut Subflow| (subflow.due.data_fin, subflow.handshake.confirmed) = (true, false);
    assert_eq!(wants(unconfirmed), (false, false));
}

#[test]
fn a_subflow_takes_new_data_in_a_state_that_may_send_unless_something_speaks_against_it() {
    let is_usable = |change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        change(&mut subflow);
        subflow.is_usable()
    };
    assert!(is_usable(|_| {}));
    assert!(is_usable(|subflow| subflow.state = State::CloseWait));
    assert!(!is_usable(|subflow| subflow.state = State::FinWait1));
    assert!(!is_usable(|subflow| subflow.handshake.confirmed = false));
    assert!(!is_usable(|subflow| subflow.priority.suspended = true));
    assert!(!is_usable(|subflow| subflow.due.fin_queued = true));
}

#[test]
fn a_subflow_last_moved_when_it_sent_or_heard_something() {
    let moved = |heard: u64, sent: u64| {
        let mut subflow = subflow();
        (subflow.liveness.last_heard, subflow.liveness.last_sent) = (at(heard), at(sent));
        (subflow.last_moved(), subflow.last_heard(), subflow.unheard(at(100)))
    };
    assert_eq!(moved(30, 20), (at(30), at(30), Duration::from_millis(70)));
    assert_eq!(moved(20, 30), (at(30), at(20), Duration::from_millis(80)));
}

#[test]
fn a_subflow_is_stale_with_data_that_is_not_answered_or_after_two_window_probes() {
    let state = |outstanding: bool, change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        if outstanding {
            subflow.push(0, Bytes::from_static(b"data"), SendKind::New);
            assert!(subflow.scoreboard.send_next(NOW).is_some());
        }
        change(&mut subflow);
        (subflow.is_stale(), subflow.is_unanswered())
    };
    assert_eq!(state(true, |_| {}), (false, false));
    assert_eq!(state(true, |subflow| subflow.liveness.timeouts_in_row = 1), (true, true));
    assert_eq!(state(false, |subflow| subflow.liveness.timeouts_in_row = 1), (false, true));
    assert_eq!(state(true, |subflow| subflow.liveness.silent = true), (true, false));
    assert_eq!(state(false, |subflow| subflow.liveness.silent = true), (false, false));
    assert_eq!(state(false, |subflow| subflow.liveness.unanswered_probes = 1), (false, true));
    assert_eq!(state(false, |subflow| subflow.liveness.unanswered_probes = 2), (true, true));
}

#[test]
fn a_join_of_the_peer_sends_one_segment_until_one_is_acknowledged_and_no_window_exceeds_the_limit() {
    let window = |kind: HandshakeKind, acknowledged: u32, max_window: Option<u64>| {
        let mut subflow = subflow();
        subflow.handshake.kind = kind;
        subflow.send.una = subflow.send.initial + acknowledged;
        subflow.window(&Fixed::default(), &TcpConfig { max_window, ..TcpConfig::default() })
    };
    let join = |acknowledged, max_window| window(HandshakeKind::PeersJoin, acknowledged, max_window);
    assert_eq!((join(1, None), join(2, None), window(HandshakeKind::Usual, 1, None)), (1_000, 20_000, 20_000));
    assert_eq!((join(2, Some(5_000)), join(2, Some(30_000))), (5_000, 20_000));
    assert_eq!(join(2, Some(10)), 1_000, "a segment always goes");
}

#[test]
fn a_sequence_number_is_acceptable_in_the_window_and_the_byte_expected_next_also_where_there_is_none() {
    use super::segment_arrives::Verdict;
    use anabranch_wire::Flags;
    let accepted = |seq: u32, length: usize, window: u32| {
        let mut subflow = subflow();
        subflow.receiver.next = SeqNumber(500);
        let payload = Bytes::from(vec![0; length]);
        let segment =
            Segment { seq: SeqNumber(seq), ack: subflow.send.una, flags: Flags::ACK, payload, ..Segment::default() };
        subflow.judge(NOW, &segment, window) != Verdict::Drop
    };
    // RFC 9293, table 6; a bare acknowledgement at the right edge is outside.
    assert!(accepted(500, 0, 0) && !accepted(501, 0, 0) && !accepted(499, 0, 0));
    assert!(accepted(500, 0, 10) && accepted(509, 0, 10) && !accepted(510, 0, 10) && !accepted(499, 0, 10));
    assert!(accepted(500, 5, 0) && !accepted(501, 5, 0), "the byte expected next");
    assert!(accepted(500, 20, 10) && accepted(509, 20, 10) && !accepted(510, 20, 10));
    assert!(accepted(498, 5, 10) && !accepted(495, 5, 10) && accepted(496, 5, 10) && accepted(490, 50, 10));
    assert!(accepted(496, 5, 0) && accepted(490, 50, 0), "it covers that byte");
}

#[test]
fn the_phase_is_slow_start_below_the_threshold_and_congestion_avoidance_from_it_on() {
    use anabranch_policy::view::Phase as PhaseView;
    let phase = |recovery: Phase, window: u64| {
        let mut subflow = subflow();
        subflow.recovery.phase = recovery;
        subflow.view_phase(window, 20_000)
    };
    assert_eq!(phase(Phase::Open, 19_999), PhaseView::SlowStart);
    assert_eq!(phase(Phase::Open, 20_000), PhaseView::CongestionAvoidance);
    assert_eq!(phase(Phase::Timeout { end: SeqNumber(9) }, 1_000), PhaseView::TimeoutRecovery);
    let prr = Box::new(Prr::new(10_000, 5_000, 1_000));
    assert_eq!(phase(Phase::Fast { end: SeqNumber(9), partial_acks: 0, prr }, 1_000), PhaseView::FastRecovery);
}

#[test]
fn a_quantum_of_some_segments_is_sent_together_and_one_of_two_is_spread() {
    // 40 Mbit/s: five segments of 1,000 bytes in a millisecond, each 0.2 ms.
    let rate = Rate::from_bits_per_second(40_000_000);
    assert_eq!(anabranch_policy::congestion::send_quantum(rate, 1_000), 5_000);
    let mut subflow = subflow();
    subflow.rates.pace_until = at(1_000);
    subflow.pace_quantum(at(1_010), rate, 1_000);
    assert_eq!(subflow.rates.released, 4_000);
    // A late wake-up makes up for half a quantum, half a millisecond.
    assert_eq!(subflow.rates.pace_until, at(1_009) + Duration::from_micros(700));
    let slow = Rate::from_bits_per_second(80_000);
    assert_eq!(anabranch_policy::congestion::send_quantum(slow, 1_000), 2_000);
    subflow.rates.released = 9;
    subflow.pace_quantum(at(3_000), slow, 1_000);
    assert_eq!(subflow.rates.released, 0);
}

#[test]
fn a_timer_of_pacing_that_is_late_is_made_up_for_up_to_three_milliseconds() {
    use crate::subflow::timers::SubflowTimer;
    // 40 Mbit/s: each segment of 1,000 bytes 0.2 ms, five in a quantum.
    let rate = Rate::from_bits_per_second(40_000_000);
    let sent = |late_ms: u64, by_timer: bool| {
        let mut subflow = subflow();
        subflow.rates.pace_until = at(1_000);
        let now = at(1_000 + late_ms);
        let _ = subflow.wait_for_pacing();
        if by_timer {
            subflow.end_pacing(now);
            assert!(!subflow.timers.runs(SubflowTimer::Pace));
        }
        let count = (0..100).take_while(|_| {
            let allowed = !subflow.is_paced_out(now);
            if allowed {
                subflow.pace_quantum(now, rate, 1_000);
            }
            allowed
        });
        let count = count.count();
        assert_eq!(subflow.rates.late, 0);
        count
    };
    // What was not sent meanwhile, in whole quanta, and the one that is due.
    assert_eq!([0, 1, 2, 3, 4, 100].map(|late| sent(late, true)), [5, 10, 15, 20, 20, 20]);
    assert_eq!([0, 2, 100].map(|late| sent(late, false)), [5, 15, 20]);
}

#[test]
fn a_path_is_silent_after_the_round_trips_that_the_scheduler_allows_within_limits() {
    use crate::subflow::silence::Patience;
    let ends = |smoothed: u64, quickest: u64, round_trips: f32| {
        let (mut subflow, config) = (subflow(), TcpConfig::default());
        subflow.rtt.sample(Duration::from_millis(smoothed), config.rto);
        subflow.push(0, Bytes::from_static(b"data"), SendKind::New);
        assert!(subflow.scoreboard.send_next(NOW).is_some());
        let patience = Patience { round_trips, quickest: Duration::from_millis(quickest) };
        subflow.silence_ends(patience, &config).since(NOW).as_millis()
    };
    // Smoothed and four times the variation, which is half of it, are three round trips, and so is the timeout.
    assert_eq!(ends(100, 1_000, 2.0), 300);
    assert_eq!(ends(100, 1_000, 9.0), 300);
    // 1,000 ms and 2,000: three seconds. The quickest path allows two round trips of 400 ms; the segment is not late.
    assert_eq!(ends(1_000, 400, 2.0), 3_000);
    assert_eq!(ends(2, 1_000, 2.0), 52, "at least 50 ms more than a round trip");
}

#[test]
fn the_limit_of_the_application_is_recorded_once_and_not_while_something_waits() {
    let limit = |change: fn(&mut Subflow)| {
        let mut subflow = subflow();
        change(&mut subflow);
        (subflow.record_limit(&Fixed::default()), subflow.record_limit(&Fixed::default()))
    };
    assert_eq!(limit(|_| {}), (true, false));
    assert_eq!(limit(|subflow| subflow.push(0, Bytes::from_static(b"data"), SendKind::New)), (false, false));
    let lost = |subflow: &mut Subflow| {
        subflow.push(0, Bytes::from_static(b"data"), SendKind::New);
        assert!(subflow.scoreboard.send_next(NOW).is_some());
        assert_eq!(subflow.scoreboard.mark_all_lost(), 4);
    };
    assert_eq!(limit(lost), (false, false));
    let full = |subflow: &mut Subflow| {
        subflow.push(0, Bytes::from(vec![0; 19_001]), SendKind::New);
        assert!(subflow.scoreboard.send_next(NOW).is_some());
    };
    assert_eq!(limit(full), (false, false), "the window of 20,000 has no space for a segment");
}

#[test]
fn rfc7323_4_3_the_timestamp_that_is_echoed_is_a_newer_one_of_a_segment_that_covers_the_last_acknowledgement() {
    let taken = |negotiated: bool, seq: u32, value: u32, now: Instant| {
        let mut subflow = subflow();
        subflow.negotiated.timestamps = negotiated;
        subflow.receiver.last_ack = SeqNumber(500);
        (subflow.receiver.timestamp, subflow.receiver.timestamp_at) = (10, Instant::ZERO);
        let mut segment = Segment { seq: SeqNumber(seq), ..Segment::default() };
        segment.options.timestamps = Some(Timestamps { value, echo: 0 });
        subflow.take_timestamp(now, &segment);
        (subflow.receiver.timestamp, subflow.receiver.timestamp_at) == (value, now)
    };
    assert!(taken(true, 500, 11, NOW) && taken(true, 499, 10, NOW));
    assert!(!taken(true, 501, 11, NOW) && !taken(true, 500, 9, NOW) && !taken(false, 500, 11, NOW));
    // One that is 24 days old says nothing of age any more.
    let days = Instant::ZERO + Duration::from_secs(24 * 24 * 3600);
    assert!(!taken(true, 500, 9, days) && taken(true, 500, 9, days + Duration::from_millis(1)));
}
