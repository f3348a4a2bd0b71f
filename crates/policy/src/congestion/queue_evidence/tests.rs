//! Numbers computed by hand: a path of 40 ms and segments of 1000 bytes, in whole rounds.

use super::*;
use crate::congestion::harness;

const MSS: u32 = 1_000;
const LEAST: Duration = Duration::from_millis(40);

/// A path of whole rounds.
struct Path {
    evidence: QueueEvidence,
    rounds: RoundCounter,
    now: Instant,
    delivered: u64,
    lost: u64,
}

impl Path {
    /// A path after start-up with observed room for a queue of this many milliseconds.
    fn with_room(queue: u64) -> Self {
        let mut path = Self {
            evidence: QueueEvidence::new(Instant::ZERO),
            rounds: RoundCounter::default(),
            now: Instant::ZERO,
            delivered: 0,
            lost: 0,
        };
        path.evidence.tried();
        path.round(100, 0, queue);
        for _ in 0..20 {
            path.round(100, 0, 0);
        }
        path
    }

    /// A round of `segments` segments, `lost` of them lost, with a queue of `queue` milliseconds.
    fn round(&mut self, segments: u64, lost: u64, queue: u64) {
        let prior = self.delivered;
        for number in 0..(segments - lost) / 2 {
            let rtt = LEAST + Duration::from_millis(queue);
            self.now += rtt * 2 / segments;
            self.delivered += 2 * u64::from(MSS);
            let newly = if number == 0 { lost * u64::from(MSS) } else { 0 };
            for _ in 0..newly / u64::from(MSS) {
                self.evidence.on_lost(&self.lost_segment(), self.rounds.count());
                self.lost += u64::from(MSS);
            }
            let prior = Some(if number == 0 { prior } else { 0 });
            let ack = Ack {
                rtt: Some(rtt),
                delivered: 2 * u64::from(MSS),
                total_delivered: self.delivered,
                prior_delivered: prior,
                lost: newly,
                total_lost: self.lost,
                now: self.now,
                ..harness::ack(0, 40)
            };
            self.rounds.on_ack(ack.prior_delivered, ack.total_delivered);
            let rate = Rate::from_bits_per_second(20_000_000);
            self.evidence.on_ack(&ack, LEAST, MSS, rate, &self.rounds);
        }
    }

    fn lost_segment(&self) -> Lost {
        Lost {
            now: self.now,
            bytes: u64::from(MSS),
            total_lost: self.lost + u64::from(MSS),
            total_delivered: self.delivered,
            prior_lost: self.lost,
            tx_in_flight: 0,
            app_limited: false,
        }
    }
}

#[test]
fn losses_on_an_empty_path_are_random() {
    let mut path = Path::with_room(12);
    for _ in 0..40 {
        path.round(100, 3, 0);
        assert!(!path.evidence.is_congested(MSS));
    }
    assert!((0.02..0.04).contains(&path.evidence.random_loss), "{}", path.evidence.random_loss);
    // As many during a queue are random too; many more are not.
    path.round(100, 3, 10);
    assert!(!path.evidence.is_congested(MSS));
    path.round(100, 30, 10);
    assert!(path.evidence.is_congested(MSS));
}

#[test]
fn a_loss_with_a_standing_queue_is_congestion_where_none_was_random() {
    let mut path = Path::with_room(12);
    path.round(100, 0, 10);
    path.round(100, 1, 10);
    assert!(path.evidence.is_congested(MSS));
    path.evidence.on_reduction(path.lost);
    assert!(!path.evidence.is_congested(MSS));
    path.round(100, 1, 10);
    assert!(path.evidence.is_congested(MSS));
}

/// Delays that vary from round to round, so that none is empty: whether losses are congestion that come after quick packets
/// and after slow ones, or after slow ones only.
fn congested_where_delays_vary(after_quick: u64, after_slow: u64) -> bool {
    let mut path = Path::with_room(12);
    let mut congested = false;
    for _ in 0..60 {
        // A loss is reported by the first acknowledgement of the next round.
        path.round(100, after_quick, 10);
        path.round(100, after_slow, 0);
        congested = path.evidence.is_congested(MSS);
        path.evidence.on_reduction(path.lost);
    }
    congested
}

#[test]
fn where_delays_vary_losses_are_random_if_as_many_come_after_quick_packets() {
    assert!(!congested_where_delays_vary(2, 2));
    assert!(congested_where_delays_vary(0, 2));
    assert!(congested_where_delays_vary(1, 12));
}

