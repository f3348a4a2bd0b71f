//! What is kept of an experiment for the pages, in `docs/results/`.

use crate::measured::Measured;
use serde::{Deserialize, Serialize};

/// What is kept of an experiment for the pages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PageRecord {
    /// What was measured, as far as a table shows it.
    pub measured: Measured,
    /// Hash over the traces of the quick form of the experiment: it changes when the behaviour does, and is quick to find.
    pub quick_trace_hash: String,
}
