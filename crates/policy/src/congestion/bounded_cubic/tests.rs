//! The phases with numbers computed by hand: segments of 1000 bytes, acknowledgements of whole rounds, no losses.

use super::rest::Path;
use super::*;
use crate::congestion::harness::{NOW, START, ack};
use crate::ids::SubflowId;

/// A path of this bandwidth and delay, and the flow on it.
struct Flow {
    control: BoundedCubic,
    bytes_per_ms: u64,
    least: Duration,
    now: Instant,
    delivered: u64,
}

impl Flow {
    fn new(bytes_per_ms: u64, least: Duration) -> Self {
        let control = BoundedCubic::start(&(), Start { smoothed_rtt: least, ..START });
        Self { control, bytes_per_ms, least, now: NOW, delivered: 0 }
    }

    /// A round with this many bytes in flight. Bytes beyond the bandwidth-delay product are queued; `hosts` is the
    /// delay of hosts.
    fn round(&mut self, in_flight: u64, hosts: Duration, app_limited: bool) {
        let sent = Duration::from_nanos(in_flight * 1_000_000 / self.bytes_per_ms);
        let rtt = sent.max(self.least) + hosts;
        self.acknowledge(in_flight, rtt, Rate::from_bytes_over(in_flight, rtt), app_limited);
    }

    fn acknowledge(&mut self, in_flight: u64, rtt: Duration, rate: Rate, app_limited: bool) {
        self.now += rtt;
        let ack = Ack {
            now: self.now,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            delivery_rate: Some(rate),
            prior_delivered: Some(self.delivered),
            total_delivered: self.delivered + in_flight,
            prior_in_flight: in_flight,
            in_flight,
            app_limited,
            cwnd_limited: !app_limited,
            ..ack(in_flight, 0)
        };
        self.delivered = ack.total_delivered;
        self.control.acknowledge(&ack, 1.0);
    }

    /// A round of an application that writes this much at such intervals.
    fn burst(&mut self, bytes: u64, interval: Duration) {
        self.now += interval - self.least;
        self.acknowledge(bytes, self.least, Rate::from_bytes_over(bytes, interval), true);
    }

    /// Rounds that fill the window, up to `most` bytes.
    fn fill(&mut self, rounds: usize, most: u64, hosts: Duration) {
        for _ in 0..rounds {
            let window = self.control.window();
            self.round(window.min(most), hosts, window > most);
        }
    }
}

const RTT: Duration = Duration::from_millis(100);
const NONE: Duration = Duration::ZERO;

/// The bandwidth-delay product is 100,000 bytes; the receive window of 400,000 hides the rise of delay from HyStart++.
#[test]
fn start_up_ends_where_each_packet_of_a_round_waits_for_two_round_trips() {
    let mut flow = Flow::new(1_000, RTT);
    flow.round(100_000, NONE, false);
    flow.round(100_000, NONE, false);
    flow.round(310_000, NONE, false);
    assert_eq!(flow.control.phase, Phase::StartUp);
    // 310 ms are more than three times 100 ms plus 3 ms; a round is evaluated when the next begins.
    flow.round(310_000, NONE, false);
    assert_eq!(flow.control.phase, Phase::Drain);
    // A fifth more than the bandwidth-delay product, and two segments.
    assert_eq!(flow.control.model_window(), 122_000);
}

/// A program that writes a little now and then leaves single segments in flight, whose acknowledgements are delayed.
#[test]
fn start_up_goes_on_where_acknowledgements_are_delayed() {
    let mut flow = Flow::new(1_000, RTT);
    flow.round(1_000, NONE, true);
    // 301 ms would be no queue of its own, and 303 ms are more than three times 100 ms plus 3 ms; 200 ms is the most.
    for _ in 0..20 {
        flow.round(1_000, Duration::from_millis(200), true);
    }
    assert!(flow.control.cubic.in_slow_start());
    for _ in 0..2 {
        flow.round(2_000, Duration::from_millis(204), true);
    }
    assert!(!flow.control.cubic.in_slow_start());
}

