//! Classes of Python in place of policies.

use crate::congestion::PythonCongestion;
use crate::fault::Fault;
use crate::schedulers::PythonScheduler;
use anabranch_lab::simulation::OwnPolicies;
use pyo3::prelude::*;
use std::sync::Arc;

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
