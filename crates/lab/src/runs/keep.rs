//! Where rows of runs go.

use super::origin::Origin;
use super::row::Row;
use super::shard::Shard;
use anabranch_settings::diagnostic::Diagnostic;
use std::sync::{Mutex, PoisonError};

/// Keeps rows as runs end, on any thread.
pub trait Keep: Sync {
    /// Whether the run with this key need not be executed.
    fn knows(&self, key: &str) -> bool;

    /// A run has ended.
    ///
    /// # Errors
    /// Its row cannot be kept; no further runs begin.
    fn keep(&self, origin: &Origin, row: Row) -> Result<(), Diagnostic>;

    /// A shard of a plan begins, or all its runs are there.
    ///
    /// # Errors
    /// It cannot be noted.
    fn part(&self, plan: &str, shard: Shard, done: bool) -> Result<(), Diagnostic>;
}

/// Keeps rows in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Vec<Row>>);

impl Memory {
    /// All rows, in the order in which runs ended.
    pub fn rows(self) -> Vec<Row> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keep for Memory {
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn keep(&self, _: &Origin, row: Row) -> Result<(), Diagnostic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        Ok(())
    }

    fn part(&self, _: &str, _: Shard, _: bool) -> Result<(), Diagnostic> {
        Ok(())
    }
}
