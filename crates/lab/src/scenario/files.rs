//! Files that a scenario names, and what was read of them.

use crate::journal::key;
use crate::record::hexadecimal;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

/// Reads files beside a scenario, and remembers their contents: its results are a function of these too.
#[derive(Debug)]
pub struct Files<'a> {
    /// The directory to which their names are relative.
    pub directory: &'a Path,
    /// A hash of each that was read, in order.
    read: RefCell<Vec<String>>,
}

impl<'a> Files<'a> {
    /// Those in the directory of a scenario.
    pub fn new(directory: &'a Path) -> Self {
        Self { directory, read: RefCell::default() }
    }

    /// Where the file of this name is.
    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let bytes = std::fs::read(self.place(name))?;
        self.read.borrow_mut().push(hexadecimal(&Sha256::digest(&bytes)));
        Ok(bytes)
    }

    /// The file's text.
    ///
    /// # Errors
    /// It cannot be read, or is no UTF-8.
    pub fn text(&self, name: &str) -> io::Result<String> {
        String::from_utf8(self.bytes(name)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Key of all that was read; empty if nothing was.
    pub fn key(&self) -> String {
        let read = self.read.borrow();
        let hashes: Vec<&str> = read.iter().map(String::as_str).collect();
        if hashes.is_empty() { String::new() } else { key(&hashes) }
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Data, Plan};
    use crate::runs::{Grid, Shard};
    use crate::scenario::Document;
    use anabranch_media::clip;

    /// A link at the rate of a file, and a video of another one.
    const SCENARIO: &str = r#"
        name = "s"
        duration = "2 s"
        connection.receive_buffer = "1 MB"
        video = { trace = "frames.txt", deadline = "300 ms" }
        [[paths]]
        links = [{ rate = { trace = "rate.txt" }, delay = "10 ms" }]
    "#;

    #[test]
    fn the_key_of_a_run_depends_on_what_is_in_the_files_that_the_scenario_names() {
        let directory = std::env::temp_dir().join(format!("anabranch-scenario-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of the test's own");
        let put = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("it can be written");
        let mut document = Document::embedded("s.toml", SCENARIO, &[]);
        document.directory.clone_from(&directory);
        let plan = Plan { policies: vec!["plain".to_owned()], seeds: Some(2), ..Plan::default() };
        let keys = || {
            let data = Data { document: &document, plan: &plan, grid: Grid::default(), shard: Shard::WHOLE };
            data.keys().expect("a scenario")
        };
        put("rate.txt", "3\n6\n");
        put("frames.txt", clip::TRACE);
        let first = keys();
        assert_eq!((first.len(), keys()), (2, first.clone()));
        put("rate.txt", "1\n2\n");
        let faster = keys();
        assert!(faster.iter().all(|key| !first.contains(key)), "{faster:?}");
        put("frames.txt", &clip::TRACE.replacen("\n", "\n\n", 1));
        let other = keys();
        assert!(other.iter().all(|key| !first.contains(key) && !faster.contains(key)), "{other:?}");
        put("rate.txt", "3\n6\n");
        put("frames.txt", clip::TRACE);
        assert_eq!(keys(), first);
        std::fs::remove_dir_all(&directory).expect("it is the test's own");
    }
}
