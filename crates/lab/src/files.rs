//! Files and directories for results.

use anabranch_settings::diagnostic::Diagnostic;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Creates the results directory, so that an invalid path is reported before the work.
pub fn prepare(directory: &Path) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(directory).map_err(|error| Diagnostic::file(directory, "make the directory", &error))
}

/// Writes a file, which has its name only when it is complete: a full disk leaves the earlier one.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let cannot = |error: io::Error| Diagnostic::file(path, "write", &error);
    // A device or pipe, such as /dev/stdout, has no earlier content to keep; a link stays one.
    if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, text).map_err(cannot);
    }
    let (mut file, unfinished) = Unfinished::create(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).and_then(|()| unfinished.complete()).map_err(cannot)
}

/// A file as long as it is not complete; it is removed if that does not come.
pub struct Unfinished {
    path: PathBuf,
    part: PathBuf,
}

impl Unfinished {
    /// Begins what will be the file `path`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<(File, Self)> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let unfinished = Self { path: path.to_owned(), part: part.into() };
        Ok((File::create(&unfinished.part)?, unfinished))
    }

    /// Gives it its name; it replaces a file of that name.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn complete(self) -> io::Result<()> {
        std::fs::rename(&self.part, &self.path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // When it has its name nothing is left here.
        let _ = std::fs::remove_file(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_come_leaves_the_earlier_one() {
        let directory = std::env::temp_dir().join(format!("anabranch-files-{}", std::process::id()));
        prepare(&directory).expect("a directory of the test's own");
        let path = directory.join("report.html");
        write(&path, "whole").expect("the first one");
        let (mut file, unfinished) = Unfinished::create(&path).expect("the second one begins");
        file.write_all(b"ha").expect("its first part");
        drop(unfinished);
        let names = || std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!((std::fs::read_to_string(&path).expect("it is there"), names()), ("whole".to_owned(), 1));
        write(&path, "next").expect("the third one");
        assert_eq!((std::fs::read_to_string(&path).expect("it is there"), names()), ("next".to_owned(), 1));
        std::fs::remove_dir_all(&directory).expect("it is the test's own");
    }
}
