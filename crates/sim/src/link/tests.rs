//! Each stage of a link compared with results by hand.

use super::*;
use std::sync::Arc;

/// A packet: number, length, whether it is ECN-capable, marked, corrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parcel {
    number: u32,
    length: u32,
    capable: bool,
    marked: bool,
    damaged: bool,
}

#[derive(Default)]
struct Depot {
    dropped: Vec<(u32, DropCause)>,
}

impl Cargo for Depot {
    type Item = Parcel;
    fn length(&self, item: &Parcel) -> u32 {
        item.length
    }
    fn mark_congestion(&mut self, item: &mut Parcel) -> bool {
        item.marked |= item.capable;
        item.capable
    }
    fn corrupt(&mut self, item: &mut Parcel, _luck: u32) {
        item.damaged = true;
    }
    fn duplicate(&mut self, item: &Parcel) -> Parcel {
        *item
    }
    fn discard(&mut self, item: Parcel, cause: DropCause) {
        self.dropped.push((item.number, cause));
    }
}

struct Bench {
    link: Link<Parcel>,
    depot: Depot,
    sent: u32,
    arrived: Vec<(u64, Parcel)>,
}

fn us(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}
fn span(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
const MBIT: Rate = Rate::from_bits_per_second(1_000_000);

impl Bench {
    fn new(config: LinkConfig) -> Self {
        Self { link: Link::new(&config, 1, "link"), depot: Depot::default(), sent: 0, arrived: Vec::new() }
    }
    /// Takes everything that arrives until `end`, and records the times in microseconds.
    fn run(&mut self, end: Instant) {
        while self.link.poll_timeout() <= end && self.link.poll_timeout() != Instant::NEVER {
            let now = self.link.poll_timeout();
            self.link.handle_timeout(now, &mut self.depot);
            while let Some(item) = self.link.poll_delivery(now) {
                self.arrived.push((now.as_nanos() / 1000, item));
            }
        }
    }
    fn offer(&mut self, time: Instant, length: u32) {
        self.offer_with(time, length, false);
    }
    fn offer_with(&mut self, time: Instant, length: u32, capable: bool) {
        self.run(time);
        let item = Parcel { number: self.sent, length, capable, marked: false, damaged: false };
        self.sent += 1;
        self.link.handle_packet(time, item, &mut self.depot);
    }
    /// Runs to the end; returns arrivals as (time in microseconds, number).
    fn arrivals(&mut self) -> Vec<(u64, u32)> {
        self.run(us(u64::MAX / 2000));
        self.arrived.iter().map(|(time, item)| (*time, item.number)).collect()
    }
}

#[test]
fn a_packet_takes_its_serialisation_time_and_the_delay() {
    // 1000 bytes at 1 Mbit/s take 8 ms, then 5 ms under way.
    let mut bench = Bench::new(LinkConfig::new(MBIT, span(5_000), 10));
    bench.offer(us(100), 1000);
    bench.offer(us(200), 500);
    bench.offer(us(50_000), 125);
    assert_eq!(bench.arrivals(), [(13_100, 0), (17_100, 1), (56_000, 2)]);
}

#[test]
fn the_queue_overflows_at_exactly_its_limit_and_the_packet_being_sent_does_not_count() {
    let mut bench = Bench::new(LinkConfig::new(MBIT, span(0), 3));
    (0..6).for_each(|_| bench.offer(us(0), 1000));
    // At 8 ms the first has left and the second starts: one packet fits into the queue again.
    bench.offer(us(7_999), 1000);
    bench.offer(us(8_000), 1000);
    assert_eq!(bench.depot.dropped, [(4, DropCause::Overflow), (5, DropCause::Overflow), (6, DropCause::Overflow)]);
    assert_eq!(bench.arrivals(), [(8_000, 0), (16_000, 1), (24_000, 2), (32_000, 3), (40_000, 7)]);
    let counters = *bench.link.counters();
    assert_eq!((counters.offered_packets, counters.delivered_packets, counters.peak_queue_packets), (8, 5, 3));
    assert_eq!((counters.delivered_bytes, counters.drops.get(DropCause::Overflow)), (5_000, 3));
}

#[test]
fn a_limit_in_bytes_lets_a_small_packet_in_where_a_large_one_is_dropped() {
    let queue = QueueConfig { limit: QueueLimit::Bytes(1_500), discipline: Discipline::DropTail };
    let mut bench = Bench::new(LinkConfig { queue, ..LinkConfig::new(MBIT, span(0), 0) });
    bench.offer(us(0), 1000);
    bench.offer(us(0), 1000);
    bench.offer(us(0), 501);
    bench.offer(us(0), 500);
    assert_eq!(bench.depot.dropped, [(2, DropCause::Overflow)]);
    assert_eq!(bench.arrivals(), [(8_000, 0), (16_000, 1), (20_000, 3)]);
}

#[test]
fn a_trace_serves_1500_bytes_at_each_opportunity_and_loses_those_nobody_waits_for() {
    let trace = Arc::new(RateTrace::parse("1\n2\n2\n10\n").unwrap());
    assert_eq!(trace.mean_rate().bits_per_second(), 4_800_000);
    let mut bench = Bench::new(LinkConfig { rate: RateModel::Trace(trace), ..LinkConfig::default() });
    // At 1 ms exactly, the opportunity at 1 ms is over. Both at 2 ms are used; the third waits for 10 ms.
    (0..3).for_each(|_| bench.offer(us(1_000), 1500));
    // The second round has opportunities at 11, 12, 12 and 20 ms. Three of 500 share 11 ms; 1600 need both at 12 ms,
    // whose second has 1400 left for the next.
    bench.offer(us(10_500), 500);
    bench.offer(us(10_500), 500);
    bench.offer(us(10_500), 500);
    bench.offer(us(10_600), 1600);
    bench.offer(us(10_600), 1400);
    bench.offer(us(10_700), 1);
    bench.offer(us(60_500), 40);
    let times: Vec<u64> = bench.arrivals().into_iter().map(|(time, _)| time).collect();
    assert_eq!(times, [2_000, 2_000, 10_000, 11_000, 11_000, 11_000, 12_000, 12_000, 20_000, 61_000]);
}

#[test]
fn what_is_left_of_an_opportunity_is_not_for_those_who_come_later() {
    let trace = Arc::new(RateTrace::parse("5").unwrap());
    let mut bench = Bench::new(LinkConfig { rate: RateModel::Trace(trace), ..LinkConfig::default() });
    bench.offer(us(1_000), 100);
    bench.offer(us(5_000), 100);
    bench.offer(us(5_001), 100);
    assert_eq!(bench.arrivals(), [(5_000, 0), (10_000, 1), (10_000, 2)]);
}

#[test]
fn a_trace_that_is_none_is_refused_with_its_line() {
    assert_eq!(RateTrace::parse(""), Err(TraceError::Empty));
    assert_eq!(RateTrace::parse("0\n0"), Err(TraceError::Empty));
    assert_eq!(RateTrace::parse("3\n2"), Err(TraceError::Backwards { line: 2 }));
    assert_eq!(RateTrace::parse("3\nx"), Err(TraceError::NotANumber { line: 2, text: "x".to_owned() }));
}

#[test]
fn codel_drops_first_after_an_interval_above_target_and_then_ever_faster() {
    // Service takes 1 ms (125 bytes at 1 Mbit/s), and 2000 packets come at once, so the k-th (from 0) starts after
    // k ms. Above target from packet 5 at 5 ms on; dropping begins 100 ms later, at the packet that starts at 105 ms.
    // Then drops follow after 100, 100/sqrt(2), 100/sqrt(3) ms, each at the first start at or after its time; a
    // drop lets the next packet start at once, so numbers run ahead of milliseconds by the drops so far.
    let queue = QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::CODEL };
    let mut bench = Bench::new(LinkConfig { queue, ..LinkConfig::new(MBIT, span(0), 0) });
    (0..2000).for_each(|_| bench.offer(us(0), 125));
    bench.arrivals();
    let dropped: Vec<u32> = bench.depot.dropped.iter().map(|(number, _)| *number).collect();
    // Times: 105; 205; 205 + 70.71 = 275.71 -> 276; 275.71 + 57.74 = 333.45 -> 334; 333.45 + 50 = 383.45 -> 384.
    // Numbers: 105; 205 + 1; 276 + 2; 334 + 3; 384 + 4.
    assert_eq!(dropped[..5], [105, 206, 278, 337, 388]);
    assert!(bench.depot.dropped.iter().all(|(_, cause)| *cause == DropCause::CoDel));
}

