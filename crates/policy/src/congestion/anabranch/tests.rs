//! The default's rules with numbers computed by hand: segments of 1000 bytes, a path of 8 Mbit/s (1000 bytes per
//! millisecond) and 100 ms, so that the bandwidth-delay product is 100 000 bytes.

use super::*;
use crate::congestion::harness::{NOW, START, ack, close_to, congestion, timeout};

const RTT: Duration = Duration::from_millis(100);
const BDP: u64 = 100_000;

/// A flow whose acknowledgements are whole rounds.
struct Flow {
    control: Anabranch,
    now: Instant,
    delivered: u64,
}

impl Flow {
    fn new() -> Self {
        let control = Anabranch::start(&(), Start { smoothed_rtt: RTT, ..START });
        Self { control, now: NOW, delivered: 0 }
    }

    /// An acknowledgement of a segment sent after all earlier data was delivered: it ends a round.
    fn round(&self, mbit: f64, in_flight: u64) -> Ack {
        Ack {
            now: self.now + RTT,
            delivery_rate: Some(Rate::from_bits_per_second((mbit * 1e6) as u64)),
            prior_delivered: Some(self.delivered),
            total_delivered: self.delivered + BDP,
            prior_in_flight: in_flight,
            in_flight,
            ..ack(BDP, 100)
        }
    }

    fn take(&mut self, ack: Ack) {
        (self.now, self.delivered) = (ack.now, ack.total_delivered);
        self.control.on_ack(&ack);
    }

    fn pass(&mut self, rounds: usize, mbit: f64, in_flight: u64) {
        for _ in 0..rounds {
            self.take(self.round(mbit, in_flight));
        }
    }

    /// A round with this loss and round-trip time, and the next round, without losses, which evaluates it.
    fn lose(&mut self, lost: u64, rtt_ms: u64, in_flight: u64) {
        let rtt = Some(Duration::from_millis(rtt_ms));
        self.take(Ack { lost, rtt, ..self.round(8.0, in_flight) });
        self.take(Ack { rtt, ..self.round(8.0, in_flight) });
    }

    /// Through start-up and drain; the window has room for twice the bytes in flight.
    fn in_cruise() -> Self {
        let mut flow = Self::new();
        flow.pass(1 + PLATEAU as usize, 8.0, 2 * BDP);
        flow.pass(1, 8.0, BDP);
        assert_eq!(flow.control.state, State::Cruise);
        flow
    }
}

#[test]
fn start_up_ends_after_three_rounds_without_a_quarter_more() {
    let mut flow = Flow::new();
    flow.pass(1, 8.0, BDP); // from nothing to 8
    flow.pass(2, 9.9, BDP); // 9.9 < 1.25 x 8
    assert_eq!((flow.control.state, flow.control.start_up.plateau.1), (State::StartUp, 2));
    flow.pass(1, 10.0, BDP); // 10 = 1.25 x 8: the count begins again
    assert_eq!(flow.control.start_up.plateau, (10_000_000, 0));
    flow.pass(2, 10.0, BDP);
    assert_eq!(flow.control.state, State::StartUp);
    flow.pass(1, 10.0, BDP);
    assert_eq!(flow.control.state, State::Drain);
    // 10 Mbit/s x 100 ms are 125 000 bytes: it lasts while more is in flight.
    flow.pass(1, 10.0, 125_001);
    assert_eq!(flow.control.state, State::Drain);
    flow.pass(1, 10.0, 125_000);
    assert_eq!(flow.control.state, State::Cruise);
}