#[test]
fn a_rate_among_quick_packets_needs_five_hundred_and_forgets() {
    let mut quick = Quick::default();
    (0..499).for_each(|_| quick.deliver(u64::from(MSS), MSS));
    quick.lost = 5 * MSS;
    assert_eq!(quick.loss(MSS), 0.0);
    quick.deliver(u64::from(MSS), MSS);
    assert_eq!(quick.loss(MSS), 0.01);
    (500..3000).for_each(|_| quick.deliver(u64::from(MSS), MSS));
    assert_eq!((quick.delivered, quick.lost), (1500 * MSS, 5 * MSS / 2));
}

#[test]
fn without_room_for_a_queue_each_loss_counts() {
    let mut path = Path::with_room(1);
    path.round(100, 1, 0);
    assert!(path.evidence.is_congested(MSS));
}

#[test]
fn an_empty_path_that_loses_more_than_a_tenth_is_congested() {
    let mut path = Path::with_room(12);
    path.round(100, 4, 0);
    assert!(!path.evidence.is_congested(MSS));
    path.round(100, 60, 0);
    assert!(path.evidence.is_congested(MSS));
}

#[test]
fn a_reduction_for_another_subflow_covers_the_losses_of_that_round() {
    let mut path = Path::with_room(12);
    path.round(100, 0, 10);
    path.evidence.on_reduction_of_another(path.rounds.count());
    path.round(100, 1, 10);
    assert!(!path.evidence.is_congested(MSS));
    path.round(100, 0, 10);
    path.round(100, 1, 10);
    assert!(path.evidence.is_congested(MSS));
}

/// Whether an acknowledgement of so many bytes, with this round-trip time and 40 ms after the one before, may have waited.
fn is_delayed(path: &Path, rtt: Duration, bytes: u64) -> bool {
    let ack = Ack { now: path.now + Duration::from_millis(40), ..harness::ack(bytes, 40) };
    path.evidence.is_delayed(&ack, rtt, MSS)
}

#[test]
fn a_delayed_acknowledgement_is_no_queue() {
    let mut path = Path::with_room(12);
    assert!(is_delayed(&path, LEAST * 2, u64::from(MSS)));
    // A receiver waits until it has two full segments.
    assert!(is_delayed(&path, LEAST * 2, 2 * u64::from(MSS) - 1));
    assert!(!is_delayed(&path, LEAST * 2, 2 * u64::from(MSS)));
    path.round(8, 0, 0);
    assert!(path.evidence.is_empty(MSS));
}

#[test]
fn losses_of_a_young_path_that_are_rounds_apart_do_not_add_up() {
    let young = |gaps: u64| {
        let mut path = Path { evidence: QueueEvidence::new(Instant::ZERO), ..Path::with_room(12) };
        for _ in 0..4 {
            path.round(8, 1, 20);
            for _ in 0..gaps {
                path.round(8, 0, 20);
            }
        }
        path.evidence.is_congested(MSS)
    };
    // Three of two rounds are more than two segments and 2 % of sixteen.
    assert!(!young(1) && !young(2));
    let mut path = Path { evidence: QueueEvidence::new(Instant::ZERO), ..Path::with_room(12) };
    path.round(8, 1, 20);
    path.round(8, 2, 20);
    assert!(path.evidence.is_congested(MSS));
}

/// Rounds of a single segment each, acknowledged 40 ms late; then rounds of ten.
#[test]
fn after_rounds_of_delayed_acknowledgements_the_next_is_empty_at_once() {
    let mut path = Path::with_room(12);
    for _ in 0..20 {
        let prior_delivered = Some(path.delivered);
        path.now += LEAST + Duration::from_millis(40);
        path.delivered += u64::from(MSS);
        let ack = Ack {
            rtt: Some(LEAST + Duration::from_millis(40)),
            delivered: u64::from(MSS),
            total_delivered: path.delivered,
            prior_delivered,
            now: path.now,
            ..harness::ack(0, 80)
        };
        path.rounds.on_ack(ack.prior_delivered, ack.total_delivered);
        path.evidence.on_ack(&ack, LEAST, MSS, Rate::from_bits_per_second(20_000_000), &path.rounds);
    }
    assert!(!path.evidence.is_empty(MSS));
    path.round(10, 0, 0);
    assert!(path.evidence.is_empty(MSS));
}

