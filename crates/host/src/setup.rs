//! An instance's changes to the host: recorded, applied, and finally undone in reverse.

use super::error::HostError;
use super::filter;
use super::journal::{self, Afterwards, Directory, Journal};
use super::layout::{Layout, MAX_INSTANCES};
use super::netlink::Netlink;
use super::snapshot::Snapshot;
use super::step::{Route, Step, Target};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// CAP_NET_ADMIN of capabilities(7).
const CAP_NET_ADMIN: u64 = 1 << 12;

/// Whether the calling thread may change the network.
fn may_administer() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & CAP_NET_ADMIN != 0)
}

/// The lowest free number.
fn free_number(taken: &BTreeSet<u8>) -> Result<Layout, HostError> {
    let free = (0..MAX_INSTANCES).find(|instance| !taken.contains(instance)).ok_or(HostError::TooManyInstances)?;
    Ok(Layout { instance: free })
}

/// What an instance that starts now would find: its number, the host's state, and the steps of other instances.
pub struct Prospect {
    pub layout: Layout,
    pub snapshot: Snapshot,
    /// The recorded steps of running instances.
    pub others: Vec<Step>,
}

impl Prospect {
    /// What a further instance would find after this one.
    pub fn next(mut self) -> Result<Self, HostError> {
        self.snapshot.taken.insert(self.layout.instance);
        self.layout = free_number(&self.snapshot.taken)?;
        Ok(self)
    }
}

/// Reads the state without changes. Needs no privilege; what is not visible is not considered.
pub fn prospect(root: Option<&Path>, with_filter: bool) -> Result<Prospect, HostError> {
    let mut netlink = Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?;
    let mut snapshot = look(&mut netlink)?;
    if with_filter {
        snapshot.taken.extend(filter::taken()?);
    }
    let (running, gone) = journal::instances(root);
    // Setup first removes the leftovers of dead instances, so their numbers are free.
    snapshot.taken.retain(|number| !gone.contains(number));
    snapshot.taken.extend(running);
    Ok(Prospect { layout: free_number(&snapshot.taken)?, snapshot, others: Vec::new() })
}

fn look(netlink: &mut Netlink) -> Result<Snapshot, HostError> {
    Snapshot::take(netlink).map_err(HostError::system("read the network's state over rtnetlink"))
}

/// Whether a step fails since it copies a route whose router cannot be reached any more. The main table keeps such a route
/// when an address goes, but the kernel does not accept it anew.
fn leads_nowhere(step: &Step, error: &io::Error) -> bool {
    let by_a_router = matches!(step, Step::Route(Route { target: Target::Device { gateway: Some(_), .. }, .. }));
    by_a_router && matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}

/// What [`Setup::restore`] did.
#[must_use]
pub struct Restored {
    /// Addresses, routes and rules that were missing and are set again.
    pub steps: u64,
    /// The first failure.
    pub outcome: Result<(), HostError>,
}

/// The changes made by one instance.
pub struct Setup {
    netlink: Netlink,
    root: Option<PathBuf>,
    journal: Option<Journal>,
    done: Vec<Step>,
}

impl Setup {
    /// Undoes the steps of killed instances, and takes a number. No other instance changes anything until the directory
    /// is dropped.
    pub fn begin(root: Option<&Path>, with_filter: bool) -> Result<(Self, Directory, Prospect), HostError> {
        Self::begin_and(root, with_filter, Afterwards::Undone)
    }

    /// Like [`Self::begin`], with the fate of this instance's setup after its end.
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
            // Fails before any change if the program is missing.
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

    /// The current state of the host.
    pub fn look(&mut self) -> Result<Snapshot, HostError> {
        look(&mut self.netlink)
    }

    /// Undoes what dead instances left on purpose. Call this once its replacement is set up.
    pub fn relieve(&mut self, directory: &Directory) -> Result<bool, HostError> {
        undo_left_behind(directory, Afterwards::Stays, &mut self.netlink)
    }