#[test]
fn codel_marks_packets_that_are_capable_of_it_instead() {
    let queue = QueueConfig { limit: QueueLimit::Unlimited, discipline: Discipline::CODEL };
    let mut bench = Bench::new(LinkConfig { queue, ..LinkConfig::new(MBIT, span(0), 0) });
    (0..2000).for_each(|_| bench.offer_with(us(0), 125, true));
    assert_eq!(bench.arrivals().len(), 2000);
    let marked: Vec<u32> = bench.arrived.iter().filter(|(_, item)| item.marked).map(|(_, item)| item.number).collect();
    assert_eq!(marked[..5], [105, 205, 276, 334, 384]);
    assert_eq!(bench.link.counters().marked, marked.len() as u64);
}

#[test]
fn codel_leaves_a_queue_below_target_alone() {
    // A burst of four each 10 ms: the last of a burst waits 3 ms.
    let queue = QueueConfig { limit: QueueLimit::Packets(4), discipline: Discipline::CODEL };
    let mut bench = Bench::new(LinkConfig { queue, ..LinkConfig::new(MBIT, span(0), 0) });
    (0..400).for_each(|n| bench.offer(us(n / 4 * 10_000), 125));
    assert_eq!(bench.arrivals().len(), 400);
}

fn loss_of(model: LossModel, packets: u32) -> (f64, Vec<bool>) {
    let mut bench = Bench::new(LinkConfig { loss: vec![model], ..LinkConfig::default() });
    (0..packets).for_each(|n| bench.offer(us(u64::from(n)), 100));
    let arrived = bench.arrivals().len() as u64;
    assert_eq!(bench.depot.dropped.len() as u64 + arrived, u64::from(packets));
    let mut lost = vec![false; packets as usize];
    bench.depot.dropped.iter().for_each(|(number, _)| lost[*number as usize] = true);
    (bench.depot.dropped.len() as f64 / f64::from(packets), lost)
}

