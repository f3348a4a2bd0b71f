//! CUBIC against numbers computed by hand: segments of 1000 bytes, C = 0.4, beta = 0.7.

use super::*;
use crate::congestion::harness::{NOW, START, ack, close_to, congestion, loss, timeout};

/// In congestion avoidance at `segments`, after a loss at `w_max` segments.
fn after_loss_at(w_max: u64) -> Cubic {
    let mut cubic = Cubic::start(&CubicSettings::default(), Start { initial_window: w_max * 1_000, ..START });
    cubic.on_congestion(&loss(w_max * 1_000));
    cubic.on_recovery_end(NOW);
    cubic
}

/// One segment acknowledged `ms` after [`NOW`], with a round-trip time of `rtt_ms`.
fn ack_at(ms: u64, rtt_ms: u64) -> Ack {
    Ack { now: NOW + Duration::from_millis(ms), ..ack(1_000, rtt_ms) }
}

#[test]
fn a_loss_keeps_seven_tenths_and_the_curve_leads_back_to_the_old_window() {
    let mut cubic = after_loss_at(100);
    assert_eq!((cubic.window(), cubic.ssthresh()), (70_000, 70_000));
    cubic.on_ack(&ack_at(0, 100));
    // K = cbrt((100 - 70) / 0.4) = cbrt(75) = 4.2172 s.
    close_to(cubic.curve.k, 4.217_163, 1e-6);
    // W(0) = 100 - 0.4 * 75 = 70; W(2) = 100 - 0.4 * 2.217163^3 = 95.6403; W(K) = 100; W(K + 1) = 100.4.
    close_to(cubic.curve.at(0.0, 0.4), 70.0, 1e-9);
    close_to(cubic.curve.at(2.0, 0.4), 95.640_3, 1e-4);
    close_to(cubic.curve.at(cubic.curve.k, 0.4), 100.0, 1e-9);
    close_to(cubic.curve.at(cubic.curve.k + 1.0, 0.4), 100.4, 1e-9);
}

#[test]
fn one_segment_acknowledged_takes_its_share_of_the_way_to_the_target() {
    let mut cubic = after_loss_at(100);
    // Target one RTT ahead: W(0.1) = 100 - 0.4 * 4.117163^3 = 100 - 0.4 * 69.7902 = 72.0839; Reno has 70 + 0.53/70.
    // W(0) = 70 is below that, so the first acknowledgement is Reno's: 0.529412/70 segments = 7.563 bytes.
    cubic.on_ack(&ack_at(0, 100));
    assert_eq!(cubic.window(), 70_007);
    // At 50 ms W(0.05) = 100 - 0.4 * 4.167163^3 = 71.0543 is above Reno's 70.015. Target: W(0.15) = 73.0993,
    // so (73.0993 - 70.0070) / 70.0070 = 0.044171 segments = 44.2 bytes, and 0.56 of a byte is left from before.
    cubic.on_ack(&ack_at(50, 100));
    assert_eq!(cubic.window(), 70_007 + 44);
}

#[test]
fn the_target_is_at_most_half_as_much_again() {
    let mut cubic = after_loss_at(10);
    cubic.on_ack(&ack_at(0, 100));
    let before = cubic.window();
    // W(60 s) is above 70000 segments: the increase is half a segment per segment acknowledged.
    cubic.on_ack(&ack_at(60_000, 100));
    let gain = cubic.window() - before;
    assert!((499..=500).contains(&gain), "{gain}");
}

#[test]
fn at_short_round_trips_the_window_is_what_reno_would_have() {
    // W_max = 10: K = cbrt(3 / 0.4) = 1.957 s, but Reno at 5 ms is faster: alpha = 3 * 0.3 / 1.7 = 0.529412 per round
    // trip.
    let mut cubic = after_loss_at(10);
    assert_eq!(cubic.window(), 7_000);
    close_to(cubic.alpha, 0.529_412, 1e-6);
    for step in 0..7 {
        cubic.on_ack(&ack_at(step, 5));
    }
    // Seven segments at 0.529412 / w, w from 7.0 to 7.5: 7 + 0.51, to the nearest 20 bytes.
    close_to(cubic.window() as f64, 7_511.0, 20.0);
    close_to(cubic.window() as f64, cubic.curve.w_est * 1_000.0, 1.0);
    // Past the old window of 10 segments alpha is 1: from 10 to 11 in a window of acknowledgements (10.5 on average).
    cubic.curve.w_est = 10.0;
    cubic.window.add(10_000.0 - cubic.window() as f64);
    let before = cubic.curve.w_est;
    cubic.on_ack(&ack_at(8, 5));
    close_to(cubic.curve.w_est - before, 0.1, 1e-3);
}

#[test]
fn fast_convergence_lowers_the_plateau_when_a_loss_comes_early() {
    let mut cubic = after_loss_at(100);
    cubic.on_congestion(&loss(70_000));
    // 70 < 100: W_max = 70 * 1.7 / 2 = 59.5, and the window 49.
    close_to(cubic.curve.w_max.expect("after a loss"), 59.5, 1e-9);
    assert_eq!(cubic.window(), 49_000);

    let settings = CubicSettings { fast_convergence: false, ..CubicSettings::default() };
    let mut plain = Cubic::start(&settings, Start { initial_window: 100_000, ..START });
    plain.on_congestion(&loss(100_000));
    plain.on_congestion(&loss(70_000));
    close_to(plain.curve.w_max.expect("after a loss"), 70.0, 1e-9);
}