/// The scheduler or the receive window keeps it from using its whole window.
#[test]
fn start_up_ends_after_three_rounds_with_a_quarter_more_in_flight_at_the_same_rate() {
    let mut flow = Flow::new(1_000, RTT);
    for in_flight in [50_000, 100_000, 120_000, 125_000, 127_000, 127_000, 128_000, 100_000, 128_000, 128_000] {
        // 127,000 bytes are a quarter more than the path holds, and two segments. After 100,000 there was no queue.
        flow.round(in_flight, NONE, true);
        assert_eq!(flow.control.phase, Phase::StartUp, "{in_flight}");
    }
    flow.round(128_000, NONE, true);
    assert_eq!(flow.control.phase, Phase::Drain);
    assert!(!flow.control.cubic.in_slow_start());
}

/// Five segments each 400 ms show an eightieth of what the path carries, and more is in flight than that takes.
#[test]
fn start_up_goes_on_where_the_application_limits_and_there_is_no_queue() {
    let mut flow = Flow::new(1_000, RTT);
    for _ in 0..20 {
        flow.burst(5_000, RTT * 4);
    }
    // 12.5 kB/s for 100 ms: with a quarter more and two segments 3,562.
    assert_eq!(flow.control.bdp(), 1_250);
    assert!(flow.control.cubic.in_slow_start());
}

#[test]
fn a_path_shorter_than_what_hosts_add_gets_a_window_for_three_milliseconds() {
    // 1,000,000 bytes per millisecond, 50 us, and hosts that add half a millisecond: slow start ends early.
    let mut flow = Flow::new(1_000_000, Duration::from_micros(50));
    flow.round(10_000, NONE, false);
    flow.fill(3, u64::MAX, NONE);
    flow.control.cubic.leave_slow_start();
    let before = flow.control.window();
    flow.fill(200, 16 << 20, Duration::from_micros(500));
    let (after, rate) = (flow.control.window(), flow.control.rate().bytes_per_second());
    assert!(after > 20 * before, "{before} {after}");
    // The raised window causes a queue no longer than hosts add.
    assert!(flow.control.model_window() == u64::MAX || after <= rate * 45 / 10_000, "{after} at {rate} B/s");
}

#[test]
fn the_application_limits_and_the_probe_finds_that_nobody_else_is_there() {
    let mut flow = Flow::new(1_000, RTT);
    flow.fill(4, u64::MAX, NONE);
    flow.control.cubic.leave_slow_start();
    flow.round(100_000, NONE, false);
    flow.control.compete(flow.now);
    // Its own 250,000 bytes are the queue; the rate is the same with three quarters of them.
    for _ in 0..3 * (PROBE_ROUNDS + 8 + SLOW_ROUNDS) {
        let in_flight = flow.control.window().min(250_000);
        flow.round(in_flight, NONE, true);
    }
    assert!(!matches!(flow.control.phase, Phase::Compete | Phase::Probe), "{:?}", flow.control.phase);
    assert!(flow.control.window() <= 132_000, "{}", flow.control.window());
}

/// A flow in steady state: it left slow start with a window above the model's, a fifth more than 100,000 bytes.
fn steady() -> Flow {
    steady_at(1_000)
}

/// The same on a path of this many bytes per millisecond.
fn steady_at(bytes_per_ms: u64) -> Flow {
    let mut flow = Flow::new(bytes_per_ms, RTT);
    for in_flight in (100..=300).step_by(5) {
        flow.round(in_flight * bytes_per_ms, NONE, false);
    }
    flow.control.cubic.leave_slow_start();
    flow.control.leave_start_up(flow.now);
    flow.fill(2, u64::MAX, NONE);
    flow
}

