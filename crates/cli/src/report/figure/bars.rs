//! A metric of each contender: its mean or its change as a bar, or its distribution over the runs as a box; small
//! multiples if there are several baselines.

use super::drawn::Drawn;
use super::words::{capital, seeds_text, with_unit};
use crate::report::bars::{self, Bar, Mark};
use crate::report::canvas::{self, ChartError};
use crate::report::chart::Point;
use crate::report::distribution::{Distribution, boxes};
use crate::report::group::{self, Group, by_baseline};
use crate::report::picture::Picture;
use crate::report::rows::Frame;
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::scenario::model::{Claim, Statement};
use anabranch_lab::statistics::readable;
use anabranch_lab::verdict;

/// Published statements about a contender's metric. Ratios and differences refer to the measured value of the other
/// contender.
fn published(outcome: &Outcome, runs: &PolicyRuns, metric: &str) -> Vec<Mark> {
    let mine = |claim: &&Claim| claim.metric == metric && names(&claim.policy, runs);
    let claims = || outcome.scenario.results.claims.iter().filter(mine);
    let value = claims().find_map(|claim| match claim.statement {
        Statement::Value(value) => Some(Mark::Value(value)),
        _ => None,
    });
    let ratio = first_ratio(claims()).and_then(|(over, apply)| {
        let other = outcome.run_of(over, runs.baseline())?.estimate(metric)?;
        Some(Mark::Ratio(apply(other.mean)))
    });
    value.into_iter().chain(ratio).collect()
}

/// Whether a claim is about this contender.
fn names(policy: &str, runs: &PolicyRuns) -> bool {
    policy == runs.scheme() || policy == runs.contender.name
}

/// Computes a claimed value from the mean of the other contender.
type FromOther = Box<dyn Fn(f64) -> f64>;

/// Reference of the first claim that compares, and its function of the reference's mean.
fn first_ratio<'a>(claims: impl Iterator<Item = &'a Claim>) -> Option<(&'a str, FromOther)> {
    for claim in claims {
        match &claim.statement {
            Statement::Change { over, change } => {
                let factor = 1.0 + change.0;
                return Some((over, Box::new(move |mean| mean * factor)));
            }
            Statement::Difference { over, more } => {
                let more = *more;
                return Some((over, Box::new(move |mean| mean + more)));
            }
            _ => {}
        }
    }
    None
}

/// One bar per contender.
pub fn metric_bars(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: &str) -> Result<Drawn, ChartError> {
    let groups = by_baseline(runs);
    let bar = |(at, runs): &(usize, &PolicyRuns)| {
        let estimate = runs.estimate(metric)?;
        Some(Bar {
            label: format!("{}: {}", group::label(outcome, runs), readable(estimate.mean)),
            colour: *at,
            measured: Point { x: 0.0, mean: estimate.mean, half_width: estimate.half_width },
            published: published(outcome, runs, metric),
        })
    };
    let panel = |group: &Group<'_>| group.runs.iter().filter_map(bar).collect();
    let panels: Vec<Vec<Bar>> = groups.iter().map(panel).collect();
    let all: Vec<Bar> = panels.iter().flatten().cloned().collect();
    if all.is_empty() {
        let taken_part = runs.iter().any(|(_, runs)| !runs.records.is_empty());
        return Ok(Drawn::nothing(if taken_part {
            "Nothing was measured that this figure could show."
        } else {
            "None of the policies that this figure shows took part."
        }));
    }
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    // Zero has no meaning for decibels and similarity, and would reduce the differences to a few pixels.
    let without_zero = unit == "dB" || metric.starts_with("ssim");
    let range = if without_zero { bars::around(&all) } else { bars::from_zero(&all, unit == "%") };
    let mut reading = "Bars are measured means with their 95 % confidence intervals".to_owned();
    reading.push_str(&marks_text(&all));
    if without_zero {
        reading.push_str(" The axis does not begin at 0.");
    }
    let pictures = panels_drawn(&groups, &panels, &with_unit(&label, unit), range)?;
    Ok(Drawn { pictures, columns: groups.len(), legend: Vec::new(), reading })
}

/// Explanation of the marks beside bars.
fn marks_text(bars: &[Bar]) -> String {
    let any = |wanted: fn(&Mark) -> bool| bars.iter().any(|bar| bar.published.iter().any(wanted));
    let mut parts = Vec::new();
    if any(|mark| matches!(mark, Mark::Value(_))) {
        parts.push("a disc on a rule is the published value");
    }
    if any(|mark| matches!(mark, Mark::Ratio(_))) {
        parts.push(
            "a ring on a rule is the published ratio or difference, applied to what was measured of the other side",
        );
    }
    if parts.is_empty() { ".".to_owned() } else { format!("; {}.", parts.join("; ")) }
}

