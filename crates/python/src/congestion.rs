//! Congestion controls written in Python, and Rust's called from it.

use crate::choice::choice;
use crate::congestion_values::{Named, Values, of_ack, of_congestion, of_lost, of_sent, of_start, rate, rate_of};
use crate::failure::plain;
use crate::instance::{Instance, returned};
use anabranch_policy::congestion::{Ack, CongestionControl, CongestionEvent, Lost, Sent, Start};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Methods that a class need not have.
const OPTIONAL: [&str; 11] = [
    "on_sent",
    "governs_recovery",
    "on_lost",
    "on_recovery_end",
    "on_spurious",
    "on_idle_restart",
    "on_rest",
    "on_mss",
    "bandwidth",
    "shares_bottleneck",
    "pacing_rate",
];
/// The least window, bytes.
const LEAST: u64 = 1;

/// A congestion control that is an object of Python.
pub struct PythonCongestion {
    instance: Instance,
    optional: BTreeSet<&'static str>,
}

impl PythonCongestion {
    pub fn new(instance: Instance) -> Self {
        let optional = OPTIONAL.into_iter().filter(|name| instance.has(name)).collect();
        Self { instance, optional }
    }

    fn call(&self, method: &str, id: SubflowId, values: &[Named]) {
        self.instance.ask(|object| {
            let event = PyDict::new(object.py());
            values.iter().try_for_each(|(name, value)| event.set_item(*name, *value))?;
            object.call_method1(method, (id.0, event)).map(drop)
        });
    }

    /// Calls a method that need not be there.
    fn may_call(&self, method: &str, id: SubflowId, values: &[Named]) {
        if self.optional.contains(method) {
            self.call(method, id, values);
        }
    }

    fn number(&self, method: &str, id: SubflowId) -> u64 {
        let asked = self.instance.ask(|object| {
            let answer = object.call_method1(method, (id.0,))?;
            match answer.extract::<f64>() {
                Ok(bytes) if bytes.is_finite() && bytes >= 0.0 => Ok((bytes as u64).max(LEAST)),
                _ => Err(returned(method, &answer, "a number of bytes")),
            }
        });
        asked.unwrap_or(LEAST)
    }

    fn rate(&self, method: &str, id: SubflowId) -> Option<Rate> {
        if !self.optional.contains(method) {
            return None;
        }
        let asked = self.instance.ask(|object| {
            let answer = object.call_method1(method, (id.0,))?;
            match answer.extract::<Option<f64>>() {
                Ok(None) => Ok(None),
                Ok(Some(bytes)) if bytes.is_finite() && bytes >= 1.0 => Ok(Some(rate_of(bytes))),
                _ => Err(returned(method, &answer, "a rate of 1 byte per second or more, or None")),
            }
        });
        asked.flatten()
    }
}

impl CongestionControl for PythonCongestion {
    fn on_subflow_added(&mut self, id: SubflowId, start: Start) {
        self.call("on_subflow_added", id, &of_start(&start));
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.call("on_subflow_removed", id, &[]);
    }

    fn on_sent(&mut self, id: SubflowId, sent: &Sent) {
        self.may_call("on_sent", id, &of_sent(sent));
    }

    fn governs_recovery(&self) -> bool {
        if !self.optional.contains("governs_recovery") {
            return false;
        }
        let asked = self.instance.ask(|object| {
            let answer = object.call_method0("governs_recovery")?;
            answer.extract().map_err(|_| returned("governs_recovery", &answer, "True or False"))
        });
        asked.unwrap_or(false)
    }

    fn on_lost(&mut self, id: SubflowId, lost: &Lost) {
        self.may_call("on_lost", id, &of_lost(lost));
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.call("on_ack", id, &of_ack(ack));
    }

    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent) {
        self.call("on_congestion", id, &of_congestion(event));
    }

    fn on_recovery_end(&mut self, id: SubflowId, now: Instant) {
        self.may_call("on_recovery_end", id, &[("now", now.as_secs_f64())]);
    }

    fn on_spurious(&mut self, id: SubflowId, now: Instant) {
        self.may_call("on_spurious", id, &[("now", now.as_secs_f64())]);
    }

    fn on_idle_restart(&mut self, id: SubflowId, window: u64) {
        self.may_call("on_idle_restart", id, &[("window", window as f64)]);
    }

    fn on_rest(&mut self) {
        if self.optional.contains("on_rest") {
            self.instance.ask(|object| object.call_method0("on_rest").map(drop));
        }
    }

    fn on_mss(&mut self, id: SubflowId, mss: u32) {
        self.may_call("on_mss", id, &[("mss", f64::from(mss))]);
    }

    fn window(&self, id: SubflowId) -> u64 {
        self.number("window", id)
    }

    fn ssthresh(&self, id: SubflowId) -> u64 {
        self.number("ssthresh", id)
    }

    fn bandwidth(&self, id: SubflowId) -> Option<Rate> {
        self.rate("bandwidth", id)
    }

    fn shares_bottleneck(&self, one: SubflowId, other: SubflowId) -> Option<bool> {
        if !self.optional.contains("shares_bottleneck") {
            return None;
        }
        let asked = self.instance.ask(|object| {
            let answer = object.call_method1("shares_bottleneck", (one.0, other.0))?;
            answer.extract().map_err(|_| returned("shares_bottleneck", &answer, "True, False or None"))
        });
        asked.flatten()
    }

    fn pacing_rate(&self, id: SubflowId) -> Option<Rate> {
        self.rate("pacing_rate", id)
    }
}