#[test]
fn where_the_model_limits_the_window_the_flow_is_not_in_slow_start() {
    let flow = steady();
    assert_ne!(flow.control.phase, Phase::StartUp);
    assert!(flow.control.window() < flow.control.cubic.ssthresh());
    assert_eq!(flow.control.ssthresh(), flow.control.window());
}

#[test]
fn after_a_timeout_on_an_empty_path_slow_start_goes_to_a_share_of_what_the_path_holds() {
    let threshold = |in_flight| {
        let mut flow = steady();
        flow.fill(20, in_flight, NONE);
        let event = CongestionEvent {
            now: flow.now,
            cause: Congestion::Timeout,
            in_flight: 1_000,
            lost: 0,
            repeated: false,
            uncounted: false,
        };
        flow.control.on_congestion(&event);
        assert_eq!(flow.control.window(), 1_000);
        flow.control.ssthresh()
    };
    // Seven tenths of the 100,000 bytes that the path holds. With a standing queue the flight counts; two segments are
    // the minimum.
    assert_eq!((threshold(90_000), threshold(u64::MAX)), (70_000, 2_000));
}

#[test]
fn the_slow_phase_ends_when_the_queue_has_drained_and_lasts_three_rounds_where_it_does_not() {
    let mut flow = steady();
    flow.control.enter(Phase::Down, flow.now, SLOW_ROUNDS);
    // 150,000 bytes are half a round trip of queue: another flow's, since this one sends more slowly.
    flow.round(150_000, NONE, false);
    flow.round(150_000, NONE, false);
    assert_eq!(flow.control.phase, Phase::Down);
    flow.round(150_000, NONE, false);
    assert_eq!(flow.control.phase, Phase::Cruise);
    flow.control.enter(Phase::Down, flow.now, SLOW_ROUNDS);
    flow.round(100_000, NONE, false);
    assert_eq!(flow.control.phase, Phase::Cruise);
}

#[test]
fn where_the_rate_followed_the_path_is_asked_for_more_at_once() {
    let after = |share_before: f64| {
        let mut flow = steady();
        flow.fill(20, 90_000, NONE);
        flow.control.rate_before = (flow.control.bandwidth.max() as f64 * share_before) as u64;
        flow.control.enter(Phase::Down, flow.now, SLOW_ROUNDS);
        flow.round(100_000, NONE, false);
        flow.control.phase
    };
    // An eighth more than before.
    assert_eq!([0.88, 0.9, 1.0].map(after), [Phase::Up, Phase::Cruise, Phase::Cruise]);
}

/// The path stood still, and all that was taken for lost arrived.
/// Two segments at 20 bytes per millisecond take 100 ms: a round has too few to be called empty.
#[test]
fn where_the_rate_followed_a_slow_path_is_asked_for_more_at_once_too() {
    let after = |bytes_per_ms: u64| {
        let mut flow = steady_at(bytes_per_ms);
        flow.control.rate_before = flow.control.bandwidth.max() / 2;
        flow.control.enter(Phase::Down, flow.now, SLOW_ROUNDS);
        flow.round(100 * bytes_per_ms, NONE, false);
        assert!(!flow.control.queue.is_empty(1_000));
        flow.control.phase
    };
    assert_eq!([20, 30].map(after), [Phase::Up, Phase::Cruise]);
}

#[test]
fn a_timeout_that_was_spurious_leaves_nothing_behind() {
    let mut flow = Flow::new(1_000, RTT);
    flow.round(10_000, NONE, false);
    (1..=10).for_each(|segment| flow.control.on_lost(&lost(&flow, segment)));
    let cause = Congestion::Timeout;
    let event =
        CongestionEvent { now: flow.now, cause, in_flight: 10_000, lost: 10_000, repeated: false, uncounted: false };
    flow.control.on_congestion(&event);
    assert_eq!((flow.control.window(), flow.control.ssthresh()), (1_000, 7_000));
    flow.control.on_spurious(flow.now);
    flow.round(10_000, NONE, false);
    assert!(flow.control.window() >= 10_000 && flow.control.cubic.in_first_slow_start(), "{:?}", flow.control);
    assert_eq!(flow.control.congested_at, Instant::NEVER);
}

