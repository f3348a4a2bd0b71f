//! A file of lines of JSON: each finished run is appended at once, so that what was killed can resume.

use crate::record::hexadecimal;
use anabranch_settings::diagnostic::Diagnostic;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A file to which this process appends, and no other.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens or creates the file, and hands each line that can be read as `L` to `known`. An incomplete last line, of a
    /// process that was killed, is removed.
    ///
    /// # Errors
    /// The file cannot be written, or another process has it open.
    pub fn open<L: DeserializeOwned>(path: &Path, known: impl FnMut(L)) -> Result<Self, Diagnostic> {
        let fail = |error: std::io::Error| Diagnostic::file(path, "write the results", &error);
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).truncate(false).open(path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.display();
                return Err(Diagnostic::plain(format!(
                    "another command is writing {path}: wait for it, or give another --out"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let lines = read_lines(&file, known).map_err(fail)?;
        file.set_len(lines.bytes).map_err(fail)?;
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Appends a line, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn append(&self, line: &impl Serialize) -> Result<(), Diagnostic> {
        let fail = |error: std::io::Error| Diagnostic::file(&self.path, "write the results", &error);
        let mut text = serde_json::to_vec(line).map_err(|error| fail(error.into()))?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let before = file.metadata().map_err(fail)?.len();
        file.write_all(&text).map_err(|error| {
            // What was written of it must not be taken for a line later; if that fails too, the next reader removes it.
            let _ = file.set_len(before);
            fail(error)
        })
    }
}

/// Reads the lines of a file as [`Journal::open`] does, without changing it. Returns the number of complete lines that
/// cannot be read as `L`.
///
/// # Errors
/// The file cannot be read.
pub fn read<L: DeserializeOwned>(path: &Path, known: impl FnMut(L)) -> Result<usize, Diagnostic> {
    let fail = |error: std::io::Error| Diagnostic::file(path, "read the results", &error);
    read_lines(&File::open(path).map_err(fail)?, known).map(|lines| lines.unreadable).map_err(fail)
}

/// The complete lines of a file.
#[derive(Default)]
struct Lines {
    bytes: u64,
    unreadable: usize,
}

fn read_lines<L: DeserializeOwned>(file: &File, mut known: impl FnMut(L)) -> std::io::Result<Lines> {
    let (mut reader, mut line, mut lines) = (BufReader::new(file), Vec::new(), Lines::default());
    while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        lines.bytes += line.len() as u64;
        match serde_json::from_slice(&line) {
            Ok(line) => known(line),
            Err(_) => lines.unreadable += 1,
        }
        line.clear();
    }
    Ok(lines)
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

/// The file with the compiled program, if it is not the executable.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Says that this program is a library in this file, which another program has loaded: [`program`] is a hash of it.
/// Only the first call counts.
pub fn program_is(library: PathBuf) {
    LIBRARY.get_or_init(|| library);
}

/// The build, computed once: a hash of the executable or the library, or version and commit if it cannot be read.
pub fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let library = LIBRARY.get().cloned();
        let own = || ["/proc/self/exe".into(), std::env::current_exe().unwrap_or_default()];
        let files = library.map_or_else(|| own().to_vec(), |library| vec![library]);
        match files.iter().find_map(|path| std::fs::read(path).ok()) {
            Some(bytes) => hexadecimal(&Sha256::digest(&bytes)[..6]),
            None => format!("{} {}", env!("CARGO_PKG_VERSION"), crate::build::commit()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("anabranch-journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of the test's own");
        directory.join("lines.jsonl")
    }

    fn lines(path: &Path) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        read(path, |line| found.push(line)).unwrap();
        found
    }

    #[test]
    fn what_was_appended_is_found_again_to_the_last_bit_and_a_torn_line_is_dropped() {
        let path = place("torn");
        let first = ("a".to_owned(), 2f64.sqrt() / 7.0);
        let journal = Journal::open(&path, |_: ()| {}).unwrap();
        journal.append(&first).unwrap();
        drop(journal);
        let mut torn = std::fs::read(&path).unwrap();
        let whole = torn.len();
        torn.extend_from_slice(&torn.clone()[..10]);
        std::fs::write(&path, torn).unwrap();
        assert_eq!(lines(&path), std::slice::from_ref(&first));

        assert_eq!(read(&path, |_: (String, f64)| {}).unwrap(), 0);
        assert_eq!(read(&path, |_: u8| {}).unwrap(), 1);

        let mut known = Vec::new();
        let journal = Journal::open(&path, |line: (String, f64)| known.push(line)).unwrap();
        assert_eq!(known, std::slice::from_ref(&first));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole as u64);
        let second = ("b".to_owned(), 1.0);
        journal.append(&second).unwrap();
        assert_eq!(lines(&path), [first, second]);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn two_processes_do_not_write_one_file() {
        let path = place("twice");
        let _first = Journal::open(&path, |_: ()| {}).unwrap();
        let message = Journal::open(&path, |_: ()| {}).err().map(|error| error.message().to_owned());
        assert!(message.is_some_and(|message| message.starts_with("another command is writing")));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_no_half_line() {
        let Ok(full) = OpenOptions::new().append(true).open("/dev/full") else { return };
        let journal = Journal { path: PathBuf::from("/dev/full"), file: Mutex::new(full) };
        let message = journal.append(&"something").unwrap_err();
        assert!(message.message().contains("/dev/full"), "{}", message.message());
    }

    #[test]
    fn a_key_depends_on_where_its_parts_end() {
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    }
}
