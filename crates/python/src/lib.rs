//! What the Python package `anabranch` calls; its interface for users is in `python/anabranch`.

mod calls;
mod capturing;
mod choice;
mod congestion;
mod congestion_values;
mod environments;
mod failure;
mod fault;
mod instance;
mod keeping;
mod learned;
mod memory;
mod path_actions;
mod path_events;
mod path_managers;
mod policies;
mod reproduction;
mod request;
mod running;
mod schedulers;
mod sweeping;
mod table;
mod views;

use anabranch_lab::columns::Column;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::library::SCENARIOS;
use anabranch_lab::runner::{Runner, processors};
use anabranch_lab::runs::{Keep, Row, Store, columns, write};
use anabranch_lab::timeseries::samples;
use failure::{failure, plain, system};
use fault::Fault;
use memory::SoundRows;
use policies::InPython;
use pyo3::prelude::*;
use request::Request;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use table::Table;

/// Version of the package, and commit of its source.
#[pyfunction]
fn version() -> (&'static str, String) {
    (env!("CARGO_PKG_VERSION"), anabranch_lab::build::commit())
}

/// Names of the built-in scenarios.
#[pyfunction]
fn scenarios() -> Vec<&'static str> {
    SCENARIOS.iter().map(|known| known.name).collect()
}

/// Text of a built-in scenario; None if there is none of this name.
#[pyfunction]
fn scenario_text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|known| known.name == name).map(|known| known.text)
}

/// TOML of a table given as JSON.
#[pyfunction]
fn toml_of(json: &str) -> PyResult<String> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(plain)?;
    if let Some(place) = null_in(&value) {
        let place = place.join(".");
        return Err(plain(format!("'{place}' is None, and TOML has no such value: leave the key out for its default")));
    }
    toml::to_string(&value).map_err(plain)
}

/// The keys on the way to the first null in it.
fn null_in(value: &serde_json::Value) -> Option<Vec<String>> {
    let below = |key: String, value| Some([vec![key], null_in(value)?].concat());
    match value {
        serde_json::Value::Null => Some(Vec::new()),
        serde_json::Value::Object(entries) => entries.iter().find_map(|(key, value)| below(key.clone(), value)),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, value)| below(at.to_string(), value))
        }
        _ => None,
    }
}

/// Reads the scenario at all points of the grid; gives the number of runs.
#[pyfunction]
fn check(request: &str) -> PyResult<usize> {
    let request = Request::read(request)?;
    let (document, plan) = (request.document(), request.plan(Default::default()));
    request.data(&document, &plan).and_then(|data| data.check()).map_err(failure)
}

/// Names of the scenario's policies, as `--policy` takes them.
#[pyfunction]
fn policies_of(request: &str) -> PyResult<Vec<String>> {
    let request = Request::read(request)?;
    let (document, plan) = (request.document(), request.plan(Default::default()));
    Experiment::prepare(&document, &plan).map(|experiment| experiment.policies()).map_err(failure)
}

/// Executes runs; gives a row each as JSON, and the number of runs whose rows were in the store already. With a
/// directory, rows go there too; without one, what ends the runs has the rows until then as `rows`.
#[pyfunction]
#[pyo3(signature = (request, *, jobs=None, store=None, policies=None, progress=None))]
fn execute(
    py: Python<'_>,
    request: &str,
    jobs: Option<usize>,
    store: Option<PathBuf>,
    policies: Option<InPython>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(Vec<String>, usize)> {
    let request = Request::read(request)?;
    let fault = Arc::new(Fault::default());
    let in_python = policies.unwrap_or_default();
    let calls = in_python.calls()?;
    let own = in_python.policies(py, &fault, &calls)?;
    let own_name = own.name.clone();
    let (document, plan) = (request.document(), request.plan(own));
    let data = request.data(&document, &plan).map_err(failure)?;
    data.check().map_err(failure)?;
    let memory = SoundRows::new((!own_name.is_empty()).then(|| Arc::clone(&fault)));
    let text = |row: &Row| serde_json::to_string(row).map_err(plain);
    let store = match &store {
        None => None,
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(|error| system(&error, directory))?;
            Some(Store::open(directory, data.shard).map_err(failure)?)
        }
    };
    let jobs = jobs.unwrap_or_else(processors).max(1);
    let stop = Arc::clone(&fault.stop);
    let keep: &dyn Keep = store.as_ref().map_or(&memory, |store| store);
    let look = |py: Python<'_>| calls.look(py, &fault);
    let done = running::wait_and_look(py, &stop, progress.as_ref(), look, |told| {
        data.run(keep, &Runner { jobs, stop: &stop, progress: told })
    });
    let written = store.as_ref().map_or(Ok(0), |store| {
        let table = store.path().with_extension("parquet");
        py.detach(|| write(store.path(), &table)).map_err(failure)
    });
    let done = match (fault.take(), done) {
        (None, Ok(done)) => done.map_err(failure)?,
        (Some(error), _) | (None, Err(error)) => {
            // What was done until then is not lost with it.
            let rows: Vec<String> = memory.rows().iter().map(text).collect::<PyResult<_>>()?;
            return Err(error.value(py).setattr("rows", rows).err().unwrap_or(error));
        }
    };
    // What ended the runs is told before this, which may have the same cause.
    written?;
    let rows = match &store {
        None => memory.rows(),
        Some(store) => {
            let rows = || store.rows(&data.keys()?.into_iter().map(|(_, key)| key).collect());
            py.detach(rows).map_err(failure)?
        }
    };
    Ok((rows.iter().map(text).collect::<PyResult<_>>()?, done.known))
}

