//! Scenarios: experiments as data. Reads a TOML file into a [`Scenario`] or into one message that says what is wrong where.

mod connection;
mod mesh;
pub mod model;
mod network;
mod policies;
pub mod quantity;
mod reader;
mod results;
#[cfg(test)]
mod tests;
mod tree;
mod video;

pub use model::Scenario;
pub use tree::Source;

use crate::contender::Route;
use crate::diagnostic::Diagnostic;
use anabranch_policy::time::Duration;
use model::{FigureKind, Statement};
use reader::Reader;
use std::path::{Path, PathBuf};

const KEYS: &[&str] = &[
    "name",
    "title",
    "paper",
    "description",
    "duration",
    "warm_up",
    "seeds",
    "quick_seeds",
    "sample",
    "transfer",
    "video",
    "connection",
    "paths",
    "mesh",
    "moving",
    "shared",
    "policies",
    "sweep",
    "metrics",
    "figures",
    "differences",
    "claims",
];

/// A scenario's text and where the files it names are looked for.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The text, with the options laid over it.
    pub source: Source,
    /// Directory of the file.
    pub directory: PathBuf,
}

impl Document {
    /// Reads a file.
    pub fn open(path: &Path, options: &[String]) -> Result<Self, Diagnostic> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Diagnostic::file(path, "read the scenario", &error))?;
        let source = Source { file: path.display().to_string(), text, options: options.to_vec() };
        Ok(Self { source, directory: path.parent().map(Path::to_path_buf).unwrap_or_default() })
    }

    /// Takes a text that came with the program.
    pub fn embedded(name: &str, text: &str, options: &[String]) -> Self {
        let source = Source { file: name.to_owned(), text: text.to_owned(), options: options.to_vec() };
        Self { source, directory: PathBuf::new() }
    }

    /// The same with one more `key=value` laid over it.
    pub fn with(&self, option: String) -> Self {
        let mut document = self.clone();
        document.source.options.push(option);
        document
    }

    /// Understands it.
    pub fn scenario(&self) -> Result<Scenario, Diagnostic> {
        let root = tree::read(&self.source)?;
        let top = Reader::new(&self.source, &root, "the scenario", KEYS)?;
        let scenario = read(&top, &self.directory)?;
        check_references(&top, &scenario)?;
        if let Some(sweep) = &scenario.sweep {
            self.check_sweep(&top, sweep)?;
        }
        Ok(scenario)
    }

    /// A sweep is possible if each of its points is a possible scenario.
    fn check_sweep(&self, top: &Reader<'_>, sweep: &model::Sweep) -> Result<(), Diagnostic> {
        for value in sweep.values.iter().chain(&sweep.quick) {
            let point = self.with(format!("{}={value}", sweep.key));
            let root = tree::read(&point.source)?;
            let checked = Reader::new(&point.source, &root, "the scenario", KEYS)
                .and_then(|reader| read(&reader, &self.directory).map(drop));
            checked.map_err(|error| {
                let item = top.get("sweep").map(|item| item.error(format!("at {value}: {}", error.message())));
                item.unwrap_or(error)
            })?;
        }
        Ok(())
    }
}

fn read(top: &Reader<'_>, directory: &Path) -> Result<Scenario, Diagnostic> {
    let name_item = top.required("name")?;
    let name = name_item.text()?.to_owned();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return Err(name_item.error("a name is made of letters, digits, _ and -: files are called after it"));
    }
    let duration_item = top.required("duration")?;
    let duration: Duration = duration_item.quantity()?;
    if duration == Duration::ZERO {
        return Err(duration_item.error("a run must last longer than nothing"));
    }
    let warm_up = top.quantity("warm_up")?.unwrap_or(Duration::ZERO);
    if let Some(item) = top.get("warm_up").filter(|_| warm_up >= duration) {
        return Err(item.error("the warm-up is as long as the whole run"));
    }
    let sample = top.quantity("sample")?.unwrap_or(Duration::from_millis(500));
    if let Some(item) = top.get("sample").filter(|_| sample < Duration::from_millis(1) || sample > duration) {
        return Err(item.error("the sampling interval must lie between 1 ms and the duration"));
    }
    let seeds = top.get("seeds").map_or(Ok(20), |item| item.count(1..=100_000))? as u32;
    let quick_seeds = top.get("quick_seeds").map_or(Ok(3), |item| item.count(1..=100_000))? as u32;
    let shared = top.get("shared").map(|item| network::links(&item, directory)).transpose()?.unwrap_or_default();
    let video = video::video(top, directory)?;
    let (transfer, heading) = match &video {
        Some(_) => (model::Transfer::Video, model::Heading::Upload),
        None => connection::transfer(top)?,
    };
    let (mesh, paths) = match mesh::mesh(top)? {
        Some((mesh, lanes)) => (Some(mesh), lanes),
        None if top.get("moving").is_some() => (None, Vec::new()),
        None => (None, network::paths(top, directory)?),
    };
    Ok(Scenario {
        title: top.text_or("title", &name)?,
        name,
        paper: top.text_or("paper", "")?,
        description: top.text_or("description", "")?,
        duration,
        warm_up,
        seeds,
        quick_seeds: quick_seeds.min(seeds),
        sample,
        transfer,
        video,
        heading,
        connection: connection::connection(top)?,
        paths,
        mesh,
        moving: mesh::moving(top)?,
        shared,
        policies: policies::policies(top)?,
        sweep: results::sweep(top)?,
        metrics: results::metrics(top)?,
        figures: results::figures(top)?,
        differences: results::differences(top)?,
        claims: results::claims(top)?,
    })
}