/// The largest delay seen of a new path, in milliseconds, after acknowledgements of one segment each with these delays,
/// so many milliseconds apart.
fn largest_of_single_segments(delays: &[u64], apart: u64) -> u64 {
    let mut evidence = QueueEvidence::new(Instant::ZERO);
    let rate = Rate::from_bits_per_second(20_000_000);
    let mut now = Instant::ZERO + LEAST;
    for delay in delays {
        let ack = Ack { now, ..harness::ack(u64::from(MSS), 40 + delay) };
        evidence.on_ack(&ack, LEAST, MSS, rate, &RoundCounter::default());
        now += Duration::from_millis(apart);
    }
    evidence.largest.delay(LEAST).as_millis()
}

#[test]
fn a_receiver_that_acknowledges_each_segment_shows_the_queue() {
    assert_eq!(largest_of_single_segments(&[0, 5, 10], 5), 9);
    // What is acknowledged 15 ms after the last acknowledgement has not waited longer than these.
    assert_eq!(largest_of_single_segments(&[0, 0, 30], 15), 29);
    assert_eq!(largest_of_single_segments(&[0, 0, 30], 16), 0);
}

#[test]
fn a_lower_minimum_shows_that_what_seemed_empty_was_a_queue() {
    let random_loss_with = |least: Duration| {
        let mut path = Path::with_room(12);
        for _ in 0..40 {
            path.round(100, 2, 0);
        }
        assert!(path.evidence.random_loss > 0.01 && path.evidence.quick.loss(MSS) > 0.01);
        let ack = Ack { now: path.now, rtt: None, ..harness::ack(0, 40) };
        path.evidence.on_ack(&ack, least, MSS, Rate::from_bits_per_second(20_000_000), &path.rounds);
        (path.evidence.random_loss, path.evidence.quick.delivered)
    };
    // A 32nd of 40 ms is 1.25 ms.
    assert!(random_loss_with(Duration::from_micros(38_800)).0 > 0.01);
    assert_eq!(random_loss_with(Duration::from_micros(38_700)), (0.0, 0));
}

#[test]
fn what_is_later_than_an_acknowledgement_can_be_delayed_is_a_queue() {
    let path = Path::with_room(12);
    assert!(!is_delayed(&path, LEAST + Duration::from_millis(15), u64::from(MSS)));
    assert!(is_delayed(&path, LEAST + Duration::from_millis(16), u64::from(MSS)));
    // Each segment of a slow path is acknowledged separately.
    assert!(is_delayed(&path, LEAST + Duration::from_millis(200), u64::from(MSS)));
    assert!(!is_delayed(&path, LEAST + Duration::from_millis(201), u64::from(MSS)));
}

#[test]
fn below_200_kbit_per_second_no_acknowledgement_waits_for_the_next_segment() {
    // Two segments of 1000 bytes take 84 ms at 190 kbit/s, and 76 ms at 210.
    let is_slow = |bits: u64| {
        let mut path = Path::with_room(12);
        let ack = Ack { now: path.now, rtt: None, ..harness::ack(0, 40) };
        path.evidence.on_ack(&ack, LEAST, MSS, Rate::from_bits_per_second(bits), &path.rounds);
        path.evidence.is_slow()
    };
    assert!(is_slow(190_000) && !is_slow(200_000) && !is_slow(210_000));
}

#[test]
fn a_delay_that_the_flows_own_bursts_and_the_path_make_is_no_queue() {
    let mut path = Path::with_room(12);
    // A burst takes 1 ms at 53 Mbit/s, of 8 ms; the largest recent delay is 1.5 ms.
    let mut threshold = |least: Duration| {
        path.evidence.largest = LargestRtt::new(path.now);
        path.evidence.largest.update(path.now, least + Duration::from_micros(1_500));
        path.evidence.room = LargestRtt::new(path.now);
        path.evidence.room.update(path.now, least + Duration::from_millis(12));
        let ack = Ack { now: path.now, rtt: None, ..harness::ack(0, 40) };
        path.evidence.on_ack(&ack, least, MSS, Rate::from_bits_per_second(53_000_000), &path.rounds);
        path.evidence.threshold()
    };
    let short = threshold(Duration::from_millis(8));
    assert!((1_250..1_350).contains(&short.as_micros()), "{short:?}");
    // 256 ms: paths vary by 1/128 of it.
    assert_eq!(threshold(Duration::from_millis(256)), Duration::from_millis(2));
}

/// Whether the path has room for a queue after acknowledgements with these delays in milliseconds and this many
/// segments in flight.
fn has_room_after(delays: &[u64], in_flight: u64) -> bool {
    let mut path = Path::with_room(1);
    for delay in delays {
        let rtt = Some(LEAST + Duration::from_millis(*delay));
        let prior_in_flight = in_flight * u64::from(MSS);
        let ack = Ack { now: path.now, rtt, prior_in_flight, ..harness::ack(2_000, 40) };
        path.evidence.on_ack(&ack, LEAST, MSS, Rate::from_bits_per_second(20_000_000), &path.rounds);
    }
    path.evidence.has_room()
}

