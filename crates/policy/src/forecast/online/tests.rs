//! The expected counts against Baum and Welch's by another program, and the result of learning.

use super::super::tests::after;
use super::*;
use crate::forecast::quality::Symbol;
use crate::table::Settings;

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() < 1e-9, "{what}: {value} is not {expected}");
}

const SEQUENCE: [Symbol; 10] = {
    use Symbol::{Bad, Good, Moderate};
    [Good, Good, Good, Moderate, Moderate, Bad, Bad, Moderate, Good, Good]
};

/// Logarithm of the sequence's probability, the counts after it, and the filter's last state.
fn expect(model: Model) -> (f64, Counts<3>, [f64; STATES]) {
    let mut filter = Filter::new(model);
    let mut counts = Counts::begin(SEQUENCE[0] as usize);
    let mut likelihood = libm::log(filter.take(1, SEQUENCE[0] as usize));
    for symbol in &SEQUENCE[1..] {
        counts.take(&model, filter.filtered, Some(*symbol as usize), 1.0);
        likelihood += libm::log(filter.take(1, *symbol as usize));
    }
    (likelihood, counts, filter.filtered)
}

/// One iteration of Baum and Welch: the counts' shares.
fn maximize(model: Model) -> (f64, Model) {
    let (likelihood, counts, now) = expect(model);
    let (transitions, emissions) = counts.expected(now);
    let share = |row: &[f64]| row.iter().map(|count| count / row.iter().sum::<f64>()).collect::<Vec<_>>();
    let start = [0, 1].map(|i| now[0] * counts.first[0][i] + now[1] * counts.first[1][i]);
    let transition = transitions.map(|row| share(&row).try_into().expect("two"));
    let emission = emissions.map(|row| share(&row).try_into().expect("three"));
    (likelihood, Model { start, transition, emission })
}

/// Computed by hmmlearn and another program for good good good moderate moderate bad bad moderate good good.
#[test]
fn without_forgetting_the_counts_are_those_of_baum_and_welch() {
    let (likelihood, model) = maximize(PAPER);
    assert_near(likelihood, -10.265_963_929_258_75, "likelihood before");
    let expected = Model {
        start: [0.940_805_338_497_421_1, 0.059_194_661_502_579_12],
        transition: [
            [0.778_937_552_755_442_9, 0.221_062_447_244_557_26],
            [0.388_402_884_300_820_87, 0.611_597_115_699_179_1],
        ],
        emission: [
            [0.691_133_639_375_788_1, 0.267_085_054_577_073_4, 0.041_781_306_047_138_39],
            [0.113_117_036_857_699_01, 0.366_624_753_541_432_6, 0.520_258_209_600_868_3],
        ],
    };
    for i in 0..STATES {
        assert_near(model.start[i], expected.start[i], "start");
        for j in 0..STATES {
            assert_near(model.transition[i][j], expected.transition[i][j], "transition");
        }
        for m in 0..3 {
            assert_near(model.emission[i][m], expected.emission[i][m], "emission");
        }
    }
    let (_, counts, now) = expect(PAPER);
    let (transitions, emissions) = counts.expected(now);
    let expected = [[4.501_387_304_041_926, 1.277_493_542_206_339_6], [1.251_091_969_993_793_2, 1.970_027_183_757_942]];
    for i in 0..STATES {
        for j in 0..STATES {
            assert_near(transitions[i][j], expected[i][j], "expected transitions");
        }
    }
    // The smoothed probabilities of connect, summed where the symbol was good, moderate, bad.
    let smoothed = [
        0.940_805_338_497_421_1
            + 0.943_893_232_637_030_1
            + 0.920_565_898_503_368_6
            + 0.906_285_917_715_297_3
            + 0.914_403_766_284_874_4,
        0.684_169_318_581_488_3 + 0.518_494_471_607_256_3 + 0.585_012_495_849_555_1,
        0.136_240_134_851_548_12 + 0.143_414_038_005_301_11,
    ];
    for m in 0..3 {
        assert_near(emissions[0][m], smoothed[m], "expected emissions");
    }
}

#[test]
fn without_prior_and_floor_likelihood_drives_emissions_to_zero() {
    let mut model = PAPER;
    let mut likelihood = 0.0;
    for _ in 0..20 {
        (likelihood, model) = maximize(model);
    }
    assert_near(likelihood, -8.116_857_647_57, "likelihood before the twentieth");
    assert!(model.emission.iter().flatten().any(|share| *share < 1e-15), "{model:?}");
    assert_eq!(shares(&[0.5, 0.5], 0.0, &[1.0, 0.0]), [1.0 / 1.001, 0.001 / 1.001]);
    assert_eq!(shares(&[0.7, 0.3], 20.0, &[6.0, 4.0]), [20.0 / 30.0, 10.0 / 30.0]);
}

#[test]
fn a_link_of_long_spells_teaches_that_states_last() {
    let mut forecaster = Settings::new().read(Online::read).expect("the defaults");
    let spells = format!("{}{}", "1".repeat(40), "0".repeat(40)).repeat(4);
    after(&mut forecaster, &spells);
    let model = forecaster.filter.model;
    // Initially 0.7 and 0.6.
    assert!(model.transition[0][0] > 0.85 && model.transition[1][1] > 0.85, "{:?}", model.transition);
    assert!(model.emission.iter().flatten().all(|share| *share > 0.9e-3), "{:?}", model.emission);
    let forecast = forecaster.probability_up(Instant::ZERO + Duration::from_secs(320), Duration::from_secs(2));
    assert!(forecast < 0.35, "{forecast}"); // where the paper's numbers say 0.53
}