#[test]
fn after_a_timeout_the_plateau_is_where_congestion_avoidance_begins() {
    let mut cubic = after_loss_at(100);
    cubic.on_congestion(&timeout(60_000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (1_000, 42_000));
    let mut at = 0;
    while cubic.window() < cubic.ssthresh() {
        at += 1;
        cubic.on_ack(&ack_at(at, 100));
    }
    // One segment per acknowledgement after a timeout (RFC 3465): 41 of them.
    assert_eq!(at, 41);
    cubic.on_ack(&ack_at(at + 1, 100));
    assert_eq!((cubic.curve.k, cubic.curve.w_max), (0.0, Some(42.0)));
}

#[test]
fn a_first_slow_start_ended_without_loss_begins_at_its_plateau() {
    let mut cubic = Cubic::start(&CubicSettings::default(), START);
    cubic.window.leave_slow_start();
    cubic.on_ack(&ack_at(0, 100));
    assert_eq!((cubic.curve.k, cubic.curve.w_max), (0.0, Some(10.0)));
    // Reno with alpha 1: a tenth of a segment.
    close_to(cubic.window() as f64, 10_100.0, 1.0);
}

#[test]
fn an_error_restores_window_threshold_and_curve() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    let (window, ssthresh, curve) = (cubic.window(), cubic.ssthresh(), cubic.curve);
    for cause in [Congestion::Loss, Congestion::Mark, Congestion::Timeout] {
        cubic.on_congestion(&congestion(cause, 70_000));
        assert!(cubic.window() < window);
        assert_ne!(cubic.curve, curve);
        cubic.on_spurious(NOW);
        assert_eq!((cubic.window(), cubic.ssthresh(), cubic.curve), (window, ssthresh, curve), "{cause:?}");
    }
}

#[test]
fn time_in_which_the_window_was_not_the_limit_does_not_count() {
    let mut idle = after_loss_at(100);
    idle.on_ack(&ack_at(0, 100));
    idle.on_ack(&Ack { cwnd_limited: false, ..ack_at(10_000, 100) });
    idle.on_ack(&ack_at(10_050, 100));
    let mut busy = after_loss_at(100);
    busy.on_ack(&ack_at(0, 100));
    busy.on_ack(&ack_at(50, 100));
    assert_eq!(idle.window(), busy.window());
}

#[test]
fn a_penalty_halves_the_window_and_the_curve_starts_again_from_there() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    cubic.on_congestion(&congestion(Congestion::Penalty, 70_000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (35_003, 35_000));
    cubic.on_ack(&ack_at(1_000, 100));
    // K = cbrt((100 - 35.003) / 0.4) = cbrt(162.4925) = 5.4568.
    close_to(cubic.curve.k, 5.456_8, 1e-3);
    assert!(cubic.window() < 36_000);
}

#[test]
fn a_smaller_segment_size_keeps_the_plateau_in_bytes() {
    let mut cubic = after_loss_at(100);
    cubic.on_mss(500);
    assert_eq!(cubic.window(), 70_000);
    cubic.on_ack(&ack_at(0, 100));
    // W_max = 200 and cwnd = 140 segments: K = cbrt(60 / 0.4) = 5.3133.
    close_to(cubic.curve.k, 5.313_3, 1e-4);
}

#[test]
fn in_a_loop_with_one_loss_per_window_limit_it_settles_between_beta_and_the_limit() {
    // A path of 200 segments and 50 ms, a round of acknowledgements at a time, with a loss when the window exceeds 200.
    // Without fast convergence, which would lower the plateau whenever a loss occurs a fraction of a segment early.
    let settings = CubicSettings { fast_convergence: false, ..CubicSettings::default() };
    let mut cubic = Cubic::start(&settings, START);
    let (mut now, mut losses, mut total, mut rounds) = (NOW, 0u32, 0.0, 0.0);
    for round in 0..4_000 {
        now += Duration::from_millis(50);
        let segments = cubic.window() / 1_000;
        for _ in 0..segments {
            cubic.on_ack(&Ack { now, ..ack(1_000, 50) });
        }
        if cubic.window() > 200_000 {
            losses += 1;
            cubic.on_congestion(&CongestionEvent { now, ..loss(200_000) });
            cubic.on_recovery_end(now);
        }
        if round >= 1_000 {
            total += cubic.window() as f64;
            rounds += 1.0;
        }
    }
    // K for W_max = 200 is cbrt(60/0.4) = 5.3 s of about 5.4 s: 200 s hold 35 to 40 losses, and the mean of
    // the curve over its concave part is W_max - 60/4 = 185.
    assert!((34..=42).contains(&losses), "{losses}");
    close_to(total / rounds, 185_000.0, 4_000.0);
}

