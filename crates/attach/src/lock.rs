//! State shared by the tasks of the event loop.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is behind the lock; each sender leaves it consistent.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