fn panels_drawn(
    groups: &[Group<'_>],
    panels: &[Vec<Bar>],
    axis: &str,
    range: (f64, f64),
) -> Result<Vec<Picture>, ChartError> {
    let names = panels.iter().flatten().map(|bar| bar.label.chars().count());
    let frame = Frame { axis, range, longest: names.max().unwrap_or(0) };
    let panel = |(group, panel): (&Group<'_>, &Vec<Bar>)| {
        Picture::drawn(groups.len(), |width| bars::bars(panel, group.title, &frame, width))
    };
    groups.iter().zip(panels).map(panel).collect()
}

/// One bar per claim that compares two contenders in a metric: the measured change, with the published one marked.
pub fn ratio_bars(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: &str) -> Result<Drawn, ChartError> {
    let claims: Vec<&Claim> = outcome.scenario.results.claims.iter().filter(|claim| claim.metric == metric).collect();
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    // Differences have the metric's unit, changes have none: a figure has one axis.
    let absolute = claims.iter().any(|claim| matches!(claim.statement, Statement::Difference { .. }));
    let groups = by_baseline(runs);
    let panel = |group: &Group<'_>| -> Vec<Bar> {
        let of = |claim: &&Claim| {
            let (at, runs) = group.runs.iter().find(|(_, runs)| names(&claim.policy, runs))?;
            ratio_bar(outcome, claim, (*at, runs), absolute)
        };
        claims.iter().filter_map(of).collect()
    };
    let panels: Vec<Vec<Bar>> = groups.iter().map(panel).collect();
    let all: Vec<Bar> = panels.iter().flatten().cloned().collect();
    if all.is_empty() {
        return Ok(Drawn::nothing("No comparison that this figure could show was measured."));
    }
    let what = if absolute {
        with_unit(&format!("difference of {label}"), unit)
    } else {
        format!("{} (% of the other)", capital(&format!("change of {label}")))
    };
    let pictures = panels_drawn(&groups, &panels, &what, bars::around_zero(&all))?;
    let directions = all.iter().any(|bar| bar.published.iter().any(|mark| matches!(mark, Mark::Higher | Mark::Lower)));
    let arrows = if directions { " An arrow is a published direction without a number." } else { "" };
    let reading = format!(
        "Bars are changes paired by seed over {}, with their 95 % confidence intervals; a disc on a rule is the published one.{arrows}",
        seeds_text(outcome)
    );
    Ok(Drawn { pictures, columns: groups.len(), legend: Vec::new(), reading })
}

fn ratio_bar(outcome: &Outcome, claim: &Claim, (at, runs): (usize, &PolicyRuns), absolute: bool) -> Option<Bar> {
    let (over, mark) = match &claim.statement {
        Statement::Change { over, change } if !absolute => (over, Mark::Value(change.0 * 100.0)),
        Statement::Difference { over, more } => (over, Mark::Value(*more)),
        Statement::Above(order) => (&order.other, Mark::Higher),
        Statement::Below(order) => (&order.other, Mark::Lower),
        _ => return None,
    };
    let other = outcome.run_of(over, runs.baseline())?;
    let estimate = if absolute {
        verdict::difference(&claim.metric, runs, other)?
    } else {
        verdict::change(&claim.metric, runs, other)?.scaled(100.0)
    };
    let size = if absolute { format!("{:+.3}", estimate.mean) } else { format!("{:+.1} %", estimate.mean) }
        .replace('-', "\u{2212}");
    Some(Bar {
        label: format!("{} over {}: {size}", group::label(outcome, runs), group::label(outcome, other)),
        colour: at,
        measured: Point { x: 0.0, mean: estimate.mean, half_width: estimate.half_width },
        published: vec![mark],
    })
}

/// One box per contender.
pub fn metric_boxes(outcome: &Outcome, runs: &[(usize, &PolicyRuns)], metric: &str) -> Result<Drawn, ChartError> {
    let groups = by_baseline(runs);
    let highest = runs.iter().flat_map(|(_, runs)| runs.values(metric)).fold(0.0, f64::max);
    let (label, unit) = outcome.scenario.metric(metric).unwrap_or_default();
    let axis = with_unit(&label, unit);
    let names = runs.iter().map(|(_, runs)| group::label(outcome, runs).chars().count());
    let range = (0.0, canvas::nice_top(highest));
    let frame = Frame { axis: &axis, range, longest: names.max().unwrap_or(0) };
    let panel = |group: &Group<'_>| {
        let of = |(at, runs): &(usize, &PolicyRuns)| Distribution {
            name: group::label(outcome, runs),
            colour: Some(*at),
            values: runs.values(metric),
        };
        let distributions: Vec<Distribution> = group.runs.iter().map(of).collect();
        Picture::drawn(groups.len(), |width| boxes(&distributions, group.title, &frame, width))
    };
    let pictures = groups.iter().map(panel).collect::<Result<_, _>>()?;
    let reading = format!(
        "Of {}: boxes from quarter to quarter with the median, lines from the first to the last decile.",
        seeds_text(outcome)
    );
    Ok(Drawn { pictures, columns: groups.len(), legend: Vec::new(), reading })
}