#[test]
fn a_share_of_a_half_halves_the_growth_of_both_curves() {
    let mut cubic = after_loss_at(100);
    cubic.grow_as(0.5);
    cubic.on_ack(&ack_at(0, 100));
    // K = cbrt((100 - 70) / 0.2); Reno's estimate grows by 0.529412 * 0.5 / 70 segments.
    close_to(cubic.curve.k, 5.313_293, 1e-6);
    close_to(cubic.curve.w_est, 70.003_782, 1e-6);
    assert_eq!(cubic.window(), 70_003);
}

#[test]
fn a_target_below_the_window_does_not_shrink_it() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    // With a round-trip time of a second the target is W(1.05) = 87.3.
    (0..20).for_each(|_| cubic.on_ack(&ack_at(50, 1_000)));
    let before = cubic.window();
    assert!(before > 73_000, "{before}");
    // It falls to a millisecond: W(0.052) = 71.1, and W(0.051) is above Reno's 70.2.
    cubic.on_ack(&ack_at(51, 1));
    assert_eq!(cubic.window(), before);
}

#[test]
fn an_acknowledgement_of_several_segments_counts_for_each_but_for_a_window_at_most() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&Ack { now: NOW, ..ack(2_000, 100) });
    // Reno's estimate: 70 + 2 * 0.529412 / 70.
    close_to(cubic.curve.w_est, 70.015_126, 1e-6);
    assert_eq!(cubic.window(), 70_015);

    let mut cubic = after_loss_at(10);
    cubic.on_ack(&ack_at(0, 100));
    let before = cubic.window();
    // Ten windows, at a time when the target is half as much again.
    cubic.on_ack(&Ack { acked: 70_000, delivered: 70_000, ..ack_at(60_000, 100) });
    close_to(cubic.window() as f64, 1.5 * before as f64, 1.0);
}

#[test]
fn a_mark_is_as_a_loss_to_the_curve() {
    let [mut lost, mut marked] = [after_loss_at(100), after_loss_at(100)];
    lost.on_congestion(&loss(70_000));
    marked.on_congestion(&congestion(Congestion::Mark, 70_000));
    assert_eq!(marked.curve, lost.curve);
    assert_eq!((marked.window(), marked.ssthresh()), (lost.window(), lost.ssthresh()));
}

#[test]
fn a_repeated_timeout_changes_neither_the_window_before_nor_what_can_be_restored() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    let (window, curve) = (cubic.window(), cubic.curve);
    cubic.on_congestion(&timeout(60_000));
    close_to(cubic.curve.cwnd_prior, 70.007, 1e-9);
    cubic.on_congestion(&CongestionEvent { repeated: true, ..timeout(1_000) });
    close_to(cubic.curve.cwnd_prior, 70.007, 1e-9);
    cubic.on_spurious(NOW);
    assert_eq!((cubic.window(), cubic.curve), (window, curve));
}

#[test]
fn after_an_idle_time_the_curve_begins_anew_from_the_threshold() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    cubic.on_idle_restart(10_000);
    assert_eq!((cubic.window(), cubic.ssthresh()), (10_000, 70_000));
    while cubic.window() < cubic.ssthresh() {
        cubic.on_ack(&ack_at(20_000, 100));
    }
    cubic.on_ack(&ack_at(20_000, 100));
    assert_eq!(cubic.curve.epoch, Some(NOW + Duration::from_secs(20)));
    close_to(cubic.curve.k, 4.217_163, 1e-6);
}

#[test]
fn another_segment_size_begins_an_epoch_and_keeps_the_window_before_the_loss_in_bytes() {
    let mut cubic = after_loss_at(100);
    cubic.on_ack(&ack_at(0, 100));
    cubic.on_mss(500);
    close_to(cubic.curve.cwnd_prior, 200.0, 1e-9);
    cubic.on_ack(&ack_at(3_000, 100));
    assert_eq!(cubic.curve.epoch, Some(NOW + Duration::from_secs(3)));
    // W_max = 200 and cwnd = 140.014 segments: K = cbrt(59.986 / 0.4) = 5.3129.
    close_to(cubic.curve.k, 5.312_9, 1e-4);
}

#[test]
fn the_first_slow_start_ends_by_hystart_if_the_round_trip_time_rises() {
    for (hystart, ends) in [(Detection::HyStartPlusPlus, true), (Detection::Off, false)] {
        let mut cubic = Cubic::start(&CubicSettings { hystart, ..CubicSettings::default() }, START);
        let (mut acked, mut sent) = (0, 10_000);
        // 40 ms in the first round, then a standing queue of 20 ms: the second begins CSS, of which it is the first of
        // five.
        for round in 0..7 {
            for _ in 0..(sent - acked) / 1_000 {
                acked += 1_000;
                let one = Ack {
                    total_acked: acked,
                    total_sent: acked + cubic.window(),
                    ..ack(1_000, if round == 0 { 40 } else { 60 })
                };
                cubic.on_ack(&one);
                sent = one.total_sent;
            }
        }
        assert_eq!(!cubic.in_slow_start(), ends, "{hystart:?}");
    }
    assert_eq!(CubicSettings::default().hystart, Detection::HyStartPlusPlus);
}