#[test]
fn uniform_loss_loses_its_share() {
    // 200,000 draws at 2 %: the standard deviation is 0.03 %.
    let (share, _) = loss_of(LossModel::Uniform(0.02), 200_000);
    assert!((share - 0.02).abs() < 0.001, "{share}");
}

#[test]
fn gilbert_elliott_has_its_stationary_loss_and_its_bursts() {
    // to_bad 1/99, to_good 1: ... bad 1/4 of a burst of 4: mean loss 1 %, mean burst 4.
    let model = LossModel::bursts(0.01, 4.0);
    assert!((model.mean() - 0.01).abs() < 1e-12);
    let (share, lost) = loss_of(model, 1_000_000);
    assert!((share - 0.01).abs() < 0.001, "{share}");
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let mean_burst = lost.iter().filter(|lost| **lost).count() as f64 / bursts as f64;
    assert!((mean_burst - 4.0).abs() < 0.3, "{mean_burst}");
    // Good 90 % of the time with 1 % loss, bad 10 % with 50 %: 0.9 * 0.01 + 0.1 * 0.5 = 5.9 %.
    let model = LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.09, loss_good: 0.01, loss_bad: 0.5 };
    assert!((model.mean() - 0.059).abs() < 1e-12);
    let (share, _) = loss_of(model, 1_000_000);
    assert!((share - 0.059).abs() < 0.004, "{share}");
}

