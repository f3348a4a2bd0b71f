//! Turns a scenario's figures and an outcome's numbers into pictures with legends.

use super::chart::{self, Axis, Bar, Chart, ChartError, Line, Point};
use super::distribution::{Distribution, boxes};
use crate::metric::Series;
use crate::record::{Outcome, PolicyRuns};
use crate::scenario::model::{Figure, FigureKind, Statement};
use crate::statistics::Estimate;

/// A figure ready for the page.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The pictures, side by side where they fit.
    pub pictures: Vec<String>,
    /// Label and colour of each curve.
    pub legend: Vec<(String, String)>,
    /// How to read what the legend does not say.
    pub reading: String,
}

const WIDE: (u32, u32) = (860, 340);
const HALF: (u32, u32) = (430, 290);

/// Draws a figure.
pub fn draw(outcome: &Outcome, figure: &Figure) -> Result<Drawn, ChartError> {
    let runs = chosen(outcome, figure);
    match &figure.kind {
        FigureKind::Time { series, window } => {
            let (from, to) = match window {
                Some((from, to)) => (from.as_secs_f64(), to.unwrap_or(outcome.scenario.duration).as_secs_f64()),
                None => (0.0, outcome.scenario.duration.as_secs_f64()),
            };
            let per_path = series.first().is_some_and(|series| series.per_path());
            if per_path {
                paths_over_time(outcome, &runs, series, (from, to))
            } else {
                over_time(outcome, &runs, series, (from, to))
            }
        }
        FigureKind::Bars { metric } => metric_bars(outcome, &runs, metric),
        FigureKind::Boxes { metric } => metric_boxes(outcome, &runs, metric),
        FigureKind::Sweep { metric } => sweep(outcome, &runs, metric.as_deref()),
    }
}

/// The combinations that a figure shows, with their places among all, which give the colours.
fn chosen<'a>(outcome: &'a Outcome, figure: &Figure) -> Vec<(usize, &'a PolicyRuns)> {
    let wanted = |runs: &PolicyRuns| figure.policies.is_empty() || figure.policies.contains(&runs.contender.name);
    apart(outcome.policies.iter().enumerate().filter(|(_, runs)| wanted(runs)).collect())
}

/// The same, where two of a figure would have one colour, with another for the second while there is one.
fn apart<T>(mut chosen: Vec<(usize, T)>) -> Vec<(usize, T)> {
    let count = chart::PALETTE.len();
    let mut used: Vec<usize> = Vec::new();
    for at in 0..chosen.len() {
        let own = chosen[at].0 % count;
        let taken = |colour: &usize| used.contains(colour) || chosen[at + 1..].iter().any(|(other, _)| other == colour);
        let colour = if used.contains(&own) { (0..count).find(|colour| !taken(colour)).unwrap_or(own) } else { own };
        used.push(colour);
        chosen[at].0 = colour;
    }
    chosen
}

fn legend_of(runs: &[(usize, &PolicyRuns)]) -> Vec<(String, String)> {
    runs.iter().map(|(at, runs)| (runs.label(), chart::css_colour(*at))).collect()
}

fn intervals_text(outcome: &Outcome) -> String {
    let seeds = outcome.seeds();
    if seeds > 1 {
        format!("Lines are means over {seeds} runs (seeds 1 to {seeds}), bands their 95 % confidence intervals.")
    } else {
        "One run; no intervals.".to_owned()
    }
}

fn points(curve: &[Option<Estimate>], interval: f64, (from, to): (f64, f64)) -> Vec<Option<Point>> {
    let place = |at: usize| (at as f64 + 0.5) * interval;
    let inside = |at: &usize| (from..=to).contains(&place(*at));
    (0..curve.len())
        .filter(inside)
        .map(|at| curve[at].map(|e| Point { x: place(at), mean: e.mean, half_width: e.half_width }))
        .collect()
}

fn axis_label(series: Series) -> String {
    format!("{} ({})", series.label(), series.unit())
}

/// Lets the axis end with the curves where these are over well before the figure's time: a stream that was sent once, not
/// five times.
fn end_with_the_curves(charts: &mut [Chart], (from, to): (f64, f64), interval: f64) {
    let points = charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| line.points.iter().flatten());
    let last = points.map(|point| point.x + interval / 2.0).fold(from, f64::max);
    if last > from && last - from < 0.9 * (to - from) {
        charts.iter_mut().for_each(|chart| chart.axis = Axis::Time(from, last));
    }
}

