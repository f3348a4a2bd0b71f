//! The results file of a sweep: each finished run is appended at once, so that a killed sweep can resume.
//!
//! A line applies to a run if its key matches: a hash of the scenario's text, the policies and their settings, and the
//! paths. It must also come from the same build of the program, since another may behave differently.

use crate::journal::{self, program};
use anabranch_settings::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Key of the run.
    pub key: String,
    /// Build of the program.
    pub program: String,
    /// Index of the point in the design.
    pub point: u32,
    /// Name of the entrant.
    pub policy: String,
    /// Indices of the paths used.
    pub paths: Vec<usize>,
    /// Metrics by name.
    pub measured: BTreeMap<String, f64>,
}

/// The results file of a running sweep.
#[derive(Debug)]
pub struct Journal {
    lines: journal::Journal,
    known: BTreeMap<String, Line>,
}

impl Journal {
    /// Opens or creates the file; lines of other builds are ignored unless `any_program`.
    ///
    /// # Errors
    /// Those of [`journal::Journal::open`].
    pub fn open(path: &Path, any_program: bool) -> Result<Self, Diagnostic> {
        let mut known = BTreeMap::new();
        let lines = journal::Journal::open(path, |line: Line| {
            if any_program || line.program == program() {
                known.insert(line.key.clone(), line);
            }
        })?;
        Ok(Self { lines, known })
    }

    /// Results of an earlier run.
    pub fn find(&self, key: &str) -> Option<&Line> {
        self.known.get(key)
    }

    /// Appends a run.
    ///
    /// # Errors
    /// Those of [`journal::Journal::append`].
    pub fn append(&self, line: &Line) -> Result<(), Diagnostic> {
        self.lines.append(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, program: &str) -> Line {
        let measured = (1..50).map(|n| (format!("measured {n}"), f64::from(n).sqrt() / 7.0)).collect();
        let (key, program, policy) = (key.to_owned(), program.to_owned(), "plain".to_owned());
        Line { key, program, point: 3, policy, paths: vec![0, 1], measured }
    }

    #[test]
    fn lines_of_another_build_are_found_on_demand_only() {
        let path = std::env::temp_dir().join(format!("anabranch-sweep-{}.jsonl", std::process::id()));
        let journal = Journal::open(&path, false).unwrap();
        let first = line("a", program());
        journal.append(&first).unwrap();
        journal.append(&line("b", "another program")).unwrap();
        drop(journal);
        let journal = Journal::open(&path, false).unwrap();
        assert_eq!((journal.find("a"), journal.find("b")), (Some(&first), None));
        drop(journal);
        let journal = Journal::open(&path, true).unwrap();
        assert!(["a", "b"].iter().all(|key| journal.find(key).is_some()));
        std::fs::remove_file(&path).unwrap();
    }
}
