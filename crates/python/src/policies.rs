//! Policies written in Python, and Rust's called from it.

use crate::failure::plain;
use crate::views::{PyChunk, PyConnection, PySubflow};
use anabranch_lab::simulation::OwnPolicies;
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::congestion::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::scheduler::{Chunk, Decision, Scheduler};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a policy raised, or did wrong; and whether to end.
#[derive(Debug, Default)]
pub struct Fault {
    error: Mutex<Option<PyErr>>,
    /// Set with the error, and when Python is interrupted: policies then do nothing.
    pub stop: Arc<AtomicBool>,
}

impl Fault {
    fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The first error, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The result of a call, or else `instead`.
    fn or<T>(&self, result: PyResult<T>, instead: T) -> T {
        result.unwrap_or_else(|error| {
            self.set(error);
            instead
        })
    }
}

/// Classes of Python in place of policies; each connection has an instance.
pub fn own(
    py: Python<'_>,
    scheduler: Option<Py<PyAny>>,
    congestion: Option<Py<PyAny>>,
    fault: &Arc<Fault>,
) -> PyResult<OwnPolicies> {
    let mut own = OwnPolicies::default();
    let mut names = Vec::new();
    let mut name = |family: &str, class: &Py<PyAny>| -> PyResult<()> {
        let class = class.bind(py);
        let name =
            class.getattr("__qualname__").map_or_else(|_| class.repr().map(|it| it.to_string()), |it| it.extract());
        names.push(format!("{family}={}", name?));
        Ok(())
    };
    if let Some(class) = scheduler {
        name("scheduler", &class)?;
        let (fault, class) = (Arc::clone(fault), Arc::new(class));
        own.scheduler = Some(Arc::new(move || {
            let object = Python::attach(|py| fault.or(class.call0(py), py.None()));
            Box::new(PythonScheduler { object, fault: Arc::clone(&fault) })
        }));
    }
    if let Some(class) = congestion {
        name("congestion", &class)?;
        let (fault, class) = (Arc::clone(fault), Arc::new(class));
        own.congestion = Some(Arc::new(move || {
            let object = Python::attach(|py| fault.or(class.call0(py), py.None()));
            Box::new(PythonCongestion { object, fault: Arc::clone(&fault) })
        }));
    }
    own.name = names.join(",");
    Ok(own)
}

struct PythonScheduler {
    object: Py<PyAny>,
    fault: Arc<Fault>,
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

struct PythonCongestion {
    object: Py<PyAny>,
    fault: Arc<Fault>,
}

impl PythonCongestion {
    fn call(&self, method: &str, id: SubflowId, values: &[(&str, f64)]) {
        if self.fault.over() {
            return;
        }
        let called = Python::attach(|py| {
            let event = PyDict::new(py);
            values.iter().try_for_each(|(name, value)| event.set_item(*name, *value))?;
            self.object.bind(py).call_method1(method, (id.0, event)).map(drop)
        });
        self.fault.or(called, ());
    }

    fn number(&self, method: &str, id: SubflowId) -> u64 {
        const LEAST: u64 = 1;
        if self.fault.over() {
            return LEAST;
        }
        let called = Python::attach(|py| {
            let bytes: f64 = self.object.bind(py).call_method1(method, (id.0,))?.extract()?;
            if bytes.is_finite() && bytes >= 0.0 {
                return Ok((bytes as u64).max(LEAST));
            }
            Err(plain(format!("{method}() returned {bytes}: it is a number of bytes")))
        });
        self.fault.or(called, LEAST)
    }
}

impl CongestionControl for PythonCongestion {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        let (mss, window) = (f64::from(start.mss), start.initial_window as f64);
        let values = [("now", start.now.as_secs_f64()), ("mss", mss), ("initial_window", window)];
        self.call("on_subflow_added", id, &values);
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.call("on_subflow_removed", id, &[]);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let seconds = |time: Duration| time.as_secs_f64();
        let values = [
            ("now", ack.now.as_secs_f64()),
            ("acked", ack.acked as f64),
            ("delivered", ack.delivered as f64),
            ("in_flight", ack.in_flight as f64),
            ("rtt", ack.rtt.map_or(f64::NAN, seconds)),
            ("smoothed_rtt", seconds(ack.smoothed_rtt)),
            ("min_rtt", seconds(ack.min_rtt)),
            ("delivery_rate", ack.delivery_rate.map_or(f64::NAN, |rate| rate.bytes_per_second() as f64)),
            ("lost", ack.lost as f64),
            ("cwnd_limited", f64::from(u8::from(ack.cwnd_limited))),
            ("in_recovery", f64::from(u8::from(ack.in_recovery))),
        ];
        self.call("on_ack", id, &values);
    }

    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        let cause = |of: Congestion| f64::from(u8::from(event.cause == of));
        let values = [
            ("now", event.now.as_secs_f64()),
            ("in_flight", event.in_flight as f64),
            ("lost", event.lost as f64),
            ("timeout", cause(Congestion::Timeout)),
            ("mark", cause(Congestion::Mark)),
            ("penalty", cause(Congestion::Penalty)),
        ];
        self.call("on_congestion", id, &values);
    }

    fn on_spurious(&mut self, _: SubflowId, _: Instant) {}

    fn on_idle_restart(&mut self, _: SubflowId, _: u64) {}

    fn on_mss(&mut self, _: SubflowId, _: u32) {}

    fn window(&self, id: SubflowId) -> u64 {
        self.number("window", id)
    }

    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.number("ssthresh", id)
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
