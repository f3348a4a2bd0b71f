//! Time series: one curve per contender, or one chart per contender with a curve per path; small multiples if there are
//! several baselines.

use super::drawn::Drawn;
use super::words::seeds_text;
use crate::report::average::{averaged, usual_window};
use crate::report::canvas::ChartError;
use crate::report::chart::{Axis, Chart, Line, Point};
use crate::report::group::{self, by_baseline};
use crate::report::picture::{Picture, columns};
use anabranch_lab::metric::Series;
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::statistics::{Estimate, median, quantile, readable};

/// The series of a figure and their range.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    pub series: &'a [Series],
    /// Start and end, seconds.
    pub time: (f64, f64),
    /// Window of the moving average, seconds; 0: none; absent: the default.
    pub average: Option<f64>,
    /// Sampling interval, seconds.
    pub sample: f64,
}

impl Span<'_> {
    /// Window of the moving average of a series, if any.
    fn window(&self, series: Series) -> Option<f64> {
        let wanted = match self.average {
            Some(window) => Some(window),
            None => usual_window(series, self.time.1 - self.time.0, self.sample),
        };
        wanted.filter(|window| *window > self.sample)
    }

    /// The curve of a contender.
    fn points(&self, runs: &PolicyRuns, series: Series, path: Option<usize>) -> Vec<Option<Point>> {
        let curve = match self.window(series) {
            Some(window) => averaged(runs, series, path, window / self.sample),
            None => runs.mean_curve(series, path),
        };
        points(&curve, self.sample, self.time)
    }

    /// A chart with these curves.
    fn chart(&self, series: Series, title: String, lines: Vec<Line>) -> Chart {
        Chart {
            title,
            x_label: "Time (s)".to_owned(),
            y_label: format!("{} ({})", series.label(), series.unit()),
            axis: Axis::Time(self.time.0, self.time.1),
            lines,
            top: None,
            most: series.most(),
            bottom: None,
        }
    }

    /// Caption: meaning of curves and bands.
    fn reading(&self, outcome: &Outcome, cut: bool) -> String {
        let windows: Vec<Option<f64>> = self.series.iter().map(|series| self.window(*series)).collect();
        let lines = match windows.first().copied().flatten() {
            Some(window) => format!(
                "Lines are centred moving averages over {} s",
                readable(window).trim_end_matches('0').trim_end_matches('.')
            ),
            None => format!("Lines are samples of {} s", self.sample),
        };
        let runs = match outcome.seeds() {
            1 => ", of one run; no intervals.".to_owned(),
            _ => format!(", means over {}, bands their 95 % confidence intervals.", seeds_text(outcome)),
        };
        let cut = if cut { " Where a band is wider than the picture is high it is cut." } else { "" };
        format!("{lines}{runs}{cut}")
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

/// Ends the time axis with the curves if these end well before the figure's range, as for a stream sent once instead of
/// five times.
fn end_with_the_curves(charts: &mut [Chart], (from, to): (f64, f64), interval: f64) {
    let points = charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| line.points.iter().flatten());
    let last = points.map(|point| point.x + interval / 2.0).fold(from, f64::max);
    if last > from && last - from < 0.9 * (to - from) {
        charts.iter_mut().for_each(|chart| chart.axis = Axis::Time(from, last));
    }
}

/// Ratio of the highest mean to the median above which an axis is logarithmic.
const FAR_APART: f64 = 25.0;

/// Sets a logarithmic axis for delay and jitter if outliers would flatten the other curves.
fn with_logarithmic_axes(charts: &mut [Chart]) {
    let points = charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| line.points.iter().flatten());
    let means: Vec<f64> = points.map(|point| point.mean).filter(|mean| *mean > 0.0).collect();
    if charts.iter().any(|chart| !chart.y_label.ends_with("(ms)")) || means.is_empty() {
        return;
    }
    let highest = means.iter().copied().fold(0.0, f64::max);
    if highest > FAR_APART * median(&means) {
        let bottom = 10f64.powf(quantile(&means, 0.02).log10().floor());
        charts.iter_mut().for_each(|chart| chart.bottom = Some(bottom));
    }
}

/// Sets the same scale on charts with the same vertical axis, so that they can be compared.
fn with_common_tops(charts: &mut [Chart]) {
    let unit = |chart: &Chart| chart.y_label.rsplit('(').next().unwrap_or_default().to_owned();
    let highest: Vec<(String, f64)> = charts.iter().map(|chart| (unit(chart), chart.highest())).collect();
    for chart in charts {
        let own = unit(chart);
        let same = highest.iter().filter(|(unit, _)| *unit == own).map(|(_, top)| *top);
        chart.top = Some(same.fold(0.0, f64::max));
    }
}

/// One curve per contender: rows are series, columns are baselines.
pub fn over_time(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], span: &Span<'_>) -> Result<Drawn, ChartError> {
    let groups = by_baseline(runs);
    let mut charts = Vec::new();
    for series in span.series {
        for group in &groups {
            let line =
                |(at, runs): &(usize, &PolicyRuns)| Line { colour: *at, points: span.points(runs, *series, None) };
            charts.push(span.chart(*series, group.title.to_owned(), group.runs.iter().map(line).collect()));
        }
    }
    let beside = if groups.len() > 1 { groups.len() } else { columns(span.series.len()) };
    drawn(outcome, span, charts, beside, group::legend(outcome, runs))
}