/// A congestion control of the tables, for comparison with one in Python on the same events.
#[pyclass(frozen, module = "anabranch", name = "RustCongestionControl")]
pub struct RustCongestionControl(Mutex<Box<dyn CongestionControl>>);

/// What Python passes as an event.
type Event = BTreeMap<String, f64>;

impl RustCongestionControl {
    fn inner(&self) -> MutexGuard<'_, Box<dyn CongestionControl>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RustCongestionControl {
    /// A congestion control by name, with settings as keyword arguments.
    #[new]
    #[pyo3(signature = (name, **settings))]
    fn new(name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let combination = choice("congestion", name, settings)?;
        combination.build_congestion().map(|built| Self(Mutex::new(built))).map_err(plain)
    }

    fn on_subflow_added(&self, subflow: u32, event: Event) -> PyResult<()> {
        let start = Values::new(event, &of_start(&Values::default().start()))?.start();
        self.inner().on_subflow_added(SubflowId(subflow), start);
        Ok(())
    }

    #[pyo3(signature = (subflow, event=None))]
    fn on_subflow_removed(&self, subflow: u32, event: Option<Event>) {
        drop(event);
        self.inner().on_subflow_removed(SubflowId(subflow));
    }

    fn on_sent(&self, subflow: u32, event: Event) -> PyResult<()> {
        let sent = Values::new(event, &of_sent(&Values::default().sent()))?.sent();
        self.inner().on_sent(SubflowId(subflow), &sent);
        Ok(())
    }

    fn governs_recovery(&self) -> bool {
        self.inner().governs_recovery()
    }

    fn on_lost(&self, subflow: u32, event: Event) -> PyResult<()> {
        let lost = Values::new(event, &of_lost(&Values::default().lost()))?.lost();
        self.inner().on_lost(SubflowId(subflow), &lost);
        Ok(())
    }

    fn on_ack(&self, subflow: u32, event: Event) -> PyResult<()> {
        let ack = Values::new(event, &of_ack(&Values::default().ack()))?.ack();
        self.inner().on_ack(SubflowId(subflow), &ack);
        Ok(())
    }

    fn on_congestion(&self, subflow: u32, event: Event) -> PyResult<()> {
        let values = Values::new(event, &of_congestion(&Values::default().congestion()))?;
        self.inner().on_congestion(SubflowId(subflow), &values.congestion());
        Ok(())
    }

    fn on_recovery_end(&self, subflow: u32, event: Event) -> PyResult<()> {
        let now = Values::new(event, &[("now", 0.0)])?.now();
        self.inner().on_recovery_end(SubflowId(subflow), now);
        Ok(())
    }

    fn on_spurious(&self, subflow: u32, event: Event) -> PyResult<()> {
        let now = Values::new(event, &[("now", 0.0)])?.now();
        self.inner().on_spurious(SubflowId(subflow), now);
        Ok(())
    }

    fn on_idle_restart(&self, subflow: u32, event: Event) -> PyResult<()> {
        let window = Values::new(event, &[("window", 0.0)])?.bytes("window");
        self.inner().on_idle_restart(SubflowId(subflow), window);
        Ok(())
    }

    fn on_rest(&self) {
        self.inner().on_rest();
    }

    fn on_mss(&self, subflow: u32, event: Event) -> PyResult<()> {
        let mss = Values::new(event, &[("mss", 0.0)])?.bytes("mss");
        self.inner().on_mss(SubflowId(subflow), mss.try_into().unwrap_or(u32::MAX));
        Ok(())
    }

    fn window(&self, subflow: u32) -> u64 {
        self.inner().window(SubflowId(subflow))
    }

    fn ssthresh(&self, subflow: u32) -> u64 {
        self.inner().ssthresh(SubflowId(subflow))
    }

    fn bandwidth(&self, subflow: u32) -> Option<f64> {
        self.inner().bandwidth(SubflowId(subflow)).map(rate)
    }

    fn shares_bottleneck(&self, one: u32, other: u32) -> Option<bool> {
        self.inner().shares_bottleneck(SubflowId(one), SubflowId(other))
    }

    fn pacing_rate(&self, subflow: u32) -> Option<f64> {
        self.inner().pacing_rate(SubflowId(subflow)).map(rate)
    }
}