/// The table of rows given as JSON, in order of grid, policy and seed, with the scenarios' texts by key.
#[pyfunction]
fn rows_table(rows: Vec<String>, texts: Vec<String>) -> PyResult<Table> {
    let mut rows: Vec<Row> =
        rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>().map_err(plain)?;
    rows.sort_by(|a, b| (&a.grid, &a.policy, &a.paths, a.seed).cmp(&(&b.grid, &b.policy, &b.paths, b.seed)));
    let texts: BTreeMap<String, Arc<str>> =
        texts.iter().map(|text| (anabranch_lab::journal::key(&[text]), Arc::from(text.as_str()))).collect();
    Table::new(columns(&rows, &texts))
}

/// Time series of one run, a row per value: time (s), path (null: the connection), metric, unit, value.
#[pyfunction]
fn series(py: Python<'_>, request: &str) -> PyResult<Table> {
    let request = Request::read(request)?;
    let (document, mut plan) = (request.document(), request.plan(Default::default()));
    plan.extras.curves = true;
    let experiment = Experiment::prepare(&document, &plan).map_err(failure)?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let outcome = running::wait(py, &stop, None, |told| {
        experiment.run(&Runner { jobs: processors(), stop: &stop, progress: told }, None)
    })?;
    let outcome = outcome.map_err(failure)?;
    let (mut policy, mut seed, mut time, mut path) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut metric, mut unit, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for runs in &outcome.policies {
        for (record, sample) in
            runs.records.iter().flat_map(|record| samples(&outcome, record).map(move |sample| (record, sample)))
        {
            policy.push(Some(Arc::from(runs.contender.name.as_str())));
            seed.push(i64::try_from(record.seed).ok());
            time.push(Some(sample.time));
            path.push(sample.path.map(Arc::from));
            metric.push(Some(Arc::from(sample.metric)));
            unit.push(Some(Arc::from(sample.unit)));
            value.push(Some(sample.value));
        }
    }
    let columns = [
        ("policy", Column::Text(policy)),
        ("seed", Column::Whole(seed)),
        ("time", Column::Real(time)),
        ("path", Column::Text(path)),
        ("metric", Column::Text(metric)),
        ("unit", Column::Text(unit)),
        ("value", Column::Real(value)),
    ];
    Table::new(columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect())
}

#[pymodule]
mod _native {
    use pyo3::prelude::*;
    use std::path::PathBuf;

    /// Results are kept with a hash of this file: another build may behave differently.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        anabranch_lab::journal::program_is(module.filename()?.extract::<PathBuf>()?);
        Ok(())
    }

    #[pymodule_export]
    use super::capturing::capture;
    #[pymodule_export]
    use super::congestion::RustCongestionControl;
    #[pymodule_export]
    use super::environments::Environments;
    #[pymodule_export]
    use super::keeping::{KeptRows, KeptUnits, single_requests};
    #[pymodule_export]
    use super::learned::{network_features, network_weights};
    #[pymodule_export]
    use super::path_actions::PyPathAction;
    #[pymodule_export]
    use super::path_events::PyPathEvent;
    #[pymodule_export]
    use super::path_managers::RustPathManager;
    #[pymodule_export]
    use super::reproduction::{claims_table, experiments, reproduce};
    #[pymodule_export]
    use super::schedulers::RustScheduler;
    #[pymodule_export]
    use super::sweeping::{sweep_policies, sweep_run, sweep_table, sweep_tasks};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::views::{PyChunk, PyConnection, PySubflow};
    #[pymodule_export]
    use super::{check, execute, policies_of, rows_table, scenario_text, scenarios, series, toml_of, version};
}