#[test]
fn one_acknowledgement_that_waits_for_the_next_segment_shows_no_room_for_a_queue() {
    assert!(!has_room_after(&[8, 0, 8], 10));
    assert!(has_room_after(&[8, 0, 8, 8], 10));
}

#[test]
fn acknowledgements_of_three_segments_in_flight_show_no_room_for_a_queue() {
    assert!(!has_room_after(&[40, 40, 40], 3));
    assert!(has_room_after(&[40, 40, 40], 4));
}

#[test]
fn a_queue_that_comes_to_stand_leaves_less_room_above_it() {
    let mut path = Path::with_room(12);
    assert!(path.evidence.has_room());
    // Among many flows the queue is never empty: after a while the minimum round-trip time includes ten of its
    // twelve milliseconds.
    let ack = Ack { now: path.now, rtt: None, ..harness::ack(0, 40) };
    let risen = LEAST + Duration::from_millis(10);
    path.evidence.on_ack(&ack, risen, MSS, Rate::from_bits_per_second(20_000_000), &path.rounds);
    assert!(!path.evidence.has_room());
}

#[test]
fn a_rate_of_one_in_a_thousand_is_remembered_for_thousands_of_segments() {
    let mut path = Path::with_room(12);
    for round in 0..100 {
        path.round(100, u64::from(round % 10 == 0) * 2, 0);
    }
    // No loss for 2,000 segments; then one during a standing queue.
    for _ in 0..20 {
        path.round(100, 0, 0);
    }
    assert!(path.evidence.random_loss > LEAST_RANDOM, "{}", path.evidence.random_loss);
    path.round(100, 0, 10);
    path.round(100, 1, 10);
    assert!(!path.evidence.is_congested(MSS));
}

#[test]
fn losses_while_a_queue_stands_are_compared_with_what_was_sent_meanwhile() {
    let mut path = Path::with_room(12);
    for _ in 0..40 {
        path.round(100, 2, 0);
    }
    // As frequent as before, over twelve rounds.
    for round in 0..12 {
        path.round(100, 2, 10);
        assert!(!path.evidence.is_congested(MSS), "round {round}");
    }
}

#[test]
fn a_path_is_empty_after_eight_segments_of_which_less_than_an_eighth_and_some_waited() {
    let is_empty = |judged: u32, queued: u32, busy: f64| {
        let mut evidence = QueueEvidence::new(Instant::ZERO);
        (evidence.round.judged, evidence.round.queued, evidence.busy) = (judged, queued, busy);
        evidence.is_empty(MSS)
    };
    assert!(is_empty(8_000, 0, 0.0) && !is_empty(7_999, 0, 0.0));
    assert!(is_empty(20_000, 2_999, 0.0) && !is_empty(20_000, 3_000, 0.0), "15 % of this round");
    assert!(is_empty(20_000, 0, 0.249) && !is_empty(20_000, 0, 0.25), "a quarter of the rounds before");
}

#[test]
fn a_round_trip_is_known_until_the_interval_after_its_own_ends() {
    let mut largest = LargestRtt::<10>::new(Instant::ZERO);
    // In units of 1024 ns.
    let mut seen = |millis, rtt: u64| {
        largest.update(Instant::ZERO + Duration::from_millis(millis), Duration::from_nanos(rtt << 10));
        largest.delay(Duration::from_nanos(1_000 << 10)).as_nanos() >> 10
    };
    assert_eq!([seen(5_000, 50_000), seen(10_000, 20_000), seen(10_001, 20_000)], [49_000; 3]);
    // The second interval began at 10,001 ms.
    assert_eq!([seen(20_001, 20_000), seen(20_002, 20_000)], [49_000, 19_000]);
}

/// Whether so many bytes lost are congestion, 100 segments having been sent in a round.
fn is_congested(lost: u32, change: fn(&mut QueueEvidence)) -> bool {
    let mut evidence = QueueEvidence::new(Instant::ZERO);
    evidence.min_rtt = LEAST;
    evidence.round = Round { delivered: 100_000, judged: 100_000, ..Round::default() };
    evidence.lost_since = lost;
    change(&mut evidence);
    evidence.is_congested(MSS)
}

