//! Objects of Python in place of policies.

use crate::calls::{Calls, Spent};
use crate::failure::plain;
use crate::fault::Fault;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

/// A class of Python whose objects are policies.
pub struct Class {
    /// As in Python.
    pub name: Arc<str>,
    class: Py<PyAny>,
    fault: Arc<Fault>,
    calls: Arc<Calls>,
}

impl Class {
    /// # Errors
    /// It has no name.
    pub fn new(class: &Bound<'_, PyAny>, fault: &Arc<Fault>, calls: &Arc<Calls>) -> PyResult<Arc<Self>> {
        let name: String = match class.getattr("__qualname__") {
            Ok(name) => name.extract()?,
            Err(_) => class.repr()?.to_string(),
        };
        let (fault, calls) = (Arc::clone(fault), Arc::clone(calls));
        Ok(Arc::new(Self { name: name.into(), class: class.clone().unbind(), fault, calls }))
    }

    /// An object of it; if that raises, one that does nothing.
    pub fn instance(self: &Arc<Self>) -> Instance {
        let spent = Cell::default();
        let object = Python::attach(|py| {
            let made = self.calls.make(py, &self.name, &spent, &self.fault, || self.class.call0(py));
            spent.set(spent.get().uncounted());
            self.fault.or(made, py.None())
        });
        Instance { object, class: Arc::clone(self), spent }
    }
}

/// An object of a class.
pub struct Instance {
    object: Py<PyAny>,
    class: Arc<Class>,
    spent: Cell<Spent>,
}

impl Instance {
    /// What the work gets out of the object; none if the run is to end, since something was raised.
    pub fn ask<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let Class { name, fault, calls, .. } = &*self.class;
        if fault.over() {
            return None;
        }
        let asked = Python::attach(|py| {
            let object = self.object.bind(py);
            calls.make(py, name, &self.spent, fault, || work(object))
        });
        fault.or(asked.map(Some), None)
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
