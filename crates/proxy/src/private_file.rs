//! Reads files with secrets, and refuses those that others can read.

use std::ffi::OsStr;
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
    #[error("it is too long or not text")]
    Content,
}

/// Whether a service manager keeps others out of the file's directory (systemd, LoadCredential): then the group's right may be the
/// mask of an access control list that names our user.
fn is_credential(path: &Path, directory: Option<&OsStr>) -> bool {
    directory.is_some_and(|directory| !directory.is_empty() && path.parent() == Some(Path::new(directory)))
}

/// The text of a file that only its owner may read.
pub(super) fn read(path: &Path) -> Result<String, PrivateFileError> {
    read_up_to(path, LONGEST)
}

/// As [`read`], of a file that may have so many bytes.
pub(super) fn read_up_to(path: &Path, longest: u64) -> Result<String, PrivateFileError> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY");
    let others = if is_credential(path, directory.as_deref()) { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(PrivateFileError::Permissions(mode));
    }
    let mut text = String::new();
    match file.take(longest + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= longest => Ok(text),
        Ok(_) => Err(PrivateFileError::Content),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(PrivateFileError::Content),
        Err(error) => Err(error.into()),
    }
}

/// The lines that count: not empty, and no remark, which begins with `#`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_a_file_right_in_the_directory_that_the_service_manager_names() {
        let is = |path: &str, directory: Option<&str>| is_credential(Path::new(path), directory.map(OsStr::new));
        assert!(is("/run/credentials/a.service/key", Some("/run/credentials/a.service")));
        assert!(!is("/run/credentials/a.service/key", None));
        assert!(!is("/etc/anabranch/key", Some("/run/credentials/a.service")));
        assert!(!is("key", Some("")));
        assert!(!is("/run/credentials/a.service/../../../tmp/key", Some("/run/credentials/a.service")));
    }
}
