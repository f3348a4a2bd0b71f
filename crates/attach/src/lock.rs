//! State shared by the tasks of the event loop.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, ignoring poison: every critical section leaves the state consistent.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
