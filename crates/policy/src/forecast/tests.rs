//! Common properties of all forecasters.

use super::*;
use crate::table::{self, Settings};
use crate::time::{Duration, Instant};

fn make(name: &str) -> Box<dyn LinkForecaster> {
    table::build(TABLE, name, &Settings::new()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn second(second: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(second)
}

/// The forecast 2 s ahead after a received (1) or missing (0) Hello each second.
pub(super) fn after(forecaster: &mut dyn LinkForecaster, hellos: &str) -> f64 {
    let mut now = Instant::ZERO;
    for hello in hellos.bytes() {
        now += Duration::from_secs(1);
        forecaster.observe(now, if hello == b'1' { Observation::HEARD } else { Observation::MISSED });
    }
    forecaster.probability_up(now, Duration::from_secs(2))
}

#[test]
fn a_link_that_is_heard_is_more_likely_up_than_one_that_is_not() {
    for member in TABLE {
        let up = after(&mut *make(member.name), &"1".repeat(40));
        let down = after(&mut *make(member.name), &format!("{}{}", "1".repeat(20), "0".repeat(20)));
        assert!(up > 0.5 && down < 0.6 && up > down, "{}: {up} {down}", member.name);
    }
}

#[test]
fn forecasts_are_probabilities_whatever_is_observed_and_the_same_each_time() {
    for member in TABLE {
        let run = || {
            let mut forecaster = make(member.name);
            let mut state = 1_u64;
            let mut now = Instant::ZERO;
            let mut forecasts = Vec::new();
            for _ in 0..2_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let draw = state >> 33;
                now += Duration::from_millis(draw % 3_000);
                let signal = [-60.0, -95.0, f32::NAN, f32::INFINITY, -1e30, 1e30][(draw / 7 % 6) as usize];
                let observation = match draw % 5 {
                    0 => Observation::HEARD,
                    1 => Observation::heard_at(signal),
                    2 => Observation::Missed { hellos: (draw / 11 % 5) as u16 * 10_000 },
                    3 => Observation::Transmitted { delivered: true },
                    _ => Observation::Transmitted { delivered: false },
                };
                forecaster.observe(now, observation);
                for horizon in [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(60), Duration::MAX] {
                    let forecast = forecaster.probability_up(now, horizon);
                    assert!((0.0..=1.0).contains(&forecast), "{}: {forecast} after {observation:?}", member.name);
                    forecasts.push(forecast.to_bits());
                }
            }
            forecasts
        };
        assert_eq!(run(), run(), "{}", member.name);
    }
}

#[test]
fn time_without_a_hello_due_is_no_bad_sign() {
    for member in TABLE {
        let mut forecaster = make(member.name);
        after(&mut *forecaster, &"1".repeat(30));
        let before = forecaster.probability_up(second(30), Duration::ZERO);
        forecaster.observe(second(35), Observation::Missed { hellos: 0 });
        let later = forecaster.probability_up(second(35), Duration::ZERO);
        assert!(later > 0.5 && later <= before, "{}: {before}, then {later}", member.name);
    }
}

#[test]
fn viterbi_follows_the_last_two_symbols_of_a_link() {
    // With a gain of 1 each Hello is good and each missing one bad.
    let settings = Settings::new().with("gain", 1);
    let run = |hellos: &str| after(&mut settings.read(super::viterbi::Viterbi::read).expect("good settings"), hellos);
    assert_eq!(run("1"), 1.0);
    assert_eq!(run("10"), 0.0);
    assert_eq!(run("1001"), 1.0);
    // With a gain of a quarter: 1, 0.75, 0.5625, 0.42: bad at the third missing one.
    let run = |hellos: &str| after(&mut *make("viterbi"), hellos);
    assert_eq!(run("100"), 1.0);
    assert_eq!(run("1000"), 0.0);
    assert_eq!(run("10001"), 0.0); // 0.57: moderate after bad
    assert_eq!(run("100011"), 1.0); // 0.67: moderate after moderate
}

#[test]
fn the_pseudo_code_stays_with_disconnect_where_viterbi_has_left_it() {
    let settings = Settings::new().with("quality", "reception");
    let mut literal = settings.read(PaperLiteral::read).expect("good settings");
    assert_eq!(after(&mut literal, "100011"), 0.0);
    // On the paper's counter five missing Hellos of 1000 each make it bad, and it stays bad for long.
    assert_eq!(after(&mut *make("paper_literal"), "10000"), 1.0);
    assert_eq!(after(&mut *make("paper_literal"), "100000"), 0.0);
    assert_eq!(after(&mut *make("paper_literal"), &format!("1{}{}", "0".repeat(8), "1".repeat(100))), 0.0);
}

#[test]
fn forward_carries_the_present_to_the_horizon() {
    let mut forecaster = make("forward");
    assert_eq!(forecaster.probability_up(Instant::ZERO, Duration::from_secs(2)), 0.65);
    // Good once: 0.3575 / 0.3925 now; two steps on 4/7 + 0.09 (now - 4/7).
    let now = 0.3575 / 0.3925;
    let ahead = after(&mut *forecaster, "1");
    assert!((ahead - (4.0 / 7.0 + 0.09 * (now - 4.0 / 7.0))).abs() < 1e-12, "{ahead}");
    assert!((forecaster.probability_up(second(1), Duration::ZERO) - now).abs() < 1e-12);
    // A step in between was not observed: the same as one more step of horizon.
    let later = forecaster.probability_up(second(2), Duration::from_secs(1));
    assert_eq!(later.to_bits(), ahead.to_bits());
}