/// The loss of this segment, the n-th that is lost.
fn lost(flow: &Flow, number: u64) -> Lost {
    Lost {
        now: flow.now,
        bytes: 1_000,
        total_lost: number * 1_000,
        total_delivered: flow.delivered,
        prior_lost: 0,
        tx_in_flight: 100_000,
        app_limited: false,
    }
}

#[test]
fn two_losses_after_an_idle_time_do_not_end_slow_start() {
    let after = |segments: u64| {
        let mut flow = steady();
        flow.fill(20, u64::MAX, NONE);
        flow.control.on_idle_restart(10_000);
        let threshold = flow.control.cubic.ssthresh();
        flow.round(10_000, RTT, false);
        (1..=segments).for_each(|number| flow.control.on_lost(&lost(&flow, number)));
        flow.round(10_000, RTT, false);
        flow.control.cubic.ssthresh() == threshold
    };
    // Of two rounds of ten segments 2 and 0.4 may be lost.
    assert_eq!([2, 3].map(after), [true, false]);
    // Where slow start is over, a single loss with a queue counts.
    let mut flow = steady();
    flow.fill(20, 100_000, NONE);
    flow.control.on_idle_restart(10_000);
    flow.fill(6, u64::MAX, RTT);
    let before = flow.control.cubic.window();
    flow.control.on_lost(&lost(&flow, 1));
    flow.round(100_000, RTT, false);
    assert!(flow.control.cubic.window() < before);
}

#[test]
fn two_subflows_are_taken_to_share_a_bottleneck_at_first_and_one_with_nobody() {
    let mut control = crate::table::build(crate::congestion::TABLE, "bounded_cubic", &crate::table::Settings::new())
        .expect("no settings");
    let (one, other) = (SubflowId(0), SubflowId(1));
    control.on_subflow_added(one, START);
    assert_eq!(control.shares_bottleneck(one, other), None);
    control.on_subflow_added(other, START);
    assert_eq!(
        (control.shares_bottleneck(one, other), control.shares_bottleneck(other, one)),
        (Some(true), Some(true))
    );
    control.on_subflow_removed(one);
    assert_eq!(control.shares_bottleneck(one, other), None);
}

#[test]
fn after_a_rest_it_begins_anew_with_the_threshold_the_bandwidth_and_the_random_losses_that_it_knew() {
    let mut flow = steady();
    flow.control.queue = flow.control.queue.clone().with_random_loss((0.01, 2_000));
    let bandwidth = flow.control.bandwidth();
    let mut path = Path::Active(Box::new(flow.control));
    let window = path.window();
    // At least three quarters of the window.
    let threshold = path.active().expect("active").cubic.ssthresh().max(window - window / 4);
    path.rest();
    assert!(path.active().is_none());
    assert_eq!((path.window(), path.bandwidth(), path.ssthresh()), (window, bandwidth, threshold));
    path.on_idle_restart(10_000);
    assert_eq!(path.window(), 10_000);
    // Twice the window in a round trip of at least 100 ms.
    assert!(path.pacing_rate().is_some_and(|rate| rate <= Rate::from_bytes_per_second(200_000)));
    let again = path.wake(flow.now + Duration::from_secs(100));
    assert_eq!((again.window(), again.ssthresh(), again.bandwidth()), (10_000, threshold, bandwidth));
    assert!(again.cubic.in_slow_start() && !again.cubic.in_first_slow_start());
    assert_eq!(again.queue.random_loss(), (0.01, 2_000));
}

