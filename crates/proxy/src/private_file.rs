//! Reads files with secrets, and refuses those that others can read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Longer files are not secrets of ours.
const LONGEST: u64 = 4_096;

/// Why a file with a secret is not read.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// What the operating system says.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Others may read it too.
    #[error("others may read it (mode {0:03o}); run `chmod 600` on it")]
    Permissions(u32),
    /// Not a short text.
    #[error("it is longer than 4 kB or not text")]
    Content,
}

/// The text of a file that only its owner may read.
pub(super) fn read(path: &Path) -> Result<String, PrivateFileError> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::Permissions(mode));
    }
    let mut text = String::new();
    match file.take(LONGEST + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= LONGEST => Ok(text),
        Ok(_) => Err(PrivateFileError::Content),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(PrivateFileError::Content),
        Err(error) => Err(error.into()),
    }
}

/// The lines that count: not empty, and no remark, which begins with `#`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
