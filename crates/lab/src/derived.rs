//! Metrics computed from several runs of one policy: over the points of a sweep, per seed, or as deviation from the
//! other runs. They are added to the runs at the scenario's own value, so that claims and tables can use them.

use crate::record::{Outcome, PolicyRuns, Record, SweepPoint};
use crate::scenario::model::{Derived, DerivedKind};
use crate::statistics::median;

/// Minimum change from the first to the last point of a sweep, as a share of the first, for shares of it to be defined.
const LEAST_WAY: f64 = 0.1;

pub fn add(outcome: &mut Outcome) {
    for wanted in &outcome.scenario.results.derived {
        for runs in &mut outcome.policies {
            let values = values(wanted, runs, &outcome.sweep);
            for (record, value) in runs.records.iter_mut().zip(values) {
                record.metrics.extend(value.map(|value| (wanted.name.clone(), value)));
            }
        }
    }
}

/// One value per run that has the metric.
fn values(wanted: &Derived, runs: &PolicyRuns, sweep: &[SweepPoint]) -> Vec<Option<f64>> {
    let all = runs.values(&wanted.of);
    let middle = if all.len() > 1 { Some(median(&all)) } else { None };
    let value = |record: &Record| {
        let own = || record.metric(&wanted.of);
        let points_of = |metric: &str| {
            let mut points = points_of(&runs.contender.name, record.seed, metric, sweep);
            let chosen = |value: &str| wanted.points.is_empty() || wanted.points.iter().any(|one| one == value);
            points.retain(|(value, _)| chosen(value));
            points
        };
        let points = || points_of(&wanted.of);
        let first_above = |metric: &str, level: f64| {
            let found = points_of(metric).into_iter().find(|(_, value)| *value > level);
            found.map(|(place, _)| place)
        };
        match &wanted.kind {
            DerivedKind::Deviation => Some((own()? - middle?).abs()),
            DerivedKind::RelativeDeviation => Some((own()? - middle?).abs() / middle? * 100.0),
            DerivedKind::Mean => mean(&points()),
            DerivedKind::Change => Some((mean(&points())? / own()? - 1.0) * 100.0),
            DerivedKind::MadeAt(place) => made_at(&points(), place),
            DerivedKind::MadeWhere { metric, above } => made_at(&points(), first_above(metric, *above)?),
            DerivedKind::RisesAbove(level) => position(first_above(&wanted.of, *level)?),
        }
    };
    runs.records.iter().map(value).collect()
}

/// A metric of a policy and seed at the points of the sweep that have it.
fn points_of<'a>(policy: &str, seed: u64, metric: &str, sweep: &'a [SweepPoint]) -> Vec<(&'a str, f64)> {
    let at = |point: &'a SweepPoint| {
        let runs = point.policies.iter().find(|runs| runs.contender.name == policy)?;
        let record = runs.records.iter().find(|record| record.seed == seed)?;
        Some((point.value.as_str(), record.metric(metric)?))
    };
    sweep.iter().filter_map(at).collect()
}

/// Mean over the available points.
fn mean(points: &[(&str, f64)]) -> Option<f64> {
    let sum: f64 = points.iter().map(|(_, value)| value).sum();
    (!points.is_empty()).then(|| sum / points.len() as f64)
}

/// Share of the change from the first to the last point that is reached at one of them, per cent.
fn made_at(points: &[(&str, f64)], place: &str) -> Option<f64> {
    let ((_, first), (_, last)) = (points.first()?, points.last()?);
    let (_, there) = points.iter().find(|(value, _)| *value == place)?;
    let way = last - first;
    (way.abs() >= LEAST_WAY * first.abs()).then(|| (there - first) / way * 100.0)
}

