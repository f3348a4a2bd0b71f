//! A Router ID kept on disk, so that a router without an IPv4 address, or one that had to give way to another, has the same ID
//! after a restart.

use anabranch_wire::ospf::RouterId;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Name of the file in the state directory. It holds the ID that the addresses would give, `-` without one, and the ID taken
/// instead.
const NAME: &str = "router-id";

/// Most bytes of it.
const LONGEST: u64 = 64;

/// What is kept of a router's IDs, if anything.
#[derive(Debug)]
pub(super) struct Keeping {
    own: Option<RouterId>,
    state: Option<PathBuf>,
    kept: Option<Kept>,
    /// Why nothing can be kept, until it is told.
    pub failure: Option<String>,
}

impl Keeping {
    /// For a host whose addresses give the ID `own`, in the directory `state`; none: nothing is kept.
    pub(super) fn new(own: Option<RouterId>, state: Option<PathBuf>) -> Self {
        Self { own, state, kept: None, failure: None }
    }

    /// The ID of an earlier start. A router with addresses makes no file until it has something to keep.
    pub(super) fn before(&mut self) -> Option<RouterId> {
        let state = self.state.as_ref()?;
        if self.own.is_none() || state.join(NAME).exists() {
            self.open();
        }
        let own = self.own;
        self.kept.as_mut().and_then(|kept| kept.instead_of(own))
    }

    pub(super) fn works(&self) -> bool {
        self.kept.is_some()
    }

    fn open(&mut self) {
        let Some(state) = self.state.as_ref().filter(|_| self.kept.is_none()) else { return };
        match Kept::open(state) {
            Ok(kept) => self.kept = Some(kept),
            // A router with addresses has nothing to keep yet.
            Err(_) if self.own.is_some() => {}
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &io::Error) {
        let directory = self.state.as_deref().unwrap_or(Path::new("")).display();
        self.failure = Some(format!("the Router ID cannot be kept in {directory} for the next start: {error}"));
    }

    /// Keeps an ID for the next start.
    pub(super) fn keep(&mut self, id: RouterId) {
        let Some(state) = &self.state else { return };
        let own = self.own;
        let outcome = match &mut self.kept {
            Some(kept) => kept.keep(own, id),
            None if self.failure.is_some() => Ok(()),
            None => Kept::open(state).and_then(|kept| self.kept.insert(kept).keep(own, id)),
        };
        if let Err(error) = outcome {
            self.fail(&error);
        }
    }
}

/// The file, which no other router has as long as this lives: routers in the network namespaces of one host share directories.
#[derive(Debug)]
struct Kept {
    file: File,
}

impl Kept {
    /// Opens the file in a directory, which is made if there is none.
    ///
    /// # Errors
    /// If it cannot be written, or another router has it.
    fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock().map_err(|_| io::Error::new(io::ErrorKind::ResourceBusy, "another router uses it"))?;
        Ok(Self { file })
    }

    /// The ID that was taken instead of `own`, that of the host's addresses.
    fn instead_of(&mut self, own: Option<RouterId>) -> Option<RouterId> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0)).ok()?;
        (&self.file).take(LONGEST).read_to_string(&mut text).ok()?;
        let (before, id) = text.trim().split_once(' ')?;
        let id: Ipv4Addr = id.parse().ok()?;
        (before == name(own) && !id.is_unspecified()).then_some(RouterId(id.to_bits()))
    }

    /// Keeps an ID that is taken instead of `own`.
    fn keep(&mut self, own: Option<RouterId>, id: RouterId) -> io::Result<()> {
        let text = format!("{} {}\n", name(own), Ipv4Addr::from_bits(id.0));
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_all()
    }
}

fn name(own: Option<RouterId>) -> String {
    own.map_or("-".to_owned(), |id| Ipv4Addr::from_bits(id.0).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_kept_holds_for_the_same_addresses_and_one_router_at_a_time() {
        let directory = std::env::temp_dir().join(format!("anabranch-kept-{}", std::process::id()));
        let mut kept = Kept::open(&directory).expect("it can be written");
        assert_eq!(kept.instead_of(None), None);
        kept.keep(Some(RouterId(0x0a09_0909)), RouterId(7)).expect("it can be written");
        kept.keep(None, RouterId(7)).expect("it can be written");
        assert_eq!(fs::read_to_string(directory.join(NAME)).expect("it is there"), "- 0.0.0.7\n");
        let other = Kept::open(&directory).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(other, Err(io::ErrorKind::ResourceBusy));
        drop(kept);
        // A program that another test is starting has our descriptors until it runs.
        let open = |_| {
            std::thread::sleep(Duration::from_millis(10));
            Kept::open(&directory).ok()
        };
        let mut kept = (0..500).find_map(open).expect("it is free");
        assert_eq!(kept.instead_of(None), Some(RouterId(7)));
        // Since then it was given an address.
        assert_eq!(kept.instead_of(Some(RouterId(9))), None);
        for damaged in ["", "0.0.0.7", "- 0.0.0.0", "- seven", "\u{0}"] {
            fs::write(directory.join(NAME), damaged).expect("it can be written");
            assert_eq!(kept.instead_of(None), None, "{damaged}");
        }
        fs::remove_dir_all(directory).expect("it is there");
    }
}
