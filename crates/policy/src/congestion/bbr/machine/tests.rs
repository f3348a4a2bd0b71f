//! BBR's rules with numbers computed by hand: segments of 1000 bytes, a path of 8 Mbit/s (1000 bytes per millisecond)
//! and 100 ms, so that the bandwidth-delay product is 100 000 bytes.

use super::*;
use crate::congestion::harness::{NOW, START, ack, close_to, congestion, loss, timeout};

const RTT: Duration = Duration::from_millis(100);
const BDP: u64 = 100_000;

fn mbit(rate: f64) -> Rate {
    Rate::from_bits_per_second((rate * 1e6) as u64)
}

/// A flow whose acknowledgements are whole rounds.
struct Flow {
    bbr: Bbr,
    now: Instant,
    delivered: u64,
    lost: u64,
}

impl Flow {
    fn new() -> Self {
        Self { bbr: Bbr::start(&(), Start { smoothed_rtt: RTT, ..START }), now: NOW, delivered: 0, lost: 0 }
    }

    /// An acknowledgement of a segment sent after all earlier data was delivered: it ends a round.
    fn round(&self, rate: f64, in_flight: u64) -> Ack {
        Ack {
            now: self.now + RTT,
            delivery_rate: Some(mbit(rate)),
            prior_delivered: Some(self.delivered),
            total_delivered: self.delivered + BDP,
            in_flight,
            tx_in_flight: in_flight + 1_000,
            total_lost: self.lost,
            prior_lost: self.lost,
            ..ack(BDP, 100)
        }
    }

    fn take(&mut self, ack: Ack) {
        self.now = ack.now;
        self.delivered = ack.total_delivered;
        self.bbr.on_ack(&ack);
    }

    fn pass_rounds(&mut self, rounds: usize, rate: f64, in_flight: u64) {
        for _ in 0..rounds {
            let ack = self.round(rate, in_flight);
            self.take(ack);
        }
    }

    /// Through Startup and Drain; with so little in flight Down ends at once.
    fn in_cruise() -> Self {
        let mut flow = Self::new();
        flow.pass_rounds(4, 8.0, 2 * BDP);
        flow.pass_rounds(1, 8.0, BDP);
        assert_eq!(flow.bbr.state, State::Cruise);
        flow
    }

    fn in_up() -> Self {
        let mut flow = Self::in_cruise();
        flow.now += Duration::from_secs(3);
        flow.pass_rounds(1, 8.0, BDP);
        assert_eq!(flow.bbr.state, State::Refill);
        flow.pass_rounds(1, 8.0, BDP);
        assert_eq!(flow.bbr.state, State::Up);
        flow
    }

    fn lose(&mut self, bytes: u64, prior_lost: u64, tx_in_flight: u64) {
        self.lost += bytes;
        self.bbr.on_lost(&Lost {
            now: self.now,
            bytes,
            total_lost: self.lost,
            total_delivered: self.delivered,
            prior_lost,
            tx_in_flight,
            app_limited: false,
        });
    }
}

#[test]
fn the_first_segments_are_paced_by_the_initial_window_over_the_round_trip_of_the_handshake() {
    // 10 000 bytes in 100 ms are 800 kbit/s; 2.77 times that.
    assert_eq!(Flow::new().bbr.pacing_rate(), Some(mbit(2.216)));
    // Without a round-trip time 1 ms is assumed until the first sample of 100 ms.
    let mut blind = Bbr::start(&(), Start { smoothed_rtt: Duration::ZERO, ..START });
    assert_eq!(blind.pacing_rate(), Some(mbit(221.6)));
    blind.on_ack(&Ack { delivery_rate: None, ..ack(1_000, 100) });
    assert_eq!(blind.pacing_rate(), Some(mbit(2.216)));
}

