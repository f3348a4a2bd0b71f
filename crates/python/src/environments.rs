//! Vectors of environments, with their numbers in NumPy arrays.

use crate::failure::{failure, plain};
use crate::request::Request;
use anabranch_lab::environment::{Spec, Steps, VectorEnvironment};
use anabranch_lab::experiment::Experiment;
use anabranch_policy::observation::PATH_FEATURES;
use anabranch_policy::time::Duration;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a step gives: observations, rewards, terminated, truncated, seeds.
type Stepped<'py> = (
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<u64>>,
);

/// Environments that are stepped on Rust threads. Any thread of Python may use them, one at a time: whoever waits for
/// another one does so without Python's lock. A process that was forked has none of the threads: there they do nothing
/// but say so.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Environments {
    vector: Arc<Mutex<VectorEnvironment>>,
    /// The process that has the threads.
    process: u32,
    spec: Spec,
    count: usize,
}

#[pymethods]
impl Environments {
    /// `sizes`: how many environments, agents in each, and threads.
    #[new]
    fn new(
        request: &str,
        decides: &str,
        observes: &str,
        reward: &str,
        interval: f64,
        sizes: (usize, usize, usize),
    ) -> PyResult<Self> {
        let request = Request::read(request)?;
        let (count, agents, threads) = sizes;
        let (document, plan) = (request.document(), request.plan(Default::default()));
        let experiment = Experiment::prepare(&document, &plan).map_err(failure)?;
        let (scenario, contender) = experiment.first();
        if !(interval.is_finite() && interval > 0.0) {
            return Err(plain("the interval of a step is a time above 0, in seconds"));
        }
        let spec = Spec {
            scenario,
            contender,
            agents,
            decides: decides.parse().map_err(plain)?,
            observes: observes.parse().map_err(plain)?,
            reward: reward.parse().map_err(plain)?,
            interval: Duration::from_secs_f64(interval),
        };
        let vector = VectorEnvironment::new(spec.clone(), count, threads).map_err(failure)?;
        Ok(Self { vector: Arc::new(Mutex::new(vector)), process: std::process::id(), spec, count })
    }

    #[getter]
    fn paths(&self) -> Vec<String> {
        self.spec.scenario.paths.iter().map(|path| path.name.clone()).collect()
    }

    /// Name and unit of each number of an observation, in order.
    #[getter]
    fn features(&self) -> Vec<(String, &'static str)> {
        let paths = self.spec.scenario.paths.iter();
        let of_path = |name: &str| PATH_FEATURES.map(|feature| (format!("{name}.{}", feature.name), feature.unit));
        let of_paths = paths.flat_map(|path| of_path(&path.name));
        let of_connection = self.spec.observes.connection_features().iter();
        of_paths.chain(of_connection.map(|feature| (feature.name.to_owned(), feature.unit))).collect()
    }

    fn reset<'py>(&self, py: Python<'py>, seeds: Vec<u64>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if seeds.len() != self.count {
            return Err(plain(format!("{} seeds for {} environments", seeds.len(), self.count)));
        }
        self.check_process()?;
        let steps = py.detach(|| self.vector().reset(&seeds)).map_err(failure)?;
        self.observations(py, steps.observations)
    }

    fn step<'py>(&self, py: Python<'py>, actions: PyReadonlyArray2<'py, f32>) -> PyResult<Stepped<'py>> {
        let actions: Vec<f32> = actions.as_array().iter().copied().collect();
        self.check_process()?;
        let stepped = py.detach(|| self.vector().step(&actions)).map_err(failure)?;
        let Steps { observations, steps, seeds, .. } = stepped;
        let flags = |of: fn(&anabranch_lab::environment::Step) -> bool| PyArray1::from_iter(py, steps.iter().map(of));
        Ok((
            self.observations(py, observations)?,
            PyArray1::from_iter(py, steps.iter().map(|step| step.reward)),
            flags(|step| step.terminated),
            flags(|step| step.truncated),
            PyArray1::from_vec(py, seeds),
        ))
    }

    fn trace_hashes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.check_process()?;
        let hashes = py.detach(|| self.vector().trace_hashes()).map_err(failure)?;
        Ok(hashes.into_iter().map(|hash| format!("{hash:016x}")).collect())
    }
}

impl Environments {
    /// # Errors
    /// This process was forked from the one that made it.
    fn check_process(&self) -> PyResult<()> {
        let (own, here) = (self.process, std::process::id());
        if own == here {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "the environment was made in process {own}, and its threads are not in process {here}, which was forked from \
             there: make a new one after the fork"
        )))
    }

    fn vector(&self) -> MutexGuard<'_, VectorEnvironment> {
        self.vector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observations<'py>(&self, py: Python<'py>, values: Vec<f32>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (rows, columns) = (self.count * self.spec.agents, self.spec.features());
        PyArray1::from_vec(py, values).reshape([rows, columns])
    }
}

impl Drop for Environments {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The threads that would have to end first are not here: what is theirs is forgotten.
            std::mem::forget(Arc::clone(&self.vector));
        }
    }
}
