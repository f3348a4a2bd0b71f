//! Where a run comes from: the text of its scenario, and what was changed in it.

use super::row::Row;
use crate::build::commit;
use crate::journal::{key, program};
use crate::record::Record;
use crate::scenario::{Document, Scenario};
use anabranch_settings::contender::Contender;
use std::sync::Arc;

/// A scenario's text, and options that change it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    pub text: Arc<str>,
    /// Key of the text.
    pub text_key: String,
    /// `key=value` each.
    pub set: Vec<String>,
    /// Parameters that vary between runs, with their values.
    pub grid: Vec<(String, String)>,
    /// Whether the scenario was shortened.
    pub quick: bool,
    /// Name of policies in place of the contender's ([`OwnPolicies`](crate::simulation::OwnPolicies)); empty: none.
    pub own: String,
}

impl Origin {
    /// Of a document whose options are all the same for all runs.
    pub fn of(document: &Document, quick: bool, own: &str) -> Self {
        let (source, own) = (&document.source, own.to_owned());
        let text_key = key(&[&source.text]);
        Self { text: source.text.as_str().into(), text_key, set: source.options.clone(), grid: Vec::new(), quick, own }
    }

    /// The same with these parameters.
    pub fn at(&self, grid: Vec<(String, String)>) -> Self {
        Self { grid, ..self.clone() }
    }

    /// Key of a run.
    pub fn key(&self, scenario: &Scenario, contender: &Contender, paths: &[usize], seed: u64) -> String {
        let (set, grid, quick) = (format!("{:?}", self.set), format!("{:?}", self.grid), self.quick.to_string());
        let (contender, paths, seed) = (format!("{contender:?}"), format!("{paths:?}"), seed.to_string());
        key(&[&self.text_key, &scenario.files, &set, &grid, &quick, &self.own, &contender, &paths, &seed])
    }

    /// The row of a run that ended with `record`.
    pub fn row(&self, scenario: &Scenario, contender: &Contender, paths: &[usize], record: &Record) -> Row {
        let name = |place: &usize| scenario.paths.get(*place).map(|path| path.name.clone());
        Row {
            key: self.key(scenario, contender, paths, record.seed),
            scenario: scenario.name.clone(),
            policy: contender.name.clone(),
            baseline: contender.baseline.clone(),
            seed: record.seed,
            trace_hash: format!("{:016x}", record.trace_hash),
            paths: paths.iter().filter_map(name).collect(),
            policies: [contender.policies.to_string(), self.own.clone()].join(if self.own.is_empty() {
                ""
            } else {
                ","
            }),
            datagram: (!scenario.datagrams.is_empty()).then(|| contender.datagram.to_string()),
            described: scenario.describe(contender),
            set: self.set.clone(),
            grid: self.grid.clone(),
            quick: self.quick,
            text: self.text_key.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            program: program().to_owned(),
            metrics: record.metrics.iter().filter(|(_, value)| value.is_finite()).cloned().collect(),
        }
    }
}
