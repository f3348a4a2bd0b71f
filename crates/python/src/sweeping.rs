//! The runs of a sweep one by one, for other machines, and their scores.

use crate::failure::{failure, plain};
use crate::fault::Fault;
use crate::policies::InPython;
use crate::running;
use crate::table::Table;
use anabranch_lab::simulation::{Extras, OwnPolicies};
use anabranch_lab::sweep::cast::{self, Entrant};
use anabranch_lab::sweep::journal::Line;
use anabranch_lab::sweep::network::Load;
use anabranch_lab::sweep::plan::Plan;
use anabranch_lab::sweep::point::Point;
use anabranch_lab::sweep::runs::{Batch, Task};
use anabranch_lab::sweep::{competition, design, measure, rows};
use anabranch_settings::contender::ON_NETWORKS;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bulk transfer on a point.
#[derive(Debug, Serialize, Deserialize)]
struct Unit {
    key: String,
    seed: u32,
    point: u32,
    competition: bool,
    policy: String,
    paths: Vec<usize>,
}

fn plan(policies: &[String]) -> PyResult<Plan> {
    let cast = cast::choose(policies, false).map_err(failure)?;
    let tcp = Entrant::reference();
    let references = vec![tcp.clone(); cast.len()];
    Ok(Plan { tcp, references, cast, subsets: Vec::new() })
}

fn points(seed: u32, first: u32, count: u32, competing: bool) -> PyResult<Vec<Point>> {
    if first.saturating_add(count) > design::MOST {
        return Err(plain(format!("the design has {} points per seed", design::MOST)));
    }
    Ok(if competing { competition::points(seed, first, count) } else { design::points(seed, first, count) })
}

/// Key of a run as [`sweep_tasks`] gives it.
pub fn key_of(unit: &str) -> PyResult<String> {
    serde_json::from_str::<Unit>(unit).map(|unit| unit.key).map_err(plain)
}

/// The runs of a sweep, each as JSON for [`sweep_run`].
#[pyfunction]
pub fn sweep_tasks(
    policies: Vec<String>,
    seed: u32,
    first: u32,
    count: u32,
    competition: bool,
) -> PyResult<Vec<String>> {
    let (plan, points) = (plan(&policies)?, points(seed, first, count, competition)?);
    let unit = |task: &Task<'_>| {
        // A combination is told by its text; its name need not say all of it.
        let text = plan.cast.iter().position(|known| known == task.entrant).and_then(|place| policies.get(place));
        let policy = text.map_or_else(|| task.entrant.name().to_owned(), Clone::clone);
        let paths = task.paths.clone();
        let unit = Unit { key: task.key(), seed, point: task.point.number, competition, policy, paths };
        serde_json::to_string(&unit).map_err(plain)
    };
    plan.bulk(&points).iter().map(unit).collect()
}

/// Executes a run; gives its results as JSON for [`sweep_table`]. Classes of Python replace policies of multipath
/// entrants, not of the TCP that they are compared with.
#[pyfunction]
#[pyo3(signature = (unit, *, policies=None))]
pub fn sweep_run(py: Python<'_>, unit: &str, policies: Option<InPython>) -> PyResult<String> {
    let unit: Unit = serde_json::from_str(unit).map_err(plain)?;
    let point = if unit.competition { competition::point } else { design::point }(unit.seed, unit.point);
    let entrant = cast::one(&unit.policy).map_err(plain)?;
    let task = Task { point: &point, entrant: &entrant, paths: unit.paths.clone(), load: Load::Bulk };
    if task.key() != unit.key {
        return Err(plain("this run was planned by another version of anabranch"));
    }
    let fault = Arc::new(Fault::default());
    let in_python = policies.unwrap_or_default();
    let calls = in_python.calls()?;
    let own = in_python.policies(py, &fault, &calls)?;
    let own = if entrant.contender.multipath { own } else { OwnPolicies::default() };
    let extras = Extras { own, ..Extras::default() };
    let look = |py: Python<'_>| calls.look(py, &fault);
    let measured = running::wait_and_look(py, &fault.stop, None, look, |_| task.measure(&extras));
    if let Some(error) = fault.take() {
        return Err(error);
    }
    let measured = measured?.map_err(failure)?;
    let program = anabranch_lab::journal::program().to_owned();
    let line = Line { key: unit.key, program, point: unit.point, policy: unit.policy, paths: unit.paths, measured };
    serde_json::to_string(&line).map_err(plain)
}

/// Names of all built-in policies that a sweep compares, and the default on networks.
#[pyfunction]
pub fn sweep_policies() -> PyResult<Vec<String>> {
    let cast = cast::choose(&[], true).map_err(failure)?;
    let on_networks = cast::one(ON_NETWORKS).map_err(plain)?;
    // It has a name of its own here.
    let others = cast.iter().filter(|entrant| entrant.name() != on_networks.name());
    let default = std::iter::once(format!("{ON_NETWORKS},name=default_on_networks"));
    Ok(default.chain(others.map(|entrant| entrant.name().to_owned())).collect())
}

/// Scores of a sweep from the results of all its runs: a row per policy and point.
#[pyfunction]
pub fn sweep_table(
    policies: Vec<String>,
    seed: u32,
    first: u32,
    count: u32,
    competition: bool,
    results: Vec<String>,
) -> PyResult<Table> {
    let (plan, points) = (plan(&policies)?, points(seed, first, count, competition)?);
    let mut known: BTreeMap<String, Line> = BTreeMap::new();
    for text in &results {
        let line: Line = serde_json::from_str(text).map_err(plain)?;
        known.insert(line.key.clone(), line);
    }
    let missing = Cell::new(0);
    let run = |tasks: &[Task<'_>], _: &str| {
        let lines: Vec<Option<Line>> = tasks.iter().map(|task| known.get(&task.key()).cloned()).collect();
        missing.set(missing.get() + lines.iter().filter(|line| line.is_none()).count());
        Ok(Batch::of(lines))
    };
    let outcomes = measure(&plan, &points, false, run).map_err(failure)?;
    let outcomes = outcomes.ok_or_else(|| plain(format!("the results of {} runs are missing", missing.get())))?;
    Table::new(rows::columns(&outcomes, &points))
}
