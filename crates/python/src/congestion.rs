//! Congestion controls written in Python.

use crate::failure::plain;
use crate::fault::Fault;
use anabranch_policy::congestion::{Ack, Congestion, CongestionControl, CongestionEvent, Start};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::{Duration, Instant};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A congestion control that is an object of Python.
pub struct PythonCongestion {
    pub object: Py<PyAny>,
    pub fault: Arc<Fault>,
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
