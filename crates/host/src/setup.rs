//! The changes of the host by one instance: recorded, applied, and in the end undone in reverse.

use super::error::HostError;
use super::filter;
use super::journal::{self, Afterwards, Directory, Journal};
use super::layout::{Layout, MAX_INSTANCES};
use super::netlink::Netlink;
use super::snapshot::Snapshot;
use super::step::Step;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// CAP_NET_ADMIN of capabilities(7).
const CAP_NET_ADMIN: u64 = 1 << 12;

/// Whether the calling thread may set up the network.
fn may_administer() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & CAP_NET_ADMIN != 0)
}

/// The lowest number that is free.
fn free_number(taken: &BTreeSet<u8>) -> Result<Layout, HostError> {
    let free = (0..MAX_INSTANCES).find(|instance| !taken.contains(instance)).ok_or(HostError::TooManyInstances)?;
    Ok(Layout { instance: free })
}

/// What an instance would find if it began now: its number, the host, and what other instances have set up.
pub struct Prospect {
    pub layout: Layout,
    pub snapshot: Snapshot,
    /// What running instances have recorded.
    pub others: Vec<Step>,
}

impl Prospect {
    /// What another instance would find after this one.
    pub fn next(mut self) -> Result<Self, HostError> {
        self.snapshot.taken.insert(self.layout.instance);
        self.layout = free_number(&self.snapshot.taken)?;
        Ok(self)
    }
}

/// Looks without changes. Needs no privilege; what we may not see is not considered.
pub fn prospect(root: Option<&Path>, with_filter: bool) -> Result<Prospect, HostError> {
    let mut netlink = Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?;
    let mut snapshot = look(&mut netlink)?;
    if with_filter {
        snapshot.taken.extend(filter::taken()?);
    }
    let (running, gone) = journal::instances(root);
    // What dead instances left is removed before anything is set up.
    snapshot.taken.retain(|number| !gone.contains(number));
    snapshot.taken.extend(running);
    Ok(Prospect { layout: free_number(&snapshot.taken)?, snapshot, others: Vec::new() })
}

fn look(netlink: &mut Netlink) -> Result<Snapshot, HostError> {
    Snapshot::take(netlink).map_err(HostError::system("read the network's state over rtnetlink"))
}

/// What one instance has set up.
pub struct Setup {
    netlink: Netlink,
    root: Option<PathBuf>,
    journal: Option<Journal>,
    done: Vec<Step>,
}

impl Setup {
    /// Removes what killed instances left, and takes a number. No other instance sets up anything until the directory is dropped.
    pub fn begin(root: Option<&Path>, with_filter: bool) -> Result<(Self, Directory, Prospect), HostError> {
        Self::begin_and(root, with_filter, Afterwards::Undone)
    }

    /// As [`Self::begin`]; what this instance sets up has a fate of its own when it is no more.
    pub fn begin_and(
        root: Option<&Path>,
        with_filter: bool,
        afterwards: Afterwards,
    ) -> Result<(Self, Directory, Prospect), HostError> {
        if !may_administer() {
            return Err(HostError::NoPermission);
        }
        let mut netlink = Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?;
        if with_filter {
            // Before anything is changed: the program is there.
            filter::taken()?;
        }
        let directory = Directory::open(root)?;
        undo_left_behind(&directory, Afterwards::Undone, &mut netlink)?;
        let mut snapshot = look(&mut netlink)?;
        if with_filter {
            snapshot.taken.extend(filter::taken()?);
        }
        snapshot.taken.extend(directory.numbers());
        let layout = free_number(&snapshot.taken)?;
        let others = directory.notes();
        let journal = Some(directory.begin(layout.instance, afterwards)?);
        let setup = Self { netlink, root: root.map(Path::to_owned), journal, done: Vec::new() };
        Ok((setup, directory, Prospect { layout, snapshot, others }))
    }

    /// The host as it is now.
    pub fn look(&mut self) -> Result<Snapshot, HostError> {
        look(&mut self.netlink)
    }

    /// Removes what instances left that are no more and meant it to stay. To be called when what takes its place is there.
    pub fn relieve(&mut self, directory: &Directory) -> Result<bool, HostError> {
        undo_left_behind(directory, Afterwards::Stays, &mut self.netlink)
    }

