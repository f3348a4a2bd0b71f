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
    /// Returns whether it is the first error, which is the one that is told.
    pub fn set(&self, error: PyErr) -> bool {
        let mut told = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = told.is_none();
        told.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
        is_first
    }

    /// Tells this in place of the first error, which was set too early to say all.
    pub fn replace(&self, error: PyErr) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
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