#[test]
fn rounds_not_limited_by_the_window_do_not_end_start_up_unless_a_queue_stands() {
    let mut flow = Flow::new();
    flow.pass(1, 8.0, BDP);
    // More in flight than the bandwidth-delay product of 100 000 bytes, and a tenth over the least round-trip time.
    for (in_flight, millis, counted) in [(100_001, 110, 0), (100_000, 111, 0), (100_001, 111, 1)] {
        let rtt = Some(Duration::from_millis(millis));
        let limited = Ack { app_limited: true, rtt, ..flow.round(8.0, in_flight) };
        flow.take(limited);
        assert_eq!(flow.control.start_up.plateau.1, counted);
    }
    // On a path that holds 1000 bytes six segments must be in flight.
    let mut flow = Flow::new();
    flow.pass(1, 0.08, BDP);
    for (in_flight, counted) in [(6_000, 0), (6_001, 1)] {
        let rtt = Some(Duration::from_millis(111));
        flow.take(Ack { app_limited: true, rtt, ..flow.round(0.08, in_flight) });
        assert_eq!(flow.control.start_up.plateau.1, counted);
    }
}

#[test]
fn losses_by_chance_do_not_lower_the_window() {
    let mut flow = Flow::in_cruise();
    // Twice the bandwidth-delay product, and two segments whose acknowledgements may be delayed.
    assert_eq!(flow.control.window(), 202_000);
    // 3000 of 103 000 bytes are lost in each of ten rounds without a queue, and the eleventh evaluates the tenth: the
    // random loss rate becomes 0.029126 (1 - 0.9^10) = 0.018971.
    for _ in 0..10 {
        let lossy = Ack { lost: 3_000, ..flow.round(8.0, BDP) };
        flow.take(lossy);
    }
    flow.pass(1, 8.0, BDP);
    close_to(flow.control.chance, 0.018_971, 1e-6);
    // With a queue the same losses are still random: 0.029 < 0.019 + 0.02. 5000 are not: 0.048.
    flow.lose(3_000, 150, 2 * BDP);
    assert_eq!((flow.control.ceiling.bytes, flow.control.window()), (LARGEST_WINDOW, 202_000));
    flow.lose(5_000, 150, 2 * BDP);
    assert_eq!(flow.control.ceiling.bytes, (BETA * 200_000.0) as u64);
}

#[test]
fn losses_under_a_standing_queue_bring_the_ceiling_to_what_the_path_holds_and_ascents_lift_it() {
    let mut flow = Flow::in_cruise();
    // A queue stands from a tenth above the minimum round-trip time: 110 ms. A tenth lost at 110 ms is random, with no
    // more in flight than the path holds.
    flow.lose(10_000, 110, BDP);
    assert_eq!(flow.control.ceiling.bytes, LARGEST_WINDOW);
    flow.control.chance = 0.0;
    // 10 000 of 110 000 bytes: 0.85 of the 200 000 that were in flight.
    flow.lose(10_000, 111, 2 * BDP);
    assert_eq!((flow.control.ceiling.bytes, flow.control.window()), (170_000, 170_000));
    // 0.85 x 120 000 = 102 000 is below the bandwidth-delay product, a sixteenth of it and two segments.
    flow.lose(10_000, 111, 120_000);
    assert_eq!((flow.control.ceiling.bytes, flow.control.window()), (108_250, 108_250));
    // An ascent raises it by 1, 2 and 4 segments.
    flow.control.ceiling.lift = 1_000;
    for lifted in [109_250, 111_250, 115_250] {
        flow.control.enter(State::Up, flow.now);
        flow.pass(1, 8.0, BDP);
        assert_eq!(flow.control.ceiling.bytes, lifted);
    }
}

#[test]
fn a_round_that_loses_a_quarter_has_met_a_slower_path() {
    let mut flow = Flow::in_cruise();
    let rtt = Some(Duration::from_millis(200));
    // A quarter of a round: 33 000 of 133 000 bytes are less, 34 000 of 134 000 more.
    for (lost, bandwidth) in [(33_000, 8_000_000), (34_000, 2_000_000)] {
        let lossy = Ack { lost, rtt, ..flow.round(2.0, 2 * BDP) };
        flow.take(lossy);
        let next = Ack { rtt, ..flow.round(2.0, 2 * BDP) };
        flow.take(next);
        assert_eq!(flow.control.bandwidth.max(), bandwidth);
    }
}

