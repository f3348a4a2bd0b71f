//! The lab's part of `list`: scenarios, metrics, series.

use anabranch_lab::library::SCENARIOS;
use anabranch_lab::metric::{METRICS, Series};
use anabranch_settings::diagnostic::Diagnostic;
use serde_json::{Value, json};

pub fn plain() -> Result<String, Diagnostic> {
    let mut text = String::new();
    text.push_str("\nexperiments, for reproduce\n");
    for known in SCENARIOS.iter().filter(|known| known.experiment) {
        text.push_str(&format!("  {}: {}\n", known.name, known.document(&[]).scenario()?.about.title));
    }
    text.push_str("\nscenarios, for run and compare (the experiments are scenarios too)\n");
    for known in SCENARIOS.iter().filter(|known| !known.experiment) {
        text.push_str(&format!("  {}: {}\n", known.name, known.document(&[]).scenario()?.about.title));
    }
    text.push_str("\nmetrics, one number per run\n");
    for metric in METRICS {
        text.push_str(&format!("  {}: {} ({})\n", metric.name, metric.label, metric.unit));
    }
    text.push_str("\nseries, over time\n");
    for series in Series::ALL {
        let scope = if series.per_path() { "per path" } else { "per connection" };
        text.push_str(&format!("  {}: {} ({}, {scope})\n", series.name(), series.label(), series.unit()));
    }
    Ok(text)
}

/// Adds the lists to `lists`.
pub fn add_json(lists: &mut Value) -> Result<(), Diagnostic> {
    let mut scenarios = Vec::new();
    for known in SCENARIOS {
        let title = known.document(&[]).scenario()?.about.title;
        scenarios.push(json!({"name": known.name, "title": title, "experiment": known.experiment}));
    }
    let metrics: Vec<Value> =
        METRICS.iter().map(|m| json!({"name": m.name, "label": m.label, "unit": m.unit})).collect();
    let series: Vec<Value> = Series::ALL
        .iter()
        .map(|s| json!({"name": s.name(), "label": s.label(), "unit": s.unit(), "per_path": s.per_path()}))
        .collect();
    lists["scenarios"] = scenarios.into();
    lists["metrics"] = metrics.into();
    lists["series"] = series.into();
    Ok(())
}