#[test]
fn on_an_empty_path_congestion_is_a_tenth_and_two_deviations_and_three_segments() {
    // 10 + 2 * 3.16228 + 3 = 19.32456.
    assert_eq!([19_324, 19_325].map(|lost| is_congested(lost, |_| {})), [false, true]);
    // 9 + 2 * 3 + 3.
    let ninety = |evidence: &mut QueueEvidence| (evidence.round.delivered, evidence.round.judged) = (90_000, 90_000);
    assert_eq!([18_000, 18_001].map(|lost| is_congested(lost, ninety)), [false, true]);
}

#[test]
fn during_start_up_congestion_is_two_segments_and_two_hundredths_more_than_at_random() {
    let lost = |evidence: &mut QueueEvidence| (evidence.round.queued, evidence.random_loss) = (100_000, 0.01);
    // 2 + (0.01 + 0.02) * 100.
    assert_eq!([5_000, 5_001].map(|bytes| is_congested(bytes, lost)), [false, true]);
}

#[test]
fn with_a_queue_congestion_is_three_deviations_and_a_segment_more_than_at_random_of_what_was_sent_since() {
    fn with_a_queue(evidence: &mut QueueEvidence) {
        evidence.tried();
        evidence.round.queued = 100_000;
        evidence.room.update(Instant::ZERO, LEAST * 2);
        evidence.random_loss = 0.04;
    }
    // 4 + 3 * 2 + 1.
    assert_eq!([11_000, 11_001].map(|lost| is_congested(lost, with_a_queue)), [false, true]);
    // Of 400 segments: 16 + 3 * 4 + 1.
    let since = |evidence: &mut QueueEvidence| {
        with_a_queue(evidence);
        evidence.sent_since = 400_000;
    };
    assert_eq!([29_000, 29_001].map(|lost| is_congested(lost, since)), [false, true]);
    // So rare as not to allow for a segment: 0.01 + 3 * 0.1.
    let rare = |evidence: &mut QueueEvidence| {
        with_a_queue(evidence);
        evidence.random_loss = 1e-4;
    };
    assert_eq!([309, 311].map(|lost| is_congested(lost, rare)), [false, true]);
}

#[test]
fn a_round_counts_for_a_quarter_of_the_smoothed_share_that_was_queued_if_anything_was_delivered() {
    let mut evidence = QueueEvidence::new(Instant::ZERO);
    evidence.busy = 0.2;
    evidence.round = Round { delivered: 100_000, judged: 100_000, queued: 40_000, lost: 0 };
    evidence.end_round(MSS);
    // 0.2 + (0.4 - 0.2) / 4.
    assert!((evidence.busy - 0.25).abs() < 1e-9, "{}", evidence.busy);
    evidence.end_round(MSS);
    assert!((evidence.busy - 0.25).abs() < 1e-9, "{}", evidence.busy);
}

#[test]
fn a_round_on_an_empty_path_is_taken_into_the_random_losses_by_its_segments_and_another_lets_them_decay() {
    let after = |queued: u32, known: (f64, u32)| {
        let mut evidence = QueueEvidence::new(Instant::ZERO).with_random_loss(known);
        // 98 segments arrived and two were lost; a loss of the current acknowledgement is of the next round.
        evidence.round = Round { delivered: 98_000, judged: 98_000, queued, lost: 2_000 };
        (evidence.lost_since, evidence.lost_now, evidence.sent_since) = (2_000, 1_000, 100_000);
        evidence.end_round(MSS);
        let (rate, segments) = evidence.random_loss();
        ((rate * 1e6).round() as u32, segments, evidence.lost_since, evidence.sent_since)
    };
    // A fifth of 0.02, since 500 segments count at first.
    assert_eq!(after(0, (0.0, 0)), (4_000, 100, 1_000, 0));
    // 0.01 + (0.02 - 0.01) * 100 / 1000, and of 3000 segments at the most.
    assert_eq!(after(0, (0.01, 900)), (11_000, 1_000, 1_000, 0));
    assert_eq!(after(0, (0.01, 8_900)), (10_333, 9_000, 1_000, 0));
    // All were queued: two hundredths are forgotten.
    assert_eq!(after(98_000, (0.01, 900)), (9_800, 900, 2_000, 100_000));
}

#[test]
fn a_path_has_room_for_a_queue_of_a_sixteenth_of_its_round_trip_and_two_segments() {
    let has_room = |queue: u64| {
        let mut evidence = QueueEvidence::new(Instant::ZERO);
        (evidence.min_rtt, evidence.pair) = (LEAST, Duration::from_millis(1));
        evidence.room.update(Instant::ZERO, LEAST + Duration::from_micros(queue));
        evidence.has_room()
    };
    // 2.5 ms and 1 ms.
    assert_eq!([3_400, 3_600].map(has_room), [false, true]);
}