#[test]
fn startup_ends_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let mut flow = Flow::new();
    flow.pass_rounds(1, 4.0, BDP);
    flow.pass_rounds(1, 5.0, BDP); // 25 % more
    flow.pass_rounds(2, 6.0, BDP); // 20 % more than 5, twice
    assert_eq!(flow.bbr.state, State::Startup);
    // 2.77 * 0.99 * 6 Mbit/s.
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 16_453_800.0, 1.0);
    flow.pass_rounds(1, 6.0, BDP);
    assert_eq!(flow.bbr.state, State::Drain);
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 2_970_000.0, 1.0);
}

#[test]
fn rounds_limited_by_the_application_are_not_counted_and_their_rates_only_raise() {
    let mut flow = Flow::new();
    flow.pass_rounds(1, 8.0, BDP);
    for _ in 0..10 {
        let limited = Ack { app_limited: true, ..flow.round(2.0, BDP) };
        flow.take(limited);
    }
    assert_eq!(flow.bbr.state, State::Startup);
    assert_eq!(flow.bbr.model.max_rate(), mbit(8.0));
    let limited = Ack { app_limited: true, ..flow.round(9.0, BDP) };
    flow.take(limited);
    assert_eq!(flow.bbr.model.max_rate(), mbit(9.0));
}

#[test]
fn drain_ends_when_no_more_than_the_product_is_in_flight_and_the_window_is_twice_that() {
    let mut flow = Flow::new();
    flow.pass_rounds(4, 8.0, 2 * BDP);
    assert_eq!(flow.bbr.state, State::Drain);
    flow.pass_rounds(1, 8.0, BDP + 1);
    assert_eq!(flow.bbr.state, State::Drain);
    flow.pass_rounds(1, 8.0, BDP);
    assert_eq!(flow.bbr.state, State::Cruise);
    // Each round of 100 ms delivers just the product: nothing extra was acknowledged but the round at the beginning of
    // which counting began anew, which is one window at most: 2 * 100 000 + 100 000.
    assert_eq!(flow.bbr.window(), 300_000);
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 0.99 * 8e6, 1.0);
}

#[test]
fn a_cycle_goes_down_cruises_for_two_to_three_seconds_refills_for_a_round_and_probes() {
    let mut flow = Flow::in_cruise();
    let began = flow.now;
    while flow.bbr.state == State::Cruise {
        flow.pass_rounds(1, 8.0, BDP);
    }
    let waited = (flow.now - began).as_secs_f64();
    assert!((1.8..=3.1).contains(&waited), "{waited} s");
    assert_eq!(flow.bbr.state, State::Refill);
    flow.pass_rounds(1, 8.0, BDP);
    assert_eq!(flow.bbr.state, State::Up);
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 1.25 * 0.99 * 8e6, 1.0);
    // A probe without a result ends like Startup, after three rounds.
    flow.pass_rounds(2, 8.0, BDP);
    assert_eq!(flow.bbr.state, State::Up);
    flow.pass_rounds(1, 8.0, 2 * BDP);
    assert_eq!(flow.bbr.state, State::Down);
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 0.9 * 0.99 * 8e6, 1.0);
}

#[test]
fn a_rate_is_forgotten_a_cycle_after_the_one_it_was_seen_in() {
    let mut flow = Flow::in_cruise();
    let mut cycles = 0;
    while flow.bbr.model.max_rate() == mbit(8.0) {
        let before = flow.bbr.state;
        flow.pass_rounds(1, 6.0, 50_000);
        cycles += u32::from(before == State::Up && flow.bbr.state == State::Down);
        assert!(cycles < 5);
    }
    assert_eq!(flow.bbr.model.max_rate(), mbit(6.0));
    // The filter advanced a round after Startup, and again a round after the only probe since.
    assert_eq!(cycles, 1);
}