fn over_time(
    outcome: &Outcome,
    runs: &[(usize, &PolicyRuns)],
    series: &[Series],
    span: (f64, f64),
) -> Result<Drawn, ChartError> {
    let interval = outcome.scenario.sample.as_secs_f64();
    let picture = |series: &Series| {
        let line = |(at, runs): &(usize, &PolicyRuns)| Line {
            colour: *at,
            points: points(&runs.mean_curve(*series, None), interval, span),
        };
        Chart {
            title: String::new(),
            x_label: "Time (s)".to_owned(),
            y_label: axis_label(*series),
            axis: Axis::Time(span.0, span.1),
            lines: runs.iter().map(line).collect(),
            top: None,
            most: series.most(),
            size: WIDE,
        }
    };
    let mut charts: Vec<Chart> = series.iter().map(picture).collect();
    let top = charts.iter().map(Chart::highest).fold(0.0, f64::max);
    if charts.len() > 1 {
        charts.iter_mut().for_each(|chart| (chart.size, chart.top) = (HALF, Some(top)));
    }
    end_with_the_curves(&mut charts, span, interval);
    let pictures = charts.iter().map(Chart::svg).collect::<Result<_, _>>()?;
    Ok(Drawn { pictures, legend: legend_of(runs), reading: intervals_text(outcome) })
}

fn paths_over_time(
    outcome: &Outcome,
    runs: &[(usize, &PolicyRuns)],
    series: &[Series],
    span: (f64, f64),
) -> Result<Drawn, ChartError> {
    let interval = outcome.scenario.sample.as_secs_f64();
    let paths = &outcome.scenario.paths;
    let mut charts = Vec::new();
    for series in series {
        for (_, runs) in runs {
            let line = |path: usize| Line {
                colour: path,
                points: points(&runs.mean_curve(*series, Some(path)), interval, span),
            };
            charts.push(Chart {
                title: runs.label(),
                x_label: "Time (s)".to_owned(),
                y_label: axis_label(*series),
                axis: Axis::Time(span.0, span.1),
                lines: (0..paths.len()).map(line).collect(),
                top: None,
                most: series.most(),
                size: HALF,
            });
        }
    }
    if let [only] = charts.as_mut_slice() {
        only.size = WIDE;
    }
    // The same scale in all, so that they can be compared.
    let top = charts.iter().map(Chart::highest).fold(0.0, f64::max);
    charts.iter_mut().for_each(|chart| chart.top = Some(top));
    end_with_the_curves(&mut charts, span, interval);
    let legend = paths.iter().enumerate().map(|(at, path)| (format!("path {}", path.name), chart::css_colour(at)));
    let pictures = charts.iter().map(Chart::svg).collect::<Result<_, _>>()?;
    Ok(Drawn { pictures, legend: legend.collect(), reading: intervals_text(outcome) })
}

fn metric_bars(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: &str) -> Result<Drawn, ChartError> {
    let published = |policy: &str| {
        outcome.scenario.claims.iter().find_map(|claim| match claim.statement {
            Statement::Value(value) if claim.metric == metric && claim.policy == policy => Some(value),
            _ => None,
        })
    };
    let bar = |(at, runs): &(usize, &PolicyRuns)| {
        let estimate = runs.estimate(metric)?;
        let measured = Point { x: *at as f64, mean: estimate.mean, half_width: estimate.half_width };
        Some(Bar { label: runs.label(), colour: *at, measured, published: published(&runs.contender.name) })
    };
    let bars: Vec<Bar> = runs.iter().filter_map(bar).collect();
    if bars.is_empty() {
        let taken_part = runs.iter().any(|(_, runs)| !runs.records.is_empty());
        let reading = if taken_part {
            "Nothing was measured that this figure could show."
        } else {
            "None of the policies that this figure shows took part."
        };
        return Ok(Drawn { pictures: Vec::new(), legend: Vec::new(), reading: reading.to_owned() });
    }
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    // The zero of decibels and of similarity means nothing, and all that matters would be in a few pixels.
    let without_zero = unit == "dB" || metric.starts_with("ssim");
    let range = if without_zero { chart::around(&bars) } else { chart::from_zero(&bars, unit == "%") };
    let mut reading = "Bars are measured means with their 95 % confidence intervals".to_owned();
    let any_published = bars.iter().any(|bar| bar.published.is_some());
    reading.push_str(if any_published { "; a thick rule with a dot is the published value." } else { "." });
    if without_zero {
        reading.push_str(" The axis does not begin at 0.");
    }
    let picture = chart::bars(&bars, &with_unit(&label, unit), range, WIDE.0)?;
    Ok(Drawn { pictures: vec![picture], legend: Vec::new(), reading })
}

fn metric_boxes(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: &str) -> Result<Drawn, ChartError> {
    let of = |(at, runs): &(usize, &PolicyRuns)| Distribution {
        name: runs.label(),
        colour: Some(*at),
        values: runs.values(metric),
    };
    let distributions: Vec<Distribution> = runs.iter().map(of).collect();
    let highest = distributions.iter().flat_map(|one| &one.values).copied().fold(0.0, f64::max);
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    let axis = with_unit(&label, unit);
    let picture = boxes(&distributions, &axis, (0.0, chart::nice_top(highest)), WIDE.0)?;
    let seeds = outcome.seeds();
    let reading = format!(
        "Of {seeds} runs (seeds 1 to {seeds}): boxes from quarter to quarter with the median, lines from the first to the last decile."
    );
    Ok(Drawn { pictures: vec![picture], legend: Vec::new(), reading })
}