#[test]
fn one_that_has_not_met_congestion_has_its_first_slow_start_after_a_rest_too() {
    let mut path = Path::start(&(), START);
    path.rest();
    let again = path.wake(NOW);
    assert!(again.cubic.in_first_slow_start());
    assert_eq!(again.window(), START.initial_window);
}

#[test]
fn a_round_trip_shows_a_queue_from_an_eighth_and_two_segments_above_the_least() {
    let flow = steady();
    // 100 ms, 12.5 ms and 2 ms at 1000 bytes per millisecond.
    let has_queue = |micros| flow.control.has_queue(Duration::from_micros(micros));
    assert_eq!([100_000, 113_000, 114_400, 114_600, 200_000].map(has_queue), [false, false, false, true, true]);
}

#[test]
fn all_numbers_below_the_end_are_drawn() {
    let mut flow = Flow::new(1_000, RTT);
    let mut seen = [false; 8];
    for draw in 0..200 {
        let number = flow.control.draw(NOW + Duration::from_micros(draw), 8);
        seen[number as usize] = true;
    }
    assert_eq!(seen, [true; 8]);
}

#[test]
fn the_models_window_is_a_fifth_more_than_the_path_holds_a_tenth_more_while_it_rises_and_three_quarters_of_cubics_in_a_probe()
 {
    let mut flow = steady();
    assert_eq!(flow.control.bdp(), 100_000);
    let mut window = |phase| {
        flow.control.phase = phase;
        flow.control.model_window()
    };
    // And two segments more.
    assert_eq!([Phase::Drain, Phase::Down, Phase::Cruise].map(&mut window), [122_000; 3]);
    assert_eq!(window(Phase::Up), 132_000);
    assert_eq!([Phase::StartUp, Phase::Compete].map(&mut window), [u64::MAX; 2]);
    let cubics = flow.control.cubic.window();
    let mut probe = |in_flight| {
        flow.control.phase = Phase::Probe;
        flow.control.probe = Some(Box::new(Before { rates: (0, 0), in_flight }));
        flow.control.model_window()
    };
    assert_eq!(probe(u64::MAX), (cubics as f64 * 0.75) as u64);
    assert_eq!(probe(10_000), 7_500);
    assert_eq!(probe(1_000), 2_000, "two segments at least");
    let queue = core::mem::replace(&mut flow.control.queue, QueueEvidence::new(flow.now));
    assert_eq!(
        [Phase::Cruise, Phase::Probe].map(|phase| {
            flow.control.phase = phase;
            flow.control.model_window()
        }),
        [u64::MAX; 2],
        "no room for a queue"
    );

    // A path that holds one segment: a fifth more and two segments would be 320,000 bytes.
    (flow.control.queue, flow.control.mss, flow.control.phase) = (queue, 100_000, Phase::Cruise);
    assert_eq!(flow.control.model_window(), 400_000);
}

#[test]
fn a_path_is_local_if_its_least_round_trip_is_below_three_milliseconds() {
    let is_local = |least| {
        let mut flow = Flow::new(1_000_000, least);
        flow.round(1_000, NONE, false);
        flow.control.is_local()
    };
    assert!(is_local(Duration::from_micros(2_999)));
    assert!(!is_local(Duration::from_millis(3)));
}

#[test]
fn a_flow_is_active_for_a_second_and_two_round_trips_after_its_last_acknowledgement() {
    let mut flow = steady();
    flow.control.smoothed_rtt = RTT;
    let is_active = |millis| flow.control.is_active(flow.now + Duration::from_millis(millis));
    assert!(is_active(1_199));
    assert!(!is_active(1_200));
}

#[test]
fn on_a_slow_path_a_wait_of_one_segment_is_no_queue() {
    // 10 bytes per millisecond: a segment takes 100 ms.
    let mut flow = Flow::new(10, RTT);
    flow.round(1_000, NONE, false);
    let has_queue = |micros| flow.control.has_queue(Duration::from_micros(micros));
    assert_eq!([199_900, 200_100].map(has_queue), [false, true]);
}

