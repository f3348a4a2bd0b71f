//! Rows of runs in memory, without those that a fault has spoiled.

use crate::fault::Fault;
use anabranch_lab::runs::{Keep, Memory, Origin, Row, Shard};
use anabranch_settings::diagnostic::Diagnostic;
use std::sync::Arc;

/// Rows of runs that ended before there was a fault: after it policies in Python do nothing, and what the network does
/// without them is no result.
pub struct SoundRows {
    all: Memory,
    /// None without policies in Python: rows are then always sound.
    fault: Option<Arc<Fault>>,
}

impl SoundRows {
    pub fn new(fault: Option<Arc<Fault>>) -> Self {
        Self { all: Memory::default(), fault }
    }

    /// All of them, in the order in which runs ended.
    pub fn rows(self) -> Vec<Row> {
        self.all.rows()
    }
}

impl Keep for SoundRows {
    fn knows(&self, key: &str) -> bool {
        self.all.knows(key)
    }

    fn keep(&self, origin: &Origin, row: Row) -> Result<(), Diagnostic> {
        if self.fault.as_ref().is_some_and(|fault| fault.over()) {
            return Ok(());
        }
        self.all.keep(origin, row)
    }

    fn part(&self, plan: &str, shard: Shard, done: bool) -> Result<(), Diagnostic> {
        self.all.part(plan, shard, done)
    }
}
