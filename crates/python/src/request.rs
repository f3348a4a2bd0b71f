//! What is to be run, as the Python side passes it: JSON, so that it can also travel to another process.

use crate::failure::plain;
use anabranch_lab::experiment::{Data, Plan};
use anabranch_lab::runs::{Grid, Shard};
use anabranch_lab::scenario::Document;
use anabranch_lab::simulation::{Extras, OwnPolicies};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::tree::Source;
use pyo3::PyResult;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A scenario and how to run it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Name of the file, for messages.
    pub file: String,
    pub text: String,
    /// Directory of files that the scenario names.
    pub directory: PathBuf,
    /// `key=value` each.
    pub set: Vec<String>,
    /// `key=value,value,...` each.
    pub grid: Vec<String>,
    /// As `--policy`; empty: those of the scenario.
    pub policies: Vec<String>,
    pub baselines: Vec<String>,
    pub first_policy_only: bool,
    /// The first seed, and how many.
    pub seeds: Option<(u64, u32)>,
    pub quick: bool,
    pub wire: bool,
    /// `I/N`.
    pub shard: Option<String>,
}

impl Request {
    /// # Errors
    /// It is no JSON of a request.
    pub fn read(text: &str) -> PyResult<Self> {
        serde_json::from_str(text).map_err(plain)
    }

    pub fn document(&self) -> Document {
        let source = Source::embedded(&self.file, &self.text, &self.set);
        Document { source, directory: self.directory.clone() }
    }

    pub fn plan(&self, own: OwnPolicies) -> Plan {
        Plan {
            policies: self.policies.clone(),
            baselines: self.baselines.clone(),
            first_policy_only: self.first_policy_only,
            seeds: self.seeds.map(|(_, count)| count),
            first_seed: self.seeds.map(|(first, _)| first),
            quick: self.quick,
            sweep: false,
            extras: Extras { wire: self.wire, own, ..Extras::default() },
        }
    }

    /// Its runs.
    ///
    /// # Errors
    /// The grid or the shard cannot be read.
    pub fn data<'a>(&self, document: &'a Document, plan: &'a Plan) -> Result<Data<'a>, Diagnostic> {
        let shard = match &self.shard {
            None => Shard::WHOLE,
            Some(text) => text.parse().map_err(|message: String| Diagnostic::option("shard", message))?,
        };
        Ok(Data { document, plan, grid: Grid::read(&self.grid)?, shard })
    }
}
