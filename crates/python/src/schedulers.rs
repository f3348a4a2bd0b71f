//! Schedulers written in Python, and Rust's called from it.

use crate::failure::plain;
use crate::fault::Fault;
use crate::views::{PyChunk, PyConnection, PySubflow};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, Decision, Scheduler};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A scheduler that is an object of Python.
pub struct PythonScheduler {
    pub object: Py<PyAny>,
    pub fault: Arc<Fault>,
}

impl PythonScheduler {
    fn ask(&self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> PyResult<Decision> {
        Python::attach(|py| {
            let subflows_there: Vec<PySubflow> = subflows.iter().cloned().map(PySubflow).collect();
            let arguments = (PyConnection(connection.clone()), PyChunk(*chunk), subflows_there);
            let answer = self.object.bind(py).call_method1("schedule", arguments)?;
            if answer.is_none() {
                return Ok(Decision::Wait(None));
            }
            if let Ok(id) = answer.extract::<u32>() {
                let usable = |subflow: &&SubflowView| subflow.usable();
                if subflows.iter().filter(usable).any(|subflow| subflow.id.0 == id) {
                    return Ok(Decision::Send(SubflowId(id)));
                }
                let there: Vec<String> =
                    subflows.iter().filter(usable).map(|subflow| subflow.id.0.to_string()).collect();
                return Err(plain(format!(
                    "schedule() returned {id}, which is no usable subflow: those are {}",
                    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
                )));
            }
            match answer.extract::<f64>() {
                Ok(time) if time.is_finite() => {
                    Ok(Decision::Wait(Some(Instant::ZERO + Duration::from_secs_f64(time.max(0.0)))))
                }
                _ => Err(plain(format!(
                    "schedule() returned {}: it is the id of a subflow, None to wait, or a time in seconds until which to \
                     wait at most",
                    answer.repr()?
                ))),
            }
        })
    }
}

impl Scheduler for PythonScheduler {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        if self.fault.over() {
            return Decision::Wait(None);
        }
        self.fault.or(self.ask(connection, chunk, subflows), Decision::Wait(None))
    }
}

/// A scheduler of the tables, for comparison with one in Python on the same views.
#[pyclass(module = "anabranch", name = "RustScheduler", unsendable)]
pub struct RustScheduler(Box<dyn Scheduler>);

#[pymethods]
impl RustScheduler {
    /// A scheduler by name, with settings as keyword arguments.
    #[new]
    #[pyo3(signature = (name, **settings))]
    fn new(name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut words = vec![format!("scheduler={name}")];
        for (key, value) in settings.into_iter().flatten() {
            words.push(format!("scheduler.{key}={}", value.str()?));
        }
        let words = words.join(",");
        let combination: Combination = words.parse().map_err(plain)?;
        debug_assert_eq!(combination.scheduler.name, Choice::new(name).name);
        combination.build_scheduler().map(Self).map_err(plain)
    }

    /// The id of the subflow to which it assigns the chunk; None: it waits.
    fn schedule(
        &mut self,
        connection: &PyConnection,
        chunk: &PyChunk,
        subflows: Vec<PyRef<'_, PySubflow>>,
    ) -> Option<u32> {
        let subflows: Vec<SubflowView> = subflows.iter().map(|subflow| subflow.0.clone()).collect();
        match self.0.schedule(&connection.0, &chunk.0, &subflows) {
            Decision::Send(id) => Some(id.0),
            Decision::Wait(_) => None,
        }
    }
}
