//! A file of steps to undo. Each is recorded before it is done, so that the next start can undo the steps of a killed
//! program.
//!
//! Each network namespace has a directory, and each instance a file in it that it keeps locked. An unlocked file
//! belongs to a dead instance. Setup and removal require the directory's lock.

use super::error::HostError;
use super::step::Step;
use anabranch_system::namespace_cookie;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An identifier of the calling thread's network namespace, unique on this machine over time.
fn namespace() -> io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{}-{}", boot.trim(), namespace_cookie()?))
}

/// Candidate directories for journals and other runtime files, best first.
pub fn runtime_directories(wanted: Option<&Path>) -> Vec<PathBuf> {
    match wanted {
        Some(wanted) => vec![wanted.to_owned()],
        None => {
            let user = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| Path::new(&directory).join("anabranch"));
            std::iter::once(PathBuf::from("/run/anabranch")).chain(user).collect()
        }
    }
}

/// What happens to an instance's setup after the instance has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Afterwards {
    /// The next instance undoes it.
    Undone,
    /// It stays until its removal is requested.
    Stays,
}

impl Afterwards {
    /// The suffix of such journals' names.
    fn suffix(self) -> &'static str {
        match self {
            Self::Undone => ".journal",
            Self::Stays => ".stays",
        }
    }
}

/// The instance number and the kind of journal, from the name of its file.
fn number(path: &Path) -> Option<(u8, Afterwards)> {
    let name = path.file_name()?.to_str()?;
    let numbered = |kind: Afterwards| Some((name.strip_suffix(kind.suffix())?.parse().ok()?, kind));
    numbered(Afterwards::Undone).or_else(|| numbered(Afterwards::Stays))
}

/// The journals in a directory, in order of instances.
fn files(directory: &Path) -> Vec<((u8, Afterwards), PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    files
}

/// Locks a file if it is not locked.
fn try_lock(file: File) -> Option<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// The steps in a file. An incomplete last record was never acted on, and a damaged one does not hide the others.
fn read(path: &Path) -> Vec<Step> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The running and the dead instances of this namespace. Changes nothing.
pub fn instances(wanted: Option<&Path>) -> (Vec<u8>, Vec<u8>) {
    let Ok(namespace) = namespace() else { return (Vec::new(), Vec::new()) };
    let all = runtime_directories(wanted).into_iter().flat_map(|root| files(&root.join(&namespace)));
    let (mut running, mut gone) = (Vec::new(), Vec::new());
    for ((number, kind), path) in all {
        let is_gone = kind == Afterwards::Undone && File::open(&path).ok().and_then(try_lock).is_some();
        if is_gone { gone.push(number) } else { running.push(number) }
    }
    (running, gone)
}

/// The locked directory of this namespace.
pub struct Directory {
    root: PathBuf,
    path: PathBuf,
    /// Whether we created the root and may remove it.
    ours: bool,
    lock: Flock<File>,
}

impl Directory {
    /// Creates the directory if necessary, and waits for its lock.
    pub fn open(wanted: Option<&Path>) -> Result<Self, HostError> {
        let namespace = namespace().map_err(HostError::system("tell which network namespace this is"))?;
        let mut outcome = Err(HostError::NoPermission);
        for root in runtime_directories(wanted) {
            let path = root.join(&namespace);
            match lock_directory(&path) {
                Ok(lock) => return Ok(Self { path, ours: wanted.is_none(), lock, root }),
                // Report the error of the first candidate, since that is the one to repair.
                Err(error) if matches!(outcome, Err(HostError::NoPermission)) => {
                    outcome = Err(HostError::Journal { path: root, error });
                }
                Err(_) => {}
            }
        }
        outcome
    }

    /// The journals of dead instances, with their steps.
    pub fn left_behind(&self, wanted: Afterwards) -> Vec<(Journal, Vec<Step>)> {
        let mut journals = Vec::new();
        for (_, path) in files(&self.path).into_iter().filter(|((_, kind), _)| *kind == wanted) {
            if let Some(file) = OpenOptions::new().append(true).open(&path).ok().and_then(try_lock) {
                let steps = read(&path);
                journals.push((Journal { path, file }, steps));
            }
        }
        journals
    }

    /// The numbers of all instances with a journal.
    pub fn numbers(&self) -> Vec<u8> {
        files(&self.path).into_iter().map(|((number, _), _)| number).collect()
    }

    /// The recorded steps of running instances.
    pub fn running(&self) -> Vec<Step> {
        let all = files(&self.path).into_iter().map(|(_, path)| path);
        let running = all.filter(|path| File::open(path).is_ok_and(|file| try_lock(file).is_none()));
        running.flat_map(|path| read(&path)).collect()
    }

    /// The recorded steps of all instances.
    pub(crate) fn notes(&self) -> Vec<Step> {
        files(&self.path).into_iter().flat_map(|(_, path)| read(&path)).collect()
    }

    /// Creates a journal.
    pub fn begin(&self, instance: u8, afterwards: Afterwards) -> Result<Journal, HostError> {
        let path = self.path.join(format!("{instance}{}", afterwards.suffix()));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let locked = file.and_then(|file| {
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| io::Error::from(error))
        });
        match locked {
            Ok(file) => Ok(Journal { path, file }),
            Err(error) => Err(HostError::Journal { path, error }),
        }
    }

    /// Removes a journal after all of its steps are undone.
    pub fn end(&self, journal: Journal) {
        // If removal fails, the next start undoes the steps again, which is harmless.
        let _ = std::fs::remove_file(&journal.path);
    }
}

impl Drop for Directory {
    /// Removes the directories if they are empty, then releases the lock.
    fn drop(&mut self) {
        if std::fs::remove_dir(&self.path).is_ok() && self.ours {
            let _ = std::fs::remove_dir(&self.root);
        }
        let _ = &self.lock;
    }
}

fn lock_directory(path: &Path) -> io::Result<Flock<File>> {
    loop {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let Ok(directory) = File::open(path) else { continue };
        let lock = Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| io::Error::from(error))?;
        // The directory may have been removed and recreated before we got the lock.
        let ours = lock.metadata()?;
        if std::fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(lock);
        }
    }
}

/// An instance's journal, locked while the instance lives.
pub struct Journal {
    path: PathBuf,
    file: Flock<File>,
}

impl Journal {
    /// The recorded steps of the other instances in this namespace.
    pub fn others(&self) -> Vec<Step> {
        let all = self.path.parent().map(files).unwrap_or_default();
        all.into_iter().filter(|(_, path)| *path != self.path).flat_map(|(_, path)| read(&path)).collect()
    }

    /// Records a step before it is done.
    pub fn note(&mut self, step: &Step) -> Result<(), HostError> {
        let line = serde_json::to_string(step).map(|text| text + "\n").map_err(io::Error::other);
        let written = line.and_then(|line| self.file.write_all(line.as_bytes()));
        written.map_err(|error| HostError::Journal { path: self.path.clone(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_record_does_not_hide_the_others() {
        let path = std::env::temp_dir().join(format!("anabranch-host-journal-{}", std::process::id()));
        let steps = ["up0", "up1"].map(|device| Step::Up { device: device.to_owned() });
        let record = |step: &Step| serde_json::to_vec(step).expect("a step is JSON");
        let lines = [record(&steps[0]), b"\xff\xfe".to_vec(), record(&steps[1]), b"{\"Up\":{\"dev".to_vec()];
        std::fs::write(&path, lines.join(&b'\n')).expect("a file of the test's own");
        assert_eq!(read(&path), steps);
        std::fs::remove_file(&path).expect("it was written");
    }
}