#[test]
fn a_start_up_that_finds_more_takes_losses_for_chance_and_one_that_does_not_for_a_full_path() {
    let mut flow = Flow::new();
    flow.pass(1, 8.0, BDP);
    // 7 000 of 107 000 bytes are lost, with almost three times the model's bdp in flight, while the path delivers twice
    // as much, and twice as much again.
    let lossy = |flow: &Flow, mbit| Ack { lost: 7_000, ..flow.round(mbit, 277_000) };
    for mbit in [16.0, 32.0] {
        flow.take(lossy(&flow, mbit));
        assert_eq!((flow.control.ceiling.bytes, flow.control.start_up.plateau.1), (LARGEST_WINDOW, 0));
    }
    close_to(flow.control.chance, CHANCE_WEIGHT * 7.0 / 107.0, 1e-9);
    // No more is found: the flight evaluated with the next round exceeds 1.125 x 400 000 bytes and four segments.
    flow.take(Ack { lost: 7_000, ..flow.round(32.0, 500_000) });
    assert_eq!((flow.control.ceiling.bytes, flow.control.start_up.plateau.1), (LARGEST_WINDOW, 1));
    flow.take(flow.round(32.0, 500_000));
    assert_eq!(flow.control.ceiling.bytes, 427_000); // 400 000 and a sixteenth and two segments, more than 0.85 x 500 000
}

#[test]
fn what_start_up_sent_too_much_is_no_slower_path() {
    let quarter_lost = |flow: &mut Flow| {
        let rtt = Some(Duration::from_millis(200));
        flow.take(Ack { lost: 34_000, rtt, ..flow.round(2.0, BDP) });
        flow.take(Ack { rtt, ..flow.round(2.0, BDP) });
        flow.control.bandwidth.max()
    };
    let mut flow = Flow::new();
    flow.pass(1 + PLATEAU as usize, 8.0, 2 * BDP);
    assert_eq!(flow.control.state, State::Drain);
    assert_eq!(quarter_lost(&mut flow), 8_000_000);
    // Three rounds after start-up it is.
    flow.pass(1, 8.0, BDP);
    assert_eq!(quarter_lost(&mut flow), 2_000_000);
}

#[test]
fn a_loss_lowers_the_ceiling_where_losses_cannot_be_counted() {
    let loss = |uncounted| CongestionEvent { uncounted, ..congestion(Congestion::Loss, 2 * BDP) };
    let mut flow = Flow::in_cruise();
    let before = flow.control.ceiling;
    flow.control.on_congestion(&loss(false));
    assert_eq!(flow.control.ceiling, before);
    flow.control.on_congestion(&loss(true));
    assert_eq!(flow.control.ceiling.bytes, (2.0 * BDP as f64 * BETA) as u64);
}

#[test]
fn after_a_timeout_one_segment_goes_until_it_is_answered_and_then_half_of_the_model() {
    let mut flow = Flow::in_cruise();
    flow.control.on_congestion(&timeout(2 * BDP));
    assert_eq!(flow.control.window(), 1_000);
    flow.control.on_congestion(&CongestionEvent { repeated: true, ..timeout(0) });
    assert_eq!(flow.control.window(), 1_000);
    // Half of 100 000 bytes, and the acknowledged segment.
    let answer = Ack { delivered: 1_000, acked: 1_000, ..flow.round(0.1, 1_000) };
    flow.take(answer);
    assert_eq!((flow.control.state, flow.control.window()), (State::StartUp, 51_000));
    // The next round doubles it; it never exceeds 2.77 x 100 000 bytes and two segments.
    flow.pass(1, 8.0, BDP);
    assert_eq!(flow.control.window(), 151_000);
    flow.control.resize(10 * BDP);
    assert_eq!(flow.control.window(), 279_000);
}

