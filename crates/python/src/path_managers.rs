//! Path managers written in Python, and Rust's called from it.

use crate::choice::choice;
use crate::failure::plain;
use crate::instance::{Instance, returned};
use crate::path_actions::PyPathAction;
use crate::path_events::PyPathEvent;
use anabranch_policy::combination::Combination;
use anabranch_policy::path_manager::{ForwardDelays, Measurements, PathAction, PathEvent, PathManager};
use anabranch_policy::time::{Duration, Instant};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// The shortest interval of measurements that is accepted, s.
const SHORTEST: f64 = 1e-3;
/// The latest time that a path manager can be told, s: a hundred days, as of scenarios.
const LATEST: f64 = 1e7;
/// The word for an interval of a round trip.
const ROUND_TRIP: &str = "every_round_trip";
/// Words for one-way delays.
const DELAYS: [(&str, ForwardDelays); 2] =
    [("of_arrivals", ForwardDelays::OfArrivals), ("of_acknowledgements", ForwardDelays::OfAcknowledgements)];

/// A path manager that is an object of Python.
pub struct PythonPathManager(pub Instance);

impl PathManager for PythonPathManager {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        let asked = self.0.ask(|object| {
            let event = PyPathEvent::new(object.py(), event)?;
            let answer = object.call_method1("handle", (now.as_secs_f64(), event))?;
            read_actions(&answer, now)
        });
        actions.extend(asked.into_iter().flatten());
    }

    fn measurements(&self) -> Measurements {
        self.optional("measurements", read_interval, Measurements::Never)
    }

    fn forward_delays(&self) -> ForwardDelays {
        self.optional("forward_delays", read_delays, ForwardDelays::Unmeasured)
    }
}

impl PythonPathManager {
    /// What a method says that it need not have.
    fn optional<T>(&self, method: &str, read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>, default: T) -> T {
        if !self.0.has(method) {
            return default;
        }
        self.0.ask(|object| read(&object.call_method0(method)?)).unwrap_or(default)
    }
}

fn read_actions(answer: &Bound<'_, PyAny>, now: Instant) -> PyResult<Vec<PathAction>> {
    if answer.is_none() {
        return Ok(Vec::new());
    }
    let wrong = |what: &Bound<'_, PyAny>| returned("handle", what, "a list of anabranch.PathAction, or None");
    let mut actions = Vec::new();
    for item in answer.try_iter().map_err(|_| wrong(answer))? {
        let item = item?;
        let action = item.cast::<PyPathAction>().map_err(|_| wrong(&item))?;
        actions.push(action.get().action(now)?);
    }
    Ok(actions)
}

fn read_interval(answer: &Bound<'_, PyAny>) -> PyResult<Measurements> {
    if answer.is_none() {
        return Ok(Measurements::Never);
    }
    if answer.extract::<&str>().is_ok_and(|word| word == ROUND_TRIP) {
        return Ok(Measurements::EveryRoundTrip);
    }
    match answer.extract::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= SHORTEST => {
            Ok(Measurements::Every(Duration::from_secs_f64(seconds)))
        }
        _ => Err(returned("measurements", answer, "None, 'every_round_trip', or a time of 0.001 s or more")),
    }
}

fn read_delays(answer: &Bound<'_, PyAny>) -> PyResult<ForwardDelays> {
    if answer.is_none() {
        return Ok(ForwardDelays::Unmeasured);
    }
    let named = answer.extract::<&str>().ok().and_then(|word| DELAYS.iter().find(|(known, _)| *known == word));
    let wrong = || returned("forward_delays", answer, "None, 'of_arrivals' or 'of_acknowledgements'");
    named.map(|(_, delays)| *delays).ok_or_else(wrong)
}

/// A path manager of the tables, for comparison with one in Python on the same events.
#[pyclass(frozen, module = "anabranch", name = "RustPathManager")]
pub struct RustPathManager(Mutex<Box<dyn PathManager>>);

#[pymethods]
impl RustPathManager {
    /// A path manager by name, with settings as keyword arguments.
    #[new]
    #[pyo3(signature = (name, **settings))]
    fn new(name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let combination: Combination = choice("path_manager", name, settings)?;
        combination.build_path_manager().map(|built| Self(Mutex::new(built))).map_err(plain)
    }

    /// What it does about an event at a time in seconds.
    fn handle(&self, now: f64, event: &Bound<'_, PyPathEvent>) -> PyResult<Vec<PyPathAction>> {
        // A policy may look for a time after the last one that there is, which it never finds.
        if !(0.0..=LATEST).contains(&now) {
            return Err(plain(format!("'now' is a time of 0 to {LATEST:e} s, and not {now}")));
        }
        let now = Instant::ZERO + Duration::from_secs_f64(now);
        let mut actions = Vec::new();
        let mut manager = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        event.get().with(|event| manager.handle(now, event, &mut actions))?;
        Ok(actions.iter().map(PyPathAction::new).collect())
    }

    /// The interval of measurements: None, 'every_round_trip', or seconds.
    fn measurements(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(match self.0.lock().unwrap_or_else(PoisonError::into_inner).measurements() {
            Measurements::Never => None,
            Measurements::EveryRoundTrip => Some(ROUND_TRIP.into_pyobject(py)?.into_any().unbind()),
            Measurements::Every(interval) => Some(interval.as_secs_f64().into_pyobject(py)?.into_any().unbind()),
        })
    }

    /// The one-way delays to be measured: None, 'of_arrivals' or 'of_acknowledgements'.
    fn forward_delays(&self) -> Option<&'static str> {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner).forward_delays();
        DELAYS.iter().find(|(_, delays)| *delays == wanted).map(|(word, _)| *word)
    }
}
