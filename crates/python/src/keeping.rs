//! What is kept in a directory of runs that other processes execute: the same files as those of the command.

use crate::failure::{failure, plain, system};
use crate::request::Request;
use anabranch_lab::runs::{Grid, Keep, Row, Shard, Store, write};
use anabranch_lab::sweep::journal::{Journal, Line};
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Requests of the runs of one seed, policy and point of the grid, each with the keys of its rows: one, or one for each
/// candidate of a policy on the best path.
#[pyfunction]
pub fn single_requests(py: Python<'_>, request: &str) -> PyResult<Vec<(String, Vec<String>)>> {
    let whole = Request::read(request)?;
    py.detach(|| {
        let (document, plan) = (whole.document(), whole.plan(Default::default()));
        let policies = match whole.policies.is_empty() {
            false => whole.policies.clone(),
            true => anabranch_lab::experiment::Experiment::prepare(&document, &plan).map_err(failure)?.policies(),
        };
        let mut singles = Vec::new();
        for point in Grid::read(&whole.grid).map_err(failure)?.points() {
            let grid: Vec<String> = point.iter().map(|(key, value)| format!("{key}={value}")).collect();
            for policy in &policies {
                let mut single = whole.clone();
                (single.grid, single.policies) = (grid.clone(), vec![policy.clone()]);
                let plan = single.plan(Default::default());
                let keys = single.data(&document, &plan).and_then(|data| data.keys()).map_err(failure)?;
                let mut by_seed: BTreeMap<u64, Vec<String>> = BTreeMap::new();
                keys.into_iter().for_each(|(seed, key)| by_seed.entry(seed).or_default().push(key));
                for (seed, keys) in by_seed {
                    single.seeds = Some((seed, 1));
                    singles.push((serde_json::to_string(&single).map_err(plain)?, keys));
                }
            }
        }
        Ok(singles)
    })
}

/// Rows in `runs.jsonl` of a directory.
#[pyclass(frozen, module = "anabranch._native")]
pub struct KeptRows(Store);

#[pymethods]
impl KeptRows {
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        std::fs::create_dir_all(&directory).map_err(|error| system(&error, &directory))?;
        Store::open(&directory, Shard::WHOLE).map(Self).map_err(failure)
    }

    /// Rows with these keys, by key.
    fn rows(&self, keys: HashSet<String>) -> PyResult<BTreeMap<String, String>> {
        let text = |row: Row| Ok((row.key.clone(), serde_json::to_string(&row).map_err(plain)?));
        self.0.rows(&keys).map_err(failure)?.into_iter().map(text).collect()
    }

    /// Appends rows of a request.
    fn keep(&self, request: &str, rows: Vec<String>) -> PyResult<()> {
        let request = Request::read(request)?;
        let (document, plan) = (request.document(), request.plan(Default::default()));
        let origin = plan.origin(&document);
        rows.iter().try_for_each(|row| self.0.keep(&origin, serde_json::from_str(row).map_err(plain)?).map_err(failure))
    }

    /// Writes all rows as `runs.parquet`.
    fn write(&self) -> PyResult<usize> {
        write(self.0.path(), &self.0.path().with_extension("parquet")).map_err(failure)
    }
}

/// Results of a sweep in `sweep.jsonl` of a directory.
#[pyclass(frozen, module = "anabranch._native")]
pub struct KeptUnits(Journal);

#[pymethods]
impl KeptUnits {
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        std::fs::create_dir_all(&directory).map_err(|error| system(&error, &directory))?;
        Journal::open(&directory.join("sweep.jsonl"), false).map(Self).map_err(failure)
    }

    /// The result of a run; None if it is not there.
    fn find(&self, unit: &str) -> PyResult<Option<String>> {
        let key = crate::sweeping::key_of(unit)?;
        self.0.find(&key).map(|line| serde_json::to_string(line).map_err(plain)).transpose()
    }

    /// Appends a result.
    fn keep(&self, result: &str) -> PyResult<()> {
        let line: Line = serde_json::from_str(result).map_err(plain)?;
        self.0.append(&line).map_err(failure)
    }
}