#[test]
fn a_timeout_that_was_an_error_is_undone() {
    let mut flow = Flow::in_cruise();
    flow.control.on_congestion(&timeout(BDP));
    flow.control.on_congestion(&CongestionEvent { repeated: true, ..timeout(0) });
    flow.control.on_spurious(flow.now);
    assert_eq!((flow.control.state, flow.control.window()), (State::Cruise, 202_000));
    // A second report finds nothing to restore.
    flow.control.on_congestion(&congestion(Congestion::Penalty, BDP));
    flow.control.on_spurious(flow.now);
    assert_eq!(flow.control.window(), 101_000);
}

#[test]
fn a_least_round_trip_that_was_not_seen_for_ten_seconds_is_looked_for_with_less_in_flight() {
    let mut flow = Flow::in_cruise();
    let seen = flow.now;
    let standing = |flow: &Flow| Ack { rtt: Some(Duration::from_millis(150)), ..flow.round(8.0, BDP) };
    while flow.now + RTT <= seen + Duration::from_secs(LOOK_AFTER) {
        let ack = standing(&flow);
        flow.take(ack);
        flow.control.enter(State::Cruise, flow.now);
    }
    // Traffic that does not fill the path measures its round trip anyway; the measurement stays due.
    let limited = Ack { app_limited: true, ..standing(&flow) };
    flow.take(limited);
    assert_eq!(flow.control.state, State::Cruise);
    let ack = standing(&flow);
    flow.take(ack);
    // The old one still counts: 8 Mbit/s x 100 ms x 0.75.
    assert_eq!((flow.control.state, flow.control.window()), (State::Look, 75_000));
    flow.pass(1, 8.0, 75_000);
    assert_eq!((flow.control.state, flow.control.min_rtt()), (State::Cruise, RTT));
}

#[test]
fn a_least_round_trip_that_is_seen_again_within_a_64th_need_not_be_looked_for() {
    let mut flow = Flow::in_cruise();
    let end = flow.now + Duration::from_secs(LOOK_AFTER * 3);
    while flow.now < end {
        let ack = Ack { rtt: Some(Duration::from_millis(101)), ..flow.round(8.0, BDP) };
        flow.take(ack);
        assert!(flow.control.state != State::Look);
        flow.control.enter(State::Cruise, flow.now);
    }
    assert_eq!(flow.control.min_rtt(), RTT);
}

#[test]
fn an_ascent_that_found_more_is_followed_by_another_at_twice_the_bandwidth() {
    let mut flow = Flow::in_cruise();
    flow.control.ascend(flow.now, 0);
    flow.pass(2, 8.0, BDP * 5 / 4);
    assert_eq!(flow.control.state, State::Down);
    // The excess is delivered, 9.3 of 10 Mbit/s, and no queue is left: up again.
    flow.pass(1, 9.3, BDP);
    assert_eq!(flow.control.state, State::Up);
    assert_eq!(flow.control.pacing_rate(), Some(Rate::from_bits_per_second(18_600_000)));
    // No growth of 15 %: the standing queue is drained.
    flow.pass(2, 10.0, BDP * 2);
    assert_eq!(flow.control.state, State::Drain);
    flow.pass(1, 10.6, BDP);
    assert_eq!(flow.control.state, State::Cruise);
}

#[test]
fn a_start_up_that_loses_a_tenth_of_the_flight_under_a_queue_and_finds_no_more_is_over() {
    let mut flow = Flow::new();
    flow.pass(1, 8.0, 2 * BDP);
    let growing = flow.control.clone();
    flow.pass(1, 8.0, 2 * BDP);
    let lossy = |lost, rtt_ms| Ack { lost, rtt: Some(Duration::from_millis(rtt_ms)), ..flow.round(8.0, 2 * BDP) };
    for (lost, rtt_ms, state) in
        [(20_000, 200, State::StartUp), (21_000, 100, State::StartUp), (21_000, 200, State::Drain)]
    {
        let mut control = flow.control.clone();
        control.on_ack(&lossy(lost, rtt_ms));
        assert_eq!(control.state, state, "{lost} bytes at {rtt_ms} ms");
    }
    let mut control = growing;
    control.on_ack(&Ack { delivery_rate: Some(Rate::from_bits_per_second(16_000_000)), ..lossy(21_000, 200) });
    assert_eq!(control.state, State::StartUp);
}