#[test]
fn losses_while_cruising_pull_the_rate_down_to_what_is_delivered_but_not_below_0_7_per_round() {
    let mut flow = Flow::in_cruise();
    flow.pass_rounds(1, 7.6, BDP);
    flow.lose(1_000, 0, BDP);
    flow.pass_rounds(1, 7.6, BDP);
    // bw_latest is 7.6, 0.7 * 8 is 5.6.
    assert_eq!(flow.bbr.model.bounds.bw_shortterm, mbit(7.6));
    assert_eq!(flow.bbr.model.bw, mbit(7.6));
    flow.lose(1_000, 1_000, BDP);
    flow.pass_rounds(1, 1.0, BDP);
    assert_eq!(flow.bbr.model.bounds.bw_shortterm, mbit(7.6)); // the round began with a sample of 7.6
    flow.lose(1_000, 2_000, BDP);
    flow.pass_rounds(1, 1.0, BDP);
    close_to(flow.bbr.model.bounds.bw_shortterm.bits_per_second() as f64, 0.7 * 7.6e6, 1.0);
    assert_eq!(flow.bbr.model.max_rate(), mbit(8.0));
}

#[test]
fn more_than_two_percent_lost_ends_a_probe_and_bounds_what_may_be_in_flight() {
    let mut flow = Flow::in_up();
    // Sent with 100 000 in flight; the first two of three segments are 2 %, the third is too much.
    flow.lose(1_000, 0, BDP);
    flow.lose(1_000, 0, BDP);
    assert_eq!((flow.bbr.state, flow.bbr.model.bounds.inflight_longterm), (State::Up, UNBOUNDED));
    flow.lose(1_000, 0, BDP);
    assert_eq!(flow.bbr.state, State::Down);
    // Before it 99 000 in flight and 2000 lost: (0.02 * 99 000 - 2000) / 0.98 = -20.4, so 98 979.
    assert_eq!(flow.bbr.model.bounds.inflight_longterm, 98_979);
    // Once per probe.
    flow.lose(1_000, 0, 50_000);
    assert_eq!(flow.bbr.model.bounds.inflight_longterm, 98_979);
    // 15 % of it are left free in Cruise.
    assert_eq!(flow.bbr.model.inflight_with_headroom(), 98_979 - 14_846);
}

#[test]
fn losses_end_a_probe_that_the_application_limited_but_say_nothing_of_what_may_be_in_flight() {
    let mut flow = Flow::in_up();
    // A tenth of what was in flight.
    flow.bbr.on_lost(&Lost {
        now: flow.now,
        bytes: 1_000,
        total_lost: 1_000,
        total_delivered: flow.delivered,
        prior_lost: 0,
        tx_in_flight: 10_000,
        app_limited: true,
    });
    assert_eq!((flow.bbr.state, flow.bbr.model.bounds.inflight_longterm), (State::Down, UNBOUNDED));
}

#[test]
fn a_single_probe_is_no_steeper_than_cubic() {
    let mut flow = Flow::in_up();
    // Lost with only 10 000 in flight: 0.7 of the product is kept.
    flow.lose(1_000, 0, 10_000);
    assert_eq!(flow.bbr.model.bounds.inflight_longterm, 70_000);
}

#[test]
fn the_bound_is_raised_by_one_two_four_segments_per_round() {
    let mut flow = Flow::in_up();
    flow.bbr.model.bounds.inflight_longterm = BDP;
    flow.bbr.cycle.up_rounds = 0;
    let mut raised = Vec::new();
    for _ in 0..3 {
        // A window of 100 000, all of it used, acknowledged in a round: one segment for each 100 000, 50 000, 25 000.
        flow.bbr.control.cwnd = flow.bbr.model.bounds.inflight_longterm;
        flow.bbr.cycle.raise_slope(flow.bbr.control.cwnd, flow.bbr.model.mss);
        flow.bbr.cycle.up_acked = 0;
        let before = flow.bbr.model.bounds.inflight_longterm;
        let all = Ack { prior_delivered: None, delivered: before, ..flow.round(8.0, 0) };
        flow.bbr.on_ack(&Ack { tx_in_flight: 0, ..all });
        raised.push(flow.bbr.model.bounds.inflight_longterm - before);
    }
    assert_eq!(raised, [1_000, 2_000, 4_000]);
}

