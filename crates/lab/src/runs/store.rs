//! Where rows go.

use super::keep::Keep;
use super::origin::Origin;
use super::row::{Line, Part, Row};
use super::shard::Shard;
use crate::journal::{self, Journal, program};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// `runs.jsonl` of a directory, or a shard's file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    journal: Journal,
    /// Keys of rows that this program has written.
    known: Mutex<HashSet<String>>,
    /// Keys of texts.
    texts: Mutex<HashSet<String>>,
}

impl Store {
    /// Opens or creates it in `directory`. Rows of another build of the program are not known: another may behave
    /// differently.
    ///
    /// # Errors
    /// The file cannot be written, or another process writes it.
    pub fn open(directory: &Path, shard: Shard) -> Result<Self, Diagnostic> {
        let path = directory.join(format!("{}.jsonl", shard.file()));
        let (mut known, mut texts) = (HashSet::new(), HashSet::new());
        let journal = Journal::open(&path, |line: Line| match line {
            Line::Run(row) if row.program == program() => drop(known.insert(row.key)),
            Line::Run(_) => {}
            Line::Text { text, .. } => drop(texts.insert(text)),
            Line::Part(_) => {}
        })?;
        Ok(Self { path, journal, known: Mutex::new(known), texts: Mutex::new(texts) })
    }

    /// Rows that this program has written, with these keys, in the order of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rows(&self, keys: &HashSet<String>) -> Result<Vec<Row>, Diagnostic> {
        let mut rows = Vec::new();
        journal::read(&self.path, |line: Line| match line {
            Line::Run(row) if row.program == program() && keys.contains(&row.key) => rows.push(*row),
            _ => {}
        })?;
        Ok(rows)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Keep for Store {
    fn knows(&self, key: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    fn keep(&self, origin: &Origin, row: Row) -> Result<(), Diagnostic> {
        {
            // Under the lock, so that no row comes before its text.
            let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
            if !texts.contains(&row.text) {
                let text = row.text.clone();
                self.journal.append(&Line::Text { text: text.clone(), scenario_text: origin.text.clone() })?;
                texts.insert(text);
            }
        }
        let key = row.key.clone();
        if self.knows(&key) {
            return Ok(());
        }
        self.journal.append(&Line::Run(Box::new(row)))?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        Ok(())
    }

    fn part(&self, plan: &str, shard: Shard, done: bool) -> Result<(), Diagnostic> {
        self.journal.append(&Line::Part(Part { plan: plan.to_owned(), shard: [shard.number, shard.of], done }))
    }
}