/// A path of 10 bytes per millisecond, on which a segment takes 100 ms and the SYN took 20 ms, after an acknowledgement of
/// this many bytes with this round-trip time in milliseconds.
fn slow(bytes: u64, rtt: u64) -> Flow {
    let mut flow = Flow::new(10, Duration::from_millis(20));
    flow.acknowledge(bytes, Duration::from_millis(rtt), Rate::from_bits_per_second(80_000), false);
    flow
}

#[test]
fn on_a_slow_path_full_segments_have_a_round_trip_of_their_own() {
    let flow = slow(1_000, 120);
    let has_queue = |micros| flow.control.has_queue(Duration::from_micros(micros));
    assert_eq!([219_900, 220_100].map(has_queue), [false, true]);
}

#[test]
fn full_segments_that_never_saw_the_empty_path_count_as_three_of_them() {
    // Each waited for five others: 20 ms, 300 ms and 100 ms.
    let flow = slow(1_000, 620);
    let has_queue = |micros| flow.control.has_queue(Duration::from_micros(micros));
    assert_eq!([419_900, 420_100].map(has_queue), [false, true]);
}

#[test]
fn acknowledgements_of_less_than_about_a_segment_say_nothing_about_full_ones() {
    assert_eq!(slow(700, 90).control.full_rtt.get(), None);
    assert_eq!(slow(800, 100).control.full_rtt.get(), Some(Duration::from_millis(100)));
}

#[test]
fn the_window_sets_the_pace_in_start_up_and_beside_others_and_else_the_rate_of_the_path() {
    let mut flow = steady();
    flow.control.smoothed_rtt = RTT;
    // In kB/s: 200,000 bytes in 100 ms are 2,000, and the path has 1,000.
    let mut pace = |phase| {
        flow.control.phase = phase;
        flow.control.pacing_under(200_000).map(|rate| rate.bytes_per_second() / 1_000)
    };
    assert_eq!([Phase::StartUp, Phase::Compete, Phase::Probe].map(&mut pace), [Some(4_000), Some(2_400), Some(2_400)]);
    assert_eq!([Phase::Drain, Phase::Up, Phase::Cruise].map(&mut pace), [Some(500), Some(1_250), Some(1_000)]);
}

#[test]
fn congestion_that_another_subflow_saw_reduces_the_window_after_slow_start_only() {
    let mut flow = steady();
    let before = flow.control.cubic.window();
    flow.control.reduce_with_another(flow.now);
    assert!(flow.control.cubic.window() < before);
    let mut flow = Flow::new(1_000, RTT);
    flow.control.reduce_with_another(flow.now);
    assert_eq!(flow.control.cubic.window(), START.initial_window);
}

#[test]
fn after_a_pause_it_begins_with_the_window_that_it_is_given() {
    let mut flow = steady();
    flow.control.phase = Phase::Cruise;
    assert!(flow.control.window() > 10_000);
    flow.control.on_idle_restart(10_000);
    assert_eq!(flow.control.window(), 10_000);
}

#[test]
fn cubic_counts_what_was_delivered_in_recovery_too() {
    let mut flow = Flow::new(1_000, RTT);
    let before = flow.control.cubic.window();
    flow.control.acknowledge(&Ack { acked: 0, delivered: 1_000, in_recovery: true, ..ack(0, 100) }, 1.0);
    assert_eq!(flow.control.cubic.window(), before + 1_000);
}

#[test]
fn while_the_model_limits_the_window_that_of_cubic_does_not_grow() {
    let grows = |phase| {
        let mut flow = steady();
        let before = flow.control.cubic.window();
        for _ in 0..20 {
            flow.control.phase = phase;
            flow.round(100_000, NONE, false);
        }
        flow.control.cubic.window() > before
    };
    assert_eq!([Phase::Cruise, Phase::Compete].map(grows), [false, true]);
}

