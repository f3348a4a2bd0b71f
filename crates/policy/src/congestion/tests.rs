//! Properties of every member of the table, the bounds of a window, NewReno's rule, and closed loops.

use super::harness::{NOW, START, ack, add_path, close_to, congestion, id, loss, timeout};
use super::window::{Decrease, LARGEST_WINDOW, NO_THRESHOLD, Window};
use super::*;
use crate::table::{self, Settings};
use crate::time::{Duration, Instant};
use proptest::prelude::*;

fn build(name: &str) -> Box<dyn CongestionControl> {
    table::build(TABLE, name, &Settings::new()).expect("a member without settings")
}

fn new_reno() -> Box<dyn CongestionControl> {
    let mut control = build("new_reno");
    add_path(&mut *control, 0);
    control
}

// ---- NewReno, by hand ----

#[test]
fn new_reno_counts_at_most_two_segments_per_acknowledgement_in_slow_start() {
    let mut control = new_reno();
    control.on_ack(id(0), &ack(1_000, 10));
    assert_eq!(control.window(id(0)), 11_000);
    control.on_ack(id(0), &ack(5_000, 10));
    assert_eq!(control.window(id(0)), 13_000);
}

#[test]
fn new_reno_adds_one_segment_per_window_in_congestion_avoidance() {
    let mut control = new_reno();
    control.on_congestion(id(0), &loss(10_000));
    control.on_recovery_end(id(0), NOW);
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (5_000, 5_000));
    for acked in 1..=4 {
        control.on_ack(id(0), &ack(1_000, 10));
        assert_eq!(control.window(id(0)), 5_000, "after {acked} segments");
    }
    control.on_ack(id(0), &ack(1_000, 10));
    assert_eq!(control.window(id(0)), 6_000);
}

#[test]
fn new_reno_takes_a_timeout_from_the_flight_and_a_repeated_one_leaves_the_threshold() {
    let mut control = new_reno();
    control.on_congestion(id(0), &timeout(8_000));
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (1_000, 4_000));
    control.on_congestion(id(0), &CongestionEvent { repeated: true, ..timeout(1_000) });
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (1_000, 4_000));
    // L = 1 until the threshold (RFC 3465, section 2.3).
    control.on_ack(id(0), &ack(2_000, 10));
    assert_eq!(control.window(id(0)), 2_000);
    // A spurious event: the state before the first of the two is restored.
    control.on_spurious(id(0), NOW);
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (10_000, NO_THRESHOLD));
}

#[test]
fn hystart_ends_new_renos_first_slow_start_only_when_switched_on() {
    for (setting, leaves) in [("on", true), ("off", false)] {
        let settings = Settings::new().with("hystart", setting);
        let mut control = table::build(TABLE, "new_reno", &settings).expect("a setting of it");
        add_path(&mut *control, 0);
        let (mut acked, mut sent) = (0, 10_000);
        // 12 segments have been sent at the first acknowledgement, so rounds end at 12, 34, 78, 166 and 342 segments,
        // with minimum RTTs of 20, 20, 21, 23 and 28 ms. The last rises by more than 4 ms: CSS begins in that round,
        // and ends after 694, 1398, 2806 and 5622.
        for segment in 0..5_622u64 {
            assert_eq!(control.ssthresh(id(0)), NO_THRESHOLD, "at segment {segment}");
            acked += 1_000;
            sent += 2_000;
            let rtt = 20 + segment / 20;
            control.on_ack(id(0), &Ack { total_acked: acked, total_sent: sent, ..ack(1_000, rtt) });
        }
        assert_eq!(control.ssthresh(id(0)) != NO_THRESHOLD, leaves, "hystart {setting}");
    }
}

// ---- the window, by hand ----

#[test]
fn slow_start_after_a_timeout_is_over_at_the_threshold_or_where_it_is_left() {
    let goes_on = |end: fn(&mut Window)| {
        let mut window = Window::new(START);
        // The window is 1000 bytes, the threshold half of what was in flight.
        window.on_congestion(&timeout(10_000), Decrease::STANDARD);
        end(&mut window);
        window.is_after_timeout()
    };
    assert!(goes_on(|_| {}) && goes_on(|window| window.add_in_slow_start(3_999)));
    assert!(!goes_on(|window| window.add_in_slow_start(4_000)));
    assert!(!goes_on(Window::leave_slow_start) && !goes_on(|window| window.settle(3_000)));
}