#[test]
fn fading_is_bad_for_its_share_of_the_time_however_many_packets_come() {
    // Good for 9 ms, bad for 1 ms on average; a packet every 40 us, or every millisecond.
    let model = LossModel::Fading { mean_good: span(9_000), mean_bad: span(1_000), loss_good: 0.0, loss_bad: 1.0 };
    assert!((model.mean() - 0.1).abs() < 1e-12);
    for spacing in [40, 1_000] {
        let mut bench = Bench::new(LinkConfig { loss: vec![model], ..LinkConfig::default() });
        let packets = 20_000_000 / spacing;
        (0..packets).for_each(|n| bench.offer(us(n * spacing), 100));
        let share = bench.link.counters().drops.get(DropCause::Loss) as f64 / packets as f64;
        // 2000 cycles of 10 ms: standard deviation of the share about 0.003.
        assert!((share - 0.1).abs() < 0.012, "{share}");
    }
}

#[test]
fn loss_models_follow_each_other_and_losses_cost_capacity() {
    let loss = vec![LossModel::Uniform(1.0), LossModel::Uniform(0.5)];
    let mut bench = Bench::new(LinkConfig { loss, ..LinkConfig::new(MBIT, span(0), 10) });
    bench.offer(us(0), 1000);
    bench.offer(us(4_000), 1000);
    assert_eq!(bench.link.waiting(), (1, 1000));
    assert_eq!(bench.arrivals(), []);
    assert_eq!(bench.link.counters().drops.get(DropCause::Loss), 2);
}

fn delays(delay: DelayModel, ordering: Ordering, packets: u32) -> Vec<(u64, u32)> {
    let mut bench = Bench::new(LinkConfig { delay, ordering, ..LinkConfig::default() });
    (0..packets).for_each(|n| bench.offer(us(u64::from(n) * 100), 100));
    bench.arrivals()
}

#[test]
fn a_delay_that_varies_reorders_only_when_asked_to() {
    let (min, max) = (span(10_000), span(20_000));
    let uniform = DelayModel::Uniform { min, max };
    let in_order = |arrivals: &[(u64, u32)]| arrivals.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let kept = delays(uniform, Ordering::Kept, 5_000);
    assert!(in_order(&kept) && kept.len() == 5_000);
    let free = delays(uniform, Ordering::Free, 5_000);
    assert!(!in_order(&free) && free.len() == 5_000);
    for (time, number) in free {
        let delay = time - u64::from(number) * 100;
        assert!((10_000..=20_000).contains(&delay), "{delay}");
    }
    // In order, a packet arrives with the largest delay of the earlier ones that it caught up with, within the bounds.
    assert!(kept.iter().all(|(time, number)| (10_000..=20_000).contains(&(time - u64::from(*number) * 100))));
}

#[test]
fn a_slowly_varying_delay_moves_along_straight_lines_between_its_bounds() {
    let (min, max) = (span(10_000), span(20_000));
    let arrivals = delays(DelayModel::Varying { min, max, interval: span(1_000_000) }, Ordering::Kept, 50_000);
    let delay: Vec<i64> = arrivals.iter().map(|(time, number)| (time - u64::from(*number) * 100) as i64).collect();
    assert!(delay.iter().all(|delay| (10_000..=20_000).contains(delay)));
    // At most 10 ms in a second: 1 us in 100 us, and 1 for rounding.
    assert!(delay.windows(2).all(|pair| (pair[0] - pair[1]).abs() <= 2));
    assert!(delay.iter().max().unwrap() - delay.iter().min().unwrap() > 5_000);
}

#[test]
fn a_link_that_goes_down_drops_what_waits_and_what_is_under_way() {
    // 8 ms per packet, 10 ms delay; down from 20 to 50 ms.
    let schedule = Schedule::DownDuring(vec![(us(20_000), us(50_000))]);
    let mut bench = Bench::new(LinkConfig { schedule, ..LinkConfig::new(MBIT, span(10_000), 10) });
    (0..4).for_each(|_| bench.offer(us(0), 1000));
    bench.offer(us(20_000), 1000);
    bench.offer(us(49_999), 1000);
    bench.offer(us(50_000), 1000);
    // Number 0 arrives at 18 ms; 1 would at 26 ms, 2 is being sent, 3 is queued; 4 and 5 are offered while it is down.
    assert_eq!(bench.arrivals(), [(18_000, 0), (68_000, 6)]);
    assert_eq!(bench.link.counters().drops.get(DropCause::LinkDown), 5);
    assert_eq!(bench.depot.dropped.len(), 5);
}