#[test]
fn a_phase_that_nothing_ends_before_lasts_as_many_round_trips_as_it_was_given() {
    let ends = |phase, millis, in_flight| {
        let mut flow = steady();
        flow.control.enter(phase, flow.now, 3);
        let now = flow.now + Duration::from_millis(millis);
        flow.control.advance(&Ack { now, in_flight, ..ack(0, 100) });
        flow.control.phase != phase
    };
    for phase in [Phase::Drain, Phase::Cruise, Phase::Up] {
        assert_eq!([300, 301].map(|millis| ends(phase, millis, u64::MAX)), [false, true], "{phase:?}");
    }
    // Or until no more is in flight than the path holds.
    assert_eq!([100_001, 100_000].map(|in_flight| ends(Phase::Drain, 1, in_flight)), [false, true]);
}

#[test]
fn a_path_that_holds_less_than_two_segments_is_drained_with_two_in_flight() {
    let drained = |in_flight| {
        let mut flow = steady();
        flow.control.mss = 100_000;
        flow.control.enter(Phase::Drain, flow.now, 3);
        flow.control.advance(&Ack { now: flow.now, in_flight, ..ack(0, 100) });
        flow.control.phase != Phase::Drain
    };
    assert_eq!([200_001, 200_000].map(drained), [false, true]);
}

#[test]
fn where_others_may_keep_a_queue_phases_last_as_many_rounds_as_they_were_given() {
    let ends = |phase, rounds| {
        let mut flow = steady();
        flow.control.enter(phase, flow.now, 3);
        flow.control.since_round -= rounds;
        flow.control.advance(&Ack { now: flow.now, in_flight: u64::MAX, ..ack(0, 100) });
        flow.control.phase != phase
    };
    for phase in [Phase::Down, Phase::Compete, Phase::Probe] {
        assert_eq!([2, 3].map(|rounds| ends(phase, rounds)), [false, true], "{phase:?}");
    }
}

#[test]
fn more_than_25_seconds_after_congestion_cubics_window_is_twice_what_an_empty_path_holds_at_least() {
    let window = |later: Duration| {
        let mut flow = steady();
        flow.fill(20, 90_000, NONE);
        (0..6).for_each(|_| flow.control.reduce(flow.now, 0, 0));
        let total_delivered = flow.delivered + 1_000;
        flow.control.acknowledge(&Ack { now: flow.now + later, total_delivered, ..ack(1_000, 100) }, 1.0);
        flow.control.cubic.window()
    };
    assert!(window(FREE_AFTER) < 100_000);
    assert_eq!(window(FREE_AFTER + Duration::from_nanos(1)), 200_000);
}

#[test]
fn where_losses_cannot_be_counted_any_is_congestion_but_on_an_empty_path() {
    let cause = Congestion::Loss;
    let event = |flow: &Flow, uncounted| CongestionEvent {
        now: flow.now,
        cause,
        in_flight: 100_000,
        lost: 1_000,
        repeated: false,
        uncounted,
    };
    let mut flow = steady();
    let before = flow.control.cubic.window();
    flow.control.on_congestion(&event(&flow, false));
    assert_eq!(flow.control.cubic.window(), before);
    // Nothing was queued in the last rounds.
    flow.fill(20, 50_000, NONE);
    assert!(flow.control.queue.is_empty(1_000));
    let before = flow.control.cubic.window();
    flow.control.on_congestion(&event(&flow, true));
    assert_eq!(flow.control.cubic.window(), before);
    // Half of what is in flight is.
    (0..5).for_each(|_| flow.round(200_000, NONE, false));
    assert!(!flow.control.queue.is_empty(1_000));
    let before = flow.control.cubic.window();
    flow.control.on_congestion(&event(&flow, true));
    assert_eq!(flow.control.cubic.window(), before * 7 / 10);
}