#[test]
fn probe_rtt_holds_half_the_product_for_200_ms_after_five_seconds_without_a_new_least_round_trip() {
    let mut flow = Flow::in_cruise();
    while flow.bbr.state != State::ProbeRtt {
        let longer = Ack { rtt: Some(RTT + Duration::from_millis(1)), ..flow.round(8.0, BDP) };
        flow.take(longer);
        assert!(flow.now < NOW + Duration::from_secs(6));
    }
    assert!(flow.now > NOW + Duration::from_secs(5));
    assert_eq!(flow.bbr.window(), BDP / 2);
    // The flight falls to half: then 200 ms and a round. Data delivered meanwhile says nothing of the path.
    flow.pass_rounds(1, 4.0, BDP / 2);
    let began = flow.now;
    while flow.bbr.state == State::ProbeRtt {
        flow.pass_rounds(1, 4.0, BDP / 2);
    }
    assert_eq!(flow.now - began, Duration::from_millis(300)); // the first round that ends later than 200 ms
    assert_eq!(flow.bbr.state, State::Cruise);
    assert!(flow.bbr.window() >= 2 * BDP);
    assert_eq!(flow.bbr.model.max_rate(), mbit(8.0));
}

#[test]
fn a_timeout_leaves_one_segment_and_the_end_of_recovery_restores_the_window() {
    let mut flow = Flow::in_cruise();
    let before = flow.bbr.window();
    flow.bbr.on_congestion(&timeout(BDP));
    assert_eq!(flow.bbr.window(), 1_000);
    flow.bbr.on_recovery_end(flow.now);
    assert_eq!(flow.bbr.window(), before);
}

#[test]
fn losses_that_were_none_are_taken_back() {
    let mut flow = Flow::in_up();
    for _ in 0..3 {
        flow.lose(1_000, 0, BDP);
    }
    flow.bbr.on_congestion(&loss(BDP));
    assert_eq!(flow.bbr.state, State::Down);
    flow.bbr.on_spurious(flow.now);
    assert_eq!((flow.bbr.state, flow.bbr.model.bounds.inflight_longterm), (State::Refill, UNBOUNDED));
    // Not in a probe of the round trip.
    flow.bbr.undo_mut().state = Some(State::Up);
    flow.bbr.state = State::ProbeRtt;
    flow.bbr.on_spurious(flow.now);
    assert_eq!(flow.bbr.state, State::ProbeRtt);
}

/// In Drain because of losses in Startup.
fn driven_out_of_startup() -> Flow {
    let mut flow = Flow::new();
    flow.pass_rounds(2, 8.0, 2 * BDP);
    flow.lose(1_000, 0, 2 * BDP);
    flow.bbr.on_congestion(&loss(2 * BDP));
    flow.pass_rounds(1, 8.0, 2 * BDP);
    assert_eq!(flow.bbr.state, State::Startup);
    // Six acknowledgements in one round show losses; the round's flight of 200 000 lost 6000, 3 %. Rates still grow.
    for _ in 0..6 {
        flow.lose(1_000, 0, 2 * BDP);
        let within = Ack {
            prior_delivered: Some(flow.delivered - BDP),
            total_delivered: flow.delivered,
            lost: 1_000,
            ..flow.round(11.0, 2 * BDP)
        };
        flow.bbr.on_ack(&Ack { now: flow.now, ..within });
    }
    assert_eq!(flow.bbr.state, State::Startup);
    let end = Ack { prior_lost: 1_000, total_lost: 7_000, tx_in_flight: 2 * BDP, ..flow.round(16.0, 2 * BDP + 1) };
    flow.take(end);
    assert_eq!(flow.bbr.state, State::Drain);
    flow
}