#[test]
fn what_was_counted_in_slow_start_does_not_count_after_it() {
    let mut window = Window::new(START);
    window.count(9_999);
    window.leave_slow_start();
    window.count(9_999);
    assert_eq!(window.cwnd(), 10_000);
    window.count(1);
    assert_eq!(window.cwnd(), 11_000);
}

#[test]
fn what_is_counted_beyond_a_window_counts_towards_the_next_segment_but_no_more_than_a_window_of_it() {
    let mut window = Window::new(START);
    let mut count = |bytes| {
        window.count(bytes);
        window.cwnd()
    };
    assert_eq!([count(15_000), count(5_999), count(1)], [11_000, 11_000, 12_000]);
    // 12,000 of what is left, and a thousand.
    assert_eq!([count(1_000_000), count(999), count(1)], [13_000, 13_000, 14_000]);
}

#[test]
fn a_window_settles_at_two_segments_at_least_and_no_higher_than_it_is() {
    let settled = |bytes| {
        let mut window = Window::new(START);
        window.settle(bytes);
        (window.cwnd(), window.ssthresh())
    };
    assert_eq!([0, 3_000, 20_000].map(settled), [(2_000, 2_000), (3_000, 3_000), (10_000, 10_000)]);
}

#[test]
fn a_mark_counts_as_a_loss() {
    let mut control = new_reno();
    control.on_congestion(id(0), &congestion(Congestion::Mark, 10_000));
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (5_000, 5_000));
}

#[test]
fn a_penalty_halves_window_and_threshold_but_no_threshold_above_the_window() {
    let mut control = new_reno();
    control.on_congestion(id(0), &congestion(Congestion::Penalty, 10_000));
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (5_000, NO_THRESHOLD));
    control.on_congestion(id(0), &loss(5_000));
    control.on_recovery_end(id(0), NOW);
    control.on_congestion(id(0), &congestion(Congestion::Penalty, 2_500));
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (1_250, 2_000));
    for _ in 0..3 {
        control.on_congestion(id(0), &congestion(Congestion::Penalty, 1_000));
    }
    assert_eq!(control.window(id(0)), 1_000);
}

#[test]
fn a_pardon_does_not_take_back_a_later_penalty() {
    let mut control = new_reno();
    control.on_congestion(id(0), &loss(10_000));
    control.on_congestion(id(0), &congestion(Congestion::Penalty, 5_000));
    assert_eq!(control.window(id(0)), 2_500);
    control.on_spurious(id(0), NOW);
    assert_eq!(control.window(id(0)), 5_000);
}

#[test]
fn a_pardon_comes_once_and_never_shrinks_the_window() {
    let mut window = Window::new(START);
    window.on_congestion(&loss(10_000), Decrease::STANDARD);
    window.on_recovery_end();
    window.add(20_000.0);
    assert!(window.on_spurious());
    assert_eq!((window.cwnd(), window.ssthresh()), (25_000, NO_THRESHOLD));
    assert!(!window.on_spurious());
}

#[test]
fn an_idle_restart_keeps_three_quarters_of_the_window_as_threshold() {
    let mut control = new_reno();
    control.on_idle_restart(id(0), 4_000);
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (4_000, NO_THRESHOLD));
    control.on_congestion(id(0), &loss(4_000));
    control.on_recovery_end(id(0), NOW);
    for _ in 0..2_000 {
        control.on_ack(id(0), &ack(1_000, 10));
    }
    let grown = control.window(id(0));
    assert!(grown > 40_000, "{grown}");
    control.on_idle_restart(id(0), 10_000);
    assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (10_000, grown - grown / 4));
}

#[test]
fn parts_of_a_byte_add_up() {
    let mut window = Window::new(START);
    for _ in 0..10 {
        window.add(0.25);
    }
    assert_eq!(window.cwnd(), 10_002);
    window.add(-3.5);
    assert_eq!(window.cwnd(), 9_999);
}

