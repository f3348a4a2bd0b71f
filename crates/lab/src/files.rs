//! Files and directories for results.

use anabranch_settings::diagnostic::Diagnostic;
use std::path::Path;

/// Creates the results directory, so that an invalid path is reported before the work.
pub fn prepare(directory: &Path) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(directory).map_err(|error| Diagnostic::file(directory, "make the directory", &error))
}

pub fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text).map_err(|error| Diagnostic::file(path, "write", &error))
}
