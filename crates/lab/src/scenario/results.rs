//! Parses the results part of a scenario: sweep, further metrics, figures and published statements.

use super::model::{
    Claim, Differences, Figure, FigureKind, Matrix, Order, Parameter, Sensitivity, Statement, Sweep, WindowKind,
    WindowMetric,
};
use crate::metric::{self, Series};
use crate::runs::is_column;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity::Share;
use anabranch_settings::reader::{Item, Reader};

fn series(item: &Item<'_>) -> Result<Series, Diagnostic> {
    let words: Vec<(&str, Series)> = Series::ALL.iter().map(|series| (series.name(), *series)).collect();
    item.word(&words)
}

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

pub fn matrix(top: &Reader<'_>) -> Result<Option<Matrix>, Diagnostic> {
    let Some(item) = top.get("matrix") else { return Ok(None) };
    let table = item.table("the matrix", &["over", "schemes", "metrics", "absolute"])?;
    Ok(Some(Matrix {
        over: table.required("over")?.text()?.to_owned(),
        schemes: table.get("schemes").map_or(Ok(Vec::new()), |item| item.texts())?,
        metrics: table.required("metrics")?.texts()?,
        absolute: table.get("absolute").map_or(Ok(Vec::new()), |item| item.texts())?,
    }))
}

pub fn sensitivity(top: &Reader<'_>) -> Result<Option<Sensitivity>, Diagnostic> {
    let Some(item) = top.get("sensitivity") else { return Ok(None) };
    let table = item.table("the sensitivity", &["metric", "policy", "over", "absolute", "seeds", "parameters"])?;
    let parameters = table.list("parameters")?.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
    if parameters.is_empty() {
        return Err(table.error("a sensitivity needs at least one [[sensitivity.parameters]]"));
    }
    Ok(Some(Sensitivity {
        metric: table.text_or("metric", "throughput")?,
        policy: table.required("policy")?.text()?.to_owned(),
        over: table.required("over")?.text()?.to_owned(),
        absolute: table.flag("absolute", false)?,
        seeds: table.get("seeds").map_or(Ok(10), |item| item.count(1..=100_000))? as u32,
        parameters,
    }))
}

fn parameter(item: &Item<'_>) -> Result<Parameter, Diagnostic> {
    let table = item.table("a parameter", &["label", "key", "values", "ours"])?;
    let key = table.required("key")?;
    // One parameter may have several keys, such as the queues of three paths.
    let keys = if key.text().is_ok() { vec![key.text()?.to_owned()] } else { key.texts()? };
    let values = table.required("values")?;
    let (label, ours) = (table.required("label")?.text()?.to_owned(), table.required("ours")?.text()?.to_owned());
    let parameter = Parameter { label, keys, values: values.texts()?, ours };
    match (parameter.keys.is_empty(), parameter.values.is_empty()) {
        (true, _) => Err(key.error("a parameter needs at least one key")),
        (_, true) => Err(values.error("a parameter needs at least one value")),
        _ => Ok(parameter),
    }
}

/// Metrics over windows of series with this sampling interval.
pub fn metrics(top: &Reader<'_>, sample: Duration) -> Result<Vec<WindowMetric>, Diagnostic> {
    let read = |item: &Item<'_>| {
        let keys = ["name", "label", "series", "window", "path", "falls_below", "rises_above", "lasts", "above"];
        let table = item.table("a metric", &keys)?;
        let name_item = table.required("name")?;
        let name = name_item.text()?.to_owned();
        if metric::find(&name).is_some() {
            return Err(name_item.error(format!("'{name}' is a built-in metric: choose another name")));
        }
        if is_column(&name) {
            return Err(name_item.error(format!("tables of runs have a column '{name}' already: choose another name")));
        }
        let level = |key: &str| table.get(key).map(|item| item.number()).transpose();
        let mut kinds: Vec<WindowKind> = level("falls_below")?.map(WindowKind::FallsBelow).into_iter().collect();
        kinds.extend(level("rises_above")?.map(WindowKind::RisesAbove));
        kinds.extend(table.text("above")?.map(|other| WindowKind::ShareAbove(other.to_owned())));
        kinds.extend(table.flag("lasts", false)?.then_some(WindowKind::Lasts));
        let kind = kinds.pop().unwrap_or(WindowKind::Mean);
        if !kinds.is_empty() {
            return Err(table.error("a metric has one of 'falls_below', 'rises_above', 'above', 'lasts'"));
        }
        Ok(WindowMetric {
            kind,
            label: table.text_or("label", &name)?,
            name,
            series: series(&table.required("series")?)?,
            window: window_of_samples(&table.required("window")?, sample)?,
            path: table.text("path")?.map(str::to_owned),
        })
    };
    top.list("metrics")?.iter().map(read).collect()
}

/// A window with at least one value: a value counts if the middle of its sampling interval is in the window.
fn window_of_samples(item: &Item<'_>, sample: Duration) -> Result<(Duration, Option<Duration>), Diagnostic> {
    let (from, to) = item.range_of_time()?;
    let (half, whole) = (sample.as_nanos() / 2, sample.as_nanos().max(1));
    let first = from.as_nanos().saturating_sub(half).div_ceil(whole).saturating_mul(whole).saturating_add(half);
    if to.is_some_and(|to| to.as_nanos() <= first) {
        let length = sample.as_secs_f64();
        return Err(item.error(format!(
            "no value of a series is in this window, as none of its sampling intervals of {length} s has its middle there: \
             set a shorter 'sample' or a longer window"
        )));
    }
    Ok((from, to))
}

