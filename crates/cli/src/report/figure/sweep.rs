//! A metric over the points of the scenario's sweep; small multiples if there are several baselines.

use super::drawn::Drawn;
use super::words::with_unit;
use crate::report::canvas::{self, ChartError};
use crate::report::chart::{Axis, Chart, Line, Point};
use crate::report::group::{self, Group, by_baseline};
use crate::report::picture::Picture;
use anabranch_lab::record::{Outcome, PolicyRuns, SweepPoint};

/// Label of a value on the axis. Tables, such as an automatic receive buffer, are shortened.
fn place(value: &str) -> String {
    match value.trim_start() {
        text if text.starts_with('{') => "automatic".to_owned(),
        // A list: its elements, whose unit is in the axis label.
        text if text.starts_with('[') => {
            let number = |part: &str| part.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
            text.split(',').map(number).collect::<Vec<_>>().join(", ")
        }
        text => text.to_owned(),
    }
}

/// One curve per contender.
pub fn sweep(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: Option<&str>) -> Result<Drawn, ChartError> {
    let Some(sweep) = &outcome.scenario.results.sweep else { return Ok(Drawn::nothing("")) };
    if outcome.sweep.is_empty() {
        return Ok(Drawn::nothing("The sweep was not run."));
    }
    let metric = metric.unwrap_or(&sweep.metric);
    let took_part = |runs: &PolicyRuns| outcome.sweep.iter().any(|point| at_point(point, runs).is_some());
    let runs: Vec<(usize, &PolicyRuns)> = runs.iter().filter(|(_, runs)| took_part(runs)).copied().collect();
    let groups = by_baseline(&runs);
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    let chart = |group: &Group<'_>| Chart {
        title: group.title.to_owned(),
        x_label: sweep.label.clone(),
        y_label: with_unit(&label, unit),
        axis: Axis::Places(outcome.sweep.iter().map(|point| place(&point.value)).collect()),
        lines: lines(outcome, group, metric),
        top: None,
        most: None,
        bottom: None,
    };
    let mut charts: Vec<Chart> = groups.iter().map(chart).collect();
    let top = charts.iter().map(Chart::highest).fold(0.0, f64::max);
    let all_of_it = {
        let lines = || charts.iter().flat_map(|chart| &chart.lines);
        unit == "%" && lines().flat_map(|line| line.points.iter().flatten()).all(|point| point.mean <= 100.0)
    };
    for chart in &mut charts {
        chart.top = Some(top);
        chart.most = all_of_it.then(|| canvas::nice_top(top).min(100.0));
    }
    let pictures = charts.iter().map(|chart| Picture::drawn(groups.len(), |width| chart.svg(width)));
    let seeds =
        outcome.sweep.iter().flat_map(|point| &point.policies).map(|runs| runs.records.len()).max().unwrap_or(0);
    let reading = format!("Points are means over {seeds} runs, bars their 95 % confidence intervals.");
    let (columns, legend) = (groups.len(), group::legend(outcome, &runs));
    Ok(Drawn { pictures: pictures.collect::<Result<_, _>>()?, columns, legend, reading })
}

/// Runs of a contender at a point.
fn at_point<'a>(point: &'a SweepPoint, runs: &PolicyRuns) -> Option<&'a PolicyRuns> {
    point.policies.iter().find(|known| known.contender.name == runs.contender.name)
}

fn lines(outcome: &Outcome, group: &Group<'_>, metric: &str) -> Vec<Line> {
    // Offset sideways, so that none hides another.
    let (spread, middle) = (0.36 / group.runs.len().max(1) as f64, (group.runs.len() as f64 - 1.0) / 2.0);
    let line = |(order, (at, runs)): (usize, &(usize, &PolicyRuns))| {
        let aside = (order as f64 - middle) * spread;
        let point = |(x, point): (usize, &SweepPoint)| {
            let estimate = at_point(point, runs)?.estimate(metric)?;
            Some(Point { x: x as f64 + aside, mean: estimate.mean, half_width: estimate.half_width })
        };
        Line { colour: *at, points: outcome.sweep.iter().enumerate().map(point).collect() }
    };
    group.runs.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_on_an_axis_is_its_numbers_and_a_table_a_word() {
        assert_eq!(place("[\"11 Mbit/s\", \"5.5 Mbit/s\"]"), "11, 5.5");
        assert_eq!(place("[1, 2]"), "1, 2");
        assert_eq!(place("{ initial = \"1 kB\" }"), "automatic");
        assert_eq!(place("300 ms"), "300 ms");
    }
}
