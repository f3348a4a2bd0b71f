//! A scenario's file, read whole: its own values, and that its parts know each other.

use super::model::{self, FigureKind, Scenario};
use super::reader::Reader;
use super::{
    Source, connection, derived, generators, is_name, mesh, network, policies, results, transfer, tree, video,
};
use crate::contender::{Route, contenders};
use crate::diagnostic::Diagnostic;
use anabranch_policy::time::Duration;
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
    "generators",
    "baselines",
    "defaults",
    "policies",
    "sweep",
    "matrix",
    "sensitivity",
    "metrics",
    "derived",
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
        let source = Source::open(path, options)?;
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
            let keys = std::slice::from_ref(&sweep.key);
            self.check_points(&top, "sweep", keys, sweep.values.iter().chain(&sweep.quick))?;
        }
        for parameter in scenario.sensitivity.iter().flat_map(|sensitivity| &sensitivity.parameters) {
            self.check_points(&top, "sensitivity", &parameter.keys, parameter.values.iter())?;
        }
        Ok(scenario)
    }

    /// The same with `value` at each of the `keys`.
    pub fn at(&self, keys: &[String], value: &str) -> Self {
        keys.iter().fold(self.clone(), |document, key| document.with(format!("{key}={value}")))
    }

    /// A sweep is possible if each of its points is a possible scenario.
    fn check_points<'a>(
        &self,
        top: &Reader<'_>,
        table: &str,
        keys: &[String],
        values: impl Iterator<Item = &'a String>,
    ) -> Result<(), Diagnostic> {
        for value in values {
            let point = self.at(keys, value);
            let root = tree::read(&point.source)?;
            let checked = Reader::new(&point.source, &root, "the scenario", KEYS)
                .and_then(|reader| read(&reader, &self.directory).map(drop));
            checked.map_err(|error| {
                let place = format!("{} = {value}: {}", keys.join(", "), error.message());
                top.get(table).map(|item| item.error(place)).unwrap_or(error)
            })?;
        }
        Ok(())
    }
}

fn read(top: &Reader<'_>, directory: &Path) -> Result<Scenario, Diagnostic> {
    let name_item = top.required("name")?;
    let name = name_item.text()?.to_owned();
    if !is_name(&name) {
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
        None => transfer::transfer(top)?,
    };
    let (mesh, paths) = match mesh::mesh(top)? {
        Some((mesh, lanes)) => (Some(mesh), lanes),
        None if top.get("moving").is_some() => (None, Vec::new()),
        None => (None, network::paths(top, directory)?),
    };
    let (baselines, defaults) = (policies::baselines(top, directory)?, policies::defaults(top)?);
    let schemes = policies::schemes(top, &baselines)?;
    let (sweep, metrics) = (results::sweep(top)?, results::metrics(top)?);
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
        generators: generators::generators(top, &paths)?,
        paths,
        mesh,
        moving: mesh::moving(top)?,
        shared,
        policies: contenders(&schemes, &baselines, &defaults),
        schemes,
        baselines,
        defaults,
        derived: derived::derived(top, sweep.as_ref(), &metrics)?,
        sweep,
        matrix: results::matrix(top)?,
        sensitivity: results::sensitivity(top)?,
        metrics,
        figures: results::figures(top)?,
        differences: results::differences(top)?,
        claims: results::claims(top)?,
    })
}

/// The text of a file, for tests.
#[cfg(test)]
pub fn tree_of(file: &str, text: &str) -> Source {
    Source { file: file.to_owned(), text: text.to_owned(), options: Vec::new() }
}

/// Names that one part of a scenario uses must exist in another.
fn check_references(top: &Reader<'_>, scenario: &Scenario) -> Result<(), Diagnostic> {
    let error = |list: &str, at: usize, message: String| {
        let items = top.list(list).unwrap_or_default();
        items.get(at).map_or_else(|| top.error(message.clone()), |item| item.error(message.clone()))
    };
    let path_names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
    for (at, scheme) in scenario.schemes.iter().enumerate() {
        let alone = scheme.under(None, &scenario.defaults);
        if let Err(message) = check_route(&alone, &path_names) {
            return Err(error("policies", at, message));
        }
    }
    // What is shown and claimed is of a scheme, under each baseline.
    let policy_names: Vec<&str> = scenario.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    let known_metric = |name: &str| scenario.metric(name).is_some();
    for (at, metric) in scenario.metrics.iter().enumerate() {
        let other = match &metric.kind {
            model::WindowKind::ShareAbove(other) => Some(other.as_str()),
            _ => None,
        };
        if let Some(other) = other.filter(|other| !policy_names.contains(other)) {
            return Err(error("metrics", at, missing("policy", other, &policy_names)));
        }
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
    check_comparisons(top, scenario, &policy_names, &known_metric)?;
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
            FigureKind::Profile { metrics } if !metrics.iter().all(|(metric, _)| known_metric(metric)) => {
                let unknown = metrics.iter().find(|(metric, _)| !known_metric(metric));
                let unknown = unknown.map_or("", |(metric, _)| metric);
                return Err(error("figures", at, missing("metric", unknown, &metric_names(scenario))));
            }
            FigureKind::Sweep { .. } if scenario.sweep.is_none() => {
                return Err(error("figures", at, "it shows a sweep, and there is no [sweep]".to_owned()));
            }
            _ => {}
        }
    }
    let figure_names: Vec<&str> = scenario.figures.iter().map(|figure| figure.name.as_str()).collect();
    for (at, claim) in scenario.claims.iter().enumerate() {
        for policy in [Some(claim.policy.as_str()), claim.statement.other()].into_iter().flatten() {
            if !policy_names.contains(&policy) {
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

/// Whether what a matrix and a sensitivity name exists.
fn check_comparisons(
    top: &Reader<'_>,
    scenario: &Scenario,
    policies: &[&str],
    known_metric: &dyn Fn(&str) -> bool,
) -> Result<(), Diagnostic> {
    let check = |table: &str, names: Vec<&String>, metrics: Vec<&String>| {
        let wrong = names.iter().find(|name| !policies.contains(&name.as_str()));
        let message = wrong.map(|name| missing("policy", name, policies)).or_else(|| {
            let metric = metrics.iter().find(|metric| !known_metric(metric))?;
            Some(missing("metric", metric, &metric_names(scenario)))
        });
        let error = |message: String| top.get(table).map_or_else(|| top.error(message.clone()), |i| i.error(&message));
        message.map_or(Ok(()), |message| Err(error(message)))
    };
    if let Some(matrix) = &scenario.matrix {
        let metrics = matrix.metrics.iter().chain(&matrix.absolute);
        check("matrix", matrix.schemes.iter().chain([&matrix.over]).collect(), metrics.collect())?;
    }
    if let Some(sensitivity) = &scenario.sensitivity {
        check("sensitivity", vec![&sensitivity.policy, &sensitivity.over], vec![&sensitivity.metric])?;
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
    let own = scenario.metrics.iter().map(|metric| metric.name.as_str());
    built_in.chain(own).chain(scenario.derived.iter().map(|metric| metric.name.as_str())).collect()
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
        if let Some(derived) = self.derived.iter().find(|metric| metric.name == name) {
            return Some((derived.label.clone(), derived.unit));
        }
        let own = self.metrics.iter().find(|metric| metric.name == name)?;
        Some((own.label.clone(), own.unit()))
    }
}