#[test]
fn a_link_that_pauses_keeps_what_waits_and_goes_on_after_the_pause() {
    // 8 ms per packet, 10 ms delay; a pause from 12 to 50 ms, in which the packet in transmission still leaves. The
    // queue has room for two.
    let pauses = vec![(us(12_000), us(50_000))];
    let mut bench = Bench::new(LinkConfig { pauses: pauses.clone(), ..LinkConfig::new(MBIT, span(10_000), 2) });
    (0..3).for_each(|_| bench.offer(us(0), 1000));
    (0..2).for_each(|_| bench.offer(us(30_000), 1000));
    // 0 and 1 leave at 8 and 16 ms; 2 is queued, 3 fits, 4 does not.
    assert_eq!(bench.arrivals(), [(18_000, 0), (26_000, 1), (68_000, 2), (76_000, 3)]);
    assert_eq!(bench.depot.dropped, [(4, DropCause::Overflow)]);

    // A link with a trace loses the opportunities within the pause: one every 10 ms.
    let trace = Arc::new(RateTrace::parse("10").expect("a trace"));
    let mut bench =
        Bench::new(LinkConfig { rate: RateModel::Trace(trace), pauses: pauses.clone(), ..LinkConfig::default() });
    (0..3).for_each(|_| bench.offer(us(0), 1500));
    assert_eq!(bench.arrivals(), [(10_000, 0), (60_000, 1), (70_000, 2)]);

    // A link that comes up within a pause waits for its end.
    let schedule = Schedule::DownDuring(vec![(us(11_000), us(20_000))]);
    let mut bench = Bench::new(LinkConfig { schedule, pauses, ..LinkConfig::new(MBIT, span(0), 10) });
    bench.offer(us(25_000), 1000);
    assert_eq!(bench.arrivals(), [(58_000, 0)]);
}

#[test]
fn a_delivery_at_the_moment_of_going_down_still_takes_place() {
    let schedule = Schedule::DownDuring(vec![(us(8_000), Instant::NEVER)]);
    let mut bench = Bench::new(LinkConfig { schedule, ..LinkConfig::new(MBIT, span(0), 10) });
    bench.offer(us(0), 1000);
    bench.offer(us(0), 1000);
    assert_eq!(bench.arrivals(), [(8_000, 0)]);
    assert_eq!(bench.depot.dropped, [(1, DropCause::LinkDown)]);
}

#[test]
fn down_times_may_overlap_and_come_in_any_order() {
    let periods = vec![(us(30), us(40)), (us(10), us(20)), (us(15), us(30)), (us(90), us(90))];
    let mut bench = Bench::new(LinkConfig { schedule: Schedule::DownDuring(periods), ..LinkConfig::default() });
    for time in [9, 10, 20, 30, 39, 40, 90] {
        bench.offer(us(time), 1);
    }
    assert_eq!(bench.arrivals(), [(9, 0), (40, 5), (90, 6)]);
}

#[test]
fn alternating_and_random_schedules_are_up_for_their_share() {
    let alternating = Schedule::Alternating { up: span(3), down: span(1) };
    let random = Schedule::Random { mean_up: span(300), mean_down: span(100) };
    for (schedule, tolerance) in [(alternating, 1), (random, 3_000)] {
        let mut bench = Bench::new(LinkConfig { schedule, ..LinkConfig::default() });
        (0..100_000).for_each(|n| bench.offer(us(n), 1));
        let arrived = bench.arrivals().len() as i64;
        assert!((arrived - 75_000).abs() <= tolerance, "{arrived}");
    }
}

