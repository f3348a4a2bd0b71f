//! Reads files with secrets, and refuses those that others can read.

use anabranch_system::open_at_once;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer files are not secrets of ours.
const LONGEST: u64 = 4_096;

/// How long a pipe is waited for: what reads a key again carries traffic meanwhile. A shell's `<(...)` writes at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pipe is looked at so often.
const LOOK: Duration = Duration::from_millis(10);

/// Why a file with a secret is not read.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// What the operating system says.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Others may read it too.
    #[error("others may read it (mode {0:03o}); run `chmod 600` on it")]
    Permissions(u32),
    /// A directory or a device.
    #[error("it is a directory or a device, and no regular file")]
    Kind,
    /// A FIFO that nobody writes to, or whose writer is silent.
    #[error("it is a pipe from which nothing came; give a file")]
    Silent,
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
    // To open a FIFO would wait for its writer.
    let file = open_at_once(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(PrivateFileError::Kind);
    }
    let mode = metadata.permissions().mode() & 0o777;
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY");
    let others = if is_credential(path, directory.as_deref()) { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(PrivateFileError::Permissions(mode));
    }
    let mut text = String::new();
    let file = Patient { file, until: Instant::now() + PATIENCE };
    match file.take(longest + 1).read_to_string(&mut text) {
        Ok(0) if !metadata.is_file() => Err(PrivateFileError::Silent),
        Ok(length) if length as u64 <= longest => Ok(text),
        Ok(_) => Err(PrivateFileError::Content),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(PrivateFileError::Content),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(PrivateFileError::Silent),
        Err(error) => Err(error.into()),
    }
}

/// A file whose reader waits until a moment for what is not there yet.
struct Patient {
    file: File,
    until: Instant,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < self.until => {
                    std::thread::sleep(LOOK);
                }
                result => return result,
            }
        }
    }
}

/// The lines that count: not empty, and no remark, which begins with `#`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_fifo_that_nobody_writes_to_is_refused_and_a_pipe_is_read() {
        let fifo = std::env::temp_dir().join(format!("anabranch-fifo-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status();
        assert!(made.expect("mkfifo runs").success());
        let outcome = read(&fifo);
        std::fs::remove_file(&fifo).expect("it is there");
        assert!(matches!(outcome, Err(PrivateFileError::Silent)), "{outcome:?}");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        // Its writer says nothing yet.
        assert!(matches!(read(Path::new(&path)), Err(PrivateFileError::Silent)));
        writer.write_all(b"secret\n").expect("there is room");
        drop(writer);
        assert_eq!(read(Path::new(&path)).expect("a text"), "secret\n");
    }

    #[test]
    fn a_device_and_a_directory_are_no_files_whose_mode_should_be_changed() {
        for path in ["/dev/null", "/tmp"] {
            let outcome = read(Path::new(path));
            assert!(matches!(outcome, Err(PrivateFileError::Kind)), "{path}: {outcome:?}");
        }
    }

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