#[test]
fn no_number_however_silly_takes_a_window_out_of_its_bounds() {
    let mut window = Window::new(Start { mss: 0, initial_window: u64::MAX, ..START });
    assert_eq!((window.mss(), window.cwnd()), (1, LARGEST_WINDOW));
    for bytes in [f64::INFINITY, f64::NAN, 1e300, f64::NEG_INFINITY, -1e300] {
        window.add(bytes);
        assert!((1..=LARGEST_WINDOW).contains(&window.cwnd()), "{bytes}");
    }
    window.add_in_slow_start(u64::MAX);
    window.count(u64::MAX);
    window.on_congestion(&timeout(u64::MAX), Decrease::STANDARD);
    window.on_mss(u32::MAX);
    window.on_congestion(&loss(u64::MAX), Decrease { floor: u64::MAX, ..Decrease::STANDARD });
    window.on_recovery_end();
    assert!((u64::from(u32::MAX)..=LARGEST_WINDOW).contains(&window.cwnd()));
}

// ---- every member ----

#[test]
fn every_default_in_the_table_is_a_value_its_parameter_takes_and_changes_nothing() {
    for member in TABLE {
        let mut spoken = Settings::new();
        for parameter in member.parameters() {
            spoken.set(parameter.name, parameter.default);
        }
        let mut said = table::build(TABLE, member.name, &spoken).expect(member.name);
        let mut silent = build(member.name);
        for control in [&mut said, &mut silent] {
            add_path(&mut **control, 0);
            for step in 0..50 {
                control.on_ack(id(0), &Ack { now: NOW + Duration::from_millis(step), ..ack(1_000, 20 + step) });
            }
            control.on_congestion(id(0), &loss(60_000));
            control.on_congestion(id(0), &loss(30_000));
            control.on_recovery_end(id(0), NOW + Duration::from_millis(60));
            for step in 70..200 {
                control.on_ack(id(0), &Ack { now: NOW + Duration::from_millis(step), ..ack(1_000, 20) });
            }
        }
        assert_eq!(said.window(id(0)), silent.window(id(0)), "{}", member.name);
    }
}

#[test]
fn a_value_out_of_range_is_refused() {
    for (name, setting, value) in
        [("cubic", "beta", "1.5"), ("cubic", "c", "0"), ("cubic", "fast_convergence", "maybe"), ("lia", "hystart", "1")]
    {
        let refused = table::build(TABLE, name, &Settings::new().with(setting, value)).err();
        assert!(matches!(refused, Some(table::SettingError::BadValue { .. })), "{name} {setting}={value}");
    }
}

#[test]
fn no_window_grows_in_recovery_nor_when_it_is_not_the_limit_nor_without_progress() {
    // Members that govern recovery have their own rules for all three.
    for member in TABLE.iter().filter(|member| !build(member.name).governs_recovery()) {
        for avoidance in [false, true] {
            let mut control = build(member.name);
            add_path(&mut *control, 0);
            add_path(&mut *control, 1);
            if avoidance {
                control.on_congestion(id(0), &loss(10_000));
                control.on_recovery_end(id(0), NOW);
            }
            let before = control.window(id(0));
            for step in 0..100 {
                let base = Ack { now: NOW + Duration::from_millis(100 * step), ..ack(1_000, 10) };
                control.on_ack(id(0), &Ack { in_recovery: true, ..base });
                control.on_ack(id(0), &Ack { cwnd_limited: false, ..base });
                control.on_ack(id(0), &Ack { acked: 0, ..base });
            }
            assert_eq!(control.window(id(0)), before, "{} {avoidance}", member.name);
            control.on_ack(id(0), &ack(1_000, 10));
            control.on_ack(id(0), &ack(10_000, 10));
            assert!(control.window(id(0)) > before, "{} {avoidance}", member.name);
        }
    }
}

#[test]
fn a_subflow_that_is_not_there_has_no_window_and_takes_no_events() {
    for member in TABLE {
        let mut control = build(member.name);
        add_path(&mut *control, 0);
        control.on_subflow_removed(id(0));
        control.on_sent(id(0), &Sent { now: NOW, bytes: 1, in_flight: 1, total_delivered: 0, app_limited: false });
        control.on_ack(id(0), &ack(1_000, 10));
        control.on_congestion(id(0), &loss(1_000));
        control.on_recovery_end(id(0), NOW);
        control.on_spurious(id(0), NOW);
        control.on_idle_restart(id(0), 1_000);
        control.on_mss(id(0), 500);
        assert_eq!((control.window(id(0)), control.ssthresh(id(0))), (0, 0), "{}", member.name);
    }
}

