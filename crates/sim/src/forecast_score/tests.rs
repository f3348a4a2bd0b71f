//! The measures against results by hand, and the standard setting on a few seeds.

use super::*;

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() < 1e-9, "{what}: {value} is not {expected}");
}

/// One link: forecasts, outcomes (u or d), and the states when they were made.
fn link(made: &[f64], came: &str, up: &str) -> Forecasts {
    let is_up = |text: &str| text.bytes().map(|letter| letter == b'u').collect::<Vec<_>>();
    Forecasts { made: made.iter().copied().zip(is_up(came)).collect(), up: is_up(up) }
}

#[test]
fn the_measures_of_four_forecasts_are_those_worked_out_by_hand() {
    let score = Score::of(&[link(&[0.9, 0.2, 0.6, 0.6], "uudd", "uuuu")]);
    // (0.1^2 + 0.8^2 + 0.6^2 + 0.6^2) / 4 = 1.37 / 4.
    assert_near(score.brier, 0.3425, "Brier");
    // Of the four pairs, 0.9 is above both downs, 0.2 below both.
    assert_near(score.auc, 0.5, "AUC");
    // One of two forecasts before "up" was below 0.3.
    assert_near(score.false_exclusions, 0.5, "false exclusions");
    // Ties count half: 1 + 1/2 of two pairs.
    assert_near(Score::of(&[link(&[0.6, 0.6, 0.1], "udd", "uuu")]).auc, 0.75, "AUC with a tie");
}

#[test]
fn lead_counts_from_the_alarm_that_lasted_and_a_late_one_is_negative() {
    let lead = |made: &[f64], up: &str| Score::of(&[link(made, &"u".repeat(made.len()), up)]).lead;
    let (y, n) = (0.1, 0.9);
    // Lost in the sixth second; alarm in the two seconds before, after an earlier one that ended.
    assert_near(lead(&[n, y, n, y, y, y, y, y], "uuuuuddd"), 2.0, "two early");
    assert_near(lead(&[n, n, n, n, n, n, y, y], "uuuuuddd"), -1.0, "one late");
    assert_near(lead(&[n, n, n, n, n, n, n, n, n, y], "uuuuudddux"), -10.0, "never while it was down");
    // Two losses: one on time, one never.
    assert_near(lead(&[n, n, n, n, n, y, y, y, n, n, n, n, n, n, n, n], "uuuuuddduuuuuddd"), -5.0, "mean of 0 and -10");
    // Up for only four seconds, or down for only two: no loss.
    assert_eq!(Score::of(&[link(&[n; 7], "uuuuuuu", "uuuuddd"), link(&[n; 8], "uuuuuuuu", "uuuuuddu")]).losses, 0);
}

#[test]
fn an_interval_is_students() {
    // 1, 2, 3: mean 2, standard deviation 1, 4.303 / sqrt 3.
    let Interval { mean, half_width } = interval(&[1.0, 2.0, 3.0]);
    assert_near(mean, 2.0, "mean");
    assert_near(half_width, 4.303 / libm::sqrt(3.0), "half width");
    assert_eq!(interval(&[5.0]).half_width, f64::INFINITY);
}

#[test]
fn half_of_the_packets_are_received_at_the_median_of_the_fading() {
    // Rayleigh: exp(-x) = 1/2 at x = ln 2, so 1.59 dB above the sensitivity.
    let rayleigh = Fading { shape: 1, sensitivity: -82.0 };
    let median = -82.0 - 10.0 * libm::log10(core::f64::consts::LN_2);
    assert_near(rayleigh.reception_ratio(median), 0.5, "Rayleigh");
    // Shape 3: exp(-3 x) (1 + 3 x + 4.5 x^2) at x = 1.
    let line_of_sight = Fading { shape: 3, sensitivity: -82.0 };
    assert_near(line_of_sight.reception_ratio(-82.0), 8.5 * libm::exp(-3.0), "shape 3");
    let mut random = crate::random::RandomStream::new(1, "fading");
    let received = (0..20_000).filter(|_| line_of_sight.draw(&mut random) >= 0.0).count();
    assert!((f64::from(received as u32) / 20_000.0 - 8.5 * libm::exp(-3.0)).abs() < 0.01, "{received}");
}

#[test]
fn the_same_seed_has_the_same_scores() {
    let setting = Setting { duration: anabranch_policy::time::Duration::from_secs(30), ..Setting::standard() };
    let scores =
        |seed| run(&setting, &contenders(), seed).expect("it runs").iter().map(|links| Score::of(links)).collect();
    let (once, again, other): (Vec<Score>, Vec<Score>, Vec<Score>) = (scores(1), scores(1), scores(2));
    assert_eq!(format!("{once:?}"), format!("{again:?}"));
    assert_ne!(format!("{once:?}"), format!("{other:?}"));
}

/// Three held-out seeds of `docs/measurements/forecasters.md`, which uses twenty. The paper's contender is the one that
/// observes the loss rate: its counter ends in a permanent alarm, which leads but excludes more than a third of the
/// good links.
#[test]
fn trend_is_better_than_persistence_and_the_paper_in_all_four_measures() {
    let needed = ["persistence", "paper_literal, quality = reception", "trend"];
    let few: Vec<Contender> = contenders().into_iter().filter(|one| needed.contains(&one.name.as_str())).collect();
    let rows = compare(&Setting::standard(), &few, HELD_OUT_SEEDS.take(3)).expect("it runs");
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"));
    let trend = row("trend");
    for other in ["persistence", "paper_literal, quality = reception"] {
        for measure in Measure::ALL {
            let (ours, theirs) = (trend.means[measure as usize].mean, row(other).means[measure as usize].mean);
            let better = if measure.more_is_better() { ours > theirs } else { ours < theirs };
            assert!(better, "{other}, {}: {ours} against {theirs}", measure.name());
        }
    }
    let oracle = row("oracle");
    assert_eq!(oracle.means.map(|interval| interval.mean), [0.0, 1.0, 2.0, 0.0]);
}