    /// Records a step and does it.
    pub fn carry_out(&mut self, step: &Step) -> Result<(), HostError> {
        // Routes come and go with their interfaces; once is enough to know what to remove.
        if !self.done.contains(step) {
            if let Some(journal) = &mut self.journal {
                journal.note(step)?;
            }
            self.done.push(step.clone());
        }
        match step.carry_out(&mut self.netlink) {
            // Another instance has the same rule: who ends last removes it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_shared(step) => Ok(()),
            outcome => outcome.map_err(|error| failed(step, error)),
        }
    }

    fn is_shared(&self, step: &Step) -> bool {
        matches!(step, Step::Rule(_)) && self.others().contains(step)
    }

    /// Removes one route or rule of ours.
    pub fn remove(&mut self, step: &Step) -> Result<(), HostError> {
        if self.is_shared(step) {
            return Ok(());
        }
        step.undo(&mut self.netlink).map_err(|error| HostError::Undo { command: step.in_short(), error })
    }

    /// Puts another table in nftables in the place of ours.
    pub fn replace_filter(&mut self, step: &Step) -> Result<(), HostError> {
        let Step::Filter { table, text } = step else { return Ok(()) };
        filter::replace(table, text).map_err(|error| failed(step, error))
    }

    /// What other instances have recorded.
    pub fn others(&self) -> Vec<Step> {
        self.journal.as_ref().map(Journal::others).unwrap_or_default()
    }

    /// Leaves everything as it is, to who asks for it to be undone.
    pub fn leave(&mut self) {
        self.journal = None;
        self.done.clear();
    }

    /// Undoes everything.
    pub fn undo(&mut self) -> Result<(), HostError> {
        let Some(journal) = self.journal.take() else { return Ok(()) };
        // If the lock cannot be had, e.g. because no file can be opened, we undo without.
        let directory = Directory::open(self.root.as_deref());
        undo(std::mem::take(&mut self.done), &journal.others(), &mut self.netlink)?;
        directory?.end(journal);
        Ok(())
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // No caller is left to report to.
        let _ = self.undo();
    }
}

/// What went wrong, as an error that says what to do.
fn failed(step: &Step, error: io::Error) -> HostError {
    match (step, error.kind()) {
        (_, io::ErrorKind::PermissionDenied) => HostError::NoPermission,
        (Step::Filter { .. }, io::ErrorKind::NotFound) => {
            HostError::MissingProgram { program: "nft", package: "nftables" }
        }
        _ => HostError::Step { command: step.in_short(), error },
    }
}

/// Undoes what instances left that are no more; tells whether there was any.
fn undo_left_behind(directory: &Directory, kind: Afterwards, netlink: &mut Netlink) -> Result<bool, HostError> {
    let left = directory.left_behind(kind);
    let any = !left.is_empty();
    for (journal, mut steps) in left {
        // Its devices went with it: one of that name is somebody else's.
        steps.retain(|step| !matches!(step, Step::Device { .. }));
        undo(steps, &journal.others(), netlink)?;
        directory.end(journal);
    }
    Ok(any)
}

/// Undoes what was set up to stay by instances that are no more; tells whether there was any.
pub fn undo_what_stays(root: Option<&Path>) -> Result<bool, HostError> {
    if !may_administer() {
        return Err(HostError::NoPermission);
    }
    let mut netlink = Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?;
    undo_left_behind(&Directory::open(root)?, Afterwards::Stays, &mut netlink)
}

/// Undoes steps, the last first; settings and rules that others need stay, and are theirs to put back.
fn undo(steps: Vec<Step>, others: &[Step], netlink: &mut Netlink) -> Result<(), HostError> {
    let mut outcome = Ok(());
    for step in steps.into_iter().rev() {
        let needed = match &step {
            Step::Setting { key, .. } => others.iter().any(|other| other.sets(key)),
            Step::Rule(_) => others.contains(&step),
            _ => false,
        };
        if needed {
            continue;
        }
        if let Err(error) = step.undo(netlink) {
            outcome = Err(HostError::Undo { command: step.in_short(), error });
        }
    }
    outcome
}