#[test]
fn a_state_set_from_outside_holds_until_the_next_change() {
    let mut bench = Bench::new(LinkConfig::new(MBIT, span(0), 10));
    bench.offer(us(0), 1000);
    bench.link.handle_state(us(1), false, &mut bench.depot);
    bench.offer(us(2), 1000);
    bench.link.handle_state(us(3), true, &mut bench.depot);
    bench.offer(us(4), 1000);
    assert_eq!(bench.arrivals(), [(8_004, 2)]);
}

#[test]
fn a_new_rate_holds_from_the_next_packet_on() {
    let mut bench = Bench::new(LinkConfig::new(MBIT, span(0), 10));
    bench.offer(us(0), 1000);
    bench.offer(us(0), 1000);
    bench.link.handle_rate(us(1), Rate::from_bits_per_second(2_000_000), &mut bench.depot);
    assert_eq!(bench.arrivals(), [(8_000, 0), (12_000, 1)]);
}

#[test]
fn duplication_corruption_and_holding_back_do_what_they_say() {
    let certain = |impairments| Bench::new(LinkConfig { impairments, ..LinkConfig::default() });
    let mut bench = certain(Impairments { duplication: 1.0, ..Impairments::default() });
    bench.offer(us(5), 10);
    assert_eq!(bench.arrivals(), [(5, 0), (5, 0)]);
    let mut bench = certain(Impairments { corruption: 1.0, ..Impairments::default() });
    bench.offer(us(5), 10);
    assert_eq!(bench.arrivals(), [(5, 0)]);
    assert!(bench.arrived[0].1.damaged);

    let held = Impairments { reordering: 0.1, held_back: span(35), ..Impairments::default() };
    let mut bench = certain(held);
    (0..1_000).for_each(|n| bench.offer(us(n * 10), 10));
    let arrivals = bench.arrivals();
    let late = arrivals.iter().filter(|(time, number)| *time == u64::from(*number) * 10 + 35).count();
    let on_time = arrivals.iter().filter(|(time, number)| *time == u64::from(*number) * 10).count();
    assert_eq!((late + on_time, late as u64), (1_000, bench.link.counters().held_back));
    assert!((70..130).contains(&late), "{late}");
}

#[test]
fn a_held_back_packet_does_not_hide_one_that_is_still_waiting() {
    // The first is delayed by 100 ms; the second, queued behind it, arrives long before.
    let impairments = Impairments { reordering: 0.5, held_back: span(100_000), ..Impairments::default() };
    let mut bench = Bench::new(LinkConfig { impairments, ..LinkConfig::new(MBIT, span(0), 100) });
    (0..50).for_each(|_| bench.offer(us(0), 125));
    let arrivals = bench.arrivals();
    assert!(arrivals.iter().all(|(time, n)| {
        let on_time = u64::from(*n + 1) * 1_000;
        *time == on_time || *time == on_time + 100_000
    }));
    assert_eq!(arrivals.len(), 50);
}

#[test]
fn touching_a_link_more_often_changes_nothing() {
    let run = |extra: bool| {
        let config = LinkConfig {
            delay: DelayModel::Uniform { min: span(100), max: span(3_000) },
            loss: vec![LossModel::Uniform(0.1), LossModel::bursts(0.05, 3.0)],
            schedule: Schedule::Random { mean_up: span(90_000), mean_down: span(10_000) },
            coverage: course(&[(100_000, 1.0, 0.0), (900_000, 0.3, 0.2)]),
            impairments: Impairments { duplication: 0.05, ..Impairments::default() },
            queue: QueueConfig { limit: QueueLimit::Packets(50), discipline: Discipline::CODEL },
            ..LinkConfig::new(MBIT, span(0), 20)
        };
        let mut bench = Bench::new(config);
        for n in 0..3_000 {
            bench.offer(us(n * 900), 125);
            if extra {
                bench.link.handle_timeout(us(n * 900 + 450), &mut bench.depot);
            }
        }
        (bench.arrivals(), bench.depot.dropped.len())
    };
    assert_eq!(run(false), run(true));
}

