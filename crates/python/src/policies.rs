//! Classes of Python in place of policies, and choices of Rust's.

use crate::calls::Calls;
use crate::congestion::PythonCongestion;
use crate::fault::Fault;
use crate::instance::Class;
use crate::path_managers::PythonPathManager;
use crate::schedulers::PythonScheduler;
use anabranch_lab::simulation::OwnPolicies;
use pyo3::prelude::*;
use std::sync::Arc;

/// What a dict of Python has in place of policies: classes, or None, and the limit of their time in seconds.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub struct InPython {
    scheduler: Option<Py<PyAny>>,
    congestion: Option<Py<PyAny>>,
    path_manager: Option<Py<PyAny>>,
    timeout: Option<f64>,
}

impl InPython {
    /// Where the calls of its policies are counted.
    ///
    /// # Errors
    /// The limit is not above 0.
    pub fn calls(&self) -> PyResult<Arc<Calls>> {
        Calls::new(self.timeout).map(Arc::new)
    }

    /// Policies for runs. Each connection has an object of scheduler and congestion control, each host one of the path
    /// manager.
    ///
    /// # Errors
    /// A class has no name.
    pub fn policies(&self, py: Python<'_>, fault: &Arc<Fault>, calls: &Arc<Calls>) -> PyResult<OwnPolicies> {
        let mut own = OwnPolicies::default();
        let mut names = Vec::new();
        let mut class = |family: &str, class: &Option<Py<PyAny>>| -> PyResult<Option<Arc<Class>>> {
            let Some(class) = class else { return Ok(None) };
            let class = Class::new(class.bind(py), fault, calls)?;
            names.push(format!("{family}={}", class.name));
            Ok(Some(class))
        };
        if let Some(class) = class("scheduler", &self.scheduler)? {
            own.scheduler = Some(Arc::new(move || Box::new(PythonScheduler(class.instance()))));
        }
        if let Some(class) = class("congestion", &self.congestion)? {
            own.congestion = Some(Arc::new(move || Box::new(PythonCongestion::new(class.instance()))));
        }
        if let Some(class) = class("path_manager", &self.path_manager)? {
            own.path_manager = Some(Arc::new(move || Box::new(PythonPathManager(class.instance()))));
        }
        own.name = names.join(",");
        Ok(own)
    }
}
