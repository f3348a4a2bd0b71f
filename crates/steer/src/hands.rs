//! Carries out commands.

use crate::netlink::RequestError;
use crate::path_manager::{Endpoint, KernelPathManager, flags, is_not_ours};
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Interface;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

/// Carries out commands for connections of the path manager of user space, and as far as that goes for those of the
/// kernel's own: only [`Command::SetBackup`], by the flags of the endpoint with the subflow's address, for all
/// connections of the namespace.
pub struct Hands {
    path_manager: KernelPathManager,
    /// Endpoints that we made backups.
    demoted: BTreeSet<IpAddr>,
    refusal: Option<String>,
    /// The interfaces of our addresses.
    interfaces: BTreeMap<IpAddr, Interface>,
    note: Option<Note>,
}

/// Is called with an endpoint before it is made a backup.
type Note = Box<dyn FnMut(&Endpoint) -> io::Result<()>>;

impl Hands {
    pub fn new(path_manager: KernelPathManager) -> Self {
        Self { path_manager, demoted: BTreeSet::new(), refusal: None, interfaces: BTreeMap::new(), note: None }
    }

    /// See [`crate::Daemon::note_endpoints`].
    pub(crate) fn note_endpoints(&mut self, note: Note) {
        self.note = Some(note);
    }

    /// Subflows that are opened from `address` leave by this interface, whatever the main routing table says.
    pub fn raise(&mut self, address: IpAddr, interface: Interface) {
        self.interfaces.insert(address, interface);
    }

    /// The address is gone.
    pub fn lower(&mut self, address: IpAddr) {
        self.interfaces.remove(&address);
    }

    /// Carries out a command.
    pub fn carry_out(&mut self, command: &Command) -> Outcome {
        self.refusal = None;
        if !self.path_manager.steers_connections() {
            return match *command {
                Command::SetBackup { endpoints, backup, .. } => self.set_endpoint(endpoints.local.ip(), backup),
                _ => Outcome::Unsupported,
            };
        }
        let pm = &mut self.path_manager;
        let done = match *command {
            Command::Announce { token, address, local_id } => pm.announce(token, address, local_id),
            Command::Remove { token, local_id } => pm.remove(token, local_id),
            Command::CreateSubflow { token, local, local_id, remote, backup } => {
                let interface = self.interfaces.get(&local).map_or(0, |interface| interface.0);
                let from =
                    Endpoint { id: local_id, address: local, port: 0, flags: flags::of_backup(backup), interface };
                pm.create_subflow(token, &from, remote)
            }
            Command::DestroySubflow { token, endpoints } => pm.destroy_subflow(token, endpoints),
            Command::SetBackup { token, endpoints, backup } => pm.set_backup(token, endpoints, backup),
        };
        match (done, *command) {
            (Err(error), Command::SetBackup { endpoints, backup, .. }) if is_not_ours(&error) => {
                self.set_endpoint(endpoints.local.ip(), backup)
            }
            (Err(error), _) if is_not_ours(&error) => Outcome::Unsupported,
            (done, _) => self.outcome(done),
        }
    }

    /// Changes the endpoint of an address. Without one the kernel could not be told to change the subflow alone.
    fn set_endpoint(&mut self, address: IpAddr, backup: bool) -> Outcome {
        let endpoints = match self.path_manager.endpoints() {
            Ok(endpoints) => endpoints,
            Err(error) => return self.outcome(Err(error)),
        };
        let Some(endpoint) = endpoints.into_iter().find(|endpoint| endpoint.address == address) else {
            return Outcome::Unsupported;
        };
        if endpoint.flags & flags::BACKUP != 0 && !self.demoted.contains(&address) {
            // The user made it a backup, and so it stays.
            return if backup { Outcome::Done } else { Outcome::Unsupported };
        }
        let noted = self.note.as_mut().filter(|_| backup).map_or(Ok(()), |note| note(&endpoint));
        if let Err(error) = noted {
            return self.outcome(Err(RequestError::Io(error)));
        }
        let done = self.path_manager.set_endpoint_backup(&endpoint, backup);
        let done = self.outcome(done);
        if done == Outcome::Done && backup {
            self.demoted.insert(address);
        } else if done == Outcome::Done {
            self.demoted.remove(&address);
        }
        done
    }

    /// Endpoints that are backups now by our doing.
    pub fn demoted(&self) -> &BTreeSet<IpAddr> {
        &self.demoted
    }

    /// Makes endpoints that we made backups what they were, unless they are still `wanted` so. Returns which ones.
    pub fn restore(&mut self, wanted: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let over: Vec<IpAddr> = self.demoted.iter().copied().filter(|address| !wanted(*address)).collect();
        for address in &over {
            // One that is gone needs nothing.
            let _ = self.set_endpoint(*address, false);
            self.demoted.remove(address);
        }
        over
    }

    /// Addresses whose endpoints the user made backups.
    pub fn backups_of_the_user(&mut self) -> BTreeSet<IpAddr> {
        let endpoints = self.path_manager.endpoints().unwrap_or_default();
        let backups = endpoints.into_iter().filter(|endpoint| endpoint.flags & flags::BACKUP != 0);
        backups.map(|endpoint| endpoint.address).filter(|address| !self.demoted.contains(address)).collect()
    }

    /// Why the last command was refused, in the kernel's words.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    fn outcome(&mut self, done: Result<(), RequestError>) -> Outcome {
        let Err(error) = done else { return Outcome::Done };
        self.refusal = Some(error.to_string());
        match error {
            RequestError::Refused { errno: nix::libc::EOPNOTSUPP, .. } => Outcome::Unsupported,
            RequestError::Refused { errno, .. } => Outcome::Refused(errno),
            RequestError::Io(error) => Outcome::Refused(error.raw_os_error().unwrap_or(nix::libc::EIO)),
        }
    }
}
