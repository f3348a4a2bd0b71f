//! Reads metrics that are made of several runs.

use super::model::{Derived, DerivedKind, Sweep, WindowMetric};
use super::reader::{Item, Reader};
use crate::derived::unit_of_sweep;
use crate::diagnostic::Diagnostic;
use crate::metric;

const KEYS: &[&str] =
    &["name", "label", "of", "points", "relative", "made_at", "made_where", "above", "rises_above", "deviation"];

/// Reads `[[derived]]`.
pub fn derived(top: &Reader<'_>, sweep: Option<&Sweep>, own: &[WindowMetric]) -> Result<Vec<Derived>, Diagnostic> {
    top.list("derived")?.iter().map(|item| one(item, sweep, own)).collect()
}

fn one(item: &Item<'_>, sweep: Option<&Sweep>, own: &[WindowMetric]) -> Result<Derived, Diagnostic> {
    let table = item.table("a derived metric", KEYS)?;
    let (name_item, of_item) = (table.required("name")?, table.required("of")?);
    let (name, of) = (name_item.text()?.to_owned(), of_item.text()?.to_owned());
    let unit_of = |name: &str| {
        let built_in = metric::find(name).map(|metric| metric.unit);
        built_in.or_else(|| own.iter().find(|metric| metric.name == name).map(WindowMetric::unit))
    };
    if unit_of(&name).is_some() {
        return Err(name_item.error(format!("there is a metric '{name}' already: choose another name")));
    }
    let Some(unit) = unit_of(&of) else { return Err(of_item.error(format!("there is no metric '{of}'"))) };
    let relative = table.flag("relative", false)?;
    let mut kinds = Vec::new();
    kinds.extend(table.text("made_at")?.map(|value| DerivedKind::MadeAt(value.to_owned())));
    if let Some(item) = table.get("made_where") {
        let other = item.text()?.to_owned();
        if unit_of(&other).is_none() {
            return Err(item.error(format!("there is no metric '{other}'")));
        }
        kinds.push(DerivedKind::MadeWhere { metric: other, above: table.required("above")?.number()? });
    }
    kinds.extend(table.get("rises_above").map(|item| item.number()).transpose()?.map(DerivedKind::RisesAbove));
    if table.flag("deviation", false)? {
        kinds.push(if relative { DerivedKind::RelativeDeviation } else { DerivedKind::Deviation });
    }
    let points = table.get("points").map_or(Ok(Vec::new()), |item| item.texts())?;
    let unknown = |value: &&String| !sweep.is_some_and(|sweep| sweep.values.contains(value));
    if let (Some(value), Some(item)) = (points.iter().find(unknown), table.get("points")) {
        return Err(item.error(format!("the sweep has no point at '{value}'")));
    }
    if kinds.is_empty() && !points.is_empty() {
        kinds.push(if relative { DerivedKind::Change } else { DerivedKind::Mean });
    }
    let Some(kind) = kinds.pop().filter(|_| kinds.is_empty()) else {
        return Err(table.error(
            "a derived metric has one of: 'points', 'made_at', 'made_where', 'rises_above', 'deviation = true'",
        ));
    };
    let unit = match (&kind, sweep) {
        (DerivedKind::Mean | DerivedKind::Deviation, _) => unit,
        (DerivedKind::Change | DerivedKind::RelativeDeviation, _) => "%",
        (DerivedKind::MadeAt(_) | DerivedKind::MadeWhere { .. }, _) => "%",
        (DerivedKind::RisesAbove(_), Some(sweep)) => unit_of_sweep(&sweep.values),
        (DerivedKind::RisesAbove(_), None) => {
            return Err(table.error("it is a value of the sweep, and there is no [sweep]"));
        }
    };
    Ok(Derived { label: table.text_or("label", &name)?, name, of, kind, points, unit })
}