/// The leading number of a sweep's value, in [`Sweep::unit`](crate::scenario::model::Sweep::unit): bytes in kB.
fn position(value: &str) -> Option<f64> {
    let value = value.trim().trim_matches('"');
    let end = value.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(value.len());
    let number: f64 = value[..end].parse().ok()?;
    Some(if value[end..].trim() == "B" { number / 1e3 } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::contender::Contender;

    fn runs(values: &[f64]) -> PolicyRuns {
        let record = |(at, value): (usize, &f64)| Record {
            seed: at as u64 + 1,
            metrics: vec![("completion".to_owned(), *value)],
            ..Record::default()
        };
        let records = values.iter().enumerate().map(record).collect();
        PolicyRuns { contender: Contender::plain(), best_path: None, records }
    }

    fn of(kind: DerivedKind, own: &[f64], sweep: &[(&str, [f64; 2])]) -> Vec<Option<f64>> {
        at(kind, &[], own, sweep)
    }

    fn at(kind: DerivedKind, points: &[&str], own: &[f64], sweep: &[(&str, [f64; 2])]) -> Vec<Option<f64>> {
        let point = |(value, values): &(&str, [f64; 2])| SweepPoint {
            value: (*value).to_owned(),
            policies: vec![runs(values)],
        };
        let (name, of) = ("new".to_owned(), "completion".to_owned());
        let points = points.iter().map(|value| (*value).to_owned()).collect();
        let wanted = Derived { name, label: String::new(), of, kind, points, unit: "s" };
        values(&wanted, &runs(own), &sweep.iter().map(point).collect::<Vec<_>>())
    }

    /// Two seeds; the second has a time of 10 at all points.
    const SWEEP: [(&str, [f64; 2]); 4] =
        [("2000 B", [20.0, 10.0]), ("4000 B", [12.0, 10.0]), ("6000 B", [11.0, 10.0]), ("90000 B", [10.0, 10.0])];

    #[test]
    fn points_are_averaged_seed_by_seed() {
        let points = ["4000 B", "6000 B"];
        assert_eq!(at(DerivedKind::Mean, &points, &[1.0, 1.0], &SWEEP), [Some(11.5), Some(10.0)]);
        assert_eq!(at(DerivedKind::Change, &points, &[23.0, 8.0], &SWEEP), [Some(-50.0), Some(25.0)]);
        assert_eq!(at(DerivedKind::Mean, &["7 B"], &[1.0], &SWEEP), [None]);
    }

    #[test]
    fn how_much_of_the_way_is_made_is_told_where_there_is_a_way() {
        // From 20 to 10: 4000 B reaches 80 %, 6000 B 90 %. The other seed does not change.
        let made_at = |place: &str| DerivedKind::MadeAt(place.to_owned());
        assert_eq!(of(made_at("4000 B"), &[1.0, 1.0], &SWEEP), [Some(80.0), None]);
        assert_eq!(of(made_at("6000 B"), &[1.0, 1.0], &SWEEP), [Some(90.0), None]);
        // With the last point at 4000 B that is 100 %.
        assert_eq!(at(made_at("4000 B"), &["2000 B", "4000 B"], &[1.0], &SWEEP), [Some(100.0)]);
        // The first point above 11.5 is 2000 B, with 0 %.
        let metric = "completion".to_owned();
        assert_eq!(of(DerivedKind::MadeWhere { metric, above: 11.5 }, &[1.0, 1.0], &SWEEP), [Some(0.0), None]);
        assert_eq!(of(DerivedKind::RisesAbove(15.0), &[1.0, 1.0], &SWEEP), [Some(2.0), None]);
    }

    #[test]
    fn a_deviation_is_from_the_median_of_all_runs() {
        // The median of 1, 2 and 9 is 2.
        assert_eq!(of(DerivedKind::Deviation, &[1.0, 9.0, 2.0], &[]), [Some(1.0), Some(7.0), Some(0.0)]);
        assert_eq!(of(DerivedKind::RelativeDeviation, &[1.0, 9.0, 2.0], &[])[1], Some(350.0));
        assert_eq!(of(DerivedKind::Deviation, &[1.0], &[]), [None]);
    }

    #[test]
    fn a_value_of_a_sweep_is_a_number_with_a_unit() {
        assert_eq!(
            (position("4608 B"), position("\"100 ms\""), position("20")),
            (Some(4.608), Some(100.0), Some(20.0))
        );
        assert_eq!(position("automatic"), None);
    }
}
