//! What is to be undone, in a file: recorded before each step, so that the next start can remove what a killed program left.
//!
//! Each network namespace has a directory, each instance a file in it, which it keeps locked: a file that is not locked belongs
//! to a dead instance. Setting up or removing something needs the directory's lock.

use super::error::HostError;
use super::step::Step;
use anabranch_system::namespace_cookie;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names the calling thread's network namespace, among all that this machine had and will have.
fn namespace() -> io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{}-{}", boot.trim(), namespace_cookie()?))
}

/// Where what programs have while they run is kept, journals first of all: the best place first.
pub fn runtime_directories(wanted: Option<&Path>) -> Vec<PathBuf> {
    match wanted {
        Some(wanted) => vec![wanted.to_owned()],
        None => {
            let user = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| Path::new(&directory).join("anabranch"));
            std::iter::once(PathBuf::from("/run/anabranch")).chain(user).collect()
        }
    }
}

/// What becomes of what an instance has set up when it is no more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Afterwards {
    /// Whoever starts next undoes it.
    Undone,
    /// It stays until somebody asks for it to be undone.
    Stays,
}

impl Afterwards {
    /// How the names of such files end.
    fn suffix(self) -> &'static str {
        match self {
            Self::Undone => ".journal",
            Self::Stays => ".stays",
        }
    }
}

/// The number of an instance, and what becomes of its works, from the name of its file.
fn number(path: &Path) -> Option<(u8, Afterwards)> {
    let name = path.file_name()?.to_str()?;
    let numbered = |kind: Afterwards| Some((name.strip_suffix(kind.suffix())?.parse().ok()?, kind));
    numbered(Afterwards::Undone).or_else(|| numbered(Afterwards::Stays))
}

/// The files in a directory, in order of their instances.
fn files(directory: &Path) -> Vec<((u8, Afterwards), PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    files
}

/// Takes the lock of a file that is not locked.
fn try_lock(file: File) -> Option<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// What a file says. What was not written to its end was not done.
fn read(path: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The instances of this namespace that run, and those that are no more, without changing anything.
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

/// The directory of this namespace, locked.
pub struct Directory {
    root: PathBuf,
    path: PathBuf,
    /// Whether the root is ours to remove.
    ours: bool,
    lock: Flock<File>,
}

impl Directory {
    /// Makes it if need be, and waits until no other instance sets up or removes something.
    pub fn open(wanted: Option<&Path>) -> Result<Self, HostError> {
        let namespace = namespace().map_err(HostError::system("tell which network namespace this is"))?;
        let mut outcome = Err(HostError::NoPermission);
        for root in runtime_directories(wanted) {
            let path = root.join(&namespace);
            match lock_directory(&path) {
                Ok(lock) => return Ok(Self { path, ours: wanted.is_none(), lock, root }),
                // The first place is the one to be mended.
                Err(error) if matches!(outcome, Err(HostError::NoPermission)) => {
                    outcome = Err(HostError::Journal { path: root, error });
                }
                Err(_) => {}
            }
        }
        outcome
    }

    /// The journals of instances that are no more, and what they say.
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

    /// The numbers of all instances that have a journal.
    pub fn numbers(&self) -> Vec<u8> {
        files(&self.path).into_iter().map(|((number, _), _)| number).collect()
    }

    /// What instances that run have noted.
    pub fn running(&self) -> Vec<Step> {
        let all = files(&self.path).into_iter().map(|(_, path)| path);
        let running = all.filter(|path| File::open(path).is_ok_and(|file| try_lock(file).is_none()));
        running.flat_map(|path| read(&path)).collect()
    }

    /// What all instances have recorded.
    pub(crate) fn notes(&self) -> Vec<Step> {
        files(&self.path).into_iter().flat_map(|(_, path)| read(&path)).collect()
    }

    /// A new journal.
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

    /// Removes a journal of which everything has been undone.
    pub fn end(&self, journal: Journal) {
        // What cannot be removed is read again at the next start, and does no harm.
        let _ = std::fs::remove_file(&journal.path);
    }
}

impl Drop for Directory {
    /// Removes the directories if nothing is in them; the lock goes afterwards.
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
        // It may have been removed, and made again, while we waited.
        let ours = lock.metadata()?;
        if std::fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(lock);
        }
    }
}

/// One instance's file, locked as long as the instance lives.
pub struct Journal {
    path: PathBuf,
    file: Flock<File>,
}

impl Journal {
    /// What the other instances in the same namespace have recorded.
    pub fn others(&self) -> Vec<Step> {
        let all = self.path.parent().map(files).unwrap_or_default();
        all.into_iter().filter(|(_, path)| *path != self.path).flat_map(|(_, path)| read(&path)).collect()
    }

    /// Records a step that is about to be done.
    pub fn note(&mut self, step: &Step) -> Result<(), HostError> {
        let line = serde_json::to_string(step).map(|text| text + "\n").map_err(io::Error::other);
        let written = line.and_then(|line| self.file.write_all(line.as_bytes()));
        written.map_err(|error| HostError::Journal { path: self.path.clone(), error })
    }
}
