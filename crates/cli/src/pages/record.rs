//! The record of an experiment in `docs/results/`, from which pages are generated.

use anabranch_lab::measured::Measured;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PageRecord {
    /// Results shown in tables.
    pub measured: Measured,
    /// Hash over the traces of the quick form: detects changes of behaviour in little time.
    pub quick_trace_hash: String,
}
