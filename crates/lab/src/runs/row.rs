//! A row.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Hash of all that the run is a function of, except the program.
    pub key: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the contender: the policy's, followed by @ and the baseline's, if any.
    pub policy: String,
    pub baseline: Option<String>,
    pub seed: u64,
    /// Hash over all events, 16 hexadecimal digits.
    pub trace_hash: String,
    /// Names of the paths that it might use.
    pub paths: Vec<String>,
    /// The policies of both ends with their settings, in the syntax of `--policy`.
    pub policies: String,
    /// The policy for datagrams, if the scenario has some.
    pub datagram: Option<String>,
    /// Policies and settings in words, with those of the connection.
    pub described: String,
    /// What was changed in the scenario, `key=value` each.
    pub set: Vec<String>,
    /// Parameters that vary between runs, with their values.
    pub grid: Vec<(String, String)>,
    /// Whether the scenario was shortened.
    pub quick: bool,
    /// Key of the scenario's text.
    pub text: String,
    pub version: String,
    /// Commit of the program, or "unknown".
    pub commit: String,
    /// Hash of the program.
    pub program: String,
    /// Metrics by name; what could not be measured is absent.
    pub metrics: BTreeMap<String, f64>,
}

/// A line of `runs.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Run(Box<Row>),
    /// The text of scenarios whose rows follow.
    Text {
        /// Key of the text.
        text: String,
        scenario_text: Arc<str>,
    },
    /// A shard begins, or has all its runs.
    Part(Part),
}

/// A shard of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Hash of the whole.
    pub plan: String,
    /// The number of the shard, from 1, and the number of shards.
    pub shard: [u32; 2],
    /// Whether all its runs are there.
    pub done: bool,
}