/// An engine call with arbitrary numbers.
#[derive(Clone, Debug)]
enum Call {
    Sent(u64),
    Acked { acked: u64, delivered: u64, rtt: u64, limited: bool, recovering: bool },
    Congested { cause: Congestion, in_flight: u64, repeated: bool },
    Repaired,
    Spurious,
    Idle(u64),
    Mss(u32),
    Replaced,
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..200_000, 1 => Just(u64::MAX), 1 => Just(1u64 << 40)]
}

fn call() -> impl Strategy<Value = Call> {
    let cause = prop_oneof![
        Just(Congestion::Loss),
        Just(Congestion::Mark),
        Just(Congestion::Timeout),
        Just(Congestion::Penalty)
    ];
    let rtt = prop_oneof![9 => 1u64..1_000_000_000, 1 => Just(0u64), 1 => Just(u64::MAX)];
    prop_oneof![
        4 => bytes().prop_map(Call::Sent),
        20 => (bytes(), bytes(), rtt, any::<bool>(), any::<bool>()).prop_map(
            |(acked, delivered, rtt, limited, recovering)| Call::Acked { acked, delivered, rtt, limited, recovering }
        ),
        4 => (cause, bytes(), any::<bool>())
            .prop_map(|(cause, in_flight, repeated)| Call::Congested { cause, in_flight, repeated }),
        2 => Just(Call::Repaired),
        2 => Just(Call::Spurious),
        1 => bytes().prop_map(Call::Idle),
        1 => (1u32..10_000).prop_map(Call::Mss),
        1 => Just(Call::Replaced),
    ]
}

