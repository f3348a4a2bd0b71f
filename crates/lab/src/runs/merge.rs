//! Shards put together.

use super::row::{Line, Part, Row};
use crate::journal::{self, Journal};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// What was put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    /// Rows written.
    pub rows: usize,
    /// Rows that were in several files.
    pub repeated: usize,
    /// What is missing, a sentence each.
    pub missing: Vec<String>,
}

/// Shards of a plan.
#[derive(Default)]
struct Plan {
    of: u32,
    begun: BTreeSet<u32>,
    done: BTreeSet<u32>,
}

impl Plan {
    fn add(&mut self, part: &Part) {
        let [number, of] = part.shard;
        self.of = of;
        self.begun.insert(number);
        if part.done {
            self.done.insert(number);
        }
    }

    /// What is missing, a sentence each.
    fn missing(&self) -> Vec<String> {
        let list = |of: &dyn Fn(&u32) -> bool| {
            (1..=self.of).filter(of).map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
        };
        let absent = list(&|number| !self.begun.contains(number));
        let unfinished = list(&|number| self.begun.contains(number) && !self.done.contains(number));
        let sentence = |numbers: String, what: &str| {
            let word = if numbers.contains(',') { "shards" } else { "shard" };
            (!numbers.is_empty()).then(|| format!("{word} {numbers} of {} {what}", self.of))
        };
        let said = [sentence(absent, "missing"), sentence(unfinished, "not finished: give the same command again")];
        said.into_iter().flatten().collect()
    }
}

/// Puts the rows of `files` into a new file, each run once. Shards that are missing or not finished, and lines that
/// cannot be read, are told.
///
/// # Errors
/// A file cannot be read or written, or two files have different results of the same run of the same program.
pub fn merge(files: &[PathBuf], into: &Path) -> Result<Merged, Diagnostic> {
    let output = Journal::open(into, |_: Line| {})?;
    let (mut merged, mut plans) = (Merged::default(), BTreeMap::<String, Plan>::new());
    let (mut hashes, mut texts) = (HashMap::new(), BTreeSet::new());
    for file in files {
        let mut failure = None;
        let unreadable = journal::read(file, |line: Line| {
            let is_new = match &line {
                Line::Run(row) => {
                    let known = hashes.insert((row.key.clone(), row.program.clone()), row.trace_hash.clone());
                    if known.as_ref().is_some_and(|hash| *hash != row.trace_hash) {
                        failure = Some(contradiction(file, row));
                    }
                    merged.rows += usize::from(known.is_none());
                    merged.repeated += usize::from(known.is_some());
                    known.is_none()
                }
                Line::Text { text, .. } => texts.insert(text.clone()),
                Line::Part(part) => {
                    plans.entry(part.plan.clone()).or_default().add(part);
                    true
                }
            };
            if is_new && failure.is_none() {
                failure = output.append(&line).err();
            }
        })?;
        failure.map_or(Ok(()), Err)?;
        if unreadable > 0 {
            let (file, word) = (file.display(), if unreadable == 1 { "line" } else { "lines" });
            merged.missing.push(format!("{file}: {unreadable} {word} cannot be read: damaged, or of another version"));
        }
    }
    merged.missing.extend(plans.values().flat_map(Plan::missing));
    Ok(merged)
}

fn contradiction(file: &Path, row: &Row) -> Diagnostic {
    let (file, Row { key, policy, seed, .. }) = (file.display(), row);
    Diagnostic::plain(format!(
        "{file}: run {key}, {policy} with seed {seed}, has another trace hash than in an earlier file: the machines do \
         not compute the same"
    ))
}
