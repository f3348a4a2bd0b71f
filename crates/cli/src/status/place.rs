//! Sockets on which running programs can be queried, in the directory of their journals.

use super::model::Status;
use anabranch_host::runtime_directories;
use std::fs::DirBuilder;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Maximum length of an answer.
const LONGEST: u64 = 16 << 20;

/// Socket path of this process; the socket is removed on drop.
pub struct Place {
    pub socket: PathBuf,
}

impl Place {
    /// In the first writable directory.
    ///
    /// # Errors
    /// No directory is writable.
    pub fn take(wanted: Option<&Path>, command: &str) -> io::Result<Self> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for root in runtime_directories(wanted) {
            let directory = root.join("status");
            match DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
                Ok(()) => {
                    let socket = directory.join(format!("{command}-{}.sock", std::process::id()));
                    // Left by an earlier process with the same identifier.
                    let _ = std::fs::remove_file(&socket);
                    return Ok(Self { socket });
                }
                Err(error) if outcome.is_err() => outcome = Err(error),
                Err(_) => {}
            }
        }
        outcome
    }
}

impl Drop for Place {
    /// Removes empty directories too.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        for directory in self.socket.ancestors().skip(1).take(2) {
            if std::fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

/// Sockets of running programs; stale sockets are removed.
pub fn instances(wanted: Option<&Path>) -> Vec<PathBuf> {
    let entries =
        runtime_directories(wanted).into_iter().filter_map(|root| std::fs::read_dir(root.join("status")).ok());
    let mut sockets: Vec<PathBuf> = entries.flatten().flatten().map(|entry| entry.path()).collect();
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    sockets.retain(|path| match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
            false
        }
        _ => true,
    });
    sockets.sort();
    sockets
}

/// Queries the program behind a socket.
///
/// # Errors
/// It does not answer, or in a format of another version.
pub fn read(socket: &Path) -> io::Result<Status> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let other = || io::Error::new(io::ErrorKind::InvalidData, "it does not answer as this version does");
    let text = std::str::from_utf8(&answer).map_err(|_| other())?;
    let (_, body) = text.split_once("\r\n\r\n").ok_or_else(other)?;
    serde_json::from_str(body).map_err(|_| other())
}
