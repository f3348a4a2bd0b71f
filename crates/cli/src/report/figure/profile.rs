//! Several metrics on one axis, one curve per contender: for example captures at each node of an ad-hoc network.

use super::drawn::Drawn;
use super::words::{capital, seeds_text};
use crate::report::canvas::ChartError;
use crate::report::chart::{Axis, Chart, Line, Point};
use crate::report::group::{self, Group, by_baseline};
use crate::report::picture::Picture;
use anabranch_lab::record::{Outcome, PolicyRuns};

/// Metrics are given with their axis labels.
pub fn profile(
    outcome: &Outcome,
    runs: &[(usize, &PolicyRuns)],
    metrics: &[(String, String)],
) -> Result<Drawn, ChartError> {
    let groups = by_baseline(runs);
    let unit = metrics.first().and_then(|(metric, _)| outcome.scenario.metric(metric)).map_or("1", |(_, unit)| unit);
    let chart = |group: &Group<'_>| Chart {
        title: group.title.to_owned(),
        x_label: String::new(),
        y_label: if unit == "1" { String::new() } else { capital(unit) },
        axis: Axis::Places(metrics.iter().map(|(_, place)| place.clone()).collect()),
        lines: lines(group, metrics),
        top: None,
        most: None,
        bottom: None,
    };
    let mut charts: Vec<Chart> = groups.iter().map(chart).collect();
    let top = charts.iter().map(Chart::highest).fold(0.0, f64::max);
    charts.iter_mut().for_each(|chart| chart.top = Some(top));
    let pictures = charts.iter().map(|chart| Picture::drawn(groups.len(), |width| chart.svg(width)));
    let seeds = seeds_text(outcome);
    let reading = format!("Means over {seeds}, bars their 95 % confidence intervals; lines only lead the eye.");
    let (columns, legend) = (groups.len(), group::legend(outcome, runs));
    Ok(Drawn { pictures: pictures.collect::<Result<_, _>>()?, columns, legend, reading })
}

fn lines(group: &Group<'_>, metrics: &[(String, String)]) -> Vec<Line> {
    // Offset sideways, so that none hides another.
    let (spread, middle) = (0.5 / group.runs.len().max(1) as f64, (group.runs.len() as f64 - 1.0) / 2.0);
    let line = |(order, (colour, runs)): (usize, &(usize, &PolicyRuns))| {
        let aside = (order as f64 - middle) * spread;
        let point = |(x, (metric, _)): (usize, &(String, String))| {
            let estimate = runs.estimate(metric)?;
            Some(Point { x: x as f64 + aside, mean: estimate.mean, half_width: estimate.half_width })
        };
        Line { colour: *colour, points: metrics.iter().enumerate().map(point).collect() }
    };
    group.runs.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::record::Record;
    use anabranch_settings::contender::Contender;

    #[test]
    fn each_metric_is_a_place_and_what_was_not_measured_a_gap() {
        let metrics = vec![("captured_m1".to_owned(), 2600.0), ("captured_m3".to_owned(), 900.0)];
        let records = vec![Record { metrics, ..Record::default() }];
        let runs = PolicyRuns { contender: Contender::plain(), best_path: None, records };
        let shown = [("captured_m1", "M1"), ("captured_m2", "M2"), ("captured_m3", "M3")];
        let shown = shown.map(|(metric, place)| (metric.to_owned(), place.to_owned()));
        let lines = lines(&Group { title: "", runs: vec![(4, &runs)] }, &shown);
        let means: Vec<Option<f64>> = lines[0].points.iter().map(|point| point.map(|point| point.mean)).collect();
        assert_eq!((means, lines[0].colour), (vec![Some(2600.0), None, Some(900.0)], 4));
    }
}
