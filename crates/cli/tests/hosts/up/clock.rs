//! Wall clocks that a test sets. No namespace has one of its own, so a library that is preloaded adds to what programs
//! read of it.

use crate::program::command;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source of the library.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/up/clock.c");

/// Wall clocks of the programs at both ends.
pub struct Clocks {
    place: PathBuf,
}

impl Clocks {
    /// Clocks with the right time.
    pub fn new(place: &Path) -> Self {
        let clocks = Self { place: place.to_owned() };
        command("cc", &format!("-shared -fPIC -o {} {LIBRARY}", clocks.library().display()));
        for end in ["host", "server"] {
            std::fs::write(clocks.file(end), 0_i64.to_ne_bytes()).expect("there is room");
        }
        clocks
    }

    fn library(&self) -> PathBuf {
        self.place.join("clock.so")
    }

    fn file(&self, end: &str) -> PathBuf {
        self.place.join(format!("clock-{end}"))
    }

    /// Lets a program read the clock of this end.
    pub fn give(&self, end: &str, command: &mut Command) {
        command.env("LD_PRELOAD", self.library()).env("CLOCK", self.file(end));
    }

    /// Sets the clock of this end to so many seconds after the right time.
    pub fn set(&self, end: &str, seconds: i64) {
        // In place: the programs have mapped it.
        let file = OpenOptions::new().write(true).open(self.file(end)).expect("it exists");
        file.write_all_at(&seconds.to_ne_bytes(), 0).expect("there is room");
    }
}
