//! The filter against values computed by hand, and its forecasts.

use super::super::tests::after;
use super::*;
use crate::table::Settings;

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() < 1e-3, "{what}: {value} is not {expected}");
}

fn trend() -> Trend {
    Settings::new().read(Trend::read).expect("the defaults")
}

/// Forecasts 2 s ahead after a Hello of each strength, one per second; 0 is a missing Hello.
fn forecasts(forecaster: &mut dyn LinkForecaster, signals: &[f32]) -> Vec<f64> {
    let mut now = Instant::ZERO;
    let mut forecasts = Vec::new();
    for signal in signals {
        now += Duration::from_secs(1);
        forecaster.observe(now, if *signal < 0.0 { Observation::heard_at(*signal) } else { Observation::MISSED });
        forecasts.push(forecaster.probability_up(now, Duration::from_secs(2)));
    }
    forecasts
}

#[test]
fn two_nodes_that_pass_each_other_are_where_geometry_has_them() {
    // One range apart, q = 1; relative velocity 0.25 ranges per second, r . v = -0.2, so g = -0.4. After 2 s:
    // q = 1 - 0.8 + 0.25 = 0.45, r . v = -0.2 + 0.125 = -0.075, g = 2 x -0.075 / 0.45.
    let then = passing(0.0, -0.4, 0.25, 2.0);
    assert_near(then.step, libm::log(0.45), "l");
    assert_near(then.rate, -1.0 / 3.0, "g");
    // Passing at half a range, r . v = -v sqrt(3) / 2, and sqrt(3) / v later equally far on the other side.
    let then = passing(0.0, -libm::sqrt(3.0) / 3.0, 1.0 / 3.0, 3.0 * libm::sqrt(3.0));
    assert_near(then.step, 0.0, "l on the other side");
    assert_near(then.rate, libm::sqrt(3.0) / 3.0, "g on the other side");
    // The derivatives equal the difference quotients.
    let (l, g, speed, t, small) = (0.3, 0.1, 0.2, 1.5, 1e-6);
    let at = passing(l, g, speed, t);
    let (more_l, more_g) = (passing(l + small, g, speed, t), passing(l, g + small, speed, t));
    assert_near(at.jacobian[0][0], 1.0 + (more_l.step - at.step) / small, "l by l");
    assert_near(at.jacobian[0][1], (more_g.step - at.step) / small, "l by g");
    assert_near(at.jacobian[1][0], (more_l.rate - at.rate) / small, "g by l");
    assert_near(at.jacobian[1][1], (more_g.rate - at.rate) / small, "g by g");
}

/// A link with this margin and variance of the level; the rest is known exactly.
fn filter(margin: f64, variance: f64) -> Filter {
    let mut filter = Filter { mean: [-80.0 + margin, 0.0, 0.0, -80.0], variance: [[0.0; STATES]; STATES] };
    filter.variance[0][0] = variance;
    filter
}

#[test]
fn turns_make_the_slope_and_with_it_the_level_uncertain() {
    // At rest, and at the required level: nothing else adds to the variance. q = 0.5 x 0.5, t = 3 s.
    let pace = Pace { speed: 0.0, turns: 0.5, shadow_time: 1.0, shadow_depth: 0.0 };
    let then = filter(0.0, 0.0).ahead(3.0, &pace, 0.0);
    assert_near(then.variance[0][0], 2.25, "q t^3 / 3");
    assert_near(then.variance[0][1], 1.125, "q t^2 / 2");
    assert_near(then.variance[1][1], 0.75, "q t");
}

#[test]
fn a_factor_is_judged_with_its_offset() {
    // Margin 1, offset 2, variance 5 and noise 2: u = 3 / 3, and Phi(1) = 0.841345. With a floor of 0.5 half is added
    // to half of it.
    for (floor, expected) in [(0.0, 0.841_345), (0.5, 0.920_672)] {
        assert_near(filter(1.0, 5.0).judge(MARGIN, 2.0, 2.0, floor), expected, "mean");
    }
}

#[test]
fn a_measurement_as_uncertain_as_the_state_is_met_half_way() {
    let mut filter = filter(4.0, 4.0);
    let likelihood = filter.measure(-72.0, 2.0);
    assert_near(filter.mean[0], -74.0, "level");
    assert_near(filter.variance[0][0], 2.0, "variance");
    assert_near(likelihood, 0.3989 / libm::sqrt(8.0) * libm::exp(-0.5 * 16.0 / 8.0), "likelihood");
}

