//! The results file: each finished run is appended at once, so that a killed sweep can resume.
//!
//! A line applies to a run if its key matches: a hash of the scenario's text, the policies and their settings, and the
//! paths. It must also come from the same build of the program, since another may behave differently.

use crate::record::hexadecimal;
use anabranch_settings::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
pub struct Journal {
    path: PathBuf,
    program: String,
    file: Mutex<File>,
    known: BTreeMap<String, Line>,
}

impl Journal {
    /// Opens or creates the file; lines of other builds are ignored unless `any_program`.
    pub fn open(path: &Path, any_program: bool) -> Result<Self, Diagnostic> {
        let fail = |error: std::io::Error| Diagnostic::file(path, "write the results", &error);
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).truncate(false).open(path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.display();
                return Err(Diagnostic::plain(format!("another sweep is writing {path}: wait for it, or give --out")));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < bytes.len() {
            // Removes an incomplete last line.
            file.set_len(whole as u64).map_err(fail)?;
            file.seek(SeekFrom::End(0)).map_err(fail)?;
        }
        let program = program();
        let mut known = BTreeMap::new();
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            if any_program || line.program == program {
                known.insert(line.key.clone(), line);
            }
        }
        Ok(Self { path: path.to_owned(), program, file: Mutex::new(file), known })
    }

    /// The build of this program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Results of an earlier run.
    pub fn find(&self, key: &str) -> Option<&Line> {
        self.known.get(key)
    }

    /// Appends a run atomically.
    pub fn append(&self, line: &Line) -> Result<(), Diagnostic> {
        let fail = |error: std::io::Error| Diagnostic::file(&self.path, "write the results", &error);
        let mut text = serde_json::to_vec(line).map_err(|error| fail(error.into()))?;
        text.push(b'\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text).map_err(fail)
    }
}

/// Key of a run: 16 hexadecimal digits per 8 bytes of SHA-256.
pub fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hexadecimal(&hash.finalize()[..12])
}

/// The build: a hash of the executable, or version and commit if it cannot be read.
pub fn program() -> String {
    let own = ["/proc/self/exe".into(), std::env::current_exe().unwrap_or_default()];
    let bytes = own.iter().find_map(|path: &PathBuf| std::fs::read(path).ok());
    match bytes {
        Some(bytes) => hexadecimal(&Sha256::digest(&bytes)[..6]),
        None => format!("{} {}", env!("CARGO_PKG_VERSION"), crate::build::commit()),
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

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("anabranch-journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of the test's own");
        directory.join("sweep.jsonl")
    }

    #[test]
    fn what_was_appended_is_found_again_to_the_last_bit_and_a_torn_line_is_dropped() {
        let path = place("torn");
        let journal = Journal::open(&path, false).unwrap();
        let first = line("a", journal.program());
        journal.append(&first).unwrap();
        journal.append(&line("b", "another program")).unwrap();
        drop(journal);
        let mut torn = std::fs::read(&path).unwrap();
        let whole = torn.len();
        torn.extend_from_slice(&torn.clone()[..40]);
        std::fs::write(&path, torn).unwrap();

        let journal = Journal::open(&path, false).unwrap();
        assert_eq!(journal.find("a"), Some(&first));
        assert_eq!(journal.find("b"), None);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole as u64);
        journal.append(&line("c", journal.program())).unwrap();
        drop(journal);
        let journal = Journal::open(&path, true).unwrap();
        assert!(["a", "b", "c"].iter().all(|key| journal.find(key).is_some()));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn two_sweeps_do_not_write_one_file() {
        let path = place("twice");
        let _first = Journal::open(&path, false).unwrap();
        let message = Journal::open(&path, false).err().map(|error| error.message().to_owned());
        assert!(message.is_some_and(|message| message.starts_with("another sweep is writing")));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_key_depends_on_where_its_parts_end() {
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    }
}