/// Names that one part of a scenario uses must exist in another.
fn check_references(top: &Reader<'_>, scenario: &Scenario) -> Result<(), Diagnostic> {
    let error = |list: &str, at: usize, message: String| {
        let items = top.list(list).unwrap_or_default();
        items.get(at).map_or_else(|| top.error(message.clone()), |item| item.error(message.clone()))
    };
    let path_names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    for (at, policy) in scenario.policies.iter().enumerate() {
        if let Err(message) = check_route(policy, &path_names) {
            return Err(error("policies", at, message));
        }
    }
    let policy_names: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
    let known_metric =
        |name: &str| crate::metric::find(name).is_some() || scenario.metrics.iter().any(|metric| metric.name == name);
    for (at, metric) in scenario.metrics.iter().enumerate() {
        if let Some(path) = metric.path.as_deref().filter(|path| !path_names.contains(path)) {
            return Err(error("metrics", at, missing("path", path, &path_names)));
        }
        if metric.series.per_path() != metric.path.is_some() {
            let need = if metric.path.is_some() { "is of the connection: leave 'path' out" } else { "needs a 'path'" };
            return Err(error("metrics", at, format!("the series '{}' {need}", metric.series.name())));
        }
    }
    if let Some(differences) = &scenario.differences {
        let error = |message: String| {
            top.get("differences").map_or_else(|| top.error(message.clone()), |i| i.error(message.clone()))
        };
        if !policy_names.contains(&differences.policy.as_str()) {
            return Err(error(missing("policy", &differences.policy, &policy_names)));
        }
        if let Some(metric) = differences.metrics.iter().find(|name| !known_metric(name)) {
            return Err(error(missing("metric", metric, &metric_names(scenario))));
        }
    }
    let mut swept = scenario.sweep.iter().flat_map(|sweep| &sweep.policies);
    if let Some(policy) = swept.find(|name| !policy_names.contains(&name.as_str())) {
        let message = missing("policy", policy, &policy_names);
        return Err(top.get("sweep").map_or_else(|| top.error(message.clone()), |item| item.error(message.clone())));
    }
    for (at, figure) in scenario.figures.iter().enumerate() {
        if let Some(policy) = figure.policies.iter().find(|name| !policy_names.contains(&name.as_str())) {
            return Err(error("figures", at, missing("policy", policy, &policy_names)));
        }
        match &figure.kind {
            FigureKind::Bars { metric } | FigureKind::Boxes { metric } | FigureKind::Sweep { metric: Some(metric) }
                if !known_metric(metric) =>
            {
                return Err(error("figures", at, missing("metric", metric, &metric_names(scenario))));
            }
            FigureKind::Sweep { .. } if scenario.sweep.is_none() => {
                return Err(error("figures", at, "it shows a sweep, and there is no [sweep]".to_owned()));
            }
            _ => {}
        }
    }
    let figure_names: Vec<&str> = scenario.figures.iter().map(|figure| figure.name.as_str()).collect();
    for (at, claim) in scenario.claims.iter().enumerate() {
        let other = match &claim.statement {
            Statement::Change { over, .. } | Statement::Difference { over, .. } => Some(over),
            Statement::Below(other) | Statement::Above(other) => Some(other),
            Statement::Value(_) => None,
        };
        for policy in [Some(&claim.policy), other].into_iter().flatten() {
            if !policy_names.contains(&policy.as_str()) {
                return Err(error("claims", at, missing("policy", policy, &policy_names)));
            }
        }
        if !known_metric(&claim.metric) {
            return Err(error("claims", at, missing("metric", &claim.metric, &metric_names(scenario))));
        }
        if !figure_names.contains(&claim.figure.as_str()) {
            return Err(error("claims", at, missing("figure", &claim.figure, &figure_names)));
        }
    }
    Ok(())
}

/// Whether the paths a combination names exist, and whether plain TCP has exactly one.
pub fn check_route(policy: &crate::contender::Contender, paths: &[&str]) -> Result<(), String> {
    match &policy.route {
        Route::Only(names) => {
            if let Some(name) = names.iter().find(|name| !paths.contains(&name.as_str())) {
                return Err(missing("path", name, paths));
            }
            if !policy.multipath && names.len() != 1 {
                return Err(format!("plain TCP uses one path, not {}", names.len()));
            }
        }
        Route::All if !policy.multipath && paths.len() > 1 => {
            return Err("plain TCP uses one path: give paths = \"best\" or paths = [\"name\"]".to_owned());
        }
        Route::All | Route::Best => {}
    }
    Ok(())
}

fn metric_names(scenario: &Scenario) -> Vec<&str> {
    let built_in = crate::metric::METRICS.iter().map(|metric| metric.name);
    built_in.chain(scenario.metrics.iter().map(|metric| metric.name.as_str())).collect()
}

fn missing(what: &str, name: &str, known: &[&str]) -> String {
    let hint = crate::diagnostic::did_you_mean(name, known.iter().copied());
    format!("there is no {what} '{name}': known are {}{hint}", known.join(", "))
}

impl Scenario {
    /// Label and unit of a metric, built in or of this scenario.
    pub fn metric(&self, name: &str) -> Option<(String, &'static str)> {
        if let Some(metric) = crate::metric::find(name) {
            return Some((metric.label.to_owned(), metric.unit));
        }
        let own = self.metrics.iter().find(|metric| metric.name == name)?;
        Some((own.label.clone(), own.unit()))
    }
}