/// Keys that select a figure's content.
const SHOWN: &str =
    "a figure shows one of: 'series', 'metric', 'metrics', 'segment_delays = true', 'sweep = true' (of a 'metric')";

/// Metrics of a profile with their axis labels.
fn profile(table: &Reader<'_>) -> Result<Vec<(String, String)>, Diagnostic> {
    let item = table.required("metrics")?;
    let metrics = item.texts()?;
    let places = table.get("places").map_or(Ok(metrics.clone()), |item| item.texts())?;
    if metrics.len() != places.len() || metrics.is_empty() {
        return Err(item.error(format!("{} metrics need as many 'places', at least one", metrics.len())));
    }
    Ok(metrics.into_iter().zip(places).collect())
}

/// Content of a figure.
fn shown(table: &Reader<'_>) -> Result<FigureKind, Diagnostic> {
    let window = table.get("window").map(|item| item.range_of_time()).transpose()?;
    match (table.get("series"), table.text("metric")?, table.flag("sweep", false)?) {
        (None, None, false) if table.get("metrics").is_some() => Ok(FigureKind::Profile { metrics: profile(table)? }),
        (None, None, false) if table.flag("segment_delays", false)? => Ok(FigureKind::SegmentDelays { window }),
        (Some(item), None, false) => {
            let list = item.list().unwrap_or_else(|_| vec![item]);
            let series = list.iter().map(series).collect::<Result<_, _>>()?;
            Ok(FigureKind::Time { series, window, average: table.quantity("average")? })
        }
        (None, Some(metric), false) => of_metric(table, metric.to_owned()),
        (None, metric, true) => Ok(FigureKind::Sweep { metric: metric.map(str::to_owned) }),
        _ => Err(table.error(SHOWN)),
    }
}

/// A figure of one metric.
fn of_metric(table: &Reader<'_>, metric: String) -> Result<FigureKind, Diagnostic> {
    Ok(if table.flag("boxes", false)? {
        FigureKind::Boxes { metric }
    } else if table.flag("ratios", false)? {
        FigureKind::Ratios { metric }
    } else {
        FigureKind::Bars { metric }
    })
}

pub fn figures(top: &Reader<'_>) -> Result<Vec<Figure>, Diagnostic> {
    let keys = &[
        "name",
        "title",
        "series",
        "average",
        "metric",
        "boxes",
        "ratios",
        "metrics",
        "places",
        "segment_delays",
        "sweep",
        "window",
        "policies",
        "published",
    ];
    let read = |item: &Item<'_>| {
        let table = item.table("a figure", keys)?;
        let kind = shown(&table)?;
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

pub fn differences(top: &Reader<'_>) -> Result<Option<Differences>, Diagnostic> {
    let Some(item) = top.get("differences") else { return Ok(None) };
    let table = item.table("the differences", &["policy", "metrics"])?;
    let policy = table.required("policy")?.text()?.to_owned();
    Ok(Some(Differences { policy, metrics: table.required("metrics")?.texts()? }))
}

/// Default deviation of a measured number from a published one: a quarter of it.
const TOLERANCE: Share = Share(0.25);

/// Keys of a claim.
const CLAIM: &[&str] = &[
    "figure",
    "metric",
    "policy",
    "value",
    "change",
    "difference",
    "over",
    "below",
    "above",
    "least",
    "tolerance",
    "note",
    "reading",
];

pub fn claims(top: &Reader<'_>) -> Result<Vec<Claim>, Diagnostic> {
    let read = |item: &Item<'_>| {
        let table = item.table("a claim", CLAIM)?;
        let statement = statement(&table)?;
        if let Some(item) =
            table.get("tolerance").filter(|_| matches!(statement, Statement::Below(_) | Statement::Above(_)))
        {
            return Err(item.error("'tolerance' belongs to a published number; an order has 'least'"));
        }
        Ok(Claim {
            figure: table.required("figure")?.text()?.to_owned(),
            metric: table.required("metric")?.text()?.to_owned(),
            policy: table.required("policy")?.text()?.to_owned(),
            statement,
            tolerance: table.quantity("tolerance")?.unwrap_or(TOLERANCE),
            note: table.text_or("note", "")?,
            reading: table.text_or("reading", "")?,
        })
    };
    top.list("claims")?.iter().map(read).collect()
}

/// The single statement of a claim.
fn statement(table: &Reader<'_>) -> Result<Statement, Diagnostic> {
    let number = |key: &str| table.get(key).map(|item| item.number()).transpose();
    let over = || table.required("over")?.text().map(str::to_owned);
    let least = table.quantity::<Share>("least")?;
    let order = |other: &str| Order { other: other.to_owned(), least };
    let mut said = Vec::new();
    said.extend(number("value")?.map(Statement::Value));
    if let Some(change) = table.quantity("change")? {
        said.push(Statement::Change { over: over()?, change });
    }
    if let Some(more) = number("difference")? {
        said.push(Statement::Difference { over: over()?, more });
    }
    said.extend(table.text("below")?.map(|other| Statement::Below(order(other))));
    said.extend(table.text("above")?.map(|other| Statement::Above(order(other))));
    let kinds = "'value', 'change' with 'over', 'difference' with 'over', 'below', 'above'";
    let Some(statement) = said.pop().filter(|_| said.is_empty()) else {
        return Err(table.error(format!("a claim says one of: {kinds}")));
    };
    if let Some(item) = table.get("least").filter(|_| !matches!(statement, Statement::Below(_) | Statement::Above(_))) {
        return Err(item.error("'least' belongs to 'below' and 'above'; a published number has 'tolerance'"));
    }
    Ok(statement)
}