    /// Records and carries out a step.
    pub fn carry_out(&mut self, step: &Step) -> Result<(), HostError> {
        // Routes come and go with their interfaces; one record suffices for removal.
        let new = !self.done.contains(step);
        if new {
            if let Some(journal) = &mut self.journal {
                journal.note(step)?;
            }
            self.done.push(step.clone());
        }
        match step.carry_out(&mut self.netlink) {
            // Another instance has the same rule: the last to end removes it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_shared(step) => Ok(()),
            Err(error) if leads_nowhere(step, &error) => Ok(()),
            // Of an instance whose journal is elsewhere, and not ours to remove.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && new && matches!(step, Step::Rule(_)) => {
                self.done.pop();
                Err(HostError::RulesOfAnother)
            }
            outcome => outcome.map_err(|error| failed(step, error)),
        }
    }

    /// Carries out steps again that another program has undone: addresses, routes, rules, and that a device is up. All are tried,
    /// also behind one that fails.
    pub fn restore<'a>(&mut self, steps: impl IntoIterator<Item = &'a Step>) -> Restored {
        let comes_back =
            |step: &&Step| matches!(step, Step::Address { .. } | Step::Up { .. } | Step::Route(_) | Step::Rule(_));
        let mut restored = Restored { steps: 0, outcome: Ok(()) };
        for step in steps.into_iter().filter(comes_back) {
            match step.carry_out(&mut self.netlink) {
                // A device may have been up before.
                Ok(()) => restored.steps += u64::from(!matches!(step, Step::Up { .. })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => restored.outcome = restored.outcome.and(Err(not_restored(step, error))),
            }
        }
        restored
    }

    fn is_shared(&self, step: &Step) -> bool {
        matches!(step, Step::Rule(_)) && self.others().contains(step)
    }

    /// Records a step that the caller carries out.
    pub fn note(&mut self, step: &Step) -> Result<(), HostError> {
        if self.done.contains(step) {
            return Ok(());
        }
        self.journal.as_mut().map_or(Ok(()), |journal| journal.note(step))?;
        self.done.push(step.clone());
        Ok(())
    }

    /// Restores the settings of an interface that has another name now, which has taken them with it.
    pub fn follow_rename(&mut self, before: &str, now: &str) -> Result<(), HostError> {
        let (old, new) = (format!("/conf/{before}/"), format!("/conf/{now}/"));
        for step in &self.done {
            let Step::Setting { key, value, before: Some(first), unless } = step else { continue };
            if key.contains(&old) {
                let (key, value) = (key.replace(&old, &new), value.clone());
                let moved = Step::Setting { key, value, before: Some(first.clone()), unless: unless.clone() };
                moved.undo(&mut self.netlink).map_err(|error| HostError::Undo { command: moved.in_short(), error })?;
            }
        }
        Ok(())
    }

    /// Restores the settings of an interface that needs them no more; it may get them again.
    pub fn give_back(&mut self, interface: &str) -> Result<(), HostError> {
        let of_it = format!("/conf/{interface}/");
        let is_its = |step: &Step| matches!(step, Step::Setting { key, before: Some(_), .. } if key.contains(&of_it));
        let (its, rest): (Vec<Step>, Vec<Step>) = std::mem::take(&mut self.done).into_iter().partition(is_its);
        self.done = rest;
        undo(its, &self.others(), &mut self.netlink)
    }

    /// Leaves steps as they are that the caller has undone.
    pub fn forget(&mut self, undone: impl Fn(&Step) -> bool) {
        self.done.retain(|step| !undone(step));
    }

    /// Removes a route or rule of ours.
    pub fn remove(&mut self, step: &Step) -> Result<(), HostError> {
        if self.is_shared(step) {
            return Ok(());
        }
        step.undo(&mut self.netlink).map_err(|error| HostError::Undo { command: step.in_short(), error })
    }

    /// Replaces our nftables table.
    pub fn replace_filter(&mut self, step: &Step) -> Result<(), HostError> {
        let Step::Filter { table, text } = step else { return Ok(()) };
        filter::replace(table, text).map_err(|error| failed(step, error))
    }

    /// The recorded steps of other instances.
    pub fn others(&self) -> Vec<Step> {
        self.journal.as_ref().map(Journal::others).unwrap_or_default()
    }

    /// Leaves the setup in place until its removal is requested.
    pub fn leave(&mut self) {
        self.journal = None;
        self.done.clear();
    }

    /// Undoes all steps.
    pub fn undo(&mut self) -> Result<(), HostError> {
        let Some(journal) = self.journal.take() else { return Ok(()) };
        // If the lock cannot be taken, for example without free descriptors, undo without it.
        let directory = Directory::open(self.root.as_deref());
        undo(std::mem::take(&mut self.done), &journal.others(), &mut self.netlink)?;
        directory?.end(journal);
        Ok(())
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // A destructor cannot report errors.
        let _ = self.undo();
    }
}

/// Maps the cause to an error that says what to do.
fn failed(step: &Step, error: io::Error) -> HostError {
    match (step, error.kind()) {
        (_, io::ErrorKind::PermissionDenied) => HostError::NoPermission,
        (Step::Filter { .. }, io::ErrorKind::NotFound) => {
            HostError::MissingProgram { program: "nft", package: "nftables" }
        }
        _ => HostError::Step { command: step.in_short(), error },
    }
}

/// The same while the instance runs: it had the privileges, and the rest stays.
fn not_restored(step: &Step, error: io::Error) -> HostError {
    let command = step.in_short();
    let denied = command.contains(':') && error.kind() == io::ErrorKind::PermissionDenied;
    let hint = if denied { "; IPv6 may be switched off there (net.ipv6.conf.*.disable_ipv6)" } else { "" };
    HostError::Restore { command, error, hint }
}

/// Undoes the steps of dead instances. Returns whether there were any.
fn undo_left_behind(directory: &Directory, kind: Afterwards, netlink: &mut Netlink) -> Result<bool, HostError> {
    let left = directory.left_behind(kind);
    let any = !left.is_empty();
    for (journal, mut steps) in left {
        // The instance's devices disappeared with it: one of that name belongs to another program.
        steps.retain(|step| !matches!(step, Step::Device { .. }));
        undo(steps, &journal.others(), netlink)?;
        directory.end(journal);
    }
    Ok(any)
}

/// Undoes what dead instances left on purpose. Returns whether there was any.
pub fn undo_what_stays(root: Option<&Path>) -> Result<bool, HostError> {
    if !may_administer() {
        return Err(HostError::NoPermission);
    }
    let mut netlink = Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?;
    undo_left_behind(&Directory::open(root)?, Afterwards::Stays, &mut netlink)
}

/// Undoes steps in reverse. Settings and rules that other instances need stay, for them to restore.
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
