//! Experiments that are done, kept in files: what pages and tables need of them, and nothing of the runs.

use crate::command::options::Options;
use crate::diagnostic::Diagnostic;
use crate::files::write;
use crate::measured::Measured;
use crate::record::Outcome;
use crate::report::Page;
use crate::scenario::Document;
use crate::sweep::{key, program};
use crate::{report, timeseries};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// An experiment that is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// What makes it what it is: program, scenario, options.
    key: String,
    /// What was measured.
    pub measured: Measured,
    /// Its part of the report.
    pub section: String,
    /// Its part of what is printed.
    pub text: String,
}

impl Kept {
    /// As the report has it.
    pub fn page(&self) -> Page<'_> {
        Page { measured: &self.measured, section: &self.section }
    }
}

/// Finds and keeps experiments for one set of options.
#[derive(Debug)]
pub struct Keeper {
    directory: PathBuf,
    /// What all experiments of this run have in common.
    shared: String,
}

impl Keeper {
    /// For these options; another build of the program finds nothing of this one's.
    pub fn new(options: &Options) -> Self {
        let Options { policies, baselines, set, seeds, first_seed, wire, quick, out, pcap, json: _ } = options;
        let shared =
            format!("{} {policies:?} {set:?} {seeds:?} {first_seed} {wire} {quick} {baselines:?} {pcap}", program());
        Self { directory: out.clone(), shared }
    }

    fn key(&self, document: &Document) -> String {
        key(&[&self.shared, &document.source.text])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// What was kept of an experiment, if all of it is there.
    pub fn find(&self, document: &Document) -> Option<Kept> {
        let name = document.scenario().ok()?.name;
        let series = self.directory.join(format!("{name}.parquet"));
        let kept: Kept = read(&self.path(&name)).filter(|kept: &Kept| kept.key == self.key(document))?;
        series.exists().then_some(kept)
    }

    /// Keeps an experiment, and writes its time series.
    pub fn keep(&self, document: &Document, outcome: &Outcome) -> Result<Kept, Diagnostic> {
        let name = &outcome.scenario.name;
        timeseries::write(&self.directory.join(format!("{name}.parquet")), outcome)?;
        let measured = Measured::of(outcome);
        let text = super::text::experiment(outcome, &measured);
        let section = report::section(outcome)?;
        let kept = Kept { key: self.key(document), measured, section, text };
        let json = serde_json::to_string(&kept)
            .map_err(|error| Diagnostic::plain(format!("cannot keep the results of {name}: {error}")))?;
        write(&self.path(name), &json)?;
        Ok(kept)
    }
}

fn read(path: &Path) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
