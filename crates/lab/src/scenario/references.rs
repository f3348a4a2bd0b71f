//! Checks that names used in one part of a scenario are defined in another.

use super::model::{Claim, Figure, FigureKind, Scenario, WindowKind, WindowMetric};
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::Reader;

pub fn check(top: &Reader<'_>, scenario: &Scenario) -> Result<(), Diagnostic> {
    let names = Names::of(scenario);
    let within = |list: &str, at: usize, message: String| {
        let items = top.list(list).unwrap_or_default();
        items.get(at).map_or_else(|| top.error(message.clone()), |item| item.error(message.clone()))
    };
    let of = |table: &str, message: String| {
        top.get(table).map_or_else(|| top.error(message.clone()), |item| item.error(message.clone()))
    };
    for (at, scheme) in scenario.schemes.iter().enumerate() {
        let alone = scheme.under(None, &scenario.defaults);
        check_route(&alone, &names.paths).map_err(|message| within("policies", at, message))?;
    }
    for (at, metric) in scenario.results.metrics.iter().enumerate() {
        names.check_metric(metric).map_err(|message| within("metrics", at, message))?;
    }
    names.check_differences().map_err(|message| of("differences", message))?;
    names.check_matrix().map_err(|message| of("matrix", message))?;
    names.check_sensitivity().map_err(|message| of("sensitivity", message))?;
    let swept = scenario.results.sweep.iter().flat_map(|sweep| &sweep.policies);
    names.are_policies(swept).map_err(|message| of("sweep", message))?;
    for (at, figure) in scenario.results.figures.iter().enumerate() {
        names.check_figure(figure).map_err(|message| within("figures", at, message))?;
    }
    for (at, claim) in scenario.results.claims.iter().enumerate() {
        names.check_claim(claim).map_err(|message| within("claims", at, message))?;
    }
    Ok(())
}

/// Names defined by a scenario.
struct Names<'a> {
    scenario: &'a Scenario,
    paths: Vec<&'a str>,
    /// Figures and claims refer to a scheme, under each baseline.
    policies: Vec<&'a str>,
    figures: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            paths: scenario.paths.iter().map(|path| path.name.as_str()).collect(),
            policies: scenario.schemes.iter().map(|scheme| scheme.name.as_str()).collect(),
            figures: scenario.results.figures.iter().map(|figure| figure.name.as_str()).collect(),
        }
    }

    fn is_policy(&self, name: &str) -> Result<(), String> {
        if self.policies.contains(&name) { Ok(()) } else { Err(missing("policy", name, &self.policies)) }
    }

    fn are_policies<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Result<(), String> {
        names.into_iter().try_for_each(|name| self.is_policy(name))
    }

    fn is_metric(&self, name: &str) -> Result<(), String> {
        if self.scenario.metric(name).is_some() {
            return Ok(());
        }
        let built_in = crate::metric::METRICS.iter().map(|metric| metric.name);
        let own = self.scenario.results.metrics.iter().map(|metric| metric.name.as_str());
        let derived = self.scenario.results.derived.iter().map(|metric| metric.name.as_str());
        Err(missing("metric", name, &built_in.chain(own).chain(derived).collect::<Vec<_>>()))
    }

    fn are_metrics<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Result<(), String> {
        names.into_iter().try_for_each(|name| self.is_metric(name))
    }

    fn check_metric(&self, metric: &WindowMetric) -> Result<(), String> {
        if let WindowKind::ShareAbove(other) = &metric.kind {
            self.is_policy(other)?;
        }
        if let Some(path) = metric.path.as_deref().filter(|path| !self.paths.contains(path)) {
            return Err(missing("path", path, &self.paths));
        }
        if metric.series.per_path() != metric.path.is_some() {
            let need = if metric.path.is_some() { "is of the connection: leave 'path' out" } else { "needs a 'path'" };
            return Err(format!("the series '{}' {need}", metric.series.name()));
        }
        Ok(())
    }

    fn check_differences(&self) -> Result<(), String> {
        let Some(differences) = &self.scenario.results.differences else { return Ok(()) };
        self.is_policy(&differences.policy)?;
        self.are_metrics(&differences.metrics)
    }

    fn check_matrix(&self) -> Result<(), String> {
        let Some(matrix) = &self.scenario.results.matrix else { return Ok(()) };
        self.are_policies(matrix.schemes.iter().chain([&matrix.over]))?;
        self.are_metrics(matrix.metrics.iter().chain(&matrix.absolute))
    }

    fn check_sensitivity(&self) -> Result<(), String> {
        let Some(sensitivity) = &self.scenario.results.sensitivity else { return Ok(()) };
        self.are_policies([&sensitivity.policy, &sensitivity.over])?;
        self.is_metric(&sensitivity.metric)
    }

    fn check_figure(&self, figure: &Figure) -> Result<(), String> {
        self.are_policies(&figure.policies)?;
        match &figure.kind {
            FigureKind::Bars { metric } | FigureKind::Boxes { metric } => self.is_metric(metric),
            FigureKind::Profile { metrics } => self.are_metrics(metrics.iter().map(|(metric, _)| metric)),
            FigureKind::Sweep { metric } => {
                self.are_metrics(metric)?;
                let swept = self.scenario.results.sweep.as_ref().map(|_| ());
                swept.ok_or_else(|| "it shows a sweep, and there is no [sweep]".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn check_claim(&self, claim: &Claim) -> Result<(), String> {
        self.is_policy(&claim.policy)?;
        claim.statement.other().map_or(Ok(()), |other| self.is_policy(other))?;
        self.is_metric(&claim.metric)?;
        let figure = claim.figure.as_str();
        if self.figures.contains(&figure) { Ok(()) } else { Err(missing("figure", figure, &self.figures)) }
    }
}

/// Whether a contender's paths exist, and plain TCP has exactly one.
pub fn check_route(policy: &Contender, paths: &[&str]) -> Result<(), String> {
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

pub(super) fn missing(what: &str, name: &str, known: &[&str]) -> String {
    let hint = anabranch_settings::diagnostic::did_you_mean(name, known.iter().copied());
    format!("there is no {what} '{name}': known are {}{hint}", known.join(", "))
}
