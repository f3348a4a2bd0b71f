//! Files and directories for results.

use crate::diagnostic::Diagnostic;
use std::path::Path;

/// Makes the directory for results, so that a wrong one is found before the work and not after it.
pub fn prepare(directory: &Path) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(directory).map_err(|error| Diagnostic::file(directory, "make the directory", &error))
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text).map_err(|error| Diagnostic::file(path, "write", &error))
}