/// One curve per path: one chart per contender and series. With baselines, rows are schemes and series, columns are
/// baselines.
pub fn paths_over_time(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], span: &Span<'_>) -> Result<Drawn, ChartError> {
    let paths = &outcome.scenario.paths;
    let groups = by_baseline(runs);
    let mut ordered: Vec<&PolicyRuns> = runs.iter().map(|(_, runs)| *runs).collect();
    if groups.len() > 1 {
        let schemes = group::schemes(outcome);
        // A stable sort: within a scheme the baselines keep their order.
        ordered.sort_by_key(|runs| schemes.iter().position(|scheme| *scheme == runs.scheme()));
    }
    let mut charts = Vec::new();
    for series in span.series {
        for runs in &ordered {
            let line = |path: usize| Line { colour: path, points: span.points(runs, *series, Some(path)) };
            charts.push(span.chart(*series, runs.label(), (0..paths.len()).map(line).collect()));
        }
    }
    let beside = if groups.len() > 1 { groups.len() } else { columns(charts.len()) };
    let legend = paths.iter().enumerate().map(|(at, path)| (format!("path {}", path.name), at));
    drawn(outcome, span, charts, beside, legend.collect())
}

fn drawn(
    outcome: &Outcome,
    span: &Span<'_>,
    mut charts: Vec<Chart>,
    columns: usize,
    legend: Vec<(String, usize)>,
) -> Result<Drawn, ChartError> {
    with_common_tops(&mut charts);
    with_logarithmic_axes(&mut charts);
    end_with_the_curves(&mut charts, span.time, span.sample);
    let pictures = charts.iter().map(|chart| Picture::drawn(columns, |width| chart.svg(width)));
    let cut = charts.iter().any(Chart::cuts_a_band);
    let logarithmic = charts.iter().any(|chart| chart.bottom.is_some());
    let mut reading = span.reading(outcome, cut);
    reading.push_str(if logarithmic { " The vertical axis is logarithmic." } else { "" });
    Ok(Drawn { pictures: pictures.collect::<Result<_, _>>()?, columns, legend, reading })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(span: &Span<'_>, last: f64, high: f64) -> Chart {
        let points = vec![None, Some(Point { x: last - 0.25, mean: high, half_width: 0.0 }), None];
        span.chart(Series::Throughput, String::new(), vec![Line { colour: 0, points }])
    }

    const SPAN: Span<'static> = Span { series: &[Series::Throughput], time: (0.0, 100.0), average: None, sample: 0.5 };

    #[test]
    fn the_axis_of_time_ends_with_the_curves_where_they_are_over_early() {
        let of = |last: f64| {
            let mut charts = [chart(&SPAN, last, 1.0)];
            end_with_the_curves(&mut charts, (0.0, 100.0), 0.5);
            charts.map(|chart| chart.axis)
        };
        assert_eq!(of(20.0), [Axis::Time(0.0, 20.0)]);
        assert_eq!(of(95.0), [Axis::Time(0.0, 100.0)]);
    }

    #[test]
    fn pictures_of_one_unit_have_one_scale_and_others_their_own() {
        let delay = Span { series: &[Series::Delay], ..SPAN }.chart(Series::Delay, String::new(), Vec::new());
        let mut charts = [chart(&SPAN, 90.0, 3.0), chart(&SPAN, 90.0, 7.0), delay];
        with_common_tops(&mut charts);
        assert_eq!(charts.map(|chart| chart.top), [Some(7.0), Some(7.0), Some(0.0)]);
    }

    #[test]
    fn a_scenario_may_choose_the_window_or_have_the_samples() {
        assert_eq!(SPAN.window(Series::Throughput), Some(5.0));
        assert_eq!(Span { average: Some(2.0), ..SPAN }.window(Series::Throughput), Some(2.0));
        assert_eq!(Span { average: Some(2.0), ..SPAN }.window(Series::Cwnd), Some(2.0));
        assert_eq!(Span { average: Some(0.0), ..SPAN }.window(Series::Throughput), None);
    }

    #[test]
    fn delays_have_a_logarithmic_axis_only_where_some_are_far_above_most() {
        let span = Span { series: &[Series::Delay], ..SPAN };
        let bottom = |last: f64| {
            let point = |x: usize, mean| Some(Point { x: x as f64, mean, half_width: 0.0 });
            let points = (0..100).map(|x| point(x, if x == 99 { last } else { 80.0 })).collect();
            let mut charts = [span.chart(Series::Delay, String::new(), vec![Line { colour: 0, points }])];
            with_logarithmic_axes(&mut charts);
            charts.map(|chart| chart.bottom)
        };
        assert_eq!(bottom(400.0), [None]);
        assert_eq!(bottom(9000.0), [Some(10.0)]);
        let mut throughput = [chart(&SPAN, 90.0, 3.0)];
        with_logarithmic_axes(&mut throughput);
        assert_eq!(throughput[0].bottom, None);
    }
}
