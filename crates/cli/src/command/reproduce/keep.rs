//! Saves finished experiments in files: data for pages and tables, without that of single runs.

use crate::command::options::Options;
use crate::report;
use crate::report::Page;
use anabranch_lab::files::write;
use anabranch_lab::journal::{key, program};
use anabranch_lab::measured::Measured;
use anabranch_lab::record::Outcome;
use anabranch_lab::scenario::{Document, Scenario};
use anabranch_lab::timeseries;
use anabranch_settings::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A finished experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Hash of program, scenario and options.
    key: String,
    pub measured: Measured,
    /// Its section of the report.
    pub section: String,
    /// Its part of the printed output.
    pub text: String,
}

impl Kept {
    pub fn page(&self) -> Page<'_> {
        Page { measured: &self.measured, section: &self.section }
    }
}

/// Finds and saves experiments for one set of options.
#[derive(Debug)]
pub struct Keeper {
    directory: PathBuf,
    /// Part of the key that all experiments share.
    shared: String,
}

impl Keeper {
    /// For these options; the key includes the build of the program.
    pub fn new(options: &Options) -> Self {
        let Options { policies, baselines, set, seeds, first_seed, wire, quick, out, pcap, json: _ } = options;
        let shared =
            format!("{} {policies:?} {set:?} {seeds:?} {first_seed:?} {wire} {quick} {baselines:?} {pcap}", program());
        Self { directory: out.clone(), shared }
    }

    fn key(&self, document: &Document, scenario: &Scenario) -> String {
        key(&[&self.shared, &document.source.text, &scenario.files])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// The saved results of an experiment, if complete.
    pub fn find(&self, document: &Document) -> Option<Kept> {
        let scenario = document.scenario().ok()?;
        let (name, key) = (&scenario.name, self.key(document, &scenario));
        let series = self.directory.join(format!("{name}.parquet"));
        let kept: Kept = read(&self.path(name)).filter(|kept: &Kept| kept.key == key)?;
        series.exists().then_some(kept)
    }

    /// Saves an experiment, and writes its time series.
    pub fn keep(&self, document: &Document, outcome: &Outcome) -> Result<Kept, Diagnostic> {
        let name = &outcome.scenario.name;
        timeseries::write(&self.directory.join(format!("{name}.parquet")), outcome)?;
        let measured = Measured::of(outcome);
        let text = super::text::experiment(outcome, &measured);
        let section = report::section(outcome)?;
        let kept = Kept { key: self.key(document, &outcome.scenario), measured, section, text };
        let json = serde_json::to_string(&kept)
            .map_err(|error| Diagnostic::plain(format!("cannot keep the results of {name}: {error}")))?;
        write(&self.path(name), &json)?;
        Ok(kept)
    }
}

fn read(path: &Path) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
