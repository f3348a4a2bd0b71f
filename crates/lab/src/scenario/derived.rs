//! Parses metrics that are computed from several runs.

use super::model::{Derived, DerivedKind, Sweep, WindowMetric};
use crate::metric;
use crate::runs::is_column;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::{Item, Reader};

const KEYS: &[&str] =
    &["name", "label", "of", "points", "relative", "made_at", "made_where", "above", "rises_above", "deviation"];

pub fn derived(top: &Reader<'_>, sweep: Option<&Sweep>, own: &[WindowMetric]) -> Result<Vec<Derived>, Diagnostic> {
    top.list("derived")?.iter().map(|item| one(item, sweep, own)).collect()
}

/// Known metrics and their units.
struct Known<'a>(&'a [WindowMetric]);

impl Known<'_> {
    fn unit(&self, name: &str) -> Option<&'static str> {
        let own = || self.0.iter().find(|metric| metric.name == name).map(WindowMetric::unit);
        metric::find(name).map(|metric| metric.unit).or_else(own)
    }
}

fn one(item: &Item<'_>, sweep: Option<&Sweep>, own: &[WindowMetric]) -> Result<Derived, Diagnostic> {
    let table = item.table("a derived metric", KEYS)?;
    let known = Known(own);
    let (name_item, of_item) = (table.required("name")?, table.required("of")?);
    let (name, of) = (name_item.text()?.to_owned(), of_item.text()?.to_owned());
    if known.unit(&name).is_some() {
        return Err(name_item.error(format!("there is a metric '{name}' already: choose another name")));
    }
    if is_column(&name) {
        return Err(name_item.error(format!("tables of runs have a column '{name}' already: choose another name")));
    }
    let Some(unit) = known.unit(&of) else { return Err(of_item.error(format!("there is no metric '{of}'"))) };
    let points = points(&table, sweep)?;
    let kind = kind(&table, &known, !points.is_empty())?;
    let unit = match (&kind, sweep) {
        (DerivedKind::Mean | DerivedKind::Deviation, _) => unit,
        (DerivedKind::Change | DerivedKind::RelativeDeviation, _) => "%",
        (DerivedKind::MadeAt(_) | DerivedKind::MadeWhere { .. }, _) => "%",
        (DerivedKind::RisesAbove(_), Some(sweep)) => sweep.unit(),
        (DerivedKind::RisesAbove(_), None) => {
            return Err(table.error("it is a value of the sweep, and there is no [sweep]"));
        }
    };
    Ok(Derived { label: table.text_or("label", &name)?, name, of, kind, points, unit })
}

/// The points of the sweep to use.
fn points(table: &Reader<'_>, sweep: Option<&Sweep>) -> Result<Vec<String>, Diagnostic> {
    let Some(item) = table.get("points") else { return Ok(Vec::new()) };
    let points = item.texts()?;
    let unknown = |value: &&String| !sweep.is_some_and(|sweep| sweep.values.contains(value));
    match points.iter().find(unknown) {
        Some(value) => Err(item.error(format!("the sweep has no point at '{value}'"))),
        None => Ok(points),
    }
}

/// The single kind of computation.
fn kind(table: &Reader<'_>, known: &Known<'_>, has_points: bool) -> Result<DerivedKind, Diagnostic> {
    let relative = table.flag("relative", false)?;
    let mut kinds = Vec::new();
    kinds.extend(table.text("made_at")?.map(|value| DerivedKind::MadeAt(value.to_owned())));
    if let Some(item) = table.get("made_where") {
        let other = item.text()?.to_owned();
        if known.unit(&other).is_none() {
            return Err(item.error(format!("there is no metric '{other}'")));
        }
        kinds.push(DerivedKind::MadeWhere { metric: other, above: table.required("above")?.number()? });
    }
    kinds.extend(table.get("rises_above").map(|item| item.number()).transpose()?.map(DerivedKind::RisesAbove));
    if table.flag("deviation", false)? {
        kinds.push(if relative { DerivedKind::RelativeDeviation } else { DerivedKind::Deviation });
    }
    if kinds.is_empty() && has_points {
        kinds.push(if relative { DerivedKind::Change } else { DerivedKind::Mean });
    }
    kinds.pop().filter(|_| kinds.is_empty()).ok_or_else(|| {
        table.error("a derived metric has one of: 'points', 'made_at', 'made_where', 'rises_above', 'deviation = true'")
    })
}
