//! Objects of Python in place of policies.

use crate::failure::plain;
use crate::fault::Fault;
use pyo3::prelude::*;
use std::sync::Arc;

/// A class of Python whose objects are policies.
pub struct Class {
    /// As in Python.
    pub name: String,
    class: Py<PyAny>,
    fault: Arc<Fault>,
}

impl Class {
    /// # Errors
    /// It has no name.
    pub fn new(class: &Bound<'_, PyAny>, fault: &Arc<Fault>) -> PyResult<Arc<Self>> {
        let name = match class.getattr("__qualname__") {
            Ok(name) => name.extract()?,
            Err(_) => class.repr()?.to_string(),
        };
        Ok(Arc::new(Self { name, class: class.clone().unbind(), fault: Arc::clone(fault) }))
    }

    /// An object of it; if that raises, one that does nothing.
    pub fn instance(self: &Arc<Self>) -> Instance {
        let object = Python::attach(|py| self.fault.or(self.class.call0(py), py.None()));
        Instance { object, class: Arc::clone(self) }
    }
}

/// An object of a class.
pub struct Instance {
    object: Py<PyAny>,
    class: Arc<Class>,
}

impl Instance {
    /// What the work gets out of the object; none if the run is to end, since something was raised.
    pub fn ask<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.class.fault.over() {
            return None;
        }
        let asked = Python::attach(|py| work(self.object.bind(py)).map(Some));
        self.class.fault.or(asked, None)
    }

    /// Whether it has an attribute that it need not have.
    pub fn has(&self, name: &str) -> bool {
        self.ask(|object| object.hasattr(name)).unwrap_or(false)
    }
}

/// That a method returned something else than it should.
pub fn returned(method: &str, answer: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    match answer.repr() {
        Ok(answer) => plain(format!("{method}() returned {answer}: it is {wanted}")),
        Err(error) => error,
    }
}