fn course(points: &[(u64, f64, f64)]) -> Coverage {
    Coverage::new(points.iter().map(|&(at, rate, loss)| CoveragePoint { at: us(at), rate, loss }).collect())
}

#[test]
fn coverage_is_a_straight_line_between_points_and_constant_outside() {
    let coverage = course(&[(10, 1.0, 0.0), (30, 0.5, 0.2), (30, 0.25, 0.4), (40, 0.25, 0.4)]);
    let expected = [(0, 1.0, 0.0), (10, 1.0, 0.0), (20, 0.75, 0.1), (30, 0.25, 0.4), (35, 0.25, 0.4), (99, 0.25, 0.4)];
    for (time, rate, loss) in expected {
        let (measured_rate, measured_loss) = coverage.at(us(time));
        assert!((measured_rate - rate).abs() < 1e-12 && (measured_loss - loss).abs() < 1e-12, "at {time} us");
    }
    assert_eq!(Coverage::default().at(us(5)), (1.0, 0.0));
}

#[test]
fn a_packet_is_sent_at_the_rate_that_the_coverage_leaves_when_it_starts() {
    // 1000 bytes at 1 Mbit/s take 8 ms. The factor falls from 1 at 0 ms to 0.5 at 40 ms: it is 1 at the start of the
    // first packet, and 1 - 0.5 * 8 / 40 = 0.9 at that of the second, which therefore takes 8 / 0.9 = 8.889 ms.
    let coverage = course(&[(0, 1.0, 0.0), (40_000, 0.5, 0.0)]);
    let mut bench = Bench::new(LinkConfig { coverage, ..LinkConfig::new(MBIT, span(0), 10) });
    bench.offer(us(0), 1000);
    bench.offer(us(0), 1000);
    bench.offer(us(100_000), 1000);
    assert_eq!(bench.arrivals(), [(8_000, 0), (16_888, 1), (116_000, 2)]);
}

#[test]
fn coverage_loses_its_share_beside_the_loss_models() {
    // A tenth lost by the model, a fifth of the rest by the coverage: 0.9 * 0.8 = 0.72 arrive. Of 100,000 packets the
    // standard deviation is 142.
    let coverage = course(&[(0, 1.0, 0.2)]);
    let mut bench = Bench::new(LinkConfig { coverage, loss: vec![LossModel::Uniform(0.1)], ..LinkConfig::default() });
    (0..100_000).for_each(|n| bench.offer(us(n), 1));
    let arrived = bench.arrivals().len() as i64;
    assert!((arrived - 72_000).abs() < 600, "{arrived}");
}

#[test]
fn a_trace_says_how_much_can_leave_in_an_interval() {
    // Opportunities at 1, 1 and 4 ms, repeated: after 1 and up to 5 ms there are one at 4 ms and two at 5 ms.
    let trace = RateTrace::parse("1\n1\n4\n").unwrap();
    assert_eq!(trace.bytes_between(us(1_000), us(5_000)), 3 * 1500);
    assert_eq!(trace.bytes_between(us(0), us(1_000)), 2 * 1500);
    assert_eq!(trace.bytes_between(us(1_000), us(1_000)), 0);
}

#[test]
fn packets_longer_than_the_mtu_are_dropped_from_its_time_on_and_others_pass() {
    let mtu = Some(LinkMtu { bytes: 1_000, from: us(10_000) });
    let mut bench = Bench::new(LinkConfig { mtu, ..LinkConfig::default() });
    assert!(!LinkConfig { mtu, ..LinkConfig::default() }.is_transparent());
    assert!(!LinkConfig { pauses: vec![(us(1), us(2))], ..LinkConfig::default() }.is_transparent());
    for (time, length) in [(9_999, 1_001), (10_000, 1_000), (10_000, 1_001)] {
        bench.offer(us(time), length);
    }
    let counters = *bench.link.counters();
    assert_eq!((counters.offered_packets, counters.drops.get(DropCause::TooBig), counters.drops.total()), (3, 1, 1));
}