#[test]
fn much_loss_ends_startup_only_after_a_round_in_recovery() {
    let flow = driven_out_of_startup();
    // The larger of the product at 16 Mbit/s, 200 000, and what a round delivered.
    assert_eq!(flow.bbr.model.bounds.inflight_longterm, 200_000);
}

#[test]
fn an_end_of_startup_for_losses_that_were_none_is_taken_back() {
    let mut flow = driven_out_of_startup();
    flow.bbr.on_spurious(flow.now);
    assert_eq!((flow.bbr.state, flow.bbr.full_pipe.reached), (State::Startup, false));
    // A probe of the round trip goes on; Startup follows it.
    let mut flow = driven_out_of_startup();
    flow.bbr.state = State::ProbeRtt;
    flow.bbr.on_spurious(flow.now);
    assert_eq!((flow.bbr.state, flow.bbr.full_pipe.reached), (State::ProbeRtt, false));
}

#[test]
fn a_mark_counts_as_a_loss_of_its_round_and_a_penalty_halves_the_window() {
    let mut flow = Flow::in_cruise();
    flow.bbr.on_congestion(&congestion(Congestion::Mark, BDP));
    flow.pass_rounds(1, 6.0, BDP);
    assert!(flow.bbr.model.bounds.bw_shortterm < mbit(8.1));
    let before = flow.bbr.window();
    flow.bbr.on_congestion(&congestion(Congestion::Penalty, BDP));
    assert_eq!(flow.bbr.window(), before / 2);
    // Four segments of 1000 bytes are left, unless there were fewer.
    for (window, halved) in [(9_000, 4_500), (7_000, 4_000), (3_000, 3_000)] {
        flow.bbr.control.cwnd = window;
        flow.bbr.on_congestion(&congestion(Congestion::Penalty, BDP));
        assert_eq!(flow.bbr.window(), halved);
    }
}

#[test]
fn after_a_pause_of_the_application_segments_leave_at_the_rate_of_the_model() {
    let mut flow = Flow::in_up();
    let sent =
        Sent { now: flow.now, bytes: 1_000, in_flight: 1_000, total_delivered: flow.delivered, app_limited: true };
    flow.bbr.on_sent(&sent);
    close_to(flow.bbr.control.pacing_rate.bits_per_second() as f64, 0.99 * 8e6, 1.0);
}

#[test]
fn a_window_that_recovery_or_a_probe_of_the_round_trip_cut_is_not_what_is_saved() {
    let saved = |change: fn(&mut Bbr)| {
        let mut bbr = Flow::in_cruise().bbr;
        bbr.control.cwnd = 200_000;
        bbr.control.save_window(false);
        bbr.control.cwnd = 50_000;
        change(&mut bbr);
        bbr.save_window();
        bbr.control.restore_window();
        bbr.control.cwnd
    };
    assert_eq!(saved(|_| {}), 50_000);
    assert_eq!(saved(|bbr| bbr.recovering_since = 1), 200_000);
    assert_eq!(saved(|bbr| bbr.state = State::ProbeRtt), 200_000);
}

#[test]
fn only_an_acknowledgement_that_revealed_a_loss_counts_as_one() {
    let mut flow = Flow::new();
    for (lost, events) in [(0, 0), (1_000, 1), (0, 1)] {
        // Of data that was sent before anything was delivered: the round goes on.
        let ack = Ack { prior_delivered: Some(0), lost, ..flow.round(8.0, BDP) };
        flow.bbr.losses.record_loss(u64::MAX);
        flow.take(ack);
        assert_eq!(flow.bbr.losses.events(), events, "{lost} lost");
    }
}

