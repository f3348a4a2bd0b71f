//! Reads what a scenario asks of its results: the sweep, further metrics, figures and the paper's statements.

use super::model::{Claim, Differences, Figure, FigureKind, Statement, Sweep, WindowKind, WindowMetric};
use super::network::stretch;
use super::reader::{Item, Reader};
use crate::diagnostic::Diagnostic;
use crate::metric::{self, Series};

fn series(item: &Item<'_>) -> Result<Series, Diagnostic> {
    let words: Vec<(&str, Series)> = Series::ALL.iter().map(|series| (series.name(), *series)).collect();
    item.word(&words)
}

/// Reads `[sweep]`.
pub fn sweep(top: &Reader<'_>) -> Result<Option<Sweep>, Diagnostic> {
    let Some(item) = top.get("sweep") else { return Ok(None) };
    let table = item.table("a sweep", &["key", "label", "values", "quick", "seeds", "metric", "policies"])?;
    let key = table.required("key")?.text()?.to_owned();
    let values_item = table.required("values")?;
    let values = values_item.texts()?;
    if values.is_empty() {
        return Err(values_item.error("a sweep needs at least one value"));
    }
    let metric_item = table.get("metric");
    let metric = table.text_or("metric", "throughput")?;
    if let Some(item) = metric_item.filter(|_| metric::find(&metric).is_none()) {
        let words: Vec<(&str, ())> = metric::METRICS.iter().map(|metric| (metric.name, ())).collect();
        item.word(&words)?;
    }
    Ok(Some(Sweep {
        label: table.text_or("label", &key)?,
        key,
        quick: table.get("quick").map_or(Ok(values.clone()), |item| item.texts())?,
        values,
        seeds: table.get("seeds").map_or(Ok(10), |item| item.count(1..=100_000))? as u32,
        metric,
        policies: table.get("policies").map_or(Ok(Vec::new()), |item| item.texts())?,
    }))
}

/// Reads `[[metrics]]`.
pub fn metrics(top: &Reader<'_>) -> Result<Vec<WindowMetric>, Diagnostic> {
    let read = |item: &Item<'_>| {
        let table =
            item.table("a metric", &["name", "label", "series", "window", "path", "falls_below", "rises_above"])?;
        let name_item = table.required("name")?;
        let name = name_item.text()?.to_owned();
        if metric::find(&name).is_some() {
            return Err(name_item.error(format!("'{name}' is a built-in metric: choose another name")));
        }
        let level = |key: &str| table.get(key).map(|item| item.number()).transpose();
        let kind = match (level("falls_below")?, level("rises_above")?) {
            (None, None) => WindowKind::Mean,
            (Some(level), None) => WindowKind::FallsBelow(level),
            (None, Some(level)) => WindowKind::RisesAbove(level),
            _ => return Err(table.error("a metric has 'falls_below' or 'rises_above', not both")),
        };
        Ok(WindowMetric {
            kind,
            label: table.text_or("label", &name)?,
            name,
            series: series(&table.required("series")?)?,
            window: stretch(&table.required("window")?)?,
            path: table.text("path")?.map(str::to_owned),
        })
    };
    top.list("metrics")?.iter().map(read).collect()
}

/// Reads `[[figures]]`.
pub fn figures(top: &Reader<'_>) -> Result<Vec<Figure>, Diagnostic> {
    let keys = &["name", "title", "series", "metric", "boxes", "sweep", "window", "policies", "published"];
    let read = |item: &Item<'_>| {
        let table = item.table("a figure", keys)?;
        let window = table.get("window").map(|item| stretch(&item)).transpose()?;
        let kind = match (table.get("series"), table.text("metric")?, table.flag("sweep", false)?) {
            (Some(item), None, false) => {
                let list = item.list().unwrap_or_else(|_| vec![item]);
                FigureKind::Time { series: list.iter().map(series).collect::<Result<_, _>>()?, window }
            }
            (None, Some(metric), false) if table.flag("boxes", false)? => {
                FigureKind::Boxes { metric: metric.to_owned() }
            }
            (None, Some(metric), false) => FigureKind::Bars { metric: metric.to_owned() },
            (None, metric, true) => FigureKind::Sweep { metric: metric.map(str::to_owned) },
            _ => return Err(table.error("a figure shows one of: 'series', 'metric', 'sweep = true' (of a 'metric')")),
        };
        Ok(Figure {
            name: table.required("name")?.text()?.to_owned(),
            title: table.required("title")?.text()?.to_owned(),
            kind,
            policies: table.get("policies").map_or(Ok(Vec::new()), |item| item.texts())?,
            published: table.text_or("published", "")?,
        })
    };
    top.list("figures")?.iter().map(read).collect()
}

/// Reads `[differences]`.
pub fn differences(top: &Reader<'_>) -> Result<Option<Differences>, Diagnostic> {
    let Some(item) = top.get("differences") else { return Ok(None) };
    let table = item.table("the differences", &["policy", "metrics"])?;
    let policy = table.required("policy")?.text()?.to_owned();
    Ok(Some(Differences { policy, metrics: table.required("metrics")?.texts()? }))
}

/// Reads `[[claims]]`.
pub fn claims(top: &Reader<'_>) -> Result<Vec<Claim>, Diagnostic> {
    let keys =
        &["figure", "metric", "policy", "value", "change", "difference", "over", "below", "above", "note", "reading"];
    let read = |item: &Item<'_>| {
        let table = item.table("a claim", keys)?;
        let number = |key: &str| table.get(key).map(|item| item.number()).transpose();
        let over = || table.required("over")?.text().map(str::to_owned);
        let mut said = Vec::new();
        said.extend(number("value")?.map(Statement::Value));
        if let Some(change) = table.quantity("change")? {
            said.push(Statement::Change { over: over()?, change });
        }
        if let Some(more) = number("difference")? {
            said.push(Statement::Difference { over: over()?, more });
        }
        said.extend(table.text("below")?.map(|other| Statement::Below(other.to_owned())));
        said.extend(table.text("above")?.map(|other| Statement::Above(other.to_owned())));
        let kinds = "'value', 'change' with 'over', 'difference' with 'over', 'below', 'above'";
        let statement = match (said.pop(), said.is_empty()) {
            (Some(statement), true) => statement,
            _ => return Err(table.error(format!("a claim says one of: {kinds}"))),
        };
        Ok(Claim {
            figure: table.required("figure")?.text()?.to_owned(),
            metric: table.required("metric")?.text()?.to_owned(),
            policy: table.required("policy")?.text()?.to_owned(),
            statement,
            note: table.text_or("note", "")?,
            reading: table.text_or("reading", "")?,
        })
    };
    top.list("claims")?.iter().map(read).collect()
}