#[test]
fn of_what_a_start_up_sends_a_few_segments_are_lost_by_chance_though_a_delayed_answer_looks_like_a_queue() {
    for (lost, harmless) in [(6_000, true), (7_000, false)] {
        let mut flow = Flow::new();
        flow.pass(1, 8.0, BDP);
        flow.lose(lost, 140, BDP / 2);
        assert_eq!(flow.control.ceiling.bytes == LARGEST_WINDOW, harmless, "{lost}");
    }
}

#[test]
fn who_sends_a_segment_at_a_time_says_nothing_against_the_first_window() {
    let mut flow = Flow::new();
    let (window, pacing) = (flow.control.window(), flow.control.pacing_rate().unwrap());
    let single = |flow: &Flow| Ack { app_limited: true, ..flow.round(0.08, 1_000) };
    flow.take(single(&flow));
    assert_eq!(flow.control.bandwidth(), Some(Rate::from_bits_per_second(80_000)));
    assert_eq!((flow.control.window(), flow.control.pacing_rate().unwrap()), (window, pacing));
    // A flight limited by nothing else does, and so does a timeout.
    let mut tried = flow.control.clone();
    tried.on_ack(&Ack { app_limited: false, ..single(&flow) });
    let mut timed_out = flow.control.clone();
    timed_out.on_congestion(&timeout(1_000));
    timed_out.on_ack(&single(&flow));
    for control in [tried, timed_out] {
        assert!(control.window() < window && control.pacing_rate().unwrap() < pacing);
    }
}

#[test]
fn the_answer_to_a_timeout_measures_the_silence_and_not_a_path_of_which_nothing_is_known() {
    let mut flow = Flow::new();
    flow.control.on_congestion(&timeout(1));
    // One octet in 3 s: 2.67 bit/s.
    let octet = Ack {
        acked: 1,
        delivered: 1,
        total_delivered: 1,
        delivery_rate: Some(Rate::from_bits_per_second(3)),
        app_limited: true,
        ..flow.round(0.0, 1)
    };
    flow.take(octet);
    // Four segments may be sent, paced by a first window of 10 000 bytes in 100 ms: 800 kbit/s, times 2.77.
    assert_eq!((flow.control.bandwidth(), flow.control.window()), (None, 4_001));
    assert_eq!(flow.control.pacing_rate(), Some(Rate::from_bits_per_second(2_216_000)));
}

#[test]
fn a_segment_may_go_in_each_round_trip_whatever_the_model_says() {
    let mut flow = Flow::in_cruise();
    // Ten rounds with a single octet each, not limited elsewhere: 80 bit/s.
    flow.pass(11, 0.000_08, 1_000);
    assert_eq!(flow.control.bandwidth(), Some(Rate::from_bits_per_second(80)));
    // 1000 bytes in 100 ms, or in the current 200 ms.
    assert_eq!(flow.control.pacing_rate(), Some(Rate::from_bits_per_second(80_000)));
    flow.take(Ack { smoothed_rtt: RTT * 2, ..flow.round(0.000_08, 1_000) });
    assert_eq!(flow.control.pacing_rate(), Some(Rate::from_bits_per_second(40_000)));
}

#[test]
fn an_ascent_without_losses_ends_after_four_round_trips_if_it_does_not_fill_the_path() {
    let mut flow = Flow::in_cruise();
    flow.control.ascend(flow.now, 0);
    flow.pass(4, 8.0, BDP);
    assert_eq!(flow.control.state, State::Up, "400 ms are not more than 4 x 100 ms");
    flow.pass(1, 8.0, BDP);
    assert_eq!(flow.control.state, State::Down);
}

