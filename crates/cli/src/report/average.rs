//! Centred moving averages of series, per run, so that the confidence band is that of the average.

use anabranch_lab::metric::Series;
use anabranch_lab::record::{Curve, PolicyRuns};
use anabranch_lab::statistics::Estimate;

/// With more samples than this in a figure, noise hides the common trend.
const READABLE: f64 = 60.0;
/// Windows in a figure's time.
const WINDOWS: f64 = 20.0;
/// Minimum measured share of a window.
const LEAST_SHARE: f64 = 0.25;

/// Default window of a series drawn over `span` seconds with a sampling interval of `sample` seconds. For rates: the
/// largest of 1, 2 and 5 times a power of ten of at most `span` / 20. None for states and cumulative series.
pub fn usual_window(series: Series, span: f64, sample: f64) -> Option<f64> {
    let jitters = matches!(
        series,
        Series::Throughput | Series::PathThroughput | Series::OutOfOrderDsn | Series::Delay | Series::Jitter
    );
    if !jitters || span / sample <= READABLE {
        return None;
    }
    let wanted = span / WINDOWS;
    let power = 10f64.powf(wanted.log10().floor());
    let window = [5.0, 2.0, 1.0].iter().map(|step| step * power).find(|window| *window <= wanted * (1.0 + 1e-9))?;
    (window >= 2.0 * sample).then_some(window)
}

/// Moving average over `samples` intervals: the two values at the ends count half. NaN values are ignored, and the
/// window is truncated at both ends of the series. NaN if less than a quarter of the window was measured.
pub fn moving(values: &[f64], samples: f64) -> Vec<f64> {
    let half = (samples / 2.0).round().max(0.0) as usize;
    if half == 0 {
        return values.to_vec();
    }
    let at = |middle: usize| {
        let window = middle.saturating_sub(half)..=(middle + half).min(values.len() - 1);
        let weight = |place: usize| if place.abs_diff(middle) == half { 0.5 } else { 1.0 };
        let measured = window.filter(|place| values[*place].is_finite());
        let (sum, total) = measured
            .fold((0.0, 0.0), |(sum, total), place| (sum + weight(place) * values[place], total + weight(place)));
        if total < LEAST_SHARE * 2.0 * half as f64 { f64::NAN } else { sum / total }
    };
    (0..values.len()).map(at).collect()
}

/// Mean over the runs, with interval, of the moving average at each sample.
pub fn averaged(runs: &PolicyRuns, series: Series, path: Option<usize>, samples: f64) -> Vec<Option<Estimate>> {
    let curves = runs.records.iter().filter_map(|record| record.curve(series, path));
    let curves: Vec<Vec<f64>> = curves.map(|Curve { values, .. }| moving(values, samples)).collect();
    let length = curves.iter().map(Vec::len).max().unwrap_or(0);
    let at = |place: usize| {
        let values = curves.iter().filter_map(|curve| curve.get(place).copied()).filter(|value| value.is_finite());
        Estimate::of(&values.collect::<Vec<f64>>())
    };
    (0..length).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::record::Record;
    use anabranch_settings::contender::Contender;

    #[test]
    fn a_window_of_four_samples_has_the_outer_two_of_five_by_half() {
        // (1/2 + 2 + 3 + 4 + 5/2) / 4 in the middle; truncated at the ends: (1 + 2 + 3/2) / 2.5.
        let averages = moving(&[1.0, 2.0, 3.0, 4.0, 5.0], 4.0);
        assert_eq!(averages[2], 3.0);
        assert!((averages[0] - 1.8).abs() < 1e-12);
    }

    #[test]
    fn what_was_not_measured_does_not_count_and_a_long_gap_stays_one() {
        let averages = moving(&[2.0, f64::NAN, 4.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN], 2.0);
        // Half of 2 and half of 4.
        assert_eq!(averages[1], 3.0);
        assert!(averages[4..].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn no_window_leaves_the_samples_as_they_are() {
        assert_eq!(moving(&[1.0, 5.0], 0.0), [1.0, 5.0]);
        assert!(moving(&[], 4.0).is_empty());
    }

    #[test]
    fn the_usual_window_is_a_round_number_of_seconds_and_of_what_jitters() {
        assert_eq!(usual_window(Series::Throughput, 100.0, 0.5), Some(5.0));
        assert_eq!(usual_window(Series::Delay, 120.0, 0.5), Some(5.0));
        assert_eq!(usual_window(Series::Jitter, 70.0, 0.5), Some(2.0));
        assert_eq!(usual_window(Series::Throughput, 20.0, 0.5), None);
        assert_eq!(usual_window(Series::SentDsn, 100.0, 0.5), None);
        assert_eq!(usual_window(Series::Cwnd, 100.0, 0.5), None);
    }

    #[test]
    fn the_band_is_that_of_the_averages_of_the_runs() {
        let run = |values: [f64; 3]| Record {
            curves: vec![Curve { series: Series::Throughput, path: None, values: values.to_vec() }],
            ..Record::default()
        };
        // The samples of the two runs differ widely, their averages do not.
        let records = vec![run([0.0, 2.0, 4.0]), run([4.0, 2.0, 0.0])];
        let runs = PolicyRuns { contender: Contender::plain(), best_path: None, records };
        let middle = averaged(&runs, Series::Throughput, None, 2.0)[1].unwrap();
        assert_eq!((middle.mean, middle.half_width), (2.0, 0.0));
    }
}