#[test]
fn a_missing_hello_moves_the_level_by_the_moments_of_a_cut_normal() {
    // Margin N(0, 3), fading 1: u = 0, the sum is 1/2; mean -3 x 0.3989 / (2 x 1/2), variance 3 - 9 x 0.7979^2 / 4.
    let mut even = filter(0.0, 3.0);
    assert_near(even.judge(LACK, 0.0, 1.0, 0.0), 0.5, "probability");
    assert_near(even.mean[0] + 80.0, -3.0 * 0.398_942, "margin");
    assert_near(even.variance[0][0], 3.0 - 9.0 * 0.398_942 * 0.398_942, "variance");
    // 20 dB above the required level a loss teaches nothing: it was a collision.
    let mut strong = filter(20.0, 3.0);
    assert_near(strong.judge(LACK, 0.0, 1.0, 0.03), 0.03, "probability");
    assert_near(strong.mean[0] + 80.0, 20.0, "margin");
}

#[test]
fn up_is_the_probability_of_a_margin() {
    assert_near(filter(0.0, 4.0).probability_up(), 0.5, "no margin");
    assert_near(filter(2.0, 4.0).probability_up(), 0.8413, "one deviation");
    assert_near(filter(-4.0, 4.0).probability_up(), 0.0228, "two below");
}

#[test]
fn a_fading_link_is_foreseen_while_every_hello_still_comes() {
    let fading: Vec<f32> = (0..10).map(|second| -64.0 - 2.0 * second as f32).collect();
    let foreseen = forecasts(&mut trend(), &fading);
    assert!(foreseen[4] > 0.9, "{foreseen:?}"); // at -72 dBm
    assert!(foreseen[9] < 0.5, "{foreseen:?}"); // at -82 dBm, falling by 2 dB per second
    let steady = forecasts(&mut trend(), &[-80.0; 10]);
    let coming: Vec<f32> = fading.iter().rev().copied().collect();
    let coming = forecasts(&mut trend(), &coming);
    let falling_there = forecasts(&mut trend(), &fading[..9])[8]; // -80 dBm
    assert!(falling_there < steady[8] && steady[8] < coming[2], "{falling_there} {} {}", steady[8], coming[2]);
}

#[test]
fn a_hello_that_is_missing_from_a_strong_link_is_no_alarm_and_from_a_weak_one_it_is() {
    let strong = forecasts(&mut trend(), &[-60.0, -60.0, -60.0, -60.0, -60.0, 0.0]);
    let weak = forecasts(&mut trend(), &[-81.0, -81.0, -82.0, -81.0, -82.0, 0.0]);
    assert!(strong[5] > 0.8, "{strong:?}");
    assert!(weak[5] < 0.5, "{weak:?}");
    let gone = forecasts(&mut trend(), &[-60.0, -60.0, -60.0, -60.0, -60.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(gone[8] < 0.35, "{gone:?}");
}

#[test]
fn without_strengths_missing_hellos_and_lost_frames_are_the_trend() {
    let run = |hellos| after(&mut trend(), hellos);
    assert!(run("1111111111") > 0.8);
    assert!(run("1111111110") < run("1111111111"));
    assert!(run("1111111000") < 0.5);
    assert!(run("1111101010") < run("1111111110"));
    let mut forecaster = trend();
    after(&mut forecaster, "1111111111");
    let now = Instant::ZERO + Duration::from_secs(10);
    let before = forecaster.probability_up(now, Duration::from_secs(2));
    forecaster.observe(now, Observation::Transmitted { delivered: false });
    let lost = forecaster.probability_up(now, Duration::from_secs(2));
    assert!(lost < before - 0.1, "{before} {lost}");
    (0..5).for_each(|_| forecaster.observe(now, Observation::Transmitted { delivered: true }));
    assert!(forecaster.probability_up(now, Duration::from_secs(2)) > lost);
}

#[test]
fn the_pace_is_learnt() {
    let mut still = trend();
    forecasts(&mut still, &[-70.0; 30]);
    let mut driving = trend();
    let signals: Vec<f32> = (0..30).map(|second| -76.0 + 12.0 * libm::sinf(second as f32)).collect();
    forecasts(&mut driving, &signals);
    assert!(still.weights[0] > 3.0 * still.weights[2], "{:?}", still.weights);
    assert!(driving.weights[2] > 3.0 * driving.weights[0], "{:?}", driving.weights);
}