#[test]
fn losses_of_the_round_in_which_recovery_began_do_not_end_startup() {
    let ends = |rounds_in_recovery| {
        let mut flow = Flow::new();
        flow.pass_rounds(2, 8.0, 2 * BDP);
        assert!(flow.bbr.losses.is_start());
        (0..FULL_LOSS_COUNT).for_each(|_| flow.bbr.losses.count_event());
        flow.bbr.recovering_since = flow.bbr.rounds.count() - rounds_in_recovery;
        // 3 % of the flight.
        let sample = Sample { lost: 6_000, tx_in_flight: 2 * BDP, ..Sample::of(&flow.round(8.0, BDP), false) };
        flow.bbr.check_high_loss(&sample);
        flow.bbr.full_pipe.reached
    };
    assert_eq!([0, 1].map(ends), [false, true]);
}

#[test]
fn an_ascent_ends_when_the_pipe_is_full_unless_the_bound_limited_the_window() {
    let ends = |cwnd, cwnd_limited| {
        let mut flow = Flow::in_up();
        flow.bbr.cycle.too_high = false;
        (flow.bbr.model.bounds.inflight_longterm, flow.bbr.control.cwnd) = (2 * BDP, cwnd);
        flow.bbr.full_pipe.now = true;
        let ack = Ack { cwnd_limited, ..flow.round(8.0, BDP) };
        let ends = flow.bbr.is_time_to_go_down(&ack, &Sample::of(&ack, false));
        (ends, flow.bbr.full_pipe.now)
    };
    assert_eq!(ends(2 * BDP, true), (false, false));
    assert_eq!([ends(2 * BDP, false), ends(2 * BDP - 1, true)], [(true, true); 2]);
}

#[test]
fn an_ascent_that_lost_too_much_ends_while_as_much_as_the_bound_is_in_flight() {
    let ends = |in_flight| {
        let mut flow = Flow::in_up();
        (flow.bbr.cycle.too_high, flow.bbr.cycle.precautionary) = (true, false);
        flow.bbr.model.bounds.inflight_longterm = 2 * BDP;
        let ack = Ack { cwnd_limited: false, ..flow.round(8.0, in_flight) };
        let ends = flow.bbr.is_time_to_go_down(&ack, &Sample::of(&ack, false));
        (ends, flow.bbr.cycle.precautionary)
    };
    assert_eq!([2 * BDP, 2 * BDP - 1].map(ends), [(true, true), (false, false)]);
}

#[test]
fn a_refill_begins_an_ascent_anew() {
    let mut flow = Flow::in_up();
    let cycle = &mut flow.bbr.cycle;
    (cycle.up_rounds, cycle.up_acked, cycle.precautionary) = (3, 5_000, true);
    flow.bbr.start_refill(flow.delivered);
    let cycle = &flow.bbr.cycle;
    assert_eq!((cycle.up_rounds, cycle.up_acked, cycle.precautionary), (0, 0, false));
    assert_eq!(cycle.ack_phase, AckPhase::Refilling);
}

#[test]
fn what_is_acknowledged_beyond_a_step_counts_towards_the_next() {
    let mut cycle = Cycle::new(NOW);
    // A step is a window at first.
    cycle.start_up(BDP, 1_000);
    let steps = [2 * BDP + BDP / 2, BDP / 2, BDP - 1, 1].map(|acked| cycle.take_steps(acked));
    assert_eq!(steps, [2, 1, 0, 1]);
}

#[test]
fn a_probe_is_due_after_its_wait_or_after_as_many_rounds_as_segments_are_in_flight() {
    let due = |rounds: u64, flight: u64, later: u64| {
        let mut cycle = Cycle::new(NOW);
        (0..rounds).for_each(|_| cycle.count_round());
        cycle.is_time_to_probe(NOW + Duration::from_nanos(later), flight, 1_000)
    };
    assert_eq!([due(0, BDP, 0), due(0, BDP, 1)], [false, true]);
    assert_eq!([due(9, 10_000, 0), due(10, 10_000, 0)], [false, true]);
    // Four rounds at least, and 63 at the most.
    assert_eq!([due(3, 1_000, 0), due(4, 1_000, 0), due(62, BDP, 0), due(63, BDP, 0)], [false, true, false, true]);
}
