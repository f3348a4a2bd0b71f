//! The papers' experiments, and their claims beside what was measured.

use crate::failure::{failure, plain};
use crate::request::Request;
use crate::running;
use crate::table::Table;
use anabranch_lab::columns::Column;
use anabranch_lab::experiment::{Experiment, Plan};
use anabranch_lab::library;
use anabranch_lab::measured::Measured;
use anabranch_lab::runner::{Runner, processors};
use anabranch_lab::runs::{Keep, Shard, Store, write};
use anabranch_lab::verdict::{Cell, Verdict};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Names of the papers' experiments that begin with `name`; without it, all.
#[pyfunction]
#[pyo3(signature = (name=None))]
pub fn experiments(name: Option<&str>) -> PyResult<Vec<&'static str>> {
    let known = library::experiments(name.as_slice()).map_err(failure)?;
    Ok(known.iter().map(|known| known.name).collect())
}

/// Runs an experiment with its sweep; gives its results as JSON. With a directory, rows go there.
#[pyfunction]
#[pyo3(signature = (request, *, jobs=None, store=None, progress=None))]
pub fn reproduce(
    py: Python<'_>,
    request: &str,
    jobs: Option<usize>,
    store: Option<PathBuf>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let request = Request::read(request)?;
    let (document, plan) = (request.document(), Plan { sweep: true, ..request.plan(Default::default()) });
    let experiment = Experiment::prepare(&document, &plan).map_err(failure)?;
    if let Some(directory) = &store {
        std::fs::create_dir_all(directory)?;
    }
    let store = store.map(|directory| Store::open(&directory, Shard::WHOLE)).transpose().map_err(failure)?;
    let (jobs, stop) = (jobs.unwrap_or_else(processors).max(1), AtomicBool::new(false));
    let outcome = running::wait(py, &stop, progress.as_ref(), |told| {
        let keep = store.as_ref().map(|store| store as &dyn Keep);
        experiment.run(&Runner { jobs, stop: &stop, progress: told }, keep)
    })?;
    if let Some(store) = &store {
        py.detach(|| write(store.path(), &store.path().with_extension("parquet"))).map_err(failure)?;
    }
    serde_json::to_string(&Measured::of(&outcome.map_err(failure)?)).map_err(plain)
}

/// A row for each claim and baseline of experiments whose results are given as JSON.
#[pyfunction]
pub fn claims_table(measured: Vec<String>) -> PyResult<Table> {
    let measured: Vec<Measured> =
        measured.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>().map_err(plain)?;
    let claims: Vec<(&Measured, &Verdict, &Cell)> = (measured.iter())
        .flat_map(|one| one.verdicts.iter().map(move |verdict| (one, verdict)))
        .flat_map(|(one, verdict)| verdict.cells.iter().map(move |cell| (one, verdict, cell)))
        .collect();
    let text = |of: fn(&(&Measured, &Verdict, &Cell)) -> Option<String>| {
        Column::Text(claims.iter().map(|claim| of(claim).map(Arc::from)).collect())
    };
    let real = |of: fn(&Cell) -> Option<f64>| Column::Real(claims.iter().map(|(.., cell)| of(cell)).collect());
    let columns = [
        ("experiment", text(|(one, ..)| Some(one.name.clone()))),
        ("paper", text(|(one, ..)| Some(one.paper.clone()))),
        ("figure", text(|(_, verdict, _)| Some(verdict.figure.clone()))),
        ("subject", text(|(_, verdict, _)| Some(verdict.subject.clone()))),
        ("published", text(|(_, verdict, _)| Some(verdict.published.clone()))),
        ("baseline", text(|(.., cell)| cell.baseline.clone())),
        ("measured", text(|(.., cell)| Some(cell.measured.clone()))),
        ("mean", real(|cell| cell.estimate.map(|estimate| estimate.mean))),
        (
            "half_width",
            real(|cell| cell.estimate.map(|estimate| estimate.half_width).filter(|width| width.is_finite())),
        ),
        ("agreement", text(|(.., cell)| Some(cell.agreement.word().to_owned()))),
        ("sentence", text(|(.., cell)| Some(cell.sentence.clone()))),
        ("trace_hash", text(|(one, ..)| Some(one.trace_hash.clone()))),
        ("commit", text(|(one, ..)| Some(one.commit.clone()))),
    ];
    Table::new(columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect())
}
