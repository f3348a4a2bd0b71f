//! A shared value that is replaced as a whole.

use std::sync::{Arc, PoisonError, RwLock};

/// Its present value; earlier readers keep theirs.
pub(super) struct Changing<T>(RwLock<Arc<T>>);

impl<T> Changing<T> {
    pub(super) fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    pub(super) fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}