/// What an axis says of a sweep's value. A table, as of a receive buffer that grows, is too long for it.
fn place(value: &str) -> String {
    match value.trim_start() {
        text if text.starts_with('{') => "automatic".to_owned(),
        // A list: its elements, of which the label says the unit.
        text if text.starts_with('[') => {
            let number = |part: &str| part.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
            text.split(',').map(number).collect::<Vec<_>>().join(", ")
        }
        text => text.to_owned(),
    }
}

/// What an axis says of a metric.
fn with_unit(label: &str, unit: &str) -> String {
    // A mere number has none.
    if unit == "1" { capital(label) } else { format!("{} ({unit})", capital(label)) }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn sweep(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: Option<&str>) -> Result<Drawn, ChartError> {
    let Some(sweep) = &outcome.scenario.sweep else {
        return Ok(Drawn { pictures: Vec::new(), legend: Vec::new(), reading: String::new() });
    };
    if outcome.sweep.is_empty() {
        let reading = "The sweep was not run.".to_owned();
        return Ok(Drawn { pictures: Vec::new(), legend: Vec::new(), reading });
    }
    let metric = metric.unwrap_or(&sweep.metric);
    let took_part = |runs: &PolicyRuns| {
        let names = |point: &crate::record::SweepPoint| {
            point.policies.iter().any(|known| known.contender.name == runs.contender.name)
        };
        outcome.sweep.iter().any(names)
    };
    let runs = apart(runs.iter().filter(|(_, runs)| took_part(runs)).copied().collect());
    // Beside each other, so that none hides another.
    let (spread, middle) = (0.36 / runs.len().max(1) as f64, (runs.len() as f64 - 1.0) / 2.0);
    let line = |(order, (at, runs)): (usize, &(usize, &PolicyRuns))| {
        let aside = (order as f64 - middle) * spread;
        let point = |(x, point): (usize, &crate::record::SweepPoint)| {
            let found = point.policies.iter().find(|known| known.contender.name == runs.contender.name)?;
            let estimate = found.estimate(metric)?;
            Some(Point { x: x as f64 + aside, mean: estimate.mean, half_width: estimate.half_width })
        };
        Line { colour: *at, points: outcome.sweep.iter().enumerate().map(point).collect() }
    };
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    let mut chart = Chart {
        title: String::new(),
        x_label: sweep.label.clone(),
        y_label: with_unit(&label, unit),
        axis: Axis::Places(outcome.sweep.iter().map(|point| place(&point.value)).collect()),
        lines: runs.iter().enumerate().map(line).collect(),
        top: None,
        most: None,
        size: WIDE,
    };
    let points = || chart.lines.iter().flat_map(|line| line.points.iter().flatten());
    let all_of_it = unit == "%" && points().all(|point| point.mean <= 100.0);
    chart.most = all_of_it.then(|| chart::nice_top(chart.highest()).min(100.0));
    let seeds =
        outcome.sweep.iter().flat_map(|point| &point.policies).map(|runs| runs.records.len()).max().unwrap_or(0);
    let reading =
        format!("Points are means over {seeds} runs (seeds 1 to {seeds}), bars their 95 % confidence intervals.");
    Ok(Drawn { pictures: vec![chart.svg()?], legend: legend_of(&runs), reading })
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

    #[test]
    fn no_two_curves_of_a_figure_have_one_colour_while_there_are_others() {
        let places = |given: &[usize]| apart(given.iter().map(|at| (*at, ())).collect()).into_iter().map(|(at, ())| at);
        assert_eq!(places(&[0, 3, 9]).collect::<Vec<_>>(), [0, 3, 9]);
        // The eleventh would have the first's.
        assert_eq!(places(&[0, 1, 4, 10, 11]).collect::<Vec<_>>(), [0, 1, 4, 2, 3]);
        let all: Vec<usize> = (0..14).collect();
        assert_eq!(places(&all).skip(10).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn the_axis_of_time_ends_with_the_curves_where_they_are_over_early() {
        let of = |last: f64| {
            let points = vec![None, Some(Point { x: last - 0.25, mean: 1.0, half_width: 0.0 }), None];
            let lines = vec![Line { colour: 0, points }];
            let (axis, size) = (Axis::Time(0.0, 100.0), WIDE);
            let (title, x_label, y_label) = (String::new(), String::new(), String::new());
            let mut charts = [Chart { title, x_label, y_label, axis, lines, top: None, most: None, size }];
            end_with_the_curves(&mut charts, (0.0, 100.0), 0.5);
            charts.map(|chart| chart.axis)
        };
        assert_eq!(of(20.0), [Axis::Time(0.0, 20.0)]);
        assert_eq!(of(95.0), [Axis::Time(0.0, 100.0)]);
    }

    #[test]
    fn a_mere_number_has_no_unit_on_an_axis() {
        assert_eq!(with_unit("segments", "1"), "Segments");
        assert_eq!(with_unit("time", "s"), "Time (s)");
    }
}
