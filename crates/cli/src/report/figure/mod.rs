//! Renders a scenario's figures with legends.

mod bars;
mod delays;
mod drawn;
mod profile;
mod sweep;
mod time;
mod words;

pub use drawn::Drawn;

use super::canvas::{self, ChartError};
use super::group;
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::scenario::model::{Figure, FigureKind};
use time::Span;

pub fn draw(outcome: &Outcome, figure: &Figure) -> Result<Drawn, ChartError> {
    let runs = chosen(outcome, figure);
    match &figure.kind {
        FigureKind::Time { series, window, average } => {
            let time = match window {
                Some((from, to)) => (from.as_secs_f64(), to.unwrap_or(outcome.scenario.duration).as_secs_f64()),
                None => (0.0, outcome.scenario.duration.as_secs_f64()),
            };
            let average = average.map(|average| average.as_secs_f64());
            let span = Span { series, time, average, sample: outcome.scenario.sample.as_secs_f64() };
            if series.first().is_some_and(|series| series.per_path()) {
                time::paths_over_time(outcome, &runs, &span)
            } else {
                time::over_time(outcome, &runs, &span)
            }
        }
        FigureKind::Bars { metric } => bars::metric_bars(outcome, &runs, metric),
        FigureKind::Ratios { metric } => bars::ratio_bars(outcome, &runs, metric),
        FigureKind::Boxes { metric } => bars::metric_boxes(outcome, &runs, metric),
        FigureKind::Profile { metrics } => profile::profile(outcome, &runs, metrics),
        FigureKind::SegmentDelays { window } => delays::segment_delays(outcome, &runs, *window),
        FigureKind::Sweep { metric } => sweep::sweep(outcome, &runs, metric.as_deref()),
    }
}

/// Contenders of a figure, with the indices of their schemes, which determine colours.
fn chosen<'a>(outcome: &'a Outcome, figure: &Figure) -> Vec<(usize, &'a PolicyRuns)> {
    let schemes = group::schemes(outcome);
    let wanted = |runs: &&PolicyRuns| {
        let named = |name: &String| *name == runs.contender.name || name == runs.scheme();
        figure.policies.is_empty() || figure.policies.iter().any(named)
    };
    let place = |runs: &PolicyRuns| schemes.iter().position(|known| *known == runs.scheme()).unwrap_or(0);
    let chosen: Vec<&PolicyRuns> = outcome.policies.iter().filter(wanted).collect();
    let mut places: Vec<usize> = Vec::new();
    for runs in &chosen {
        if !places.contains(&place(runs)) {
            places.push(place(runs));
        }
    }
    let colours = apart(places.iter().map(|at| (*at, *at)).collect());
    let colour = |runs: &PolicyRuns| {
        let own = place(runs);
        colours.iter().find(|(_, at)| *at == own).map_or(own, |(colour, _)| *colour)
    };
    chosen.into_iter().map(|runs| (colour(runs), runs)).collect()
}

/// Replaces duplicate colours of a figure while unused ones remain.
fn apart<T>(mut chosen: Vec<(usize, T)>) -> Vec<(usize, T)> {
    let count = canvas::PALETTE.len();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_curves_of_a_figure_have_one_colour_while_there_are_others() {
        let places =
            |wanted: &[usize]| apart(wanted.iter().map(|at| (*at, ())).collect()).into_iter().map(|(at, ())| at);
        assert_eq!(places(&[0, 3, 9]).collect::<Vec<_>>(), [0, 3, 9]);
        // The eleventh would have the first one's.
        assert_eq!(places(&[0, 1, 4, 10, 11]).collect::<Vec<_>>(), [0, 1, 4, 2, 3]);
        let all: Vec<usize> = (0..14).collect();
        assert_eq!(places(&all).skip(10).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