#[test]
fn connect_stays_the_state_of_good_levels() {
    let mut forecaster = Settings::new().with("prior", 0.1).read(Online::read).expect("good settings");
    for round in 0..40 {
        after_round(&mut forecaster, round);
        let emission = forecaster.filter.model.emission;
        let good = emission.map(|row| row[..3].iter().sum::<f64>());
        assert!(good[0] >= good[1], "{emission:?}");
    }
}

fn after_round(forecaster: &mut Online, round: u64) {
    for step in 0..8 {
        let now = Instant::ZERO + Duration::from_secs(8 * round + step);
        let heard = (round * 5 + step * step) % 7 > 2;
        forecaster.observe(now, if heard { Observation::HEARD } else { Observation::MISSED });
    }
}

#[test]
fn exchanging_the_names_twice_changes_nothing() {
    let (_, counts, _) = expect(PAPER);
    let mut twice = counts;
    twice.exchange();
    assert_ne!(twice, counts);
    assert_eq!(twice.transitions[1][1][1], counts.transitions[0][0][0]);
    assert_eq!(twice.emissions[0][1][2], counts.emissions[1][0][2]);
    twice.exchange();
    assert_eq!(twice, counts);
}

#[test]
fn the_slope_is_falling_beyond_one_decibel_and_a_missing_hello_counts_as_three() {
    let mut slope = Slope::default();
    assert_eq!(slope.index(), 1);
    slope.take(Observation::heard_at(-70.0));
    // Fast -72, slow -70.8: a difference of 1.2 dB.
    slope.take(Observation::heard_at(-74.0));
    assert_eq!(slope.index(), 0);
    let mut slope = Slope::default();
    slope.take(Observation::heard_at(-70.0));
    slope.take(Observation::MISSED); // fast -71.5, slow -70.6
    assert_eq!(slope.index(), 1);
    slope.take(Observation::MISSED); // fast -73, slow -71.38
    assert_eq!(slope.index(), 0);
    let mut slope = Slope::default();
    slope.take(Observation::HEARD);
    slope.take(Observation::MISSED); // 5 against 8
    assert_eq!(slope.index(), 0);
    slope.take(Observation::HEARD); // 7.5 against 8.4
    slope.take(Observation::HEARD); // 8.75 against 8.72
    assert_eq!(slope.index(), 1);
}

#[test]
fn means_that_differ_by_a_decibel_are_steady() {
    let slope = |fast| Slope { means: Some((fast, -70.0)), strength_known: true }.index();
    assert_eq!([-71.125, -71.0, -69.0, -68.875].map(slope), [0, 1, 1, 2]);
}

#[test]
fn a_signal_that_no_radio_measures_is_none() {
    let slope = |signal| {
        let mut slope = Slope::default();
        slope.take(Observation::heard_at(signal));
        slope.strength_known
    };
    assert_eq!([-200.0, 100.0, -201.0, 101.0, f32::NAN].map(slope), [true, true, false, false, false]);
}

#[test]
fn a_forecast_is_as_many_steps_ahead_as_the_horizon_is() {
    let mut forecaster = Settings::new().read(Online::read).expect("the defaults");
    forecaster.observe(Instant::ZERO, Observation::HEARD);
    let Filter { model, filtered, .. } = forecaster.filter;
    let ahead = |seconds| forecaster.probability_up(Instant::ZERO, Duration::from_secs(seconds));
    assert_eq!([0, 1, 3].map(ahead), [0, 1, 3].map(|steps| model.ahead(filtered, steps)[0]));
    assert!(ahead(3) < ahead(1) && ahead(1) < ahead(0));
}

#[test]
fn a_symbol_is_a_level_and_a_slope() {
    let after = |signals: &[Option<f32>]| {
        let mut forecaster = Settings::new().with("gain", 1).read(Online::read).expect("good settings");
        for (second, signal) in (0..).zip(signals) {
            let observation = signal.map_or(Observation::MISSED, Observation::heard_at);
            forecaster.observe(Instant::ZERO + Duration::from_secs(second), observation);
        }
        forecaster.open.map(|open| open.symbol)
    };
    // All of the last step carried, which is good, or nothing did, which is bad: 0 and 2, times three, and the slope. After
    // 10 dB more the means are -75 and -78; a missing Hello counts as -78 dB, fast then -76.5 and slow -78.
    assert_eq!(after(&[Some(-80.0)]), Some(1));
    assert_eq!(after(&[Some(-80.0), Some(-70.0)]), Some(2));
    assert_eq!(after(&[Some(-80.0), Some(-70.0), None]), Some(8));
    assert_eq!(after(&[Some(-80.0), None, None]), Some(6));
}

#[test]
fn a_signal_that_rises_by_more_than_a_decibel_rises() {
    let slope = |signals: &[f32]| {
        let mut slope = Slope::default();
        signals.iter().for_each(|signal| slope.take(Observation::heard_at(*signal)));
        slope.index()
    };
    // Half of a step minus a fifth of it is 0.3 of it.
    assert_eq!([&[-80.0, -76.0][..], &[-80.0, -77.0], &[-80.0, -83.0], &[-80.0, -84.0]].map(slope), [2, 1, 1, 0]);
}

#[test]
fn the_numbers_beforehand_are_probabilities() {
    let model = beforehand();
    for row in model.emission {
        assert_near(row.iter().sum(), 1.0, "the symbols of a state");
    }
    // Good and falling: the paper's share of good times a fifth.
    assert_near(model.emission[0][0], PAPER.emission[0][0] * 0.2, "good and falling");
}
