//! Schedulers written in Python, and Rust's called from it.

use crate::choice::choice;
use crate::failure::{number, plain};
use crate::instance::{Instance, returned};
use crate::views::{PyChunk, PyConnection, PySubflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, Decision, Scheduler};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// A scheduler that is an object of Python.
pub struct PythonScheduler(pub Instance);

impl Scheduler for PythonScheduler {
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let asked = self.0.ask(|object| {
            let there: Vec<PySubflow> = subflows.iter().cloned().map(PySubflow).collect();
            let arguments = (PyConnection(connection.clone()), PyChunk(*chunk), there);
            decision(&object.call_method1("schedule", arguments)?, connection.now, subflows)
        });
        asked.unwrap_or(Decision::Wait(None))
    }
}

fn decision(answer: &Bound<'_, PyAny>, now: Instant, subflows: &[SubflowView]) -> PyResult<Decision> {
    if answer.is_none() {
        return Ok(Decision::Wait(None));
    }
    let usable = |subflow: &&SubflowView| subflow.usable();
    match answer.extract::<u32>() {
        Ok(id) if subflows.iter().filter(usable).any(|subflow| subflow.id.0 == id) => {
            return Ok(Decision::Send(SubflowId(id)));
        }
        Err(error) if !error.is_instance_of::<PyOverflowError>(answer.py()) => {}
        // A whole number is an id, also where no subflow can have it: a time is a float.
        _ => {
            let there: Vec<String> = subflows.iter().filter(usable).map(|subflow| subflow.id.0.to_string()).collect();
            return Err(plain(format!(
                "schedule() returned {answer}, which is no usable subflow: those are {}",
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            )));
        }
    }
    match answer.extract::<f64>() {
        Ok(time) if time.is_finite() => {
            let until = Instant::ZERO + Duration::from_secs_f64(time.max(0.0));
            if until > now {
                return Ok(Decision::Wait(Some(until)));
            }
            let (time, now) = (number(time), number(now.as_secs_f64()));
            Err(plain(format!("schedule() asked to wait until {time} s, and it is {now} s: the time is a later one")))
        }
        _ => {
            let wanted = "the id of a subflow, None to wait, or a time in seconds until which to wait at most";
            Err(returned("schedule", answer, wanted))
        }
    }
}

/// A scheduler of the tables, for comparison with one in Python on the same views.
#[pyclass(frozen, module = "anabranch", name = "RustScheduler")]
pub struct RustScheduler(Mutex<Box<dyn Scheduler>>);

#[pymethods]
impl RustScheduler {
    /// A scheduler by name, with settings as keyword arguments.
    #[new]
    #[pyo3(signature = (name, **settings))]
    fn new(name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let combination = choice("scheduler", name, settings)?;
        combination.build_scheduler().map(|built| Self(Mutex::new(built))).map_err(plain)
    }

    /// The id of the subflow to which it assigns the chunk; None: it waits.
    fn schedule(&self, connection: &PyConnection, chunk: &PyChunk, subflows: Vec<PyRef<'_, PySubflow>>) -> Option<u32> {
        let subflows: Vec<SubflowView> = subflows.iter().map(|subflow| subflow.0.clone()).collect();
        let mut scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match scheduler.schedule(&connection.0, &chunk.0, &subflows) {
            Decision::Send(id) => Some(id.0),
            Decision::Wait(_) => None,
        }
    }
}