fn apply(control: &mut dyn CongestionControl, index: usize, now: Instant, call: &Call) {
    let id = id(index);
    match *call {
        Call::Sent(in_flight) => {
            control.on_sent(id, &Sent { now, bytes: 1_000, in_flight, total_delivered: 0, app_limited: false })
        }
        Call::Acked { acked, delivered, rtt, limited, recovering } => {
            let rtt = Duration::from_nanos(rtt);
            let event = Ack {
                now,
                delivered,
                rtt: Some(rtt),
                smoothed_rtt: rtt,
                cwnd_limited: limited,
                in_recovery: recovering,
                ..ack(acked.min(1 << 60), 1)
            };
            control.on_ack(id, &event);
        }
        Call::Congested { cause, in_flight, repeated } => {
            control.on_congestion(id, &CongestionEvent { now, repeated, ..congestion(cause, in_flight) });
        }
        Call::Repaired => control.on_recovery_end(id, now),
        Call::Spurious => control.on_spurious(id, now),
        Call::Idle(window) => control.on_idle_restart(id, window),
        Call::Mss(mss) => control.on_mss(id, mss),
        Call::Replaced => {
            control.on_subflow_removed(id);
            control.on_subflow_added(id, Start { now, ..START });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_called_windows_stay_in_bounds_and_only_acknowledgements_and_pardons_grow_them(
        calls in prop::collection::vec((0usize..3, 0u64..1_000, call()), 1..120)
    ) {
        for member in TABLE {
            let mut control = build(member.name);
            let mut twin = build(member.name);
            let mut mss = [1_000u64; 3];
            for index in 0..3 {
                add_path(&mut *control, index);
                add_path(&mut *twin, index);
            }
            let mut now = NOW;
            for (index, wait, call) in &calls {
                now += Duration::from_millis(*wait);
                let before = control.window(id(*index));
                apply(&mut *control, *index, now, call);
                apply(&mut *twin, *index, now, call);
                let window = control.window(id(*index));
                match call {
                    Call::Mss(new) => mss[*index] = u64::from(*new),
                    Call::Replaced => mss[*index] = 1_000,
                    _ => {}
                }
                prop_assert!((mss[*index]..=LARGEST_WINDOW).contains(&window), "{}: {window}", member.name);
                prop_assert!(control.ssthresh(id(*index)) >= mss[*index], "{}", member.name);
                if matches!(call, Call::Congested { .. } | Call::Idle(_) | Call::Sent(_)) {
                    prop_assert!(window <= before, "{} grew on {call:?}", member.name);
                }
                prop_assert_eq!(window, twin.window(id(*index)));
            }
        }
    }
}

// ---- closed loops ----

/// A path in a closed loop: every `loss_interval`-th segment is lost.
struct Lossy {
    rtt_ms: u64,
    loss_interval: u64,
    until_loss: u64,
}

/// Runs a connection over the paths for `seconds` of virtual time; returns the segments delivered per second on each.
///
/// A path sends a window in a round trip; each segment is acknowledged by itself; a loss is repaired at once.
fn goodput(control: &mut dyn CongestionControl, paths: &mut [Lossy], seconds: u64) -> Vec<f64> {
    for index in 0..paths.len() {
        add_path(control, index);
    }
    let mut delivered = vec![0u64; paths.len()];
    for ms in 0..seconds * 1_000 {
        let now = NOW + Duration::from_millis(ms);
        for (index, path) in paths.iter_mut().enumerate() {
            if ms % path.rtt_ms != 0 {
                continue;
            }
            let window = control.window(id(index)) / 1_000;
            let sent =
                Sent { now, bytes: 1_000 * window, in_flight: 1_000 * window, total_delivered: 0, app_limited: false };
            control.on_sent(id(index), &sent);
            for _ in 0..window {
                path.until_loss -= 1;
                if path.until_loss == 0 {
                    path.until_loss = path.loss_interval;
                    control.on_congestion(id(index), &CongestionEvent { now, ..loss(1_000 * window) });
                    control.on_recovery_end(id(index), now);
                } else {
                    let event = Ack { now, in_flight: 1_000 * window, ..ack(1_000, path.rtt_ms) };
                    control.on_ack(id(index), &event);
                    // The first tenth, with slow start, is excluded.
                    delivered[index] += u64::from(ms >= 100 * seconds);
                }
            }
        }
    }
    delivered.iter().map(|segments| *segments as f64 / (0.9 * seconds as f64)).collect()
}

/// A path with its first loss at `phase` thirds of the interval, so that losses of paths are not synchronised.
fn lossy(rtt_ms: u64, loss_interval: u64, phase: u64) -> Lossy {
    Lossy { rtt_ms, loss_interval, until_loss: loss_interval / 3 * phase + 1 }
}

#[test]
fn new_renos_goodput_is_that_of_the_square_root_law() {
    // One loss every 600 segments: windows from 2/3 to 4/3 of 30 segments (a cycle of n = 20 round trips and
    // 20 * 30 = 600 segments), so 30 segments per 20 ms.
    let mut control = build("new_reno");
    let rates = goodput(&mut *control, &mut [lossy(20, 600, 1)], 200);
    close_to(rates[0], 1_500.0, 75.0);
}

#[test]
fn over_two_paths_alike_the_coupled_ones_take_together_what_one_tcp_takes() {
    let one: f64 = goodput(&mut *build("new_reno"), &mut [lossy(20, 600, 1)], 200).iter().sum();
    for name in ["lia", "olia", "balia"] {
        let both: f64 = goodput(&mut *build(name), &mut [lossy(20, 600, 1), lossy(20, 600, 2)], 200).iter().sum();
        assert!((0.85..1.15).contains(&(both / one)), "{name}: {both} against {one}");
    }
    // The uncoupled one gets twice as much, which coupling prevents.
    let two: f64 = goodput(&mut *build("new_reno"), &mut [lossy(20, 600, 1), lossy(20, 600, 2)], 200).iter().sum();
    assert!((1.9..2.1).contains(&(two / one)), "{two} against {one}");
}

#[test]
fn over_unlike_paths_the_coupled_ones_take_at_least_about_what_tcp_takes_on_the_best() {
    let best = goodput(&mut *build("new_reno"), &mut [lossy(20, 1_800, 1)], 400)[0];
    for name in ["lia", "olia", "balia"] {
        let rates = goodput(&mut *build(name), &mut [lossy(20, 1_800, 1), lossy(100, 300, 2)], 400);
        let total: f64 = rates.iter().sum();
        assert!((0.85..1.2).contains(&(total / best)), "{name}: {total} against {best}");
        // And most of it on the path with less loss.
        assert!(rates[0] > 5.0 * rates[1], "{name}: {rates:?}");
    }
}

/// Two subflows of `name` and one NewReno connection share a bottleneck of 100 segments per round trip (20 ms). Excess
/// segments are lost, on random subflows weighted by window. Returns the mean windows of both connections, in segments.
fn sharing_a_bottleneck(name: &str) -> (f64, f64) {
    let mut shared = build(name);
    add_path(&mut *shared, 0);
    add_path(&mut *shared, 1);
    let mut single = new_reno();
    let (mut luck, mut sums) = (1u64, [0u64; 3]);
    for round in 0..20_000u64 {
        let now = NOW + Duration::from_millis(20 * round);
        let windows = [shared.window(id(0)), shared.window(id(1)), single.window(id(0))].map(|bytes| bytes / 1_000);
        let total: u64 = windows.iter().sum();
        let mut lost = [0u64; 3];
        for _ in 100..total {
            luck = luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let drawn = (luck >> 33) % total;
            let victim = usize::from(drawn >= windows[0]) + usize::from(drawn >= windows[0] + windows[1]);
            lost[victim] += 1;
        }
        for index in 0..3 {
            let (control, id) = if index < 2 { (&mut shared, id(index)) } else { (&mut single, id(0)) };
            let sent =
                Sent { now, bytes: 1_000, in_flight: 1_000 * windows[index], total_delivered: 0, app_limited: false };
            control.on_sent(id, &sent);
            for _ in lost[index]..windows[index] {
                control.on_ack(id, &Ack { now, in_flight: 1_000 * windows[index], ..ack(1_000, 20) });
            }
            if lost[index] > 0 {
                control.on_congestion(id, &CongestionEvent { now, ..loss(1_000 * windows[index]) });
                control.on_recovery_end(id, now);
            }
            sums[index] += windows[index];
        }
    }
    let [first, second, other] = sums.map(|sum| sum as f64 / 20_000.0);
    (first + second, other)
}

#[test]
fn on_a_shared_bottleneck_the_coupled_ones_take_about_as_much_as_one_tcp_and_uncoupled_ones_twice() {
    for name in ["lia", "olia", "balia"] {
        let (both, other) = sharing_a_bottleneck(name);
        assert!((0.75..1.15).contains(&(both / other)), "{name}: {both} against {other}");
    }
    let (both, other) = sharing_a_bottleneck("new_reno");
    assert!((1.7..2.3).contains(&(both / other)), "{both} against {other}");
}

#[test]
fn a_window_below_the_least_threshold_rises_to_it_when_the_recovery_ends() {
    for name in ["new_reno", "cubic", "lia", "olia", "balia", "wvegas"] {
        let mut control = build(name);
        control.on_subflow_added(id(0), Start { initial_window: 1_000, ..START });
        control.on_congestion(id(0), &loss(1_000));
        assert_eq!(control.window(id(0)), 1_000, "{name}");
        control.on_recovery_end(id(0), NOW);
        assert_eq!(control.window(id(0)), 2_000, "{name}");
    }
}

#[test]
fn an_algorithm_that_does_not_look_for_shared_bottlenecks_knows_of_none() {
    let mut control = new_reno();
    add_path(&mut *control, 1);
    assert_eq!(control.shares_bottleneck(id(0), id(1)), None);
}

#[test]
fn a_drained_window_is_at_least_two_segments_and_slow_start_brings_back_three_quarters() {
    let drained = |bytes| {
        let mut window = Window::new(START);
        window.leave_slow_start();
        window.add(10_000.0);
        window.drain(bytes);
        (window.cwnd(), window.ssthresh())
    };
    assert_eq!(drained(5_000), (5_000, 15_000));
    assert_eq!(drained(500), (2_000, 15_000));
    assert_eq!(drained(50_000), (20_000, 15_000));
}

#[test]
fn bounded_cubic_answers_a_timeout_with_one_segment() {
    let mut control = build("bounded_cubic");
    add_path(&mut *control, 0);
    control.on_congestion(id(0), &timeout(10_000));
    assert_eq!(control.window(id(0)), 1_000);
}
