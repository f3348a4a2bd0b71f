//! What went wrong in a policy written in Python.

use pyo3::prelude::*;
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
    pub fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The first error, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The result of a call, or else `instead`.
    pub fn or<T>(&self, result: PyResult<T>, instead: T) -> T {
        result.unwrap_or_else(|error| {
            // Who interrupted it has another reason.
            if !self.over() {
                self.set(error);
            }
            instead
        })
    }
}
