//! Where programs that run can be asked: a socket each, in the directory where their journals are.

use super::model::Status;
use anabranch_host::runtime_directories;
use std::fs::DirBuilder;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest answer that is read.
const LONGEST: u64 = 16 << 20;

/// A name for this process's socket; it is removed when this goes.
pub struct Place {
    /// The socket.
    pub socket: PathBuf,
}

impl Place {
    /// In the first directory that can be written.
    ///
    /// # Errors
    /// If there is none.
    pub fn take(wanted: Option<&Path>, command: &str) -> io::Result<Self> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for root in runtime_directories(wanted) {
            let directory = root.join("status");
            match DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
                Ok(()) => {
                    let socket = directory.join(format!("{command}-{}.sock", std::process::id()));
                    // Of a process of the same number, long gone.
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
    /// Removes the directories too if nothing is in them.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        for directory in self.socket.ancestors().skip(1).take(2) {
            if std::fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

/// The sockets of programs that run; those of programs that are no more are removed.
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

/// What the program behind a socket says.
///
/// # Errors
/// If it does not answer, or not as this version does.
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
