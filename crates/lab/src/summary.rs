//! `summary.json`: results of all experiments of one invocation.

use crate::build::commit;
use crate::means::Experiment;
use crate::measured::Measured;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Summary {
    /// Version of this format.
    pub schema: u32,
    /// One per experiment and per point of its sweep.
    pub experiments: Vec<Experiment>,
    /// Hash over the trace hashes of all runs, 16 hexadecimal digits.
    pub trace_hash: String,
    /// Commit of the program, or "unknown".
    pub commit: String,
    /// Names of the scenarios, separated by commas.
    pub scenario: String,
}

pub fn summary(measured: &[&Measured]) -> Summary {
    let names: Vec<&str> = measured.iter().map(|one| one.name.as_str()).collect();
    let hash =
        measured.iter().fold(0, |hash, one| combine(hash, u64::from_str_radix(&one.trace_hash, 16).unwrap_or(0)));
    Summary {
        schema: 1,
        experiments: measured.iter().flat_map(|one| one.experiments.clone()).collect(),
        trace_hash: format!("{hash:016x}"),
        commit: commit(),
        scenario: names.join(","),
    }
}

/// Adds `next` to a hash over several traces; their order matters (FNV-1a, byte by byte).
pub fn combine(hash: u64, next: u64) -> u64 {
    let start = if hash == 0 { 0xcbf2_9ce4_8422_2325 } else { hash };
    next.to_le_bytes().iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
