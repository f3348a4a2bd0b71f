//! Vectors of environments, with their numbers in NumPy arrays.

use crate::failure::{failure, plain};
use crate::request::Request;
use anabranch_lab::environment::{Spec, Steps, VectorEnvironment};
use anabranch_lab::experiment::Experiment;
use anabranch_policy::observation::PATH_FEATURES;
use anabranch_policy::time::Duration;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;

/// What a step gives: observations, rewards, terminated, truncated, seeds.
type Stepped<'py> = (
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<u64>>,
);

/// Environments that are stepped on Rust threads.
#[pyclass(module = "anabranch._native", unsendable)]
pub struct Environments(VectorEnvironment);

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
        VectorEnvironment::new(spec, count, threads).map(Self).map_err(failure)
    }

    #[getter]
    fn paths(&self) -> Vec<String> {
        self.0.spec().scenario.paths.iter().map(|path| path.name.clone()).collect()
    }

    /// Name and unit of each number of an observation, in order.
    #[getter]
    fn features(&self) -> Vec<(String, &'static str)> {
        let paths = self.0.spec().scenario.paths.iter();
        let of_path = |name: &str| PATH_FEATURES.map(|feature| (format!("{name}.{}", feature.name), feature.unit));
        let of_paths = paths.flat_map(|path| of_path(&path.name));
        let of_connection = self.0.spec().observes.connection_features().iter();
        of_paths.chain(of_connection.map(|feature| (feature.name.to_owned(), feature.unit))).collect()
    }

    fn reset<'py>(&mut self, py: Python<'py>, seeds: Vec<u64>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if seeds.len() != self.0.count() {
            return Err(plain(format!("{} seeds for {} environments", seeds.len(), self.0.count())));
        }
        let vector = &mut self.0;
        let steps = py.detach(|| vector.reset(&seeds)).map_err(failure)?;
        self.observations(py, steps.observations)
    }

    fn step<'py>(&mut self, py: Python<'py>, actions: PyReadonlyArray2<'py, f32>) -> PyResult<Stepped<'py>> {
        let actions: Vec<f32> = actions.as_array().iter().copied().collect();
        let vector = &mut self.0;
        let Steps { observations, steps, seeds, .. } = py.detach(|| vector.step(&actions)).map_err(failure)?;
        let flags = |of: fn(&anabranch_lab::environment::Step) -> bool| PyArray1::from_iter(py, steps.iter().map(of));
        Ok((
            self.observations(py, observations)?,
            PyArray1::from_iter(py, steps.iter().map(|step| step.reward)),
            flags(|step| step.terminated),
            flags(|step| step.truncated),
            PyArray1::from_vec(py, seeds),
        ))
    }

    fn trace_hashes(&mut self, py: Python<'_>) -> PyResult<Vec<String>> {
        let vector = &mut self.0;
        let hashes = py.detach(|| vector.trace_hashes()).map_err(failure)?;
        Ok(hashes.into_iter().map(|hash| format!("{hash:016x}")).collect())
    }
}

impl Environments {
    fn observations<'py>(&self, py: Python<'py>, values: Vec<f32>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let spec = self.0.spec();
        let (rows, columns) = (self.0.count() * spec.agents, spec.features());
        PyArray1::from_vec(py, values).reshape([rows, columns])
    }
}