#[test]
fn a_descent_lasts_until_the_path_is_empty_or_a_round_trip_has_passed() {
    for (in_flight, rounds) in [(BDP, 1), (BDP + 1, 2)] {
        let mut flow = Flow::in_cruise();
        flow.control.ascend(flow.now, 0);
        flow.pass(2, 8.0, BDP * 5 / 4);
        for _ in 0..rounds {
            assert_eq!(flow.control.state, State::Down, "{in_flight}");
            flow.pass(1, 8.0, in_flight);
        }
        assert_eq!(flow.control.state, State::Cruise, "{in_flight}");
    }
}

#[test]
fn a_drain_that_does_not_empty_the_path_ends_after_three_round_trips() {
    let mut flow = Flow::new();
    flow.pass(1 + PLATEAU as usize, 8.0, 2 * BDP);
    flow.pass(3, 8.0, 2 * BDP);
    assert_eq!(flow.control.state, State::Drain, "300 ms are not more than 3 x 100 ms");
    flow.pass(1, 8.0, 2 * BDP);
    assert_eq!(flow.control.state, State::Cruise);
}

#[test]
fn after_a_drain_the_first_ascent_begins_within_one_to_eight_round_trips() {
    let mut flow = Flow::in_cruise();
    let mut rounds = 0;
    while flow.control.state == State::Cruise && rounds < 100 {
        flow.pass(1, 8.0, BDP);
        rounds += 1;
    }
    // It starts at the first acknowledgement after that.
    assert!((2..=9).contains(&rounds) && flow.control.state == State::Up, "{rounds} in {:?}", flow.control.state);
}

#[test]
fn without_a_queue_losses_count_from_an_eighth_over_what_the_path_holds() {
    let mut flow = Flow::in_cruise();
    let most = BDP + BDP / 8 + flow.control.least();
    flow.lose(10_000, 100, most);
    assert_eq!(flow.control.ceiling.bytes, LARGEST_WINDOW);
    flow.control.chance = 0.0;
    flow.lose(10_000, 100, most + 1);
    let held = BDP + BDP / 16 + 2_000;
    assert_eq!(flow.control.ceiling.bytes, (((most + 1) as f64 * BETA) as u64).max(held));
}

#[test]
fn who_is_limited_elsewhere_is_not_spread_unless_its_bursts_are_lost() {
    let bits = |app_limited: bool, lossy: bool| {
        let mut flow = Flow::in_cruise();
        (flow.control.seen.app_limited, flow.control.seen.lossy) = (app_limited, lossy);
        flow.control.seen.queue_stands = false;
        flow.control.pacing_rate().map(Rate::bits_per_second)
    };
    let spread = bits(false, false);
    assert_eq!(spread, Some((8e6 * State::Cruise.pacing_gain()) as u64));
    assert_eq!(bits(true, false), Some(16_000_000));
    assert_eq!(bits(true, true), spread);
}

#[test]
fn a_look_at_the_least_round_trip_leaves_half_of_the_usual_least_window() {
    let mut flow = Flow::in_cruise();
    // Four segments are the least, of 100,000 bytes here.
    (flow.control.state, flow.control.mss) = (State::Look, 100_000);
    assert_eq!(flow.control.target(), 200_000);
}

#[test]
fn a_cruise_lasts_as_many_round_trips_as_were_drawn() {
    let mut flow = Flow::in_cruise();
    let end = flow.control.since + RTT * u64::from(flow.control.cruise);
    flow.take(Ack { now: end, ..flow.round(8.0, BDP) });
    assert_eq!(flow.control.state, State::Cruise);
    flow.take(Ack { now: end + Duration::from_nanos(1), ..flow.round(8.0, BDP) });
    assert_ne!(flow.control.state, State::Cruise);
}
